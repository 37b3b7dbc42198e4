//===- EmitLoops.cpp - Kernels as loops and vectors -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns a kernel's function on tensors into one on flat buffers:
//
//   func @k(%in0: memref<Nxf32>, ..., %out0: memref<Nxf32>, %begin, %end)
//
// All buffers are dense and row-major, so a view is its source with other
// strides. The parallel loop runs from begin to end. Inside it each stage is a
// nest of loops, one of which runs over vectors if the stage's ops allow it.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/cpu/Passes.h"
#include "compiler/codegen/cpu/kernels/EmitStage.h"
#include "compiler/codegen/kernels/EmitBody.h"
#include "compiler/crash/Place.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace partita::codegen {

#define GEN_PASS_DEF_EMITKERNELLOOPSPASS
#include "compiler/codegen/cpu/Passes.h.inc"

namespace {

/// Appends the kernel to `target` under the same name.
class KernelEmitter {
public:
  KernelEmitter(func::FuncOp kernel, const KernelSchedule &schedule,
                ModuleOp target)
      : kernel(kernel), target(target), context(schedule) {}

  void emit() {
    MLIRContext *ctx = kernel.getContext();
    Location loc = kernel.getLoc();
    SmallVector<Type> types;
    for (Type type : kernel.getArgumentTypes())
      types.push_back(getFlatType(cast<RankedTensorType>(type)));
    types.append(2, IndexType::get(ctx));
    OpBuilder b = OpBuilder::atBlockEnd(target.getBody());
    auto func = func::FuncOp::create(b, loc, kernel.getName(),
                                     b.getFunctionType(types, {}));
    Block *entry = func.addEntryBlock();
    b.setInsertionPointToEnd(entry);
    markNoAlias(func);
    for (auto [tensor, memref] :
         llvm::zip(kernel.getArguments(), func.getArguments()))
      addBuffer(tensor, memref);
    for (Operation &op : kernel.getBody().front())
      prepare(b, op);

    auto returned = func::ReturnOp::create(b, loc);
    b.setInsertionPoint(returned);
    if (!context.schedule.sizes.empty())
      openParallelLoop(b, loc, entry);
    for (const StageSchedule &stage : context.schedule.stages)
      emitStage(b, context, stage);
  }

private:
  /// Operands and results do not overlap, but for the pairs that may be in
  /// place.
  void markNoAlias(func::FuncOp func) {
    SmallVector<int64_t> shared(context.schedule.inPlace);
    int64_t inputs = kernel.getNumArguments() - kernel.getNumResults();
    for (size_t i = 1; i < shared.size(); i += 2)
      shared[i] += inputs;
    for (int64_t i = 0; i < kernel.getNumArguments(); ++i)
      if (!llvm::is_contained(shared, i))
        func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                        UnitAttr::get(func.getContext()));
  }

  void addBuffer(Value tensor, Value memref, SmallVector<int> rows = {},
                 ArrayRef<int64_t> tileShape = {}) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (rows.empty())
      rows.assign(type.getRank(), -1);
    context.buffers[tensor] = {
        memref, computeStrides(tileShape.empty() ? type.getShape() : tileShape),
        rows};
  }

  /// Makes what lives as long as the kernel: tables and temporaries.
  void prepare(OpBuilder &b, Operation &op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (isa<RankedTensorType>(constant.getType()))
        addBuffer(constant.getResult(),
                  declareTable(b, constant.getLoc(), target,
                               kernel.getName() + "_table" + Twine(tables++),
                               cast<DenseElementsAttr>(constant.getValue())));
      return;
    }
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || isa<BlockArgument>(getStorageRoot(generic.getResult(0))))
      return;
    const StageSchedule *stage = context.schedule.find(&op);
    SmallVector<int64_t> shape = context.schedule.getTileShape(*stage);
    auto type = cast<RankedTensorType>(generic.getResult(0).getType());
    MemRefType memory =
        getFlatType(RankedTensorType::get(shape, type.getElementType()));
    Value memref = memref::AllocaOp::create(b, op.getLoc(), memory,
                                            b.getI64IntegerAttr(64));
    addBuffer(generic.getResult(0), memref, context.schedule.getRows(*stage),
              shape);
  }

  /// Leaves `b` inside the loop over tiles, with the tile's place known.
  void openParallelLoop(OpBuilder &b, Location loc, Block *entry) {
    const KernelSchedule &schedule = context.schedule;
    Value begin = entry->getArgument(entry->getNumArguments() - 2);
    Value end = entry->getArgument(entry->getNumArguments() - 1);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    auto loop = scf::ForOp::create(b, loc, begin, end, one);
    b.setInsertionPoint(loop.getBody()->getTerminator());
    context.rowStarts =
        emitDigits(b, loc, loop.getInductionVar(), schedule.getTileCounts());
    context.rowCounts.resize(schedule.sizes.size());
    for (auto [row, start] : llvm::enumerate(context.rowStarts)) {
      int64_t tile = schedule.tiles[row], size = schedule.sizes[row];
      Value length = arith::ConstantIndexOp::create(b, loc, tile);
      start = arith::MulIOp::create(b, loc, start, length);
      if (size % tile != 0) {
        Value all = arith::ConstantIndexOp::create(b, loc, size);
        Value left = arith::SubIOp::create(b, loc, all, start);
        context.rowCounts[row] = arith::MinUIOp::create(b, loc, left, length);
      }
    }
  }

  func::FuncOp kernel;
  ModuleOp target;
  EmitContext context;
  int tables = 0;
};

class EmitKernelLoopsPass
    : public impl::EmitKernelLoopsPassBase<EmitKernelLoopsPass> {
public:
  using EmitKernelLoopsPassBase::EmitKernelLoopsPassBase;

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto kernel : llvm::to_vector(module.getOps<func::FuncOp>())) {
      crash::AtNode at(kernel.getLoc());
      FailureOr<KernelSchedule> schedule = readSchedule(kernel);
      if (failed(schedule))
        return signalPassFailure();
      KernelEmitter(kernel, *schedule, module).emit();
      if (kernel->hasAttr(kReferenceAttr))
        module->setAttr(kReferenceAttr, UnitAttr::get(&getContext()));
      kernel.erase();
    }
  }
};

} // namespace
} // namespace partita::codegen
