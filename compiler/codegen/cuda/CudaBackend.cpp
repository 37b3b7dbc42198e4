//===- CudaBackend.cpp - GPUs of NVIDIA's ---------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/CudaBackend.h"

#include "compiler/codegen/Backend.h"
#include "compiler/codegen/cuda/CompilePtx.h"
#include "compiler/codegen/cuda/KernelWork.h"
#include "compiler/codegen/cuda/SpecialKernels.h"
#include "compiler/codegen/cuda/calls/LibraryCall.h"
#include "compiler/codegen/cuda/grid/GridSchedule.h"
#include "compiler/codegen/cuda/grid/KernelGroup.h"
#include "compiler/codegen/kernels/NNToLinalg.h"
#include "dialects/support/Try.h"
#include "runtime/device/cuda/rules/Attention.h"
#include "runtime/device/cuda/rules/Matmul.h"

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

/// The parts of a GPU's operations that our loops, our products and library
/// calls reach.
constexpr double kLoopShare = 0.25, kProductShare = 0.05, kCallShare = 0.6;
/// Threads of a processor that hide each other's waits: fewer take longer by
/// as much as they are fewer.
constexpr double kBusyThreads = 1024;
/// Every plan with calls has so much scratch, besides what a call is given.
constexpr int64_t kCommonWorkspace = int64_t(1) << 20;

/// Whether the value lies where a weight lies: at any multiple of its
/// element's size.
bool isUnaligned(Value value) {
  while (auto view = value.getDefiningOp<nn::ViewOpInterface>()) {
    if (!view.keepsElements())
      return false;
    value = view->getOperand(0);
  }
  return value.getDefiningOp<nn::ParameterOp>() != nullptr;
}

void markUnaligned(func::FuncOp function, nn::ClusterOp cluster) {
  for (auto [number, operand] : llvm::enumerate(cluster.getOperands()))
    if (isUnaligned(operand))
      function.setArgAttr(number, kUnalignedAttr,
                          UnitAttr::get(function.getContext()));
}

/// The operations of a processor in a clock that ops of a call reach.
double getCallOperations(const DeviceSpeeds &speeds, Operation *op) {
  Type type = getElementTypeOrSelf(op->getOperand(0).getType());
  const unsigned bits = type.getIntOrFloatBitWidth();
  return kCallShare * (bits == 8    ? speeds.byteProducts
                       : bits == 16 ? speeds.halfProducts
                                    : speeds.operations);
}

/// How a kernel starts.
BuiltKernel describe(func::FuncOp kernel, const SpecialKernel &kind) {
  return {.function = kernel,
          .extent = 0,
          .launch = {kind.countBlocks(kernel), kSpecialThreads},
          .inPlace = kind.getInPlace(kernel)};
}
BuiltKernel describe(func::FuncOp kernel, const KernelGroup &group) {
  return {.function = kernel,
          .extent = 0,
          .launch = {group.getBlocks(), group.getThreads()},
          .inPlace = group.getInPlace()};
}
BuiltKernel describe(func::FuncOp kernel, const GridSchedule &schedule) {
  return {.function = kernel,
          .extent = 0,
          .launch = {schedule.getBlocks(), schedule.threads},
          .inPlace = schedule.kernel.inPlace};
}

class CudaGrouping final : public KernelGrouping {
public:
  bool isSmall(nn::ClusterOp cluster) const override {
    auto kernel = dyn_cast_or_null<plan::KernelAttr>(cluster.getLoweringAttr());
    if (!kernel || kernel.getLaunch().empty() || findSpecialKernel(cluster) ||
        kernel.getLaunch().front() > kMostMemberBlocks)
      return false;
    return nn::getTouchedBytes(cluster) <= kMostMemberBytes;
  }

  bool canGroup(ArrayRef<func::FuncOp> kernels,
                ArrayRef<int64_t> inputs) const override {
    return succeeded(formGroup(kernels, inputs));
  }

  BuiltKernel group(OpBuilder &b, ArrayRef<func::FuncOp> kernels,
                    ArrayRef<int64_t> inputs) const override {
    FailureOr<KernelGroup> formed = formGroup(kernels, inputs);
    return describe(buildGroup(b, *formed), *formed);
  }
};

class CudaBackend : public Backend {
public:
  std::string checkArchitecture(StringRef architecture) const override {
    return findGpu(architecture) ? "" : describeUnknownGpu(architecture);
  }

  std::optional<DeviceSpeeds>
  getDeviceSpeeds(StringRef architecture) const override {
    const Gpu *gpu = findGpu(architecture);
    return gpu ? std::optional(getUsualSpeeds(*gpu)) : std::nullopt;
  }

  double getDeviceTime(const DeviceSpeeds &speeds, ArrayRef<Operation *> ops,
                       nn::ClusterKind kind, int64_t bytes) const override {
    double clocks = 0;
    for (Operation *op : ops) {
      auto costed = dyn_cast<nn::CostOpInterface>(op);
      if (!costed)
        continue;
      nn::Cost cost = costed.getCost();
      const bool product = cost.kind == nn::CostKind::dot ||
                           cost.kind == nn::CostKind::conv ||
                           cost.kind == nn::CostKind::attention;
      clocks += countOperations(op) / (!product ? kLoopShare * speeds.operations
                                       : kind == nn::ClusterKind::call
                                           ? getCallOperations(speeds, op)
                                           : kProductShare * speeds.operations);
    }
    const double compute = clocks / (speeds.processors * speeds.clock),
                 work = std::max(compute, bytes / speeds.memory);
    // A library deals out its work by itself.
    const double share =
        kind == nn::ClusterKind::call
            ? 1
            : countThreads(ops) / (speeds.processors * kBusyThreads);
    return speeds.launch + work / std::min(share, 1.0);
  }

  // Products, convolutions and pools are calls, and attention where somebody
  // asks for it; there is a kernel for everything.
  bool isCallRoot(Operation *op) const override { return cuda::isCallRoot(op); }
  bool needsCall(Operation *) const override { return false; }
  plan::CallAttr matchCall(ArrayRef<Operation *> ops, ArrayRef<Value> inputs,
                           ArrayRef<Value> results) const override {
    return matchLibraryCall(ops, inputs, results);
  }
  // What the library has engines for; it compiles them when a plan is loaded.
  bool keepsAttention(RankedTensorType q, RankedTensorType v, bool hasFactor,
                      bool isAsked) const override {
    Type element = q.getElementType();
    return isAsked && !hasFactor && (element.isF16() || element.isBF16()) &&
           rules::isHeadSize(q.getDimSize(3)) &&
           rules::isHeadSize(v.getDimSize(3));
  }
  bool reachesHost() const override { return true; }
  bool hasOrderedSums() const override { return false; } // NCCL's are not
  int64_t getWeightAlignment() const override {
    return rules::kGpuWeightAlignment;
  }
  int64_t getScratchBytes(plan::CallAttr call, bool, Type) const override {
    const bool pool = call.getKind() == plan::CallKind::pool_max ||
                      call.getKind() == plan::CallKind::pool_avg;
    return pool ? 0 : rules::kGpuWorkspace - kCommonWorkspace;
  }
  void registerDialects(DialectRegistry &registry) const override {
    registerCudaDialects(registry);
  }

  FailureOr<BuiltKernel> buildKernel(OpBuilder &b, nn::ClusterOp cluster,
                                     bool) const override {
    if (const SpecialKernel *kind = findSpecialKernel(cluster)) {
      func::FuncOp function =
          PARTITA_TRY(buildSpecialKernel(b, cluster, *kind));
      markUnaligned(function, cluster);
      return describe(function, *kind);
    }
    func::FuncOp built;
    GridSchedule schedule;
    // Shared memory is little: rather compute something again.
    for (StageMode mode :
         {StageMode::fast, StageMode::lean, StageMode::nothing}) {
      if (built)
        built.erase();
      built = PARTITA_TRY(
          codegen::buildKernel(b, cluster, "kernel", mode, /*ordered=*/true));
      schedule = scheduleGrid(built);
      if (getSharedBytes(schedule) <= kMostSharedBytes)
        break;
    }
    markUnaligned(built, cluster);
    writeGrid(built, schedule);
    return describe(built, schedule);
  }

  const KernelGrouping *getKernelGrouping() const override { return &grouping; }

  FailureOr<BuiltKernel> readKernel(func::FuncOp kernel) const override {
    if (const SpecialKernel *kind = findSpecialKernel(kernel))
      return describe(kernel, *kind);
    if (isGroup(kernel)) {
      KernelGroup group = PARTITA_TRY(readGroup(kernel));
      return describe(kernel, group);
    }
    GridSchedule schedule = PARTITA_TRY(readGrid(kernel));
    return describe(kernel, schedule);
  }

  FailureOr<std::vector<CompiledObject>> compile(ModuleOp kernels,
                                                 ArrayRef<abi::CpuLevel>,
                                                 bool optimize) const override {
    const Gpu *gpu = findGpu(splitTarget(getTarget(kernels)).second);
    std::vector<CompiledObject> objects(1);
    objects.front().bytes = PARTITA_TRY(compilePtx(kernels, *gpu, optimize));
    objects.front().architecture = gpu->architecture;
    return objects;
  }

private:
  const CudaGrouping grouping;
};

} // namespace

void registerCudaBackend() {
  registerBackend("cuda", std::make_unique<CudaBackend>());
}

} // namespace partita::codegen::cuda
