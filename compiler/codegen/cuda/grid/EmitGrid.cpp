//===- EmitGrid.cpp - Kernels as blocks of threads ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/grid/EmitGrid.h"

#include "compiler/codegen/cuda/grid/Tile.h"
#include "compiler/codegen/kernels/EmitBody.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

class GridEmitter {
public:
  GridEmitter(func::FuncOp kernel, const GridSchedule &schedule,
              ModuleOp target, StringRef name)
      : kernel(kernel), target(target), name(name), schedule(schedule),
        context(schedule, target, name) {}

  void emit(NumberBuilder b, ValueRange memrefs, Value block) {
    for (auto [tensor, memref] : llvm::zip(kernel.getArguments(), memrefs))
      addBuffer(tensor, memref);
    if (!schedule.tile.empty()) {
      prepareAll(b);
      return emitTile(b, context, target, name, block);
    }
    if (schedule.rowThreads == 1)
      openPoints(b, block);
    else
      openRow(b, block);
    prepareAll(b);
    for (const StageSchedule &stage : schedule.kernel.stages)
      emitStage(b, context, stage);
  }

private:
  void addBuffer(Value tensor, Value memref) {
    auto shape = cast<RankedTensorType>(tensor.getType()).getShape();
    KernelBuffer buffer;
    buffer.memref = memref;
    buffer.strides = computeStrides(shape);
    buffer.rows.assign(shape.size(), -1);
    context.buffers.buffers[tensor] = buffer;
  }

  void prepareAll(const NumberBuilder &b) {
    for (Operation &op : kernel.getBody().front()) {
      NumberBuilder at(op.getLoc(), b);
      prepare(at, op);
    }
  }

  /// Makes the tables, and the shared memory of temporaries.
  void prepare(NumberBuilder &b, Operation &op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (isa<RankedTensorType>(constant.getType()))
        addBuffer(constant.getResult(),
                  declareTable(b, b.getLoc(), target,
                               name + "_table" + Twine(tables++),
                               cast<DenseElementsAttr>(constant.getValue()),
                               b.getI64IntegerAttr(kGlobalSpace)));
      return;
    }
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || isa<BlockArgument>(getStorageRoot(generic.getResult(0))))
      return;
    const StageSchedule *stage = schedule.kernel.find(&op);
    if (isKept(*stage))
      return;
    auto type = cast<RankedTensorType>(generic.getResult(0).getType());
    KernelBuffer buffer = context.rowThreads.allocate(
        b, schedule.kernel.getTileShape(*stage), type.getElementType());
    buffer.rows = schedule.kernel.getRows(*stage);
    context.buffers.buffers[generic.getResult(0)] = buffer;
  }

  /// Leaves `b` where `row` is below the extent.
  void guard(NumberBuilder &b, Value row, bool always) {
    if (always)
      return;
    Value extent = arith::ConstantOp::create(
        b, b.getIntegerAttr(row.getType(), schedule.kernel.extent));
    auto branch = scf::IfOp::create(b, b.isBelow(row, extent),
                                    /*withElseRegion=*/false);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
  }

  void openPoints(NumberBuilder &b, Value block) {
    const int64_t rows = schedule.threads * schedule.width;
    // Divisions of 64 bits take several times as long.
    const bool isShort =
        schedule.getBlocks() * rows <= std::numeric_limits<int32_t>::max();
    Type type = b.getIntegerType(isShort ? 32 : 64);
    auto read = [&](Value x) -> Value {
      return isShort ? x : arith::ExtUIOp::create(b, type, x).getResult();
    };
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
    };
    Value thread = read(NVVM::ThreadIdXOp::create(b, b.getI32Type()));
    Value row = b.add(b.mul(read(block), constant(schedule.threads)), thread);
    if (schedule.width != 1)
      row = b.mul(row, constant(schedule.width));
    guard(b, row, schedule.getBlocks() * rows == schedule.kernel.extent);
    place(b, row);
  }

  void openRow(NumberBuilder &b, Value block) {
    context.rowThreads.begin(b, block);
    guard(b, context.rowThreads.row,
          schedule.columns > 1 ||
              schedule.getBlocks() * (schedule.threads / schedule.rowThreads) ==
                  schedule.kernel.extent);
    place(b, context.rowThreads.row);
  }

  /// The place of a row along each row dimension.
  void place(NumberBuilder &b, Value number) {
    const SmallVector<int64_t> &sizes = schedule.kernel.sizes;
    context.buffers.rowCounts.resize(sizes.size());
    for (Value place : emitDigits(b, b.getLoc(), number, sizes))
      context.buffers.rowStarts.push_back(b.toIndex(place));
  }

  func::FuncOp kernel;
  ModuleOp target;
  const std::string name;
  const GridSchedule &schedule;
  GridContext context;
  int tables = 0;
};

} // namespace

func::FuncOp declareKernel(func::FuncOp kernel, ArrayRef<int64_t> inPlace,
                           ModuleOp target) {
  OpBuilder b = OpBuilder::atBlockEnd(target.getBody());
  SmallVector<Type> types;
  for (Type type : kernel.getArgumentTypes())
    types.push_back(getFlatType(cast<RankedTensorType>(type),
                                b.getI64IntegerAttr(kGlobalSpace)));
  auto func = func::FuncOp::create(b, kernel.getLoc(), kernel.getName(),
                                   b.getFunctionType(types, {}));
  if (Attribute grid = kernel->getAttr(kGridAttr))
    func->setAttr(kGridAttr, grid);
  // Operands and results do not overlap, but for the pairs that may be in
  // place. Slots are aligned.
  SmallVector<int64_t> shared(inPlace);
  const int64_t inputs = kernel.getNumArguments() - kernel.getNumResults();
  for (size_t i = 1; i < shared.size(); i += 2)
    shared[i] += inputs;
  for (int64_t i = 0; i < kernel.getNumArguments(); ++i) {
    if (!llvm::is_contained(shared, i))
      func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                      b.getUnitAttr());
    if (!kernel.getArgAttr(i, kUnalignedAttr))
      func.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                      b.getI64IntegerAttr(64));
  }
  b.setInsertionPointToEnd(func.addEntryBlock());
  func::ReturnOp::create(b, kernel.getLoc());
  return func;
}

void emitThread(const OpBuilder &b, func::FuncOp kernel,
                const GridSchedule &schedule, ModuleOp target, StringRef name,
                ValueRange memrefs, Value block) {
  GridEmitter(kernel, schedule, target, name)
      .emit(NumberBuilder(kernel.getLoc(), b), memrefs, block);
}

void alignVectors(func::FuncOp func,
                  const llvm::SmallDenseSet<Value> &unaligned) {
  auto align = [&](auto op, Value memref, VectorType type) {
    if (!unaligned.contains(memref))
      op.setAlignment(type.getNumElements() * type.getElementTypeBitWidth() /
                      8);
  };
  func.walk(
      [&](vector::LoadOp op) { align(op, op.getBase(), op.getVectorType()); });
  func.walk(
      [&](vector::StoreOp op) { align(op, op.getBase(), op.getVectorType()); });
}

void emitGrid(func::FuncOp kernel, const GridSchedule &schedule,
              ModuleOp target) {
  func::FuncOp func = declareKernel(kernel, schedule.kernel.inPlace, target);
  NumberBuilder b(kernel.getLoc(), func.getBody().front().getTerminator());
  Value block = NVVM::BlockIdXOp::create(b, b.getI32Type());
  emitThread(b, kernel, schedule, target, kernel.getName(), func.getArguments(),
             block);
  llvm::SmallDenseSet<Value> unaligned;
  for (BlockArgument argument : func.getArguments())
    if (kernel.getArgAttr(argument.getArgNumber(), kUnalignedAttr))
      unaligned.insert(argument);
  alignVectors(func, unaligned);
}

} // namespace partita::codegen::cuda
