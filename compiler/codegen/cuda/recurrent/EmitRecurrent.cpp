//===- EmitRecurrent.cpp - What each thread does for a layer --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/recurrent/GateFunction.h"
#include "compiler/codegen/cuda/recurrent/RecurrentKernel.h"

#include "compiler/codegen/cuda/grid/RowThreads.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

/// A tensor in memory, dense and row-major.
struct Array {
  Value memref;
  SmallVector<int64_t> strides;
};

class RecurrentEmitter {
public:
  RecurrentEmitter(func::FuncOp kernel, nn::RecurrentOp layer, ModuleOp target)
      : kernel(kernel), layer(layer), target(target),
        b(kernel.getLoc(), kernel.getContext()), steps(layer.getNumSteps()),
        batch(layer.getX().getType().getDimSize(1)),
        directions(layer.getNumDirections()), hidden(layer.getHiddenSize()),
        gates(nn::RecurrentOp::getNumGates(layer.getCell())) {}

  void emit() {
    openFunction();
    Value sequence = NVVM::BlockIdXOp::create(b, b.getI32Type());
    sequence = arith::IndexCastUIOp::create(b, b.getIndexType(), sequence);
    direction = arith::DivUIOp::create(b, sequence, index(batch));
    sample = arith::RemUIOp::create(b, sequence, index(batch));
    thread = arith::IndexCastUIOp::create(
        b, b.getIndexType(), NVVM::ThreadIdXOp::create(b, b.getI32Type()));
    state = allocate("state", hidden);
    sums = allocate("sums", gates * hidden);
    if (resetsBefore())
      reset = allocate("reset", hidden);
    if (isLstm())
      cell = allocate("cell", hidden);
    forElements([&](Value i) {
      write(state, {i}, readState(layer.getInitial(), i));
      if (isLstm())
        write(cell, {i}, readState(layer.getInitialCell(), i));
    });
    barrier();
    Value count = getLength();
    for (int64_t d = 0; d < directions; ++d)
      where(equal(direction, d), directions == 1,
            [&] { emitDirection(d, count); });
    forElements([&](Value i) {
      write(out, {index(steps), direction, sample, i}, read(state, {i}));
      if (isLstm())
        write(out, {index(steps + 1), direction, sample, i}, read(cell, {i}));
    });
  }

private:
  bool isLstm() { return layer.getCell() == nn::Cell::lstm; }
  bool isGru() { return layer.getCell() == nn::Cell::gru; }
  /// A gru whose gate r multiplies the state before the product.
  bool resetsBefore() { return isGru() && !layer.getHiddenBias(); }

  void openFunction() {
    SmallVector<Type> types;
    SmallVector<RankedTensorType> tensors;
    for (Type type : kernel.getArgumentTypes()) {
      tensors.push_back(cast<RankedTensorType>(type));
      types.push_back(MemRefType::get(
          {tensors.back().getNumElements()}, tensors.back().getElementType(),
          MemRefLayoutAttrInterface(), b.getI64IntegerAttr(kGlobalSpace)));
    }
    b.setInsertionPointToEnd(target.getBody());
    auto func =
        func::FuncOp::create(b, kernel.getName(), b.getFunctionType(types, {}));
    func->setAttr(kGridAttr,
                  b.getDictionaryAttr(b.getNamedAttr(
                      "threads", b.getI64IntegerAttr(kRecurrentThreads))));
    Block *entry = func.addEntryBlock();
    for (unsigned i = 0; i < types.size(); ++i) {
      func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                      b.getUnitAttr());
      arrays[kernel.getArgument(i)] = {entry->getArgument(i),
                                       getDenseStrides(tensors[i].getShape())};
    }
    out = arrays[kernel.getArguments().back()];
    b.setInsertionPointToEnd(entry);
    auto returned = func::ReturnOp::create(b);
    b.setInsertionPoint(returned);
    for (auto constant : kernel.getOps<nn::ConstantOp>())
      addTable(constant);
  }

  void addTable(nn::ConstantOp constant) {
    auto values = cast<DenseElementsAttr>(constant.getValue());
    auto flat = RankedTensorType::get({values.getNumElements()},
                                      values.getElementType());
    auto type = MemRefType::get(flat.getShape(), flat.getElementType(),
                                MemRefLayoutAttrInterface(),
                                b.getI64IntegerAttr(kGlobalSpace));
    OpBuilder top = OpBuilder::atBlockBegin(target.getBody());
    auto global = memref::GlobalOp::create(
        top, kernel.getLoc(),
        (kernel.getName() + "_table" + Twine(tables++)).str(),
        top.getStringAttr("private"), type, values.reshape(flat),
        /*constant=*/true, top.getI64IntegerAttr(64));
    arrays[constant.getResult()] = {
        memref::GetGlobalOp::create(b, type, global.getSymName()),
        getDenseStrides(values.getType().getShape())};
  }

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value equal(Value a, int64_t value) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, a, index(value));
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value oneMinus(Value x) {
    return arith::SubFOp::create(b, emitFloat(b, 1), x);
  }
  Value shifted(Value i, int64_t by) {
    return by == 0 ? i : arith::AddIOp::create(b, i, index(by)).getResult();
  }

  Array allocate(StringRef what, int64_t elements) {
    auto type =
        MemRefType::get({elements}, b.getF32Type(), MemRefLayoutAttrInterface(),
                        b.getI64IntegerAttr(kSharedSpace));
    OpBuilder top = OpBuilder::atBlockBegin(target.getBody());
    auto global = memref::GlobalOp::create(
        top, kernel.getLoc(), (kernel.getName() + "_" + what).str(),
        top.getStringAttr("private"), type, top.getUnitAttr(),
        /*constant=*/false, top.getI64IntegerAttr(kVectorBytes));
    return {memref::GetGlobalOp::create(b, type, global.getSymName()), {1}};
  }

  Value place(const Array &array, ArrayRef<Value> indices) {
    Value sum;
    for (auto [position, stride] : llvm::zip_equal(indices, array.strides)) {
      Value part =
          stride == 1
              ? position
              : arith::MulIOp::create(b, position, index(stride)).getResult();
      sum = sum ? arith::AddIOp::create(b, sum, part).getResult() : part;
    }
    return sum;
  }
  Value read(const Array &array, ArrayRef<Value> indices) {
    return memref::LoadOp::create(b, array.memref, place(array, indices));
  }
  void write(const Array &array, ArrayRef<Value> indices, Value x) {
    memref::StoreOp::create(b, x, array.memref, place(array, indices));
  }

  /// An element of an initial state; 0 if there is none.
  Value readState(Value tensor, Value i) {
    return tensor ? read(arrays[tensor], {direction, sample, i})
                  : emitFloat(b, 0);
  }

  void barrier() { NVVM::Barrier0Op::create(b); }

  template <typename Fn> void where(Value condition, bool always, Fn body) {
    if (always)
      return body();
    auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    body();
  }

  template <typename Fn>
  void loop(Value from, int64_t to, int64_t by, Fn body) {
    auto each = scf::ForOp::create(b, from, index(to), index(by));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(each.getBody()->getTerminator());
    body(each.getInductionVar());
  }

  /// The elements of the state, dealt out to the block's threads.
  template <typename Fn> void forElements(Fn body) {
    loop(thread, hidden, kRecurrentThreads, body);
  }

  /// How many steps the sequence has.
  Value getLength() {
    if (!layer.getLengths())
      return index(steps);
    Value length = read(arrays[layer.getLengths()], {sample});
    length = arith::IndexCastOp::create(b, b.getIndexType(), length);
    length = arith::MaxSIOp::create(b, length, index(0));
    return arith::MinSIOp::create(b, length, index(steps));
  }

  void emitDirection(int64_t d, Value count) {
    loop(index(0), steps, 1, [&](Value step) {
      Value active =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ult, step, count);
      auto branch = scf::IfOp::create(b, active, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(branch.thenBlock()->getTerminator());
      Value time = step;
      if (layer.getReversed()[d])
        time = arith::SubIOp::create(
            b, arith::SubIOp::create(b, count, index(1)), step);
      emitStep(d, time);
      b.setInsertionPoint(branch.elseBlock()->getTerminator());
      forElements([&](Value i) {
        write(out, {step, direction, sample, i}, emitFloat(b, 0));
      });
    });
  }

  nn::GateFunctionAttr function(int64_t d, int64_t which) {
    const int64_t each = nn::RecurrentOp::getNumFunctions(layer.getCell());
    return cast<nn::GateFunctionAttr>(layer.getFunctions()[d * each + which]);
  }

  /// sums[first, last) = weights . from: a warp for each row.
  void multiply(const Array &from, int64_t first, int64_t last) {
    Value warp = arith::DivUIOp::create(b, thread, index(kWarp));
    Value lane = arith::RemUIOp::create(b, thread, index(kWarp));
    loop(shifted(warp, first), last, kRecurrentThreads / kWarp,
         [&](Value row) { multiplyRow(from, row, lane); });
    barrier();
  }

  void multiplyRow(const Array &from, Value row, Value lane) {
    auto each = scf::ForOp::create(b, lane, index(hidden), index(kWarp),
                                   ValueRange{emitFloat(b, 0)});
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(each.getBody());
      Value k = each.getInductionVar();
      Value weight = read(arrays[layer.getWeights()], {direction, row, k});
      scf::YieldOp::create(
          b, add(each.getRegionIterArg(0), mul(weight, read(from, {k}))));
    }
    Value sum = reduceWarp(b, b.getLoc(), each.getResult(0),
                           [&](OpBuilder &at, Value x, Value y) -> Value {
                             return arith::AddFOp::create(at, b.getLoc(), x, y);
                           });
    where(equal(lane, 0), false, [&] { write(sums, {row}, sum); });
  }

  Value input(Value time, Value i, int64_t gate) {
    return read(arrays[layer.getX()],
                {time, sample, direction, shifted(i, gate * hidden)});
  }
  Value sum(Value i, int64_t gate) {
    return read(sums, {shifted(i, gate * hidden)});
  }
  Value clip(Value x) {
    const double bound = layer.getClip().convertToDouble();
    if (bound <= 0)
      return x;
    x = arith::MaximumFOp::create(b, x, emitFloat(b, -bound));
    return arith::MinimumFOp::create(b, x, emitFloat(b, bound));
  }

  /// A gate of its sum and inputs, and, if it looks at the cell, of that.
  Value gate(int64_t d, int64_t fn, Value time, Value i, int64_t which,
             int64_t peephole = -1, Value seen = {}) {
    Value x = add(sum(i, which), input(time, i, which));
    if (Value peepholes = layer.getPeepholes(); peepholes && peephole >= 0)
      x = add(x, mul(read(arrays[peepholes],
                          {direction, shifted(i, peephole * hidden)}),
                     seen));
    return emitGate(b, function(d, fn), clip(x));
  }

  void emitStep(int64_t d, Value time) {
    multiply(state, 0, (resetsBefore() ? 2 : gates) * hidden);
    if (resetsBefore()) {
      forElements([&](Value i) {
        Value r = gate(d, 0, time, i, 1);
        write(reset, {i}, mul(r, read(state, {i})));
      });
      barrier();
      multiply(reset, 2 * hidden, 3 * hidden);
    }
    forElements([&](Value i) {
      Value next = isLstm()  ? emitLstm(d, time, i)
                   : isGru() ? emitGru(d, time, i)
                             : gate(d, 0, time, i, 0);
      write(state, {i}, next);
      write(out, {time, direction, sample, i}, next);
    });
    barrier();
  }

  Value emitGru(int64_t d, Value time, Value i) {
    Value z = gate(d, 0, time, i, 0), candidate;
    if (resetsBefore()) {
      candidate = gate(d, 1, time, i, 2);
    } else {
      Value r = gate(d, 0, time, i, 1);
      Value biased =
          add(sum(i, 2), read(arrays[layer.getHiddenBias()], {direction, i}));
      candidate = emitGate(b, function(d, 1),
                           clip(add(mul(r, biased), input(time, i, 2))));
    }
    return add(mul(oneMinus(z), candidate), mul(z, read(state, {i})));
  }

  Value emitLstm(int64_t d, Value time, Value i) {
    Value old = read(cell, {i});
    Value in = gate(d, 0, time, i, 0, 0, old);
    Value forget =
        layer.getCoupled() ? oneMinus(in) : gate(d, 0, time, i, 2, 2, old);
    Value update = gate(d, 1, time, i, 3);
    Value next = add(mul(forget, old), mul(in, update));
    write(cell, {i}, next);
    // This gate sees the new state of the cell.
    Value seen = gate(d, 0, time, i, 1, 1, next);
    return mul(emitGate(b, function(d, 2), next), seen);
  }

  func::FuncOp kernel;
  nn::RecurrentOp layer;
  ModuleOp target;
  ImplicitLocOpBuilder b;
  const int64_t steps, batch, directions, hidden, gates;
  llvm::DenseMap<Value, Array> arrays;
  Array out, state, sums, reset, cell;
  Value direction, sample, thread;
  int tables = 0;
};

} // namespace

void emitRecurrent(func::FuncOp kernel, nn::RecurrentOp layer,
                   ModuleOp target) {
  RecurrentEmitter(kernel, layer, target).emit();
}

} // namespace partita::codegen::cuda
