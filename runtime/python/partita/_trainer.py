"""A compiled model that learns."""

from __future__ import annotations

import ctypes
import dataclasses
import os
from typing import Mapping

import numpy as np

from ._library import Error, EvaluationStruct, PositionStruct, StepStruct, TrainerOptions, check, library
from ._ports import addresses, as_inputs, read_ports
from ._states import State, States

@dataclasses.dataclass(frozen=True)
class Step:
    """What a step says: how many there have been, with this one; the mean loss of its samples; the rate of the parameters that no group names; and the
    norm of all gradients before it was clipped, or 0 if nobody asks for it; and whether loss or gradients were not finite, so that no state has changed."""

    step: int
    loss: float
    learning_rate: float
    gradient_norm: float
    skipped: bool


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The loss of samples: the mean, or of a loss that is a sum, the sum (`loss_count` is 0 then). Of a loss that compares with labels: how many count, for
    how many of them the score is the largest, and for how many it is one of the five largest."""

    loss: float
    loss_sum: float
    loss_count: float
    labels: int
    right: int
    right_of_five: int

    @property
    def accuracy(self) -> float | None:
        return self.right / self.labels if self.labels else None


@dataclasses.dataclass(frozen=True)
class Position:
    """Where a training is in its samples, as `save` was told: the epoch of the next sample, and its place in the epoch."""

    epoch: int
    sample: int


class Trainer:
    """An artifact that partita-compile wrote with --train, or with --loss and --optimizer, loaded onto its devices.

    threads         cores a device; 0: the cores there are, divided by the devices
    pin             keep devices on their cores
    trust_weights   do not check the weights
    timeout         seconds that devices wait for one another at most
    seed            of initial values that are drawn, and of dropout
    allow_changes   go on from checkpoints of another seed, order or set-up, such as another learning rate; `remark` says what differs

    A loop has the bits of partita-run --train, if it gives the same samples in the same order. An array with a wrong label or index is an InputError, and
    changes no state. After another error of a step the parameters are lost: steps, evaluations, checkpoints and exports fail then until a checkpoint is
    loaded.
    """

    def __init__(self, path: str | os.PathLike[str], *, threads: int = 0, pin: bool = True, trust_weights: bool = False, timeout: float = 60, seed: int = 0,
                 allow_changes: bool = False):
        self._trainer = ctypes.c_void_p()
        if not 0 <= seed < 2**64:
            raise Error(f"the seed is {seed}: give a number from 0 to 2**64 - 1")
        options = TrainerOptions(ctypes.sizeof(TrainerOptions), threads, pin, trust_weights, 0, timeout, seed, allow_changes)
        check(library.partita_trainer_open(os.fsencode(path), ctypes.byref(options), ctypes.byref(self._trainer)))
        self.inputs = read_ports(self._trainer, library.partita_trainer_input_count, library.partita_trainer_input)
        self._states = States("trainer", library.partita_trainer_state_count, library.partita_trainer_state, library.partita_trainer_get_state,
                              library.partita_trainer_set_state, self._trainer)
        self.states: dict[str, State] = self._states.by_name  # in the order of the artifact
        self.step_samples: int = library.partita_trainer_step_samples(self._trainer)
        self.evaluation_samples: int = library.partita_trainer_evaluation_samples(self._trainer)

    def _handle(self) -> ctypes.c_void_p:
        if not self._trainer:
            raise Error("the trainer is closed")
        return self._trainer

    @property
    def remark(self) -> str:
        """What the user should know of how the model was loaded, went on from a checkpoint, or did not take of loaded weights, in lines."""
        return library.partita_trainer_remark(self._handle()).decode()

    def step(self, inputs: Mapping[str, np.ndarray] | None = None, /, **named: np.ndarray) -> Step:
        """Learns from `step_samples` samples, given by the inputs' names: one update."""
        arrays, samples, _ = as_inputs(self.inputs, inputs, named)
        result = StepStruct(ctypes.sizeof(StepStruct))
        check(library.partita_trainer_step(self._handle(), addresses(arrays), samples, ctypes.byref(result)))
        return Step(result.step, result.loss, result.learning_rate, result.gradient_norm, bool(result.skipped))

    def evaluate(self, inputs: Mapping[str, np.ndarray] | None = None, /, **named: np.ndarray) -> Evaluation:
        """Computes the loss of samples, any multiple of `evaluation_samples`. No state changes. Devices work side by side on as many as a step takes."""
        arrays, samples, _ = as_inputs(self.inputs, inputs, named)
        result = EvaluationStruct(ctypes.sizeof(EvaluationStruct))
        check(library.partita_trainer_evaluate(self._handle(), addresses(arrays), samples, ctypes.byref(result)))
        return Evaluation(result.loss, result.loss_sum, result.loss_count, result.labels, result.right, result.right_of_five)

    @property
    def steps(self) -> int:
        """Steps so far. The schedule of the learning rate goes by it. It may be set."""
        return library.partita_trainer_steps(self._handle())

    @steps.setter
    def steps(self, steps: int) -> None:
        check(library.partita_trainer_set_steps(self._handle(), steps))

    def state(self, name: str) -> np.ndarray:
        """A copy of a state, such as a parameter."""
        return self._states.get(self._handle(), name)

    def set_state(self, name: str, value: np.ndarray) -> None:
        """Replaces a state. The array must have its type and shape."""
        self._states.set(self._handle(), name, value)

    def save(self, folder: str | os.PathLike[str], *, keep: int = 3, epoch: int = 0, sample: int = 0, order: str | None = None) -> None:
        """Writes a checkpoint, FOLDER/step-NNNNNNNN; the newest `keep` stay. `epoch` and `sample` say where the training is in its samples, and `order`
        names their order, which must be the same to go on; partita-run has "shuffled", "in-order" and "drawn"."""
        position = self._position(order, epoch, sample)
        check(library.partita_trainer_save(self._handle(), os.fsencode(folder), keep, ctypes.byref(position)))

    def resume(self, folder: str | os.PathLike[str], *, order: str | None = None) -> Position:
        """Goes on from the newest whole checkpoint in the folder. After an error all states are as before."""
        position = self._position(order)
        check(library.partita_trainer_resume(self._handle(), os.fsencode(folder), ctypes.byref(position)))
        return Position(position.epoch, position.sample)

    def load_checkpoint(self, checkpoint: str | os.PathLike[str], *, order: str | None = None) -> Position:
        """The same from one checkpoint, such as "run/step-00000120"."""
        position = self._position(order)
        check(library.partita_trainer_load_checkpoint(self._handle(), os.fsencode(checkpoint), ctypes.byref(position)))
        return Position(position.epoch, position.sample)

    @staticmethod
    def _position(order: str | None, epoch: int = 0, sample: int = 0) -> PositionStruct:
        return PositionStruct(ctypes.sizeof(PositionStruct), epoch, sample, None if order is None else order.encode())

    def load_weights(self, path: str | os.PathLike[str]) -> None:
        """Loads the parameters that a file of safetensors has, by their names. After an error all states are as before."""
        check(library.partita_trainer_load_weights(self._handle(), os.fsencode(path)))

    def export(self, path: str | os.PathLike[str]) -> None:
        """Writes the ONNX file that was compiled, with the trained weights in it."""
        check(library.partita_trainer_export(self._handle(), os.fsencode(path)))

    def close(self) -> None:
        """Frees the trainer. What was not saved is lost."""
        if self._trainer:
            library.partita_trainer_close(self._trainer)
            self._trainer = ctypes.c_void_p()

    def __enter__(self) -> Trainer:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_trainer", None):
            self.close()
