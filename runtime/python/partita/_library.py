"""libpartita by ctypes: what partita.h declares."""

from __future__ import annotations

import ctypes
import os
import pathlib

import numpy as np

API_VERSION = 1

# By partita_type; types that NumPy has not are their bytes.
DTYPES = ("float32", "float64", "float16", "uint16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
          "uint8", "uint8", "uint8", "uint8", "uint8", "uint8", "int8", "uint8", "int8", "uint8")
NAMES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
         "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float4e2m1", "int4", "uint4", "int2", "uint2")


class Error(RuntimeError):
    """What libpartita says is wrong."""


class InputError(Error):
    """What is wrong is a value in an array that was given, such as a label that is no class. Nothing has changed: other arrays can follow."""


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int), ("pin", ctypes.c_int), ("strict_nan", ctypes.c_int), ("trust_weights", ctypes.c_int),
                ("timeout_s", ctypes.c_double), ("batch_delay_s", ctypes.c_double), ("queued_samples", ctypes.c_int64)]


class PortStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("batch_axis", ctypes.c_int), ("bytes", ctypes.c_int64),
                ("dimensions", ctypes.POINTER(ctypes.c_int)), ("whole", ctypes.c_char_p),
                ("extra", ctypes.POINTER(ctypes.c_int64))]


class DimensionStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("count", ctypes.c_int), ("sizes", ctypes.POINTER(ctypes.c_int64))]


class ProfileStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("steps", ctypes.c_int64), ("samples", ctypes.c_int64), ("devices", ctypes.c_int)]


class DeviceProfileStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("busy_s", ctypes.c_double)]


class TrainerOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int), ("pin", ctypes.c_int), ("trust_weights", ctypes.c_int), ("cpu_level", ctypes.c_int),
                ("timeout_s", ctypes.c_double), ("seed", ctypes.c_uint64), ("allow_changes", ctypes.c_int)]


class StateStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("role", ctypes.c_int), ("type", ctypes.c_int), ("rank", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_int64)]


class StepStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("step", ctypes.c_int64), ("loss", ctypes.c_double), ("learning_rate", ctypes.c_double),
                ("gradient_norm", ctypes.c_double),
                ("skipped", ctypes.c_int)]


class EvaluationStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("loss", ctypes.c_double), ("loss_sum", ctypes.c_double), ("loss_count", ctypes.c_double),
                ("labels", ctypes.c_int64), ("right", ctypes.c_int64), ("right_of_five", ctypes.c_int64)]


class PositionStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("epoch", ctypes.c_int64), ("sample", ctypes.c_int64), ("order", ctypes.c_char_p)]


def _load(path: str) -> ctypes.CDLL:
    """The library; with those that it needs from the package, where this machine does not have them."""
    try:
        return ctypes.CDLL(path)
    except OSError:
        waiting = sorted((pathlib.Path(__file__).resolve().parent / "lib").glob("*.so*"))
        while waiting:
            left = []
            for each in waiting:
                try:
                    ctypes.CDLL(str(each), mode=ctypes.RTLD_GLOBAL)
                except OSError:  # it needs one that comes later
                    left.append(each)
            if len(left) == len(waiting):
                break
            waiting = left
        return ctypes.CDLL(path)


def _open() -> ctypes.CDLL:
    beside = pathlib.Path(__file__).resolve().parent / "libpartita.so.1"
    path = os.environ.get("PARTITA_LIBRARY") or (str(beside) if beside.exists() else "libpartita.so.1")
    try:
        library = _load(path)
    except OSError as error:
        raise ImportError(f"partita: cannot load {path} ({error}); set PARTITA_LIBRARY to the path of libpartita.so") from None
    if library.partita_api_version() != API_VERSION:
        raise ImportError(f"partita: {path} has version {library.partita_api_version()} of the interface, this package needs {API_VERSION}")
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64
    addresses = ctypes.POINTER(ctypes.c_void_p)
    for name, result, arguments in (
        ("last_error", ctypes.c_char_p, ()),
        ("last_error_in_input", ctypes.c_int, ()),
        ("default_options", None, (ctypes.POINTER(Options),)),
        ("open", ctypes.c_int, (ctypes.c_char_p, ctypes.POINTER(Options), ctypes.POINTER(pointer))),
        ("close", None, (pointer,)),
        ("input_count", size, (pointer,)),
        ("output_count", size, (pointer,)),
        ("input", ctypes.c_int, (pointer, size, ctypes.POINTER(PortStruct))),
        ("output", ctypes.c_int, (pointer, size, ctypes.POINTER(PortStruct))),
        ("step_samples", number, (pointer,)),
        ("remark", ctypes.c_char_p, (pointer,)),
        ("get_profile", ctypes.c_int, (pointer, ctypes.POINTER(ProfileStruct))),
        ("get_device_profile", ctypes.c_int, (pointer, ctypes.c_int, ctypes.POINTER(DeviceProfileStruct))),
        ("dimension_count", size, (pointer,)),
        ("get_dimension", ctypes.c_int, (pointer, size, ctypes.POINTER(DimensionStruct))),
        ("wait", ctypes.c_int, (pointer, ctypes.c_uint64)),
        ("state_count", size, (pointer,)),
        ("describe_state", ctypes.c_int, (pointer, size, ctypes.POINTER(StateStruct))),
        ("reset_states", ctypes.c_int, (pointer,)),
        ("sequence_count", ctypes.c_int, (pointer,)),
        ("submit_sequence", ctypes.c_int, (pointer, ctypes.c_int, ctypes.POINTER(number), addresses, number, addresses, ctypes.POINTER(ctypes.c_uint64))),
        ("get_sequence_state", ctypes.c_int, (pointer, ctypes.c_int, size, pointer, size)),
        ("set_sequence_state", ctypes.c_int, (pointer, ctypes.c_int, size, pointer, size)),
        ("reset_sequence", ctypes.c_int, (pointer, ctypes.c_int)),
        ("trainer_open", ctypes.c_int, (ctypes.c_char_p, ctypes.POINTER(TrainerOptions), ctypes.POINTER(pointer))),
        ("trainer_close", None, (pointer,)),
        ("trainer_remark", ctypes.c_char_p, (pointer,)),
        ("trainer_input_count", size, (pointer,)),
        ("trainer_input", ctypes.c_int, (pointer, size, ctypes.POINTER(PortStruct))),
        ("trainer_step_samples", number, (pointer,)),
        ("trainer_evaluation_samples", number, (pointer,)),
        ("trainer_step", ctypes.c_int, (pointer, addresses, number, ctypes.POINTER(StepStruct))),
        ("trainer_evaluate", ctypes.c_int, (pointer, addresses, number, ctypes.POINTER(EvaluationStruct))),
        ("trainer_steps", number, (pointer,)),
        ("trainer_set_steps", ctypes.c_int, (pointer, number)),
        ("trainer_state_count", size, (pointer,)),
        ("trainer_state", ctypes.c_int, (pointer, size, ctypes.POINTER(StateStruct))),
        ("trainer_get_state", ctypes.c_int, (pointer, size, pointer, size)),
        ("trainer_set_state", ctypes.c_int, (pointer, size, pointer, size)),
        ("trainer_save", ctypes.c_int, (pointer, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(PositionStruct))),
        ("trainer_resume", ctypes.c_int, (pointer, ctypes.c_char_p, ctypes.POINTER(PositionStruct))),
        ("trainer_load_checkpoint", ctypes.c_int, (pointer, ctypes.c_char_p, ctypes.POINTER(PositionStruct))),
        ("trainer_load_weights", ctypes.c_int, (pointer, ctypes.c_char_p)),
        ("trainer_export", ctypes.c_int, (pointer, ctypes.c_char_p)),
    ):
        function = getattr(library, f"partita_{name}")
        function.restype, function.argtypes = result, arguments
    return library


library = _open()


def check(status: int) -> None:
    if status:
        raise (InputError if library.partita_last_error_in_input() else Error)(library.partita_last_error().decode("utf-8", "replace"))


def dtype_of(kind: int) -> np.dtype:
    return np.dtype(DTYPES[kind])
