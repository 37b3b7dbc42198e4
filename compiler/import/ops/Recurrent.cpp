//===- Recurrent.cpp - Recurrent layers -----------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"
#include "compiler/import/math/IndexCheck.h"
#include "compiler/import/math/IndexMath.h"
#include "compiler/import/ops/Contraction.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

using nn::Cell;
using nn::GateFunctionAttr;
using nn::GateFunctionKind;

struct KnownFunction {
  StringLiteral name; ///< in lower case
  GateFunctionKind kind;
  int parameters; ///< how many of alpha and beta it has
  double alpha = 0, beta = 0;
};

const KnownFunction knownFunctions[] = {
    {"affine", GateFunctionKind::affine, 2, 1, 0},
    {"elu", GateFunctionKind::elu, 1, 1},
    {"hardsigmoid", GateFunctionKind::hard_sigmoid, 2, 0.2, 0.5},
    {"leakyrelu", GateFunctionKind::leaky_relu, 1, 0.01},
    {"relu", GateFunctionKind::relu, 0},
    {"scaledtanh", GateFunctionKind::scaled_tanh, 2, 1, 1},
    {"sigmoid", GateFunctionKind::logistic, 0},
    {"softplus", GateFunctionKind::softplus, 0},
    {"softsign", GateFunctionKind::softsign, 0},
    {"tanh", GateFunctionKind::tanh, 0},
    {"thresholdedrelu", GateFunctionKind::thresholded_relu, 1, 1},
};

/// The functions of all directions. Parameters are given in one list for those
/// functions that have some.
FailureOr<ArrayAttr> getFunctions(NodeImport &n, Cell cell,
                                  int64_t directions) {
  SmallVector<std::string> names;
  if (const onnx::AttributeProto *given = n.attr("activations")) {
    names.assign(given->strings().begin(), given->strings().end());
  } else {
    for (int64_t i = 0; i < directions; ++i) {
      if (cell != Cell::rnn)
        names.push_back("sigmoid");
      names.push_back("tanh");
      if (cell == Cell::lstm)
        names.push_back("tanh");
    }
  }
  int64_t count = directions * nn::RecurrentOp::getNumFunctions(cell);
  if (static_cast<int64_t>(names.size()) != count)
    return n.error("there are " + Twine(names.size()) +
                   " activations, and it takes " + Twine(count));
  SmallVector<double> lists[2];
  const char *attributes[] = {"activation_alpha", "activation_beta"};
  for (auto [list, name] : zip_equal(lists, attributes))
    if (const onnx::AttributeProto *given = n.attr(name))
      list.assign(given->floats().begin(), given->floats().end());
  size_t next[2] = {0, 0};
  SmallVector<Attribute> functions;
  for (StringRef name : names) {
    const KnownFunction *known = find_if(knownFunctions, [&](const auto &f) {
      return name.equals_insensitive(f.name);
    });
    if (known == std::end(knownFunctions))
      return n.error("the activation '" + name + "' is not known");
    double values[2] = {known->alpha, known->beta};
    for (int i = 0; i < known->parameters; ++i)
      if (next[i] < lists[i].size())
        values[i] = lists[i][next[i]++];
    functions.push_back(GateFunctionAttr::get(n.b.getContext(), known->kind,
                                              values[0], values[1]));
  }
  return n.b.getArrayAttr(functions);
}

/// Whether a value is known to hold zeros only.
bool isZero(NodeImport &n, Value value) {
  DenseElementsAttr known = n.getConstant(value);
  return known && isa<FloatType>(known.getElementType()) &&
         all_of(known.getValues<APFloat>(),
                [](const APFloat &x) { return x.isZero(); });
}

/// Inputs, in the order of the dimensions that ONNX has without `layout`.
struct Inputs {
  Value x, weights, hidden, bias, lengths, initial, initialCell, peepholes;
  int64_t steps, batch, directions, size, gates;
};

FailureOr<Inputs> getInputs(NodeImport &n, Cell cell, bool batchFirst) {
  Inputs in;
  in.gates = nn::RecurrentOp::getNumGates(cell);
  Value x = n.input(0), hidden = n.input(2);
  if (n.typeOf(x).getRank() != 3 || n.typeOf(n.input(1)).getRank() != 3 ||
      n.typeOf(hidden).getRank() != 3)
    return n.error("X, W and R must have rank 3");
  // Narrow floats are computed in 32 bits.
  Type element = n.elementOf(x).isF64() ? n.elementOf(x) : n.b.getF32Type();
  auto prepare = [&](unsigned i) { return n.cast(n.input(i), element); };
  in.x = batchFirst ? n.transpose(prepare(0), {1, 0, 2}) : prepare(0);
  in.weights = prepare(1);
  in.hidden = prepare(2);
  in.bias = prepare(3);
  in.lengths = n.input(4);
  in.initial = prepare(5);
  if (cell == Cell::lstm) {
    in.initialCell = prepare(6);
    in.peepholes = prepare(7);
  }
  for (Value *state : {&in.initial, &in.initialCell})
    if (*state && isZero(n, *state))
      *state = Value();
    else if (*state && batchFirst && n.typeOf(*state).getRank() == 3)
      *state = n.transpose(*state, {1, 0, 2});
  in.steps = n.shapeOf(in.x)[0];
  in.batch = n.shapeOf(in.x)[1];
  in.directions = n.shapeOf(hidden)[0];
  in.size = n.shapeOf(hidden)[2];
  int64_t d = in.directions, h = in.size, all = in.gates * h;
  auto hasShape = [&](Value value, ArrayRef<int64_t> shape) {
    return !value || n.shapeOf(value) == shape;
  };
  if (!hasShape(in.weights, {d, all, n.shapeOf(in.x)[2]}) ||
      !hasShape(in.hidden, {d, all, h}) || !hasShape(in.bias, {d, 2 * all}) ||
      !hasShape(in.lengths, {in.batch}) ||
      !hasShape(in.initial, {d, in.batch, h}) ||
      !hasShape(in.initialCell, {d, in.batch, h}) ||
      !hasShape(in.peepholes, {d, 3 * h}))
    return n.error("the shapes of its inputs do not fit each other");
  if (in.lengths && in.steps > 0)
    PARTITA_TRY(checkRange(n, in.lengths, NumberRange{0, in.steps},
                           {4, "sequence_lens"}));
  return in;
}

/// Sets what all steps give, and the states behind them, in the order of the
/// node's dimensions.
LogicalResult setResults(NodeImport &n, Value steps, int64_t states,
                         llvm::function_ref<Value(int64_t)> getState,
                         bool batchFirst) {
  Type element = n.elementOf(n.input(0));
  if (batchFirst)
    steps = n.transpose(steps, {2, 0, 1, 3});
  PARTITA_TRY(n.result(0, n.cast(steps, element)));
  for (int64_t i = 0; i < states; ++i) {
    Value state = getState(i);
    if (batchFirst)
      state = n.transpose(state, {1, 0, 2});
    PARTITA_TRY(n.result(static_cast<unsigned>(i) + 1, n.cast(state, element)));
  }
  return success();
}

template <Cell cell> LogicalResult importLayer(NodeImport &n) {
  bool batchFirst = n.intAttr("layout", 0) != 0;
  std::string direction = PARTITA_TRY(
      n.choice("direction", {"forward", "reverse", "bidirectional"}));
  SmallVector<bool> reversed = {direction == "reverse"};
  if (direction == "bidirectional")
    reversed.push_back(true);
  Inputs in = PARTITA_TRY(getInputs(n, cell, batchFirst));
  int64_t d = in.directions, h = in.size, all = in.gates * h;
  if (d != static_cast<int64_t>(reversed.size()))
    return n.error("R has " + Twine(d) +
                   " directions, and the attribute "
                   "direction says " +
                   Twine(reversed.size()));
  ArrayAttr functions = PARTITA_TRY(getFunctions(n, cell, d));
  int64_t states = nn::RecurrentOp::getNumFinalStates(cell);
  // Without steps the final states are the initial ones.
  if (in.steps == 0) {
    Type element = n.elementOf(in.hidden);
    auto getInitial = [&](int64_t i) {
      Value state = i == 0 ? in.initial : in.initialCell;
      return state ? state : n.splat(0, {d, in.batch, h}, element);
    };
    return setResults(n, n.splat(0, {0, d, in.batch, h}, element), states,
                      getInitial, batchFirst);
  }
  bool resetAfter =
      cell == Cell::gru && n.intAttr("linear_before_reset", 0) != 0;

  // What the inputs contribute, of all steps at once.
  Value gates = makeDot(n, in.x, in.weights, 0, 2, 2);
  Value hiddenBias;
  if (resetAfter && !in.bias)
    hiddenBias = n.splat(0, {d, h}, n.elementOf(in.hidden));
  if (in.bias) {
    Value ofInput = n.part(in.bias, 1, 0, all);
    Value ofState = n.part(in.bias, 1, all, 2 * all);
    if (resetAfter) {
      hiddenBias = n.part(ofState, 1, 2 * h, all);
      ofState = n.concat({n.part(ofState, 1, 0, 2 * h),
                          n.splat(0, {d, h}, n.elementOf(in.hidden))},
                         1);
    }
    Value bias = n.add(ofInput, ofState);
    if (!gates || !bias)
      return failure();
    gates = n.add(gates, n.broadcastDims(bias, {2, 3}, n.shapeOf(gates)));
  }
  RankedTensorType type =
      n.tensor({in.steps + states, d, in.batch, h}, n.elementOf(in.hidden));
  if (!type || !gates)
    return failure();
  bool coupled = cell == Cell::lstm && n.intAttr("input_forget", 0) != 0;
  double clip = n.attr("clip") ? std::abs(n.floatAttr("clip", 0)) : 0;
  Value layer = nn::RecurrentOp::create(
      n.b, n.loc, type, cell, gates, in.hidden, in.lengths, in.initial,
      in.initialCell, in.peepholes, hiddenBias, reversed, functions, coupled,
      APFloat(clip));

  auto getFinal = [&](int64_t i) { return n.at(layer, 0, in.steps + i); };
  return setResults(n, n.part(layer, 0, 0, in.steps), states, getFinal,
                    batchFirst);
}

const OpRow recurrentOps[] = {
    {"GRU", 1, 22, importLayer<Cell::gru>},
    {"LSTM", 1, 22, importLayer<Cell::lstm>},
    {"RNN", 1, 22, importLayer<Cell::rnn>},
};

} // namespace

ArrayRef<OpRow> getRecurrentOps() { return recurrentOps; }

} // namespace partita::import
