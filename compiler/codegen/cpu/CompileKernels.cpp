//===- CompileKernels.cpp - From kernels in linalg to objects -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/codegen/cpu/Passes.h"
#include "compiler/codegen/kernels/CompileModule.h"
#include "compiler/codegen/kernels/KernelSchedule.h"
#include "compiler/crash/Place.h"
#include "dialects/support/Try.h"
#include "runtime/abi/kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Threading.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace partita::codegen {

/// Parts of four took 5 to 8 % more of one core than parts of eight, and these
/// 3 to 5 % more than parts of 16.
constexpr size_t kKernelsOfPart = 16;

/// Does not verify behind each pass, as partita-opt does: kernels are many.
static LogicalResult
transform(ModuleOp module,
          llvm::function_ref<void(OpPassManager &)> addPasses) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  addPasses(pm);
  return pm.run(module);
}

/// Bytes of a tensor in memory, where an element has at least one.
static int64_t bytesInMemory(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * ((tensor.getElementTypeBitWidth() + 7) / 8);
}

/// Writes beside the kernels what each was compiled for: see kernel.h.
static LogicalResult addUses(ModuleOp kernels, ModuleOp lowered) {
  OpBuilder b(lowered.getBodyRegion());
  for (auto kernel : kernels.getOps<func::FuncOp>()) {
    KernelSchedule schedule = PARTITA_TRY(readSchedule(kernel));
    FunctionType type = kernel.getFunctionType();
    SmallVector<int64_t> use(PARTITA_USE_BYTES);
    use[PARTITA_USE_EXTENT] = schedule.extent;
    use[PARTITA_USE_RESULTS] = type.getNumResults();
    // Results are written to the last arguments.
    use[PARTITA_USE_OPERANDS] = type.getNumInputs();
    for (Type operand : type.getInputs())
      use.push_back(bytesInMemory(operand));
    const auto count = static_cast<int64_t>(use.size());
    LLVM::GlobalOp::create(
        b, kernel.getLoc(), LLVM::LLVMArrayType::get(b.getI64Type(), count),
        /*isConstant=*/true, LLVM::Linkage::External,
        (kernel.getName() + "_use").str(),
        DenseElementsAttr::get(RankedTensorType::get({count}, b.getI64Type()),
                               ArrayRef<int64_t>(use)));
  }
  return success();
}

/// The kernels in parts, modules inside of the result, that can be compiled at
/// the same time. What is in a part depends on the kernels alone, so that a
/// model gives the same artifact on any machine.
static OwningOpRef<ModuleOp> split(ModuleOp kernels) {
  OwningOpRef<ModuleOp> parts = ModuleOp::create(kernels.getLoc());
  OpBuilder b(parts->getBodyRegion());
  for (auto [index, kernel] : llvm::enumerate(kernels.getOps<func::FuncOp>())) {
    if (index % kKernelsOfPart == 0) {
      b.setInsertionPointToEnd(parts->getBody());
      auto part = ModuleOp::create(b, kernels.getLoc());
      part->setDiscardableAttrs(kernels->getDiscardableAttrDictionary());
      b.setInsertionPointToEnd(part.getBody());
    }
    b.clone(*kernel);
  }
  return parts;
}

FailureOr<std::vector<CompiledObject>>
compileFor(ArrayRef<abi::CpuLevel> levels, ModuleOp kernels, bool optimize) {
  MLIRContext *context = kernels.getContext();
  DialectRegistry registry;
  registerKernelDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();

  OwningOpRef<ModuleOp> lowered = split(kernels);
  auto ofKernels = llvm::to_vector(lowered->getOps<ModuleOp>());
  // An exception ends the process: the threads' owner would drop it.
  PARTITA_TRY(
      failableParallelForEach(context, ofKernels, [&](ModuleOp part) noexcept {
        return success(
            succeeded(transform(part, addKernelPasses)) &&
            (part != ofKernels.front() || succeeded(addUses(kernels, part))) &&
            succeeded(verify(part)));
      }));
  struct Part {
    OwningOpRef<ModuleOp> module;
    abi::CpuLevel level;
    std::vector<char> object;
    std::string error = "a pass failed"; ///< empty: none
  };
  std::vector<Part> parts;
  for (abi::CpuLevel level : levels)
    for (ModuleOp part : ofKernels)
      parts.push_back({part.clone(), level});
  parallelForEach(context, parts, [&](Part &part) noexcept {
    crash::AtPass at("generating machine code");
    const std::string cpu = getCpuName(part.level).str();
    if (failed(transform(*part.module, [&](OpPassManager &pm) {
          pm.addPass(createSetKernelTargetPass({cpu}));
        })))
      return;
    llvm::Expected<std::vector<char>> object =
        compileObject(*part.module, part.level, optimize);
    part.error = object ? "" : llvm::toString(object.takeError());
    if (object)
      part.object = std::move(*object);
  });
  auto fail = [&](StringRef error) {
    return kernels.emitError() << "cannot compile kernels: " << error;
  };
  // The linker is not made for several threads.
  std::vector<CompiledObject> objects;
  for (abi::CpuLevel level : levels) {
    std::vector<std::vector<char>> compiled;
    for (Part &part : parts) {
      if (part.level != level)
        continue;
      if (!part.error.empty())
        return fail(part.error);
      compiled.push_back(std::move(part.object));
    }
    llvm::Expected<std::vector<char>> linked = linkObjects(compiled);
    if (!linked)
      return fail(llvm::toString(linked.takeError()));
    objects.push_back({level, std::move(*linked)});
  }
  return objects;
}

} // namespace partita::codegen
