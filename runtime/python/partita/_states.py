"""Values that steps change."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Callable

import numpy as np

from ._library import NAMES, Error, StateStruct, check, dtype_of

ROLES = ("parameter", "optimizer", "statistic", "carried")


@dataclasses.dataclass(frozen=True)
class State:
    """A value that steps change. `role` is "parameter", "optimizer" (what the optimizer keeps of a parameter), "statistic" (of the model, such as a
    running mean) or "carried" (what a step of inference leaves for the next one)."""

    name: str
    role: str
    type: str
    dtype: np.dtype
    shape: tuple[int, ...]


class States:
    """The states of `object`, a word for what has them, by functions of the library."""

    def __init__(self, object: str, count: Callable, describe: Callable, get: Callable, set: Callable, handle: ctypes.c_void_p):
        self._object, self._get, self._set = object, get, set
        self.by_name: dict[str, State] = {}
        for index in range(count(handle)):
            found = StateStruct(ctypes.sizeof(StateStruct))
            check(describe(handle, index, ctypes.byref(found)))
            state = State(found.name.decode(), ROLES[found.role], NAMES[found.type], dtype_of(found.type), tuple(found.shape[d] for d in range(found.rank)))
            self.by_name[state.name] = state

    def _find(self, name: str) -> tuple[int, State]:
        if name not in self.by_name:
            raise Error(f"the {self._object} has no state '{name}'; it has {', '.join(self.by_name) or 'none'}")
        return list(self.by_name).index(name), self.by_name[name]

    def get(self, handle: ctypes.c_void_p, name: str, *which: int) -> np.ndarray:
        """`which`: what the function wants besides, such as a sequence."""
        index, state = self._find(name)
        array = np.empty(state.shape, state.dtype)
        check(self._get(handle, *which, index, array.ctypes.data, array.nbytes))
        return array

    def set(self, handle: ctypes.c_void_p, name: str, value: np.ndarray, *which: int) -> None:
        index, state = self._find(name)
        array = np.asarray(value)
        if array.dtype != state.dtype or array.shape != state.shape:
            raise Error(f"the state '{name}' is given as {array.dtype} {list(array.shape)}, but {state.dtype} {list(state.shape)} is needed")
        array = np.ascontiguousarray(array)
        check(self._set(handle, *which, index, array.ctypes.data, array.nbytes))
