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
  Shape values = PARTITA_TRY(n.constantInts(i, what));
  if (values.size() != 1)
    return n.error(what + " must be a single value");
  return values.front();
}

LogicalResult importIf(NodeImport &n) {
  int64_t condition = PARTITA_TRY(getNumber(n, 0, "cond"));
  auto results = PARTITA_TRY(n.source.importBody(
      n.attr(condition ? "then_branch" : "else_branch")->g(), {}, ""));
  for (auto [i, value] : enumerate(results))
    PARTITA_TRY(n.result(i, std::move(value)));
  return success();
}

constexpr int64_t kMostIterations = 100'000;

LogicalResult checkIterations(NodeImport &n, int64_t count) {
  if (count <= kMostIterations)
    return success();
  return n.error("it runs more than " + Twine(kMostIterations) +
                 " times; loops are unrolled");
}

/// The values of all iterations, along a new axis.
Value stack(NodeImport &n, ArrayRef<Value> values,
            const onnx::ValueInfoProto &info, int64_t axis) {
  if (!values.empty()) {
    int64_t place =
        PARTITA_TRY(n.axis(axis, n.typeOf(values.front()).getRank() + 1));
    return n.stack(values, place);
  }
  // Nothing has been computed: the body must say what it would have been.
  const onnx::TypeProto::Tensor &declared = info.type().tensor_type();
  Type element = getElementType(n.b.getContext(), declared.elem_type());
  Shape shape;
  for (const auto &dim : declared.shape().dim())
    shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
  int64_t place =
      PARTITA_TRY(n.axis(axis, static_cast<int64_t>(shape.size()) + 1));
  shape.insert(shape.begin() + place, 0);
  if (!element || !declared.has_shape() || is_contained(shape, -1))
    return n.refuse("the loop does not run, and its body does not say what "
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

/// A body that is imported for each step. States go from one step to the next;
/// what else the body makes is stacked.
class Repetition {
protected:
  /// `first`: which of the body's outputs is the first state.
  Repetition(NodeImport &n, int first)
      : n(n), body(n.attr("body")->g()), first(first) {}

  LogicalResult setStates(ArrayRef<ModelValue> given, StringRef step) {
    states.assign(given.begin(), given.end());
    if (body.output_size() < static_cast<int>(states.size()) + first)
      return n.error("its body has " +
                     abi::countOf(body.output_size(), "output") +
                     ", too few for " + abi::countOf(states.size(), "value") +
                     " from one " + step + " to the next");
    scans.resize(body.output_size() - first - states.size());
    return success();
  }

  /// Returns the outputs of the body.
  FailureOr<SmallVector<ModelValue>> repeat(ArrayRef<ModelValue> arguments,
                                            int64_t step) {
    auto results =
        PARTITA_TRY(n.source.importBody(body, arguments, std::to_string(step)));
    for (auto [state, result] : zip(states, drop_begin(results, first)))
      state = result;
    for (auto [k, values] : enumerate(scans)) {
      const size_t i = first + states.size() + k;
      if (!results[i].tensor())
        return n.error("'" + body.output(i).name() +
                       "' cannot be stacked: it is no tensor");
      values.push_back(results[i].tensor());
    }
    return results;
  }

  /// `axes`: along which what is stacked is stacked.
  LogicalResult finish(ArrayRef<int64_t> axes) {
    for (auto [i, state] : enumerate(states))
      PARTITA_TRY(n.result(i, state));
    for (auto [k, values] : enumerate(scans)) {
      const size_t i = states.size() + k;
      PARTITA_TRY(
          n.result(i, stack(n, values, body.output(first + i), axes[k])));
    }
    return success();
  }

  NodeImport &n;
  const onnx::GraphProto &body;
  const int first;
  SmallVector<ModelValue> states;
  SmallVector<SmallVector<Value>> scans;
};

class LoopImport : Repetition {
public:
  explicit LoopImport(NodeImport &n) : Repetition(n, 1) {}

  LogicalResult run() {
    PARTITA_TRY(
        setStates(n.values.drop_front(std::min<size_t>(n.values.size(), 2)),
                  "iteration"));
    FailureOr<int64_t> limit = std::numeric_limits<int64_t>::max(), go = 1;
    if (n.value(0))
      limit = getNumber(n, 0, "M");
    if (n.value(1))
      go = getNumber(n, 1, "cond");
    if (failed(limit) || failed(go))
      return failure();
    for (int64_t i = 0; i < *limit && *go; ++i) {
      PARTITA_TRY(checkIterations(n, i + 1));
      go = PARTITA_TRY(iterate(i));
      // All further iterations are like this one.
      if (*go && settled) {
        if (n.value(0))
          break;
        return n.error("it never ends: iteration " + Twine(i) +
                       " changes nothing, and no number of iterations is "
                       "given");
      }
    }
    return finish(Shape(scans.size(), 0));
  }

private:
  /// Returns whether to go on.
  FailureOr<int64_t> iterate(int64_t i) {
    SmallVector<ModelValue> arguments{n.reshape(n.indices({i}), {}),
                                      n.splat(1, {}, n.b.getI1Type())};
    llvm::append_range(arguments, states);
    const SmallVector<ModelValue> before(states);
    auto results = PARTITA_TRY(repeat(arguments, i));
    auto isSame = [](const ModelValue &old, const ModelValue &state) {
      return old.tensor() && old.tensor() == state.tensor();
    };
    settled = scans.empty() && equal(before, states, isSame) &&
              (body.input_size() == 0 || !mentions(body, body.input(0).name()));
    // A loop that is given no condition does not ask for one.
    if (!n.value(1))
      return 1;
    DenseElementsAttr condition = n.getConstant(results.front().tensor());
    if (!condition || condition.getNumElements() != 1 ||
        !condition.getElementType().isInteger(1))
      return n.error("after iteration " + Twine(i) + " the condition '" +
                     body.output(0).name() +
                     "' depends on what the model computes; how often a loop "
                     "runs must be known when compiling");
    return *condition.getValues<bool>().begin() ? 1 : 0;
  }

  bool settled = false; ///< the last iteration left everything as it was
};

LogicalResult importLoop(NodeImport &n) { return LoopImport(n).run(); }

/// Walks along an axis of some inputs, step by step.
class ScanImport : Repetition {
public:
  explicit ScanImport(NodeImport &n)
      : Repetition(n, 0), walked(n.intAttr("num_scan_inputs", 0)) {}

  LogicalResult run() {
    if (walked < 1 || walked > static_cast<int64_t>(n.values.size()))
      return n.error("num_scan_inputs = " + Twine(walked) + ", and it has " +
                     abi::countOf(n.values.size(), "input"));
    PARTITA_TRY(setStates(n.values.drop_back(walked), "step"));
    PARTITA_TRY(findSources());
    PARTITA_TRY(readList("scan_output_axes", scans.size(), outputAxes));
    PARTITA_TRY(readList("scan_output_directions", scans.size(), outputTurns));
    PARTITA_TRY(checkIterations(n, steps));
    for (int64_t i = 0; i < steps; ++i)
      PARTITA_TRY(iterate(i));
    for (auto [turn, values] : zip_equal(outputTurns, scans))
      if (turn)
        std::reverse(values.begin(), values.end());
    return finish(outputAxes);
  }

private:
  /// A number for each of `count` inputs or outputs, 0 where nothing is said.
  LogicalResult readList(StringRef name, size_t count, Shape &list) {
    list = n.intsAttr(name).value_or(Shape(count, 0));
    if (list.size() == count)
      return success();
    return n.error(name + " must have " + abi::countOf(count, "number"));
  }

  LogicalResult findSources() {
    const auto count = static_cast<size_t>(walked);
    PARTITA_TRY(readList("scan_input_axes", count, axes));
    PARTITA_TRY(readList("scan_input_directions", count, turns));
    for (size_t k = 0; k < count; ++k) {
      Value source = n.values[states.size() + k].tensor();
      if (!source)
        return n.error("input " + Twine(states.size() + k) +
                       " is no tensor, and cannot be walked along");
      axes[k] = PARTITA_TRY(n.axis(axes[k], n.typeOf(source).getRank()));
      sources.push_back(source);
      const int64_t size = n.shapeOf(source)[axes[k]];
      if (k > 0 && size != steps)
        return n.error("its inputs have " + Twine(steps) + " and " +
                       Twine(size) + " steps");
      steps = size;
    }
    return success();
  }

  LogicalResult iterate(int64_t step) {
    SmallVector<ModelValue> arguments(states);
    for (size_t k = 0; k < sources.size(); ++k)
      arguments.push_back(
          n.at(sources[k], axes[k], turns[k] ? steps - 1 - step : step));
    return repeat(arguments, step);
  }

  const int64_t walked; ///< inputs along which it walks; the last ones
  int64_t steps = 0;
  SmallVector<Value> sources;
  Shape axes, turns, outputAxes, outputTurns; ///< a turn of 1: from the end
};

LogicalResult importScan(NodeImport &n) { return ScanImport(n).run(); }

const OpRow controlFlowOps[] = {
    {"If", 1, 25, importIf},
    {"Loop", 11, 25, importLoop},
    {"Scan", 9, 25, importScan},
};

} // namespace

ArrayRef<OpRow> getControlFlowOps() { return controlFlowOps; }

} // namespace partita::import
