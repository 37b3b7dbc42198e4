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
    which takes as long as small models compute. The memory of at most `steps` steps is kept."""

    def __init__(self, outputs: int, steps: int = 3):
        self._most = steps * outputs
        self._kept: dict[int, list[np.ndarray]] = {}  # by bytes
        self._lock = threading.Lock()
        self._counts = sys.getrefcount if sys.implementation.name == "cpython" else None

    def array(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        size = math.prod(shape) * dtype.itemsize
        if size < _LEAST or not self._counts:
            return np.empty(shape, dtype)
        with self._lock:
            kept = self._kept.setdefault(size, [])
            for i in range(len(kept)):
                if self._counts(kept[i]) == _FREE:
                    return np.ndarray(shape, dtype, kept[i])
            memory = np.empty(size, np.uint8)
            if len(kept) < self._most:
                kept.append(memory)
        return np.ndarray(shape, dtype, memory)
