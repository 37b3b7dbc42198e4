//===- CpuBackend.cpp - CPUs: oneDNN, and kernels by LLVM -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/CpuBackend.h"

#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/codegen/cpu/onednn/LibraryCall.h"
#include "compiler/codegen/kernels/CompileModule.h"
#include "compiler/codegen/kernels/KernelSchedule.h"
#include "compiler/codegen/kernels/NNToLinalg.h"
#include "dialects/support/Try.h"

using namespace mlir;

namespace partita::codegen {
namespace {

/// How a kernel starts.
BuiltKernel describe(func::FuncOp kernel, const KernelSchedule &schedule) {
  return {.function = kernel,
          .extent = schedule.extent,
          .grain = schedule.grain,
          .inPlace = schedule.inPlace};
}

class CpuBackend : public onednn::LibraryBackend {
public:
  std::string checkArchitecture(StringRef architecture) const override {
    return architecture.empty() ? ""
                                : "CPUs have levels, not architectures: give "
                                  "--cpu-level";
  }

  HalfProducts getHalfProducts(Operation *op, FloatType half) const override {
    return isa<nn::DotOp>(op) && half.isBF16() ? HalfProducts::plain
                                               : HalfProducts::none;
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
      built = PARTITA_TRY(codegen::buildKernel(b, cluster, "kernel", mode));
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
    KernelSchedule schedule = PARTITA_TRY(readSchedule(kernel));
    return describe(kernel, schedule);
  }

  FailureOr<std::vector<CompiledObject>> compile(ModuleOp kernels,
                                                 ArrayRef<abi::CpuLevel> levels,
                                                 bool optimize) const override {
    return compileFor(levels, kernels, optimize);
  }
};

} // namespace

void registerCpuBackend(StringRef kind) {
  registerBackend(kind, std::make_unique<CpuBackend>());
}

} // namespace partita::codegen
