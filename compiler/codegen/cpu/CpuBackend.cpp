//===- CpuBackend.cpp - CPUs: oneDNN, and kernels by LLVM -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/CpuBackend.h"

#include "compiler/codegen/Backend.h"
#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/codegen/cpu/onednn/LibraryCall.h"
#include "compiler/codegen/cpu/onednn/Winograd.h"
#include "compiler/codegen/kernels/CompileModule.h"
#include "compiler/codegen/kernels/KernelSchedule.h"
#include "compiler/codegen/kernels/NNToLinalg.h"

using namespace mlir;

namespace partita::codegen {
namespace {

class OneDnnTuning final : public CallTuning {
public:
  void chooseMethod(ArrayRef<Operation *> ops,
                    analysis::Rates &rates) const override {
    onednn::markWinograd(ops, rates);
  }

  bool accumulates(Operation *root) const override {
    return onednn::accumulates(root);
  }

  LogicalResult checkCall(nn::ClusterOp cluster) const override {
    return onednn::checkExtents(cluster);
  }

  std::optional<int64_t> getPackedBytes(plan::CallAttr call, unsigned operand,
                                        Type element) const override {
    return onednn::getPackedBytes(call, operand, element);
  }

  std::optional<CallWork> getCallWork(ArrayRef<Operation *> ops,
                                      analysis::Rates &rates,
                                      int64_t lanes) const override {
    return onednn::getCallWork(ops, rates, lanes);
  }
};

/// How a kernel starts.
BuiltKernel describe(func::FuncOp kernel, const KernelSchedule &schedule) {
  return {.function = kernel,
          .extent = schedule.extent,
          .grain = schedule.grain,
          .inPlace = schedule.inPlace};
}

class CpuBackend : public Backend {
public:
  std::string checkArchitecture(StringRef architecture) const override {
    return architecture.empty() ? ""
                                : "CPUs have levels, not architectures: give "
                                  "--cpu-level";
  }

  bool isCallRoot(Operation *op) const override {
    return onednn::isCallRoot(op);
  }

  bool needsCall(Operation *op) const override {
    return onednn::needsLibrary(op);
  }

  plan::CallAttr matchCall(ArrayRef<Operation *> ops, ArrayRef<Value> inputs,
                           ArrayRef<Value> results) const override {
    return onednn::matchLibraryCall(ops, inputs, results);
  }

  HalfProducts getHalfProducts(Operation *op, FloatType half) const override {
    return isa<nn::DotOp>(op) && half.isBF16() ? HalfProducts::plain
                                               : HalfProducts::none;
  }

  const CallTuning *getCallTuning() const override { return &tuning; }

  int64_t getScratchBytes(plan::CallAttr call, bool packed,
                          Type element) const override {
    return onednn::getScratchBytes(call, packed, element);
  }

  void registerDialects(DialectRegistry &registry) const override {
    registerKernelDialects(registry);
  }

  FailureOr<BuiltKernel> buildKernel(OpBuilder &b, nn::ClusterOp cluster,
                                     bool reference) const override {
    func::FuncOp built;
    KernelSchedule schedule;
    // Memory on the stack is little: rather compute something again.
    for (StageMode mode :
         {StageMode::fast, StageMode::lean, StageMode::nothing}) {
      if (built)
        built.erase();
      FailureOr<func::FuncOp> function =
          codegen::buildKernel(b, cluster, "kernel", mode);
      if (failed(function))
        return failure();
      built = *function;
      if (reference)
        built->setAttr(kReferenceAttr, b.getUnitAttr());
      schedule = scheduleKernel(built);
      if (schedule.stackBytes <= kMaxStackBytes)
        break;
      if (mode == StageMode::fast)
        cluster.emitRemark("temporaries do not fit the stack of a thread: "
                           "some elements are computed more than once");
    }
    writeSchedule(built, schedule);
    return describe(built, schedule);
  }

  bool hasCpuLevels() const override { return true; }

  FailureOr<BuiltKernel> readKernel(func::FuncOp kernel) const override {
    FailureOr<KernelSchedule> schedule = readSchedule(kernel);
    if (failed(schedule))
      return failure();
    return describe(kernel, *schedule);
  }

  FailureOr<std::vector<CompiledObject>> compile(ModuleOp kernels,
                                                 ArrayRef<abi::CpuLevel> levels,
                                                 bool optimize) const override {
    return compileFor(levels, kernels, optimize);
  }

private:
  const OneDnnTuning tuning;
};

} // namespace

void registerCpuBackend(StringRef kind) {
  registerBackend(kind, std::make_unique<CpuBackend>());
}

} // namespace partita::codegen
