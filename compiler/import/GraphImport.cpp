//===- GraphImport.cpp - The nodes of a model, one after another ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/GraphImport.h"

#include "compiler/import/Import.h"
#include "compiler/import/TensorData.h"

#include "onnx/defs/schema.h"

#include "llvm/ADT/ScopeExit.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

void StageMarker::notifyOperationInserted(Operation *op,
                                          OpBuilder::InsertPoint) {
  // A weight is read where its value is used, by however many stages.
  if (stage && !isa<nn::ParameterOp>(op))
    op->setDiscardableAttr(
        kAnnotatedStageAttr,
        IntegerAttr::get(IntegerType::get(op->getContext(), 64), *stage));
}

Location getNodeLoc(MLIRContext *context, const Twine &name) {
  return NameLoc::get(StringAttr::get(context, name));
}

GraphImport::GraphImport(const ModelFile &file, const LocalFunctions &functions,
                         ModuleOp module)
    : file(file), functions(functions), module(module),
      b(module.getContext(), &marker), weights(file, module) {
  for (const onnx::TensorProto &tensor : file.proto.graph().initializer())
    initializers[tensor.name()] = &tensor;
}

DenseElementsAttr GraphImport::readWeight(StringRef symbol) {
  return weights.read(symbol);
}

StringRef GraphImport::getInputName(BlockArgument argument) {
  return argumentNames[argument.getArgNumber()];
}

Value GraphImport::materialize(const onnx::TensorProto &tensor, StringRef name,
                               Location loc) {
  return weights.materialize(b, tensor, name, loc);
}

Value GraphImport::lookup(Scope &scope, StringRef name, Location loc) {
  auto it = scope.values.find(name);
  if (it != scope.values.end())
    return it->second;
  auto initializer = initializers.find(name);
  if (scope.depth == 0 && initializer != initializers.end()) {
    Value value = weights.materialize(b, *initializer->second, name,
                                      getNodeLoc(module.getContext(), name));
    if (value)
      scope.values[name] = value;
    return value;
  }
  emitError(loc) << "reads '" << name
                 << "', an output that is not supported of the node that "
                    "makes it";
  return {};
}

/// Replaces attributes that stand for attributes of the call.
static onnx::NodeProto
resolveAttributes(const onnx::NodeProto &node,
                  const StringMap<const onnx::AttributeProto *> &attributes) {
  onnx::NodeProto copy = node;
  copy.clear_attribute();
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      *copy.add_attribute() = attribute;
      continue;
    }
    auto it = attributes.find(attribute.ref_attr_name());
    if (it == attributes.end())
      continue; // an optional attribute that the call does not give
    onnx::AttributeProto *resolved = copy.add_attribute();
    *resolved = *it->second;
    resolved->set_name(attribute.name());
  }
  return copy;
}

static std::optional<int64_t> getAnnotatedStage(const onnx::NodeProto &node) {
  for (const auto &configuration : node.device_configurations())
    if (configuration.has_pipeline_stage())
      return configuration.pipeline_stage();
  return std::nullopt;
}

LogicalResult GraphImport::importNode(const onnx::NodeProto &original,
                                      Scope &scope) {
  Location loc = scope.location
                     ? *scope.location
                     : getNodeLoc(module.getContext(),
                                  scope.prefix + getNodeDisplayName(original));
  if (!scope.location)
    nodeNames.insert(cast<NameLoc>(loc).getName());
  // Functions that call functions can grow without bound.
  if (++numNodes > 4'000'000)
    return emitError(loc) << "the model has too many nodes once its functions "
                             "are expanded";
  std::optional<onnx::NodeProto> resolved;
  if (scope.attributes)
    resolved = resolveAttributes(original, *scope.attributes);
  const onnx::NodeProto &node = resolved ? *resolved : original;

  std::optional<int64_t> outerStage = marker.stage;
  if (std::optional<int64_t> stage = getAnnotatedStage(node))
    marker.stage = stage;
  llvm::scope_exit restore([&] { marker.stage = outerStage; });

  SmallVector<Value> inputs;
  for (const std::string &name : node.input()) {
    bool omitted = name.empty();
    if (auto it = scope.values.find(name); it != scope.values.end())
      omitted = !it->second; // an input that the call of a function omits
    inputs.push_back(omitted ? Value() : lookup(scope, name, loc));
    if (!omitted && !inputs.back())
      return failure();
  }
  while (!inputs.empty() && !inputs.back())
    inputs.pop_back();

  StringRef domain = normalizeDomain(node.domain());
  auto local =
      functions.find(getFunctionKey(domain, node.op_type(), node.overload()));
  if (local != functions.end())
    return expand(node, *local->second, nullptr, /*isLocal=*/true, inputs, loc,
                  scope);
  auto version = scope.opsets.find(domain);
  int64_t opset = version == scope.opsets.end() ? 1 : version->second;
  OpImport op = findOp(domain, node.op_type(), opset);
  if (op.function)
    return importByTable(node, op, opset, inputs, loc, scope);
  if (op.expandable)
    return expandSchemaFunction(node, op, opset, inputs, loc, scope);
  return emitError(loc) << "the op " << node.op_type()
                        << " is not supported (it comes from the definition of "
                           "the node's op)";
}

/// A few numbers among constants take part in computing a shape or an
/// attribute, such as the scales of a Resize: they fold.
void GraphImport::foldSmallWeights(MutableArrayRef<Value> inputs) {
  constexpr int64_t maxElements = 64;
  bool hasConstant = false;
  SmallVector<Value *> small;
  for (Value &input : inputs) {
    Operation *op = input ? input.getDefiningOp() : nullptr;
    if (isa_and_present<nn::ConstantOp>(op))
      hasConstant = true;
    else if (isa_and_present<nn::ParameterOp>(op) &&
             NodeImport::typeOf(input).getNumElements() <= maxElements)
      small.push_back(&input);
    else if (input)
      return;
  }
  if (!hasConstant)
    return;
  for (Value *input : small) {
    auto parameter = input->getDefiningOp<nn::ParameterOp>();
    if (DenseElementsAttr elements = weights.read(parameter.getWeight()))
      *input = nn::ConstantOp::create(b, input->getLoc(), input->getType(),
                                      elements);
  }
}

LogicalResult GraphImport::importByTable(const onnx::NodeProto &node,
                                         const OpImport &op, int64_t opset,
                                         ArrayRef<Value> inputs, Location loc,
                                         Scope &scope) {
  if (failed(checkNode(node, *op.schema, inputs, loc)))
    return failure();
  SmallVector<Value> operands(inputs);
  foldSmallWeights(operands);
  NodeImport import(node, opset, operands, loc, b, *this);
  if (failed(op.function(import)))
    return failure();
  return bindResults(node, import.results, loc, scope);
}

LogicalResult GraphImport::bindResults(const onnx::NodeProto &node,
                                       ArrayRef<Value> results, Location loc,
                                       Scope &scope) {
  for (auto [i, name] : enumerate(node.output())) {
    if (name.empty() || i >= results.size() || !results[i])
      continue;
    scope.values[name] = results[i];
  }
  return success();
}

LogicalResult GraphImport::expandSchemaFunction(const onnx::NodeProto &node,
                                                const OpImport &op,
                                                int64_t opset,
                                                ArrayRef<Value> inputs,
                                                Location loc, Scope &scope) {
  if (failed(checkNode(node, *op.schema, inputs, loc)))
    return failure();
  const onnx::FunctionProto *body =
      op.schema->GetFunction(static_cast<int>(opset));
  // A body that was written later says in which opset it is to be read.
  if (!body && !op.schema->HasContextDependentFunction())
    body = op.schema->GetFunction();
  if (body)
    return expand(node, *body, op.schema, /*isLocal=*/false, inputs, loc,
                  scope);

  // The newest body that is not newer than the model's opset, in the opset for
  // which it was written.
  int version = -1;
  for (int candidate : op.schema->context_dependent_function_opset_versions())
    if (candidate <= opset)
      version = std::max(version, candidate);
  std::vector<onnx::TypeProto> types;
  for (Value input : inputs) {
    onnx::TypeProto &type = types.emplace_back();
    if (!input)
      continue;
    auto *tensor = type.mutable_tensor_type();
    tensor->set_elem_type(getOnnxType(NodeImport::elementOf(input)));
    for (int64_t size : NodeImport::shapeOf(input))
      tensor->mutable_shape()->add_dim()->set_dim_value(size);
  }
  onnx::FunctionBodyBuildContextImpl context(node, types);
  onnx::FunctionProto built;
  if (version < 0 ||
      !op.schema->BuildContextDependentFunction(context, built, version))
    return emitError(loc) << node.op_type()
                          << ": ONNX defines this op by others, but not for "
                             "these inputs and attributes";
  return expand(node, built, op.schema, /*isLocal=*/false, inputs, loc, scope);
}

LogicalResult GraphImport::expand(const onnx::NodeProto &node,
                                  const onnx::FunctionProto &function,
                                  const onnx::OpSchema *schema, bool isLocal,
                                  ArrayRef<Value> inputs, Location loc,
                                  Scope &outer) {
  if (outer.depth >= 32)
    return emitError(loc) << node.op_type()
                          << ": functions call each other more than 32 deep";
  if (static_cast<int>(inputs.size()) > function.input_size())
    return emitError(loc) << node.op_type() << ": " << inputs.size()
                          << " inputs for a function that has "
                          << function.input_size();
  Scope scope;
  scope.depth = outer.depth + 1;
  scope.opsets = getOpsets(function.opset_import());
  // A definition that is silent about a domain means the caller's version.
  for (const auto &opset : outer.opsets)
    scope.opsets.try_emplace(opset.first(), opset.second);
  if (isLocal && !outer.location)
    scope.prefix = outer.prefix + getNodeDisplayName(node) + "/";
  else
    scope.location = loc;

  llvm::StringSet<> available;
  for (auto [i, name] : enumerate(function.input())) {
    scope.values[name] = i < inputs.size() ? inputs[i] : Value();
    available.insert(name);
  }
  StringMap<const onnx::AttributeProto *> attributes;
  if (schema)
    for (const auto &[name, attribute] : schema->attributes())
      if (attribute.default_value.has_type())
        attributes[name] = &attribute.default_value;
  for (const onnx::AttributeProto &attribute : function.attribute_proto())
    attributes[attribute.name()] = &attribute;
  for (const onnx::AttributeProto &attribute : node.attribute())
    attributes[attribute.name()] = &attribute;
  scope.attributes = &attributes;

  FailureOr<NodeList> sorted = sortNodes(function.node(), available, loc);
  if (failed(sorted))
    return failure();
  for (const onnx::NodeProto *inner : *sorted)
    if (failed(importNode(*inner, scope)))
      return failure();
  SmallVector<Value> results;
  for (const std::string &name : function.output())
    results.push_back(scope.values.lookup(name));
  return bindResults(node, results, loc, outer);
}

} // namespace partita::import
