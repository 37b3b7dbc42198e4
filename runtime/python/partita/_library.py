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


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int), ("pin", ctypes.c_int), ("strict_nan", ctypes.c_int), ("trust_weights", ctypes.c_int),
                ("timeout_s", ctypes.c_double), ("batch_delay_s", ctypes.c_double), ("queued_samples", ctypes.c_int64)]


class PortStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("type", ctypes.c_int), ("rank", ctypes.c_int),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("batch_axis", ctypes.c_int), ("bytes", ctypes.c_int64),
                ("dimensions", ctypes.POINTER(ctypes.c_int)), ("whole", ctypes.c_char_p)]


class DimensionStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("count", ctypes.c_int), ("sizes", ctypes.POINTER(ctypes.c_int64))]


class ProfileStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("steps", ctypes.c_int64), ("samples", ctypes.c_int64), ("devices", ctypes.c_int)]


class DeviceProfileStruct(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("busy_s", ctypes.c_double)]


def _open() -> ctypes.CDLL:
    beside = pathlib.Path(__file__).resolve().parent / "libpartita.so.1"
    path = os.environ.get("PARTITA_LIBRARY") or (str(beside) if beside.exists() else "libpartita.so.1")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"partita: cannot load {path} ({error}); set PARTITA_LIBRARY to the path of libpartita.so") from None
    if library.partita_api_version() != API_VERSION:
        raise ImportError(f"partita: {path} has version {library.partita_api_version()} of the interface, this package needs {API_VERSION}")
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64
    addresses = ctypes.POINTER(ctypes.c_void_p)
    for name, result, arguments in (
        ("last_error", ctypes.c_char_p, ()),
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
        ("submit_sized", ctypes.c_int, (pointer, ctypes.POINTER(number), addresses, number, addresses, ctypes.POINTER(ctypes.c_uint64))),
        ("wait", ctypes.c_int, (pointer, ctypes.c_uint64)),
    ):
        function = getattr(library, f"partita_{name}")
        function.restype, function.argtypes = result, arguments
    return library


library = _open()


def check(status: int) -> None:
    if status:
        raise Error(library.partita_last_error().decode("utf-8", "replace"))


def dtype_of(kind: int) -> np.dtype:
    return np.dtype(DTYPES[kind])
