//===- ControlFlow.cpp - Branches and loops that are known ahead ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan has no choices, so which branch is taken and how often a loop runs
// must be known when compiling. The branch is then imported where the node
// stands, the body of a loop once for every iteration.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/model/TensorData.h"
#include "runtime/abi/Text.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

FailureOr<int64_t> getNumber(NodeImport &n, unsigned i, StringRef what) {
  FailureOr<Shape> values = n.constantInts(i, what);
  if (failed(values))
    return failure();
  if (values->size() != 1)
    return n.error(what + " must be a single value");
  return values->front();
}

LogicalResult importIf(NodeImport &n) {
  FailureOr<int64_t> condition = getNumber(n, 0, "cond");
  if (failed(condition))
    return failure();
  auto results = n.source.importBody(
      n.attr(*condition ? "then_branch" : "else_branch")->g(), {}, "");
  if (failed(results))
    return failure();
  for (auto [i, value] : enumerate(*results))
    if (failed(n.result(i, std::move(value))))
      return failure();
  return success();
}

/// The values of all iterations, along a new first axis.
FailureOr<Value> stack(NodeImport &n, ArrayRef<Value> values,
                       const onnx::ValueInfoProto &info) {
  if (!values.empty()) {
    SmallVector<Value> rows;
    for (Value value : values) {
      Shape shape(n.shapeOf(value));
      shape.insert(shape.begin(), 1);
      rows.push_back(n.reshape(value, shape));
    }
    Value stacked = n.concat(rows, 0);
    return stacked ? FailureOr<Value>(stacked) : FailureOr<Value>();
  }
  // Nothing has been computed: the body must say what it would have been.
  const onnx::TypeProto::Tensor &declared = info.type().tensor_type();
  Type element = getElementType(n.b.getContext(), declared.elem_type());
  Shape shape{0};
  for (const auto &dim : declared.shape().dim())
    shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
  if (!element || !declared.has_shape() || is_contained(shape, -1))
    return n.error("the loop does not run, and its body does not say what "
                   "shape '" +
                   info.name() + "' would have");
  return n.splat(0, shape, element);
}

/// Whether anything in the graph reads a value of that name.
bool mentions(const onnx::GraphProto &graph, StringRef name) {
  return any_of(graph.output(),
                [&](const auto &output) { return output.name() == name; }) ||
         any_of(graph.node(), [&](const onnx::NodeProto &node) {
           return is_contained(node.input(), name) ||
                  any_of(node.attribute(), [&](const auto &attribute) {
                    return attribute.has_g() && mentions(attribute.g(), name);
                  });
         });
}

class LoopImport {
public:
  explicit LoopImport(NodeImport &n)
      : n(n), body(n.attr("body")->g()),
        states(n.values.size() > 2 ? n.values.drop_front(2)
                                   : ArrayRef<ModelValue>()) {}

  LogicalResult run() {
    if (body.output_size() < static_cast<int>(states.size()) + 1)
      return n.error("its body has " +
                     abi::countOf(body.output_size(), "output") +
                     ", too few for " + abi::countOf(states.size(), "value") +
                     " from one iteration to the next");
    scans.resize(body.output_size() - 1 - states.size());
    FailureOr<int64_t> limit = std::numeric_limits<int64_t>::max(), go = 1;
    if (n.value(0))
      limit = getNumber(n, 0, "M");
    if (n.value(1))
      go = getNumber(n, 1, "cond");
    if (failed(limit) || failed(go))
      return failure();
    constexpr int64_t mostIterations = 100'000;
    for (int64_t i = 0; i < *limit && *go; ++i) {
      if (i == mostIterations)
        return n.error("it runs more than " + Twine(mostIterations) +
                       " times; loops are unrolled");
      go = iterate(i);
      if (failed(go))
        return failure();
      // All further iterations are like this one.
      if (*go && settled) {
        if (n.value(0))
          break;
        return n.error("it never ends: iteration " + Twine(i) +
                       " changes nothing, and no number of iterations is "
                       "given");
      }
    }
    return finish();
  }

private:
  /// Returns whether to go on.
  FailureOr<int64_t> iterate(int64_t i) {
    SmallVector<ModelValue> arguments{n.reshape(n.indices({i}), {}),
                                      n.splat(1, {}, n.b.getI1Type())};
    llvm::append_range(arguments, states);
    auto results = n.source.importBody(body, arguments, std::to_string(i));
    if (failed(results))
      return failure();
    auto isTensor = [](const ModelValue &value) {
      return bool(value.tensor());
    };
    settled = scans.empty() && all_of(states, isTensor) &&
              (body.input_size() == 0 || !mentions(body, body.input(0).name()));
    for (auto [state, result] : zip(states, drop_begin(*results))) {
      settled &= state.tensor() == result.tensor();
      state = result;
    }
    for (auto [k, values] : enumerate(scans)) {
      Value value = (*results)[1 + states.size() + k].tensor();
      if (!value)
        return n.error("'" + body.output(1 + states.size() + k).name() +
                       "' cannot be stacked: it is no tensor");
      values.push_back(value);
    }
    // A loop that is given no condition does not ask for one.
    if (!n.value(1))
      return 1;
    DenseElementsAttr condition = n.getConstant(results->front().tensor());
    if (!condition || condition.getNumElements() != 1 ||
        !condition.getElementType().isInteger(1))
      return n.error("after iteration " + Twine(i) + " the condition '" +
                     body.output(0).name() +
                     "' depends on what the model computes; how often a loop "
                     "runs must be known when compiling");
    return *condition.getValues<bool>().begin() ? 1 : 0;
  }

  LogicalResult finish() {
    for (auto [i, state] : enumerate(states))
      if (failed(n.result(i, state)))
        return failure();
    for (auto [k, values] : enumerate(scans)) {
      size_t i = states.size() + k;
      FailureOr<Value> stacked = stack(n, values, body.output(1 + i));
      if (failed(stacked) || failed(n.result(i, *stacked)))
        return failure();
    }
    return success();
  }

  NodeImport &n;
  const onnx::GraphProto &body;
  SmallVector<ModelValue> states;
  SmallVector<SmallVector<Value>> scans;
  bool settled = false; ///< the last iteration left everything as it was
};

LogicalResult importLoop(NodeImport &n) { return LoopImport(n).run(); }

const OpRow controlFlowOps[] = {
    {"If", 1, 25, importIf},
    {"Loop", 11, 25, importLoop},
};

} // namespace

ArrayRef<OpRow> getControlFlowOps() { return controlFlowOps; }

} // namespace partita::import
