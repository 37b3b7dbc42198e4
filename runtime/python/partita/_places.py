"""Memory for what a model gives back."""

from __future__ import annotations

import math
import sys
import threading
from typing import Sequence

import numpy as np

_LEAST = 1 << 16  # bytes that are worth it
_FREE = 2  # references to memory of which no array is left: the list's, and that of the call which counts them


class Places:
    """Arrays for outputs. Where no array of a call is left, later calls write into its memory. New memory would cost a page fault for each of its pages,
    which takes as long as small models compute. As many memories are kept as `steps` steps have outputs, of the sizes that were wanted last."""

    def __init__(self, outputs: int, steps: int = 3):
        self._most = steps * outputs
        self._count = 0
        self._kept: dict[int, list[np.ndarray]] = {}  # by bytes; the size that was wanted last is the last one
        self._lock = threading.Lock()
        self._counts = sys.getrefcount if sys.implementation.name == "cpython" else None

    def array(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        size = math.prod(shape) * dtype.itemsize
        if size < _LEAST or not self._counts:
            return np.empty(shape, dtype)
        with self._lock:
            kept = self._kept[size] = self._kept.pop(size, [])
            for i in range(len(kept)):
                if self._counts(kept[i]) == _FREE:
                    return np.ndarray(shape, dtype, kept[i])
            memory = np.empty(size, np.uint8)
            kept.append(memory)
            self._count += 1
            if self._count > self._most:
                self._forget()
        return np.ndarray(shape, dtype, memory)

    def _forget(self) -> None:
        """Leaves the oldest memory of the size that was not wanted for longest to whoever has it."""
        size, oldest = next(iter(self._kept.items()))
        del oldest[0]
        self._count -= 1
        if not oldest:
            del self._kept[size]
