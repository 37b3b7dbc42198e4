//===- ExpandRecurrent.cpp - Recurrent layers, step by step ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Activity.h"
#include "compiler/autodiff/Passes.h"
#include "compiler/autodiff/Ports.h"
#include "dialects/nn/grad/Term.h"

using namespace mlir;
using namespace partita::nn::grad;
using partita::nn::grad::Shape;

namespace partita::autodiff {

#define GEN_PASS_DEF_EXPANDRECURRENTPASS
#include "compiler/autodiff/Passes.h.inc"

namespace {

using nn::Cell;

template <typename Op> Term unary(Term x) {
  return x.make<Op>(x.type(), x.get());
}
template <typename Op> Term binary(Term x, Term y) {
  return x.make<Op>(x.type(), x.get(), y.get());
}

/// The function of a gate; its bounds as `nn.max` and `nn.min` have them.
Term apply(nn::GateFunctionAttr function, Term x) {
  using Kind = nn::GateFunctionKind;
  const double alpha = function.getAlpha(), beta = function.getBeta();
  switch (function.getKind()) {
  case Kind::relu:
    return unary<nn::ReluOp>(x);
  case Kind::tanh:
    return unary<nn::TanhOp>(x);
  case Kind::logistic:
    return unary<nn::LogisticOp>(x);
  case Kind::affine:
    return x * alpha + beta;
  case Kind::leaky_relu:
    return select(x < 0.0, x * alpha, x);
  case Kind::thresholded_relu:
    return select(x > alpha, x, 0.0);
  case Kind::scaled_tanh:
    return unary<nn::TanhOp>(x * beta) * alpha;
  case Kind::hard_sigmoid: {
    Term line = x * alpha + beta;
    return binary<nn::MinOp>(binary<nn::MaxOp>(line, line.splat(0)),
                             line.splat(1));
  }
  case Kind::elu:
    // The exponential of what is not negative may be infinite.
    return select(x < 0.0,
                  (exp(binary<nn::MinOp>(x, x.splat(0))) - 1.0) * alpha, x);
  case Kind::softsign:
    return x / (unary<nn::AbsOp>(x) + 1.0);
  case Kind::softplus: {
    Term positive = unary<nn::ReluOp>(x);
    // Its two terms have kinks at 0, and their sum has none.
    if (auto relu = positive.get().getDefiningOp<nn::ReluOp>())
      relu->setAttr(kHalfAtZeroAttr, x.b().getUnitAttr());
    return positive + log(exp(-unary<nn::AbsOp>(x)) + 1.0);
  }
  }
  llvm_unreachable("unknown function of a gate");
}

/// One direction of a layer. All states are [B, H].
class Direction {
public:
  Direction(ImplicitLocOpBuilder &b, nn::RecurrentOp op, int64_t number)
      : b(b), op(op), number(number), batch(op.getX().getType().getDimSize(1)),
        hidden(op.getHiddenSize()), x(b, op.getX()),
        weights(at(Term(b, op.getWeights()), 0, number)) {
    if (op.getNumDirections() > 1)
      x = along(x, 2, number, number + 1);
    const auto count =
        static_cast<size_t>(nn::RecurrentOp::getNumFunctions(op.getCell()));
    for (size_t i = 0; i < count; ++i)
      functions.push_back(cast<nn::GateFunctionAttr>(
          op.getFunctions()[static_cast<size_t>(number) * count + i]));
    state = initial(op.getInitial());
    if (op.getCell() == Cell::lstm)
      cell = initial(op.getInitialCell());
    if (op.getPeepholes())
      peepholes = at(Term(b, op.getPeepholes()), 0, number);
  }

  /// The hidden state at each time, and then the final states.
  SmallVector<Term> run() {
    const int64_t steps = op.getNumSteps();
    SmallVector<Term> results(static_cast<size_t>(steps));
    for (int64_t step = 0; step < steps; ++step) {
      const bool reversed = op.getReversed()[static_cast<size_t>(number)];
      const int64_t time = reversed ? steps - 1 - step : step;
      Term gates =
          at(x, 0, time)
              .reshape(
                  {batch, nn::RecurrentOp::getNumGates(op.getCell()) * hidden});
      const Term before = state, cellBefore = cell;
      switch (op.getCell()) {
      case Cell::rnn:
        state = apply(functions[0], clip(gates + product(state, 0, 1)));
        break;
      case Cell::gru:
        runGru(gates);
        break;
      case Cell::lstm:
        runLstm(gates);
        break;
      }
      Term &result = results[static_cast<size_t>(time)];
      result = state;
      if (!op.getLengths())
        continue;
      // A sequence that has ended keeps its states. Walked from its end, it has
      // not begun yet.
      Term lengths(b, op.getLengths());
      Term runs = (lengths > double(time)).broadcast({0}, {batch, hidden});
      result = select(runs, state, 0.0);
      state = select(runs, state, before);
      if (cell.get())
        cell = select(runs, cell, cellBefore);
    }
    results.push_back(state);
    if (cell.get())
      results.push_back(cell);
    return results;
  }

private:
  static Term along(Term x, size_t dim, int64_t begin, int64_t end) {
    Shape starts(x.shape().size(), 0), limits(x.shape());
    starts[dim] = begin;
    limits[dim] = end;
    return begin == 0 && end == x.shape()[dim] ? x : x.slice(starts, limits);
  }

  /// One position of a dimension, which is dropped.
  static Term at(Term x, size_t dim, int64_t place) {
    Shape shape(x.shape());
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(dim));
    return along(x, dim, place, place + 1).reshape(shape);
  }

  Term initial(Value given) {
    if (given)
      return at(Term(b, given), 0, number);
    Term rows = along(at(x, 0, 0).reshape({batch, x.shape()[3]}), 1, 0, hidden);
    return rows.splat(0);
  }

  /// The part of some gates in [B, G * H].
  Term gate(Term gates, int64_t first, int64_t count = 1) {
    return along(gates, 1, first * hidden, (first + count) * hidden);
  }

  /// A hidden state times the weights of some gates.
  Term product(Term h, int64_t first, int64_t count) {
    Term rows = along(weights, 0, first * hidden, (first + count) * hidden);
    return h.make<nn::DotOp>(
        RankedTensorType::get({batch, count * hidden}, h.element()), h.get(),
        rows.get(), Shape{}, Shape{}, Shape{1}, Shape{1});
  }

  Term clip(Term sum) {
    const double bound = op.getClip().convertToDouble();
    if (bound == 0)
      return sum;
    return binary<nn::MinOp>(binary<nn::MaxOp>(sum, sum.splat(-bound)),
                             sum.splat(bound));
  }

  void runGru(Term gates) {
    Term candidate, both;
    if (op.getHiddenBias()) {
      Term sums = product(state, 0, 3);
      both = apply(functions[0], clip(gate(gates, 0, 2) + gate(sums, 0, 2)));
      Term bias = at(Term(b, op.getHiddenBias()), 0, number)
                      .broadcast({1}, {batch, hidden});
      candidate = clip(gate(both, 1) * (gate(sums, 2) + bias) + gate(gates, 2));
    } else {
      both =
          apply(functions[0], clip(gate(gates, 0, 2) + product(state, 0, 2)));
      candidate = clip(product(gate(both, 1) * state, 2, 1) + gate(gates, 2));
    }
    Term update = gate(both, 0);
    state = (1.0 - update) * apply(functions[1], candidate) + update * state;
  }

  /// The sum of a gate with what it sees of the cell.
  Term peep(Term sum, int64_t which) {
    if (!peepholes.get())
      return sum;
    Term own = along(peepholes, 0, which * hidden, (which + 1) * hidden)
                   .broadcast({1}, {batch, hidden});
    return sum + own * cell;
  }

  void runLstm(Term gates) {
    Term sums = gates + product(state, 0, 4);
    Term input = apply(functions[0], clip(peep(gate(sums, 0), 0)));
    Term forget = op.getCoupled()
                      ? 1.0 - input
                      : apply(functions[0], clip(peep(gate(sums, 2), 2)));
    cell = forget * cell + input * apply(functions[1], clip(gate(sums, 3)));
    // This gate sees the new state of the cell.
    Term output = apply(functions[0], clip(peep(gate(sums, 1), 1)));
    state = output * apply(functions[2], cell);
  }

  ImplicitLocOpBuilder &b;
  nn::RecurrentOp op;
  const int64_t number, batch, hidden;
  Term x, weights, peepholes;
  SmallVector<nn::GateFunctionAttr> functions;
  Term state, cell;
};

} // namespace

void expand(nn::RecurrentOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<SmallVector<Term>> directions;
  for (int64_t number = 0; number < op.getNumDirections(); ++number)
    directions.push_back(Direction(b, op, number).run());
  // [T + S, D, B, H]
  SmallVector<Value> rows;
  for (size_t time = 0; time < directions[0].size(); ++time)
    for (ArrayRef<Term> direction : directions) {
      Term row = direction[time];
      rows.push_back(row.reshape({1, row.shape()[0], row.shape()[1]}).get());
    }
  Term first(b, rows[0]);
  const ArrayRef<int64_t> result = op.getType().getShape();
  Term all = first;
  if (rows.size() > 1)
    all = first.make<nn::ConcatOp>(
        RankedTensorType::get({result[0] * result[1], result[2], result[3]},
                              first.element()),
        rows, int64_t(0));
  op.replaceAllUsesWith(all.reshape(result).get());
  op.erase();
}

namespace {

struct ExpandRecurrentPass
    : impl::ExpandRecurrentPassBase<ExpandRecurrentPass> {
  using ExpandRecurrentPassBase::ExpandRecurrentPassBase;

  void runOnOperation() override {
    if (doubles)
      return getOperation().walk([](nn::RecurrentOp op) {
        if (op.getType().getElementType().isF64())
          expand(op);
      });
    func::FuncOp function = getModelFunction(getOperation());
    if (!function)
      return signalPassFailure();
    const llvm::DenseMap<Value, Value> active =
        findActive(getOperation(), function, inputs);
    function.walk([&](nn::RecurrentOp op) {
      if (active.contains(op.getResult()))
        expand(op);
    });
  }
};

} // namespace
} // namespace partita::autodiff
