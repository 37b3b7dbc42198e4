#!/usr/bin/env python3
"""Loads what LLVM makes of some thousand small kernels for each architecture: the emulator knows every instruction that LLVM writes for ordinary code.

    llvm.py libcuda.so.1      exit status 77, with words, where there is no llc of LLVM 22
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile

TARGETS = {"sm_80": "ptx70", "sm_90": "ptx80", "sm_100": "ptx86", "sm_120": "ptx87"}
SCALARS = {"half": ("f16", 2), "bfloat": ("bf16", 2), "float": ("f32", 4), "double": ("f64", 8)}
FLOATS = [*SCALARS, "<2 x half>", "<4 x half>", "<8 x half>", "<2 x bfloat>", "<4 x bfloat>", "<2 x float>", "<4 x float>", "<2 x double>"]
INTEGERS = ["i1", "i8", "i16", "i32", "i64"]
VECTORS = ["<2 x i16>", "<4 x i8>", "<4 x i32>", "<2 x i64>"]


class Kernels:
    """LLVM IR of kernels that read %a and %b and store what `compute` makes of them."""

    def __init__(self):
        self.kernels, self.declarations = [], {"declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()"}

    def add(self, type, compute, result=None):
        self.kernels.append(
            f"define ptx_kernel void @k{len(self.kernels)}(ptr addrspace(1) %p, ptr addrspace(1) %q, ptr addrspace(1) %o) {{\n"
            f"  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
            f"  %pp = getelementptr {type}, ptr addrspace(1) %p, i32 %i\n  %qq = getelementptr {type}, ptr addrspace(1) %q, i32 %i\n"
            f"  %oo = getelementptr {type}, ptr addrspace(1) %o, i32 %i\n  %a = load {type}, ptr addrspace(1) %pp\n"
            f"  %b = load {type}, ptr addrspace(1) %qq\n  {compute}\n  store {result or type} %r, ptr addrspace(1) %qq\n  ret void\n}}"
        )

    def intrinsic(self, name, type, operands, result=None, *more):
        suffix = "".join("." + mangled(t) for t in ([result] if result else []) + [type])
        types = [type] * operands + [m.split()[0] for m in more]
        values = [f"{type} %{'aba'[i]}" for i in range(operands)] + list(more)
        self.declarations.add(f"declare {result or type} @llvm.{name}{suffix}({', '.join(types)})")
        self.add(type, f"%r = call {result or type} @llvm.{name}{suffix}({', '.join(values)})", result)

    def text(self):
        return "\n".join(['target triple = "nvptx64-nvidia-cuda"', *self.kernels, *sorted(self.declarations)]) + "\n"


def mangled(type):
    if type[0] != "<":
        return SCALARS.get(type, (type,))[0]
    count, element = type[1:-1].split(" x ")
    return f"v{count}{mangled(element)}"


def arithmetic(kernels):
    for t in FLOATS:
        for op in ("fadd", "fsub", "fmul", "fdiv"):
            kernels.add(t, f"%r = {op} {t} %a, %b")
        kernels.add(t, f"%r = fneg {t} %a")
        for name in ("fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round"):
            kernels.intrinsic(name, t, 1)
        for name in ("maxnum", "minnum", "maximum", "minimum", "maximumnum", "minimumnum", "copysign"):
            kernels.intrinsic(name, t, 2)
        kernels.intrinsic("fma", t, 3)
        condition = "i1" if t[0] != "<" else f"<{t[1:].split()[0]} x i1>"
        for relation in ("oeq", "olt", "ole", "one", "ord", "ueq", "ult", "uge", "une", "uno"):
            kernels.add(t, f"%c = fcmp {relation} {t} %a, %b\n  %r = select {condition} %c, {t} %a, {t} %b")
    for t in INTEGERS + VECTORS:
        for op in ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem"):
            kernels.add(t, f"%r = {op} {t} %a, %b")
        for name in ("smax", "smin", "umax", "umin", "uadd.sat", "usub.sat", "sadd.sat", "ssub.sat"):
            kernels.intrinsic(name, t, 2)
        for name in ("ctpop", "bitreverse"):
            kernels.intrinsic(name, t, 1)
        for name in ("ctlz", "cttz", "abs"):
            kernels.intrinsic(name, t, 1, None, "i1 false")
        for name in ("fshl", "fshr"):
            kernels.intrinsic(name, t, 3)


def conversions(kernels):
    for a, (_, bytes_a) in SCALARS.items():
        for b, (_, bytes_b) in SCALARS.items():
            if bytes_a != bytes_b:
                kernels.add(a, f"%r = {'fpext' if bytes_a < bytes_b else 'fptrunc'} {a} %a to {b}", b)
        for i in INTEGERS:
            for op in ("fptosi", "fptoui"):
                kernels.add(a, f"%r = {op} {a} %a to {i}", i)
                if i != "i1":
                    kernels.intrinsic(op + ".sat", a, 1, i)
            for op in ("sitofp", "uitofp"):
                kernels.add(i, f"%r = {op} {i} %a to {a}", a)
    for i, a in enumerate(INTEGERS):
        for b in INTEGERS[i + 1 :]:
            kernels.add(b, f"%r = trunc {b} %a to {a}", a)
            for op in ("sext", "zext"):
                kernels.add(a, f"%r = {op} {a} %a to {b}", b)


def atomics(kernels):
    for t in [*INTEGERS[1:], *SCALARS]:
        for op in ("fadd", "fmax", "xchg") if t in SCALARS else ("add", "sub", "and", "or", "xor", "max", "min", "umax", "umin", "xchg", "nand", "uinc_wrap"):
            for order in ("monotonic", "acq_rel", "seq_cst"):
                kernels.add(t, f"%r = atomicrmw {op} ptr addrspace(1) %oo, {t} %a {order}")
                shared = "%s = addrspacecast ptr addrspace(1) %oo to ptr\n  %s3 = addrspacecast ptr %s to ptr addrspace(3)\n"
                kernels.add(t, f"{shared}  %r = atomicrmw {op} ptr addrspace(3) %s3, {t} %a {order}")
        if t not in SCALARS:
            kernels.add(t, f"%x = cmpxchg ptr addrspace(1) %oo, {t} %a, {t} %b acq_rel monotonic\n  %r = extractvalue {{ {t}, i1 }} %x, 0")


def load(library, ptx):
    """In a process of its own, since the architecture is chosen once. What went wrong, or nothing."""
    cuda = ctypes.CDLL(library)
    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    cuda.cuEmuLastError.restype = ctypes.c_char_p
    for result in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)):
        assert result == 0
    with open(ptx, "rb") as file:
        failed = cuda.cuModuleLoadData(ctypes.byref(module), ctypes.c_char_p(file.read()))
    return cuda.cuEmuLastError().decode() if failed else ""


def main():
    if len(sys.argv) == 3:
        words = load(sys.argv[1], sys.argv[2])
        print(words)
        return bool(words)
    llc = shutil.which("llc-22") or shutil.which("llc", path="/usr/lib/llvm-22/bin")
    if not llc:
        print("there is no llc of LLVM 22 here")
        return 77
    kernels = Kernels()
    for part in (arithmetic, conversions, atomics):
        part(kernels)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        source = f"{folder}/kernels.ll"
        with open(source, "w") as file:
            file.write(kernels.text())
        for target, version in TARGETS.items():
            ptx = f"{folder}/{target}.ptx"
            subprocess.run([llc, f"-mcpu={target}", f"-mattr=+{version}", source, "-o", ptx], check=True)
            environment = {**os.environ, "CUDA_EMU_SM": target[3:], "CUDA_EMU_QUIET": "1"}
            done = subprocess.run([sys.executable, __file__, sys.argv[1], ptx], env=environment, capture_output=True, text=True)
            print(f"{target}: {len(kernels.kernels)} kernels {done.stdout.strip() or 'loaded'}{done.stderr}")
            failed |= done.returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
