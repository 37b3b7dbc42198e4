//===- RecurrentKernel.cpp - Recurrent layers on GPUs ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block computes one sequence in one direction, step by step. Its states lie
// in shared memory. In each step its warps multiply the state with the rows of
// the weights, then its threads apply the gates to the elements.
//
// Until threads are emitted, the kernel's function holds the op itself:
//
//   func @k(%x: tensor<...>, %w: tensor<...>, %out: tensor<...>) -> tensor<...>
//   {
//     %r = nn.recurrent rnn %x, %w ...
//     return %r
//   }
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/SpecialKernels.h"
#include "compiler/codegen/cuda/ordered/ThreadBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace partita::codegen::cuda {

nn::RecurrentOp getRecurrentLayer(Block &body) {
  nn::RecurrentOp layer;
  for (Operation &op : body.without_terminator()) {
    auto found = dyn_cast<nn::RecurrentOp>(op);
    if ((!found && !isa<nn::ConstantOp>(op)) || (found && layer))
      return {};
    layer = found ? found : layer;
  }
  return layer;
}

int64_t countBlocks(nn::RecurrentOp layer) {
  return layer.getNumDirections() * layer.getX().getType().getDimSize(1);
}

LogicalResult checkRecurrentKernel(nn::ClusterOp cluster) {
  nn::RecurrentOp layer = getRecurrentLayer(cluster.getBody().front());
  auto refuse = [&](const Twine &why) {
    return layer.emitError()
           << "'nn.recurrent' of node '" << nn::getNodeName(cluster)
           << "' has no kernel for CUDA devices: " << why.str()
           << "; compute it on CPU devices";
  };
  if (!layer.getX().getType().getElementType().isF32())
    return refuse("its elements are no f32");
  // The hidden state, that after a reset, the cell's, and the gates' sums.
  const int64_t bytes = (3 + nn::RecurrentOp::getNumGates(layer.getCell())) *
                        layer.getHiddenSize() * 4;
  if (bytes > kMostSharedBytes)
    return refuse("its states are " + Twine(bytes) +
                  " bytes, and shared memory has " + Twine(kMostSharedBytes));
  return success();
}

namespace {

/// A constant of f32.
Value emitFloat(ImplicitLocOpBuilder &b, double value) {
  return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
}

/// The function of a gate, of an f32.
Value emitGate(ImplicitLocOpBuilder &b, nn::GateFunctionAttr function,
               Value x) {
  using Kind = nn::GateFunctionKind;
  auto add = [&](Value p, Value q) -> Value {
    return arith::AddFOp::create(b, p, q);
  };
  auto mul = [&](Value p, Value q) -> Value {
    return arith::MulFOp::create(b, p, q);
  };
  auto largest = [&](Value p, Value q) -> Value {
    return arith::MaximumFOp::create(b, p, q);
  };
  auto exp = [&](Value p) -> Value { return math::ExpOp::create(b, p); };
  auto whereNegative = [&](Value p, Value q) -> Value {
    Value negative =
        arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, emitFloat(b, 0));
    return arith::SelectOp::create(b, negative, p, q);
  };
  Value alpha = emitFloat(b, function.getAlpha()),
        beta = emitFloat(b, function.getBeta()), one = emitFloat(b, 1),
        zero = emitFloat(b, 0);
  switch (function.getKind()) {
  case Kind::relu:
    return largest(x, zero);
  case Kind::tanh:
    return math::TanhOp::create(b, x);
  case Kind::logistic:
    return arith::DivFOp::create(b, one,
                                 add(one, exp(arith::NegFOp::create(b, x))));
  case Kind::affine:
    return add(mul(alpha, x), beta);
  case Kind::leaky_relu:
    return whereNegative(mul(alpha, x), x);
  case Kind::thresholded_relu: {
    Value above = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, x, alpha);
    return arith::SelectOp::create(b, above, x, zero);
  }
  case Kind::scaled_tanh:
    return mul(alpha, math::TanhOp::create(b, mul(beta, x)));
  case Kind::hard_sigmoid:
    return arith::MinimumFOp::create(b, largest(add(mul(alpha, x), beta), zero),
                                     one);
  case Kind::elu:
    return whereNegative(mul(alpha, arith::SubFOp::create(b, exp(x), one)), x);
  case Kind::softsign:
    return arith::DivFOp::create(b, x, add(one, math::AbsFOp::create(b, x)));
  case Kind::softplus: {
    Value below = arith::NegFOp::create(b, math::AbsFOp::create(b, x));
    return add(largest(x, zero), math::Log1pOp::create(b, exp(below)));
  }
  }
  return {};
}

/// A tensor in memory, dense and row-major.
struct Array {
  Value memref;
  SmallVector<int64_t> strides;
};

class RecurrentEmitter : ThreadBuilder {
public:
  RecurrentEmitter(func::FuncOp kernel, nn::RecurrentOp layer, ModuleOp target)
      : ThreadBuilder(kernel.getLoc(), kernel, /*inPlace=*/{}, target),
        layer(layer), steps(layer.getNumSteps()),
        batch(layer.getX().getType().getDimSize(1)),
        directions(layer.getNumDirections()), hidden(layer.getHiddenSize()),
        gates(nn::RecurrentOp::getNumGates(layer.getCell())) {}

  void emit() {
    addArrays();
    Value sequence = getBlock();
    direction = b.div(sequence, b.index(batch));
    sample = b.rem(sequence, b.index(batch));
    thread = b.toIndex(getThread());
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
    if (directions == 1)
      emitDirection(0, count);
    else
      for (int64_t d = 0; d < directions; ++d)
        b.when(equal(direction, d), [&] { emitDirection(d, count); });
    forElements([&](Value i) {
      write(out, {b.index(steps), direction, sample, i}, read(state, {i}));
      if (isLstm())
        write(out, {b.index(steps + 1), direction, sample, i}, read(cell, {i}));
    });
  }

private:
  bool isLstm() { return layer.getCell() == nn::Cell::lstm; }
  bool isGru() { return layer.getCell() == nn::Cell::gru; }
  /// A gru whose gate r multiplies the state before the product.
  bool resetsBefore() { return isGru() && !layer.getHiddenBias(); }

  void addArrays() {
    for (auto [tensor, memref] :
         llvm::zip_equal(kernel.getArguments(), func.getArguments()))
      addArray(tensor, memref);
    out = arrays[kernel.getArguments().back()];
    for (auto constant : kernel.getOps<nn::ConstantOp>())
      addArray(constant.getResult(),
               declareTable(b, b.getLoc(), target,
                            kernel.getName() + "_table" + Twine(tables++),
                            cast<DenseElementsAttr>(constant.getValue()),
                            b.getI64IntegerAttr(kGlobalSpace)));
  }

  void addArray(Value tensor, Value memref) {
    arrays[tensor] = {
        memref,
        computeStrides(cast<RankedTensorType>(tensor.getType()).getShape())};
  }

  Value equal(Value a, int64_t value) { return b.isEqual(a, b.index(value)); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value oneMinus(Value x) {
    return arith::SubFOp::create(b, emitFloat(b, 1), x);
  }
  Value shifted(Value i, int64_t by) {
    return by == 0 ? i : b.add(i, b.index(by));
  }

  Array allocate(StringRef what, int64_t elements) {
    return {share(what, elements, b.getF32Type()), {1}};
  }

  Value place(const Array &array, ArrayRef<Value> indices) {
    Value sum;
    for (auto [position, stride] : llvm::zip_equal(indices, array.strides)) {
      Value part = stride == 1 ? position : b.mul(position, b.index(stride));
      sum = sum ? b.add(sum, part) : part;
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

  /// The elements of the state, dealt out to the block's threads.
  template <typename Fn> void forElements(Fn body) {
    b.loop(thread, b.index(hidden), kSpecialThreads, body);
  }

  /// How many steps the sequence has.
  Value getLength() {
    if (!layer.getLengths())
      return b.index(steps);
    Value length = read(arrays[layer.getLengths()], {sample});
    length = arith::IndexCastOp::create(b, b.getIndexType(), length);
    length = arith::MaxSIOp::create(b, length, b.index(0));
    return arith::MinSIOp::create(b, length, b.index(steps));
  }

  void emitDirection(int64_t d, Value count) {
    b.loop(b.index(0), b.index(steps), 1, [&](Value step) {
      Value active = b.isBelow(step, count);
      auto branch = scf::IfOp::create(b, active, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(branch.thenBlock()->getTerminator());
      Value time = step;
      if (layer.getReversed()[d])
        time = b.sub(b.sub(count, b.index(1)), step);
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
    Value warp = b.div(thread, b.index(kWarp));
    Value lane = b.rem(thread, b.index(kWarp));
    b.loop(shifted(warp, first), b.index(last), kSpecialThreads / kWarp,
           [&](Value row) { multiplyRow(from, row, lane); });
    barrier();
  }

  void multiplyRow(const Array &from, Value row, Value lane) {
    auto each = scf::ForOp::create(b, lane, b.index(hidden), b.index(kWarp),
                                   ValueRange{emitFloat(b, 0)});
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(each.getBody());
      Value k = each.getInductionVar();
      Value weight = read(arrays[layer.getWeights()], {direction, row, k});
      scf::YieldOp::create(
          b, add(each.getRegionIterArg(0), mul(weight, read(from, {k}))));
    }
    Value sum = reduceWarp(b, each.getResult(0),
                           [&](Value x, Value y) { return add(x, y); });
    b.when(equal(lane, 0), [&] { write(sums, {row}, sum); });
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

  nn::RecurrentOp layer;
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
