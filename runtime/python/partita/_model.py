"""A compiled model with its devices."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import threading
from typing import Mapping

import numpy as np

from ._library import DeviceProfileStruct, DimensionStruct, Error, Options, ProfileStruct, check, library
from ._places import Places
from ._ports import addresses, as_inputs, read_ports
from ._states import State, States


@dataclasses.dataclass(frozen=True)
class Profile:
    """Steps, the samples in them, and the seconds that each device computed, by its name."""

    steps: int
    samples: int
    busy_s: dict[str, float]


class Ticket:
    """Samples under way. `wait` gives their outputs, as often as one likes."""

    def __init__(self, model: Model, number: int, outputs: dict[str, np.ndarray]):
        self._model, self._number, self._outputs = model, number, outputs
        self._error: Error | None = None
        self._waited = False
        self._lock = threading.Lock()

    def wait(self) -> dict[str, np.ndarray]:
        """The outputs, by their names, when they have been computed."""
        with self._lock:
            if not self._waited:
                try:
                    check(library.partita_wait(self._model._handle(), self._number))
                except Error as error:
                    self._error = error
                self._waited = True
                self._model._under_way.pop(self._number, None)
        if self._error:
            raise self._error
        return self._outputs


class Sequence:
    """A text or a sound with states of its own (partita-compile --sequences): one of `Model.sequences`. One thread at a time may call its methods."""

    def __init__(self, model: Model, number: int):
        self._model, self.number = model, number

    def submit(self, inputs: Mapping[str, np.ndarray] | np.ndarray | None = None, /, **named: np.ndarray) -> Ticket:
        """As `Model.submit`, for the next steps of the sequence."""
        return self._model._submit(self.number, inputs, named)

    def run(self, inputs: Mapping[str, np.ndarray] | np.ndarray | None = None, /, **named: np.ndarray) -> dict[str, np.ndarray]:
        """As `Model.run`, likewise."""
        return self.submit(inputs, **named).wait()

    def reset(self) -> None:
        """Makes the states of the sequence 0, for the calls that follow."""
        check(library.partita_reset_sequence(self._model._handle(), self.number))

    def state(self, name: str) -> np.ndarray:
        """A copy of a state, when what was submitted is done."""
        return self._model._states.get(self._model._handle(), name, self.number)

    def set_state(self, name: str, value: np.ndarray) -> None:
        """Replaces a state, when what was submitted is done. The array must have its type and shape."""
        self._model._states.set(self._model._handle(), name, value, self.number)


class Model:
    """An artifact that partita-compile wrote, loaded onto its devices.

    threads         cores a device; 0: the cores there are, divided by the devices
    pin             keep devices on their cores
    strict_nan      keep NaN from the first step on
    trust_weights   do not check the weights
    timeout         seconds that devices wait for one another at most
    batch_delay     seconds that a sample may wait for others that share its step
    queued_samples  `submit` blocks while more wait; 0: those of four steps

    An artifact may have plans for several sizes of a dimension (`dimensions`, by name). The arrays say then which size is meant; between two plans' sizes
    they are padded, if the artifact was compiled with a mask.
    """

    def __init__(self, path: str | os.PathLike[str], *, threads: int = 0, pin: bool = True, strict_nan: bool = False, trust_weights: bool = False,
                 timeout: float = 60, batch_delay: float = 0, queued_samples: int = 0):
        self._model = ctypes.c_void_p()
        self._under_way: dict[int, list[np.ndarray]] = {}  # what the devices read and write
        options = Options(ctypes.sizeof(Options), threads, pin, strict_nan, trust_weights, timeout, batch_delay, queued_samples)
        check(library.partita_open(os.fsencode(path), ctypes.byref(options), ctypes.byref(self._model)))
        self.dimensions = self._dimensions()
        self.inputs = read_ports(self._model, library.partita_input_count, library.partita_input, self.dimensions)
        self.outputs = read_ports(self._model, library.partita_output_count, library.partita_output, self.dimensions)
        self._states = States("model", library.partita_state_count, library.partita_describe_state, library.partita_get_sequence_state,
                              library.partita_set_sequence_state, self._model)
        self.states: dict[str, State] = self._states.by_name  # what steps go on from (partita-compile --state)
        self._sequences: int = library.partita_sequence_count(self._model)
        self._places = Places(len(self.outputs))
        self.step_samples: int = library.partita_step_samples(self._model)
        self.remark: str = library.partita_remark(self._model).decode()  # what the user should know of how it was loaded, in lines

    def _dimensions(self) -> dict[str, tuple[int, ...]]:
        dimensions = {}
        for index in range(library.partita_dimension_count(self._model)):
            found = DimensionStruct(ctypes.sizeof(DimensionStruct))
            check(library.partita_get_dimension(self._model, index, ctypes.byref(found)))
            dimensions[found.name.decode()] = tuple(found.sizes[i] for i in range(found.count))
        return dimensions

    def _handle(self) -> ctypes.c_void_p:
        if not self._model:
            raise Error("the model is closed")
        return self._model

    @property
    def sequences(self) -> tuple[Sequence, ...]:
        """Those that have states of their own (partita-compile --sequences)."""
        return tuple(Sequence(self, number) for number in range(self._sequences))

    def submit(self, inputs: Mapping[str, np.ndarray] | np.ndarray | None = None, /, **named: np.ndarray) -> Ticket:
        """Hands samples to the devices. Blocks while too many wait. Inputs must not change until the ticket's `wait` has returned. A model with one
        input takes its array without a name."""
        return self._submit(0, inputs, named)

    def _submit(self, sequence: int, inputs, named) -> Ticket:
        arrays, samples, sizes = as_inputs(self.inputs, inputs, named)
        for name, known in self.dimensions.items():
            sizes.setdefault(name, known[-1])
        outputs = {}
        for port in self.outputs:
            shape = [samples * port.entries if n is None else sizes[n] + more if isinstance(n, str) else n for n, more in zip(port.shape, port.extra)]
            outputs[port.name] = self._places.array(shape, port.dtype)
        ticket = ctypes.c_uint64()
        places = list(outputs.values())
        exact = (ctypes.c_int64 * max(1, len(self.dimensions)))(*(sizes[name] for name in self.dimensions))
        check(library.partita_submit_sequence(self._handle(), sequence, exact, addresses(arrays), samples, addresses(places), ctypes.byref(ticket)))
        self._under_way[ticket.value] = arrays + places
        return Ticket(self, ticket.value, outputs)

    def run(self, inputs: Mapping[str, np.ndarray] | np.ndarray | None = None, /, **named: np.ndarray) -> dict[str, np.ndarray]:
        """Computes samples, by the inputs' names, and returns the outputs by theirs. A model with one input takes its array without a name."""
        return self.submit(inputs, **named).wait()

    def reset(self) -> None:
        """Makes all states 0, as they were at first, for the calls that follow."""
        check(library.partita_reset_states(self._handle()))

    def state(self, name: str) -> np.ndarray:
        """A copy of a state, when what was submitted is done. Of a model with several sequences, the first one's."""
        return Sequence(self, 0).state(name)

    def set_state(self, name: str, value: np.ndarray) -> None:
        """Replaces a state, when what was submitted is done. The array must have its type and shape."""
        Sequence(self, 0).set_state(name, value)

    def profile(self) -> Profile:
        """What was computed since the model was opened; steps under way do not count."""
        found = ProfileStruct(ctypes.sizeof(ProfileStruct))
        check(library.partita_get_profile(self._handle(), ctypes.byref(found)))
        busy = {}
        for index in range(found.devices):
            device = DeviceProfileStruct(ctypes.sizeof(DeviceProfileStruct))
            check(library.partita_get_device_profile(self._handle(), index, ctypes.byref(device)))
            busy[device.name.decode()] = device.busy_s
        return Profile(found.steps, found.samples, busy)

    def close(self) -> None:
        """Finishes what is under way, and frees the model."""
        if self._model:
            library.partita_close(self._model)
            self._model = ctypes.c_void_p()
            self._under_way.clear()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_model", None):
            self.close()
