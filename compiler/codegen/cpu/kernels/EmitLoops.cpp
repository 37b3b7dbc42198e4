//===- EmitLoops.cpp - Kernels as loops and vectors -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/EmitLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace partita::codegen {

static MemRefType getFlatType(RankedTensorType type) {
  return MemRefType::get({type.getNumElements()}, type.getElementType());
}

namespace {

class KernelEmitter {
public:
  KernelEmitter(func::FuncOp kernel, const KernelSchedule &schedule,
                ModuleOp target)
      : kernel(kernel), target(target), context(schedule) {}

  FailureOr<func::FuncOp> emit() {
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
      if (failed(prepare(b, op)))
        return failure();

    auto returned = func::ReturnOp::create(b, loc);
    b.setInsertionPoint(returned);
    if (!context.schedule.sizes.empty())
      openParallelLoop(b, loc, entry);
    for (const StageSchedule &stage : context.schedule.stages)
      if (failed(emitStage(b, context, stage)))
        return failure();
    return func;
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
        memref,
        getDenseStrides(tileShape.empty() ? type.getShape() : tileShape), rows};
  }

  /// Makes what lives as long as the kernel: tables and temporaries.
  LogicalResult prepare(OpBuilder &b, Operation &op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (auto type = dyn_cast<RankedTensorType>(constant.getType()))
        addTable(b, constant, type);
      return success();
    }
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || isa<BlockArgument>(getStorageRoot(generic.getResult(0))))
      return success();
    const StageSchedule *stage = context.schedule.find(&op);
    SmallVector<int64_t> shape = context.schedule.getTileShape(*stage);
    auto type = cast<RankedTensorType>(generic.getResult(0).getType());
    MemRefType memory =
        getFlatType(RankedTensorType::get(shape, type.getElementType()));
    Value memref = memref::AllocaOp::create(b, op.getLoc(), memory,
                                            b.getI64IntegerAttr(64));
    addBuffer(generic.getResult(0), memref, context.schedule.getRows(*stage),
              shape);
    return success();
  }

  void addTable(OpBuilder &b, arith::ConstantOp constant,
                RankedTensorType type) {
    auto values = cast<DenseElementsAttr>(constant.getValue())
                      .reshape(RankedTensorType::get({type.getNumElements()},
                                                     type.getElementType()));
    OpBuilder top = OpBuilder::atBlockBegin(target.getBody());
    std::string name =
        (kernel.getName() + "_table" + llvm::Twine(tables++)).str();
    auto global = memref::GlobalOp::create(
        top, constant.getLoc(), name, top.getStringAttr("private"),
        getFlatType(type), values, /*constant=*/true,
        top.getI64IntegerAttr(64));
    Value memref = memref::GetGlobalOp::create(
        b, constant.getLoc(), getFlatType(type), global.getName());
    addBuffer(constant.getResult(), memref);
  }

  /// Leaves `b` inside the loop over tiles, with the tile's place known.
  void openParallelLoop(OpBuilder &b, Location loc, Block *entry) {
    const KernelSchedule &schedule = context.schedule;
    Value begin = entry->getArgument(entry->getNumArguments() - 2);
    Value end = entry->getArgument(entry->getNumArguments() - 1);
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    auto loop = scf::ForOp::create(b, loc, begin, end, one);
    b.setInsertionPoint(loop.getBody()->getTerminator());
    Value rest = loop.getInductionVar();
    context.rowStarts.resize(schedule.sizes.size());
    context.rowCounts.resize(schedule.sizes.size());
    for (size_t row = schedule.sizes.size(); row-- > 0;) {
      int64_t tile = schedule.tiles[row], size = schedule.sizes[row];
      Value which = rest;
      if (row > 0) {
        Value count =
            arith::ConstantIndexOp::create(b, loc, schedule.getTileCount(row));
        which = arith::RemUIOp::create(b, loc, rest, count);
        rest = arith::DivUIOp::create(b, loc, rest, count);
      }
      Value length = arith::ConstantIndexOp::create(b, loc, tile);
      context.rowStarts[row] = arith::MulIOp::create(b, loc, which, length);
      if (size % tile != 0) {
        Value all = arith::ConstantIndexOp::create(b, loc, size);
        Value left = arith::SubIOp::create(b, loc, all, context.rowStarts[row]);
        context.rowCounts[row] = arith::MinUIOp::create(b, loc, left, length);
      }
    }
  }

  func::FuncOp kernel;
  ModuleOp target;
  EmitContext context;
  int tables = 0;
};

} // namespace

FailureOr<func::FuncOp> emitLoops(func::FuncOp kernel,
                                  const KernelSchedule &schedule,
                                  ModuleOp target) {
  return KernelEmitter(kernel, schedule, target).emit();
}

} // namespace partita::codegen
