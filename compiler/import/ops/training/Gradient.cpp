//===- Gradient.cpp - Gradients that a model asks for ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A node Gradient of the domain ai.onnx.preview.training has, for each tensor
// that `xs` and then `zs` name, the value that it has. Its results are the
// derivatives of the tensor `y` to those of `xs`. ONNX does not say what that
// is if `y` has several elements: here it is the derivative of their sum.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"

#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// The tensors that an attribute names.
std::vector<std::string> getNames(NodeImport &n, StringRef attribute) {
  const onnx::AttributeProto *names = n.attr(attribute);
  return names ? std::vector<std::string>(names->strings().begin(),
                                          names->strings().end())
               : std::vector<std::string>();
}

LogicalResult checkNames(NodeImport &n, ArrayRef<std::string> names,
                         size_t variables) {
  if (variables == 0)
    return n.error("`xs` names no tensor");
  if (names.size() != static_cast<size_t>(n.node.input_size()))
    return n.error("it has " + Twine(n.node.input_size()) +
                   " inputs, and should have a value for each of the " +
                   Twine(names.size()) + " tensors that `xs` and `zs` name");
  if (static_cast<size_t>(n.node.output_size()) > variables)
    return n.error("it has " + Twine(n.node.output_size()) +
                   " outputs, and `xs` names " + Twine(variables) + " tensors");
  llvm::StringSet<> known;
  for (auto [i, name] : enumerate(names)) {
    if (!known.insert(name).second)
      return n.error("`xs` and `zs` name '" + name + "' twice");
    Value value = n.input(static_cast<unsigned>(i));
    if (!value)
      return n.error("input " + Twine(i) + ", the value of '" + name +
                     "', is missing");
    if (i < variables && !isa<FloatType>(n.elementOf(value)))
      return n.error("`xs` names '" + name +
                     "', whose elements are no floats; only floats have "
                     "gradients, and others belong into `zs`");
  }
  return success();
}

LogicalResult importGradient(NodeImport &n) {
  std::vector<std::string> names = getNames(n, "xs");
  const size_t variables = names.size();
  for (std::string &name : getNames(n, "zs"))
    names.push_back(std::move(name));
  PARTITA_TRY(checkNames(n, names, variables));
  SmallVector<ValueSource::Binding> bindings;
  SmallVector<Value> operands;
  for (auto [i, name] : enumerate(names)) {
    Value value = n.input(static_cast<unsigned>(i));
    if (i < variables) {
      value = nn::VariableOp::create(n.b, n.loc, value.getType(), value,
                                     n.source.variables++);
      operands.push_back(value);
    }
    bindings.push_back({name, value, i < variables});
  }
  const std::string name = n.stringAttr("y", "");
  ModelValue y = PARTITA_TRY(n.source.computeFrom(name, bindings));
  if (!y.tensor() || !isa<FloatType>(n.elementOf(y.tensor())))
    return n.error("`y` names '" + name +
                   "', which is no tensor of floats; only floats have "
                   "gradients");
  auto gradient = nn::GradientOp::create(
      n.b, n.loc, ValueRange(operands).getTypes(), y.tensor(), operands);
  for (auto [i, result] : enumerate(gradient.getResults()))
    PARTITA_TRY(n.result(static_cast<unsigned>(i), Value(result)));
  return success();
}

const OpRow gradientOps[] = {{"Gradient", 1, 1, importGradient}};

} // namespace

ArrayRef<OpRow> getGradientOps() { return gradientOps; }

} // namespace partita::import
