"""Inputs and outputs, and the arrays that are given for them."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Mapping, Sequence

import numpy as np

from ._library import NAMES, Error, PortStruct, check, dtype_of


@dataclasses.dataclass(frozen=True)
class Port:
    """An input or output. `shape` has None where samples follow one another, and the name of a dimension where sizes may differ from call to call; `type`
    is the ONNX type's name, and `dtype` what its arrays are of (bytes, where NumPy has no such type)."""

    name: str
    type: str
    dtype: np.dtype
    shape: tuple[int | str | None, ...]
    batch_axis: int | None
    entries: int  # along the batch axis, of one sample
    whole: str | None = None  # what combines samples, so that a call has the whole shape
    extra: tuple[int, ...] = ()  # by axis: entries besides those of its dimension, as a cache has before new words

    def text(self) -> str:
        """The shape, in words: "N, words + 511, 64"."""
        return ", ".join("N" if n is None else f"{n} + {more}" if more > 0 else f"{n} - {-more}" if more else str(n)
                         for n, more in zip(self.shape, self.extra, strict=True))


def read_ports(handle, count, describe, dimensions: Sequence[str] = ()) -> tuple[Port, ...]:
    """What the library says of all inputs, or of all outputs."""
    ports, names = [], list(dimensions)
    for index in range(count(handle)):
        port = PortStruct(ctypes.sizeof(PortStruct))
        check(describe(handle, index, ctypes.byref(port)))
        axis = port.batch_axis if port.batch_axis >= 0 else None
        entries = port.shape[axis] if axis is not None else 1
        shape = [names[port.dimensions[d]] if port.dimensions[d] >= 0 else port.shape[d] for d in range(port.rank)]
        extra = tuple(port.extra[d] if port.dimensions[d] >= 0 else 0 for d in range(port.rank))
        ports.append(Port(port.name.decode(), NAMES[port.type], dtype_of(port.type), tuple(None if d == axis else n for d, n in enumerate(shape)), axis,
                          entries, port.whole.decode() if port.whole else None, extra))
    return tuple(ports)


def as_inputs(ports: Sequence[Port], inputs, named: Mapping[str, np.ndarray]) -> tuple[list[np.ndarray], int, dict[str, int]]:
    """The arrays of all inputs as the library wants them, the samples in them, and the sizes of dimensions that they say."""
    given = {**_by_name(ports, inputs), **named}
    names = {port.name for port in ports}
    for name in given:
        if name not in names:
            raise Error(f"the model has no input '{name}'; it has {', '.join(sorted(names)) or 'none'}")
    arrays, samples, sizes = [], 1, {}
    for i, port in enumerate(ports):
        if port.name not in given:
            raise Error(f"the input '{port.name}' is not given")
        array, count = _as_input(port, given[port.name], sizes)
        if i and count != samples:
            raise Error(f"the inputs '{ports[0].name}' and '{port.name}' have {samples} and {count} samples")
        arrays.append(array)
        samples = count
    return arrays, samples, sizes


def _by_name(ports: Sequence[Port], inputs) -> Mapping[str, np.ndarray]:
    """Inputs by their names, from an array if there is one input."""
    if inputs is None or isinstance(inputs, Mapping):
        return inputs or {}
    if len(ports) == 1:
        return {ports[0].name: inputs}
    names = ", ".join(port.name for port in ports)
    raise Error(f"an array without a name, and the model has {len(ports)} inputs ({names or 'none'}): give each by its name, as in run(NAME=array)")


def _as_input(port: Port, given, sizes: dict[str, int]) -> tuple[np.ndarray, int]:
    """The array as the library wants it, and the samples in it. Adds the sizes of dimensions that it says."""
    array = np.ascontiguousarray(given)
    fits = array.dtype == port.dtype and array.ndim == len(port.shape)
    fits = fits and all(n is None or (sizes.setdefault(n, array.shape[d] - port.extra[d]) + port.extra[d] if isinstance(n, str) else n) == array.shape[d]
                        for d, n in enumerate(port.shape))
    if not fits:
        known = "".join(f", with {size} {name}" for name, size in sizes.items() if name in port.shape)
        whole = f"; samples cannot be split: {port.whole}" if port.whole else ""
        raise Error(f"the input '{port.name}' is given as {array.dtype} {list(array.shape)}, but {port.dtype} [{port.text()}]{known} is needed{whole}")
    if port.batch_axis is None:
        return array, 1
    entries = array.shape[port.batch_axis]
    if entries == 0 or entries % port.entries:
        raise Error(f"the input '{port.name}' has {entries} entries along axis {port.batch_axis}, and a sample has {port.entries}")
    return array, entries // port.entries


def addresses(arrays: Sequence[np.ndarray]):
    """What the library reads arrays by."""
    return (ctypes.c_void_p * max(1, len(arrays)))(*(array.ctypes.data for array in arrays))
