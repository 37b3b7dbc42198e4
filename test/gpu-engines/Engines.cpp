//===- Engines.cpp - Kernels on two engines -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   partita-gpu-engines PLAN.mlir...
//
// Reads plans as `partita-compile --emit plan` writes them, for GPUs. Computes
// each kernel twice on the same numbers: the shipped PTX on the emulator's
// interpreter, and LLVM's IR that PTX is written from, compiled for this
// processor. The results must have the same bits. Prints what differs, and how
// many kernels were compared.
//
//===----------------------------------------------------------------------===//

#include "NativeKernels.h"

#include "compiler/codegen/cuda/CompilePtx.h"
#include "compiler/driver/Compile.h"
#include "dialects/plan/PlanDialect.h"
#include "driver/Cuda.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <cstdio>
#include <cstring>
#include <random>

using namespace mlir;

namespace partita::test {
namespace {

/// Bytes that lie as arenas do.
class Buffer {
public:
  explicit Buffer(size_t bytes)
      : size(bytes), memory(new (std::align_val_t(256)) uint8_t[bytes + 1]) {}
  ~Buffer() { operator delete[](memory, std::align_val_t(256)); }
  Buffer(Buffer &&other) noexcept
      : size(other.size), memory(std::exchange(other.memory, nullptr)) {}

  size_t size;
  uint8_t *memory;
};

/// Numbers of all kinds: near to 1, larger ones, zeros, denormals and, where
/// they are defined, infinities. Integers may be indices, so they are 0 or 1.
void draw(Type element, bool infinities, Buffer &buffer, std::mt19937 &noise) {
  const double denormal = element.isF16() ? 3e-5 : 3e-39;
  auto number = [&]() -> double {
    const uint32_t drawn = noise();
    const double near = (int(drawn >> 8 & 1023) - 512) / 256.0;
    switch (drawn & 31) {
    case 0:
      return near * denormal;
    case 1:
      return near * 40;
    case 2:
      return 0;
    case 3:
      return infinities ? HUGE_VAL : -near;
    default:
      return near;
    }
  };
  const unsigned bits = element.getIntOrFloatBitWidth();
  for (size_t at = 0; at < buffer.size; at += (bits + 7) / 8) {
    llvm::APInt value(64, noise() & 1);
    if (auto type = dyn_cast<FloatType>(element)) {
      llvm::APFloat drawn(number());
      bool inexact;
      drawn.convert(type.getFloatSemantics(),
                    llvm::APFloat::rmNearestTiesToEven, &inexact);
      value = drawn.bitcastToAPInt().zext(64);
    }
    const uint64_t word = value.getZExtValue();
    std::memcpy(buffer.memory + at, &word, (bits + 7) / 8);
  }
}

void check(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS)
    return;
  std::fprintf(stderr, "partita-gpu-engines: error: %s: %d\n", what, result);
  std::exit(1);
}
#define CHECK(CALL) partita::test::check(CALL, #CALL)

/// A kernel's results on the interpreter, in the place of `results`.
void interpret(CUmodule module, const std::string &name, uint32_t blocks,
               uint32_t threads, std::vector<Buffer> &buffers) {
  CUfunction function;
  CHECK(cuModuleGetFunction(&function, module, name.c_str()));
  std::vector<CUdeviceptr> memory(buffers.size());
  std::vector<void *> arguments;
  for (size_t i = 0; i < buffers.size(); ++i) {
    CHECK(cuMemAlloc_v2(&memory[i], buffers[i].size + 1));
    CHECK(cuMemcpyHtoD_v2(memory[i], buffers[i].memory, buffers[i].size));
    arguments.push_back(&memory[i]);
  }
  CHECK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, nullptr,
                       arguments.data(), nullptr));
  CHECK(cuCtxSynchronize());
  for (size_t i = 0; i < buffers.size(); ++i) {
    CHECK(cuMemcpyDtoH_v2(buffers[i].memory, memory[i], buffers[i].size));
    CHECK(cuMemFree_v2(memory[i]));
  }
}

/// Whether two elements are the same number. The bits of a NaN are nobody's. A
/// denormal number counts as 0, where its sign alone is looked at or changed,
/// too: there an instruction of GPUs flushes it, and this processor's does not.
bool isSame(Type element, const uint8_t *a, const uint8_t *b) {
  const size_t bytes = (element.getIntOrFloatBitWidth() + 7) / 8;
  if (std::memcmp(a, b, bytes) == 0)
    return true;
  auto type = dyn_cast<FloatType>(element);
  if (!type)
    return false;
  auto number = [&](const uint8_t *from) {
    uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    llvm::APFloat value(type.getFloatSemantics(),
                        llvm::APInt(type.getWidth(), word));
    const bool flushed = !type.isF16() && value.isDenormal();
    return flushed ? llvm::APFloat::getZero(type.getFloatSemantics(),
                                            value.isNegative())
                   : value;
  };
  const llvm::APFloat one = number(a), other = number(b);
  return (one.isNaN() && other.isNaN()) || one.bitwiseIsEqual(other);
}

/// Compares a kernel. Returns whether it is the same on both.
bool compare(CUmodule module, NativeKernels &native, plan::DispatchOp op,
             const std::string &where) {
  const std::string name = op.getKernel().getName().str();
  const ArrayRef<int64_t> launch = op.getKernel().getLaunch();
  std::vector<Buffer> interpreted, computed;
  std::mt19937 noise(1);
  SmallVector<RankedTensorType> types;
  for (Value slot : op->getOperands())
    types.push_back(cast<plan::SlotType>(slot.getType()).getTensor());
  // The integer of an infinity is not defined.
  const bool infinities = llvm::all_of(types, [](RankedTensorType type) {
    return isa<FloatType>(type.getElementType());
  });
  for (auto [number, type] : llvm::enumerate(types)) {
    const size_t bytes =
        type.getNumElements() *
        ((type.getElementType().getIntOrFloatBitWidth() + 7) / 8);
    Buffer &buffer = interpreted.emplace_back(bytes);
    std::memset(buffer.memory, 0xff, bytes);
    if (number < op.getInputs().size())
      draw(type.getElementType(), infinities, buffer, noise);
    std::memcpy(computed.emplace_back(bytes).memory, buffer.memory, bytes);
  }
  interpret(module, name, launch[0], launch[1], interpreted);
  std::vector<void *> arguments;
  for (Buffer &buffer : computed)
    arguments.push_back(buffer.memory);
  if (llvm::Error error = native.run(name, launch[0], launch[1], arguments)) {
    std::printf("%s: %s: %s\n", where.c_str(), name.c_str(),
                llvm::toString(std::move(error)).c_str());
    return false;
  }
  for (size_t i = 0; i < computed.size(); ++i) {
    const Type element = types[i].getElementType();
    const size_t bytes = (element.getIntOrFloatBitWidth() + 7) / 8;
    for (size_t at = 0; at < computed[i].size; at += bytes)
      if (!isSame(element, computed[i].memory + at,
                  interpreted[i].memory + at)) {
        std::string one, other;
        for (size_t byte = bytes; byte-- > 0;) {
          one += llvm::utohexstr(interpreted[i].memory[at + byte], true, 2);
          other += llvm::utohexstr(computed[i].memory[at + byte], true, 2);
        }
        std::printf("%s: %s: element %zu of argument %zu is %s interpreted, "
                    "and %s computed by this processor\n",
                    where.c_str(), name.c_str(), at / bytes, i, one.c_str(),
                    other.c_str());
        return false;
      }
  }
  return true;
}

struct Count {
  int same = 0, wrong = 0;
};

/// All kernels of a plan.
LogicalResult compareAll(ModuleOp plan, const std::string &where,
                         Count &count) {
  llvm::MapVector<StringRef, plan::DispatchOp> launches;
  plan.walk([&](plan::DispatchOp op) {
    launches.insert({op.getKernel().getName(), op});
  });
  for (auto kernels : plan.getOps<ModuleOp>()) {
    auto target = plan->getAttrOfType<StringAttr>("plan.target");
    const codegen::cuda::Gpu *gpu =
        target ? codegen::cuda::findGpu(target.getValue().split(':').second)
               : nullptr;
    if (!gpu)
      return plan.emitError("is no plan for GPUs");
    // As it is shipped; and its IR.
    FailureOr<std::vector<char>> text =
        codegen::cuda::compilePtx(kernels, *gpu, /*optimize=*/true);
    auto context = std::make_unique<llvm::LLVMContext>();
    FailureOr<codegen::cuda::LlvmKernels> lowered =
        codegen::cuda::lowerToLlvm(kernels, *gpu, /*optimize=*/true, *context);
    if (failed(text) || failed(lowered))
      return failure();
    CUmodule module;
    CHECK(cuModuleLoadData(&module, text->data()));
    llvm::Expected<NativeKernels> native =
        NativeKernels::compile(std::move(lowered->module), std::move(context));
    if (!native)
      return plan.emitError() << llvm::toString(native.takeError());
    for (auto [name, launch] : launches)
      ++(compare(module, *native, launch, where) ? count.same : count.wrong);
    CHECK(cuModuleUnload(module));
  }
  return success();
}

} // namespace
} // namespace partita::test

int main(int argc, char **argv) {
  using namespace partita;
  DialectRegistry registry;
  driver::registerCompilerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  CHECK(cuInit(0));
  CUcontext device;
  CHECK(cuDevicePrimaryCtxRetain(&device, 0));
  CHECK(cuCtxSetCurrent(device));
  test::Count count;
  for (int i = 1; i < argc; ++i) {
    OwningOpRef<ModuleOp> plan = parseSourceFile<ModuleOp>(argv[i], &context);
    if (!plan || failed(test::compareAll(*plan, argv[i], count)))
      return 1;
  }
  std::printf("%d kernels are the same on both, %d are not\n", count.same,
              count.wrong);
  return count.wrong || count.same == 0;
}
