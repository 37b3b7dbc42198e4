//===- GraphImport.cpp - The nodes of a model, one after another ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/GraphImport.h"

#include "compiler/crash/Place.h"
#include "compiler/import/math/IndexCheck.h"
#include "compiler/import/model/TensorData.h"
#include "compiler/import/model/TorchMetadata.h"
#include "dialects/nn/NodeScopes.h"
#include "runtime/abi/Text.h"

#include "onnx/defs/schema.h"

#include "llvm/ADT/ScopeExit.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

Location getNodeLoc(MLIRContext *context, const Twine &name) {
  return NameLoc::get(StringAttr::get(context, name));
}

GraphImport::GraphImport(const ModelFile &file, const LocalFunctions &functions,
                         const DeviceAnnotations &annotations,
                         const NodeNumbers *numbers,
                         const ImportOptions &options, ModuleOp module)
    : file(file), functions(functions), options(options), module(module),
      b(module.getContext()), weights(file, module, b),
      modeGlobs("--eval-mode", options.training.evalMode,
                "names no batch normalization and no dropout; --list-nodes "
                "lists the nodes"),
      annotations(annotations), numbers(numbers) {
  replicas = options.replicas;
  checkSamples = options.checkSamples;
  training = options.training;
  for (const onnx::TensorProto &tensor : file.proto.graph().initializer())
    initializers[tensor.name()] = &tensor;
}

DenseElementsAttr GraphImport::readWeight(StringRef symbol) {
  return weights.read(symbol);
}

StringRef GraphImport::getInputName(BlockArgument argument) {
  return main
      .getArgAttrOfType<StringAttr>(argument.getArgNumber(), nn::kNameAttr)
      .getValue();
}

Value GraphImport::materialize(const onnx::TensorProto &tensor, StringRef name,
                               Location loc) {
  return current && current->scope.outer
             ? materializeInBody(tensor, name, loc, current->scope,
                                 /*isNode=*/true)
             : weights.materializeConstant(tensor, name, loc);
}

Value GraphImport::materializeInBody(const onnx::TensorProto &tensor,
                                     StringRef name, Location loc,
                                     const Scope &scope, bool isNode) {
  // In a function the node may be a copy, which does not stay where it is.
  bool isLasting = !scope.attributes;
  if (isLasting)
    if (Value known = bodyWeights.lookup(&tensor))
      return known;
  Value value = isNode ? weights.materializeConstant(tensor, name, loc)
                       : weights.materialize(tensor, name, loc);
  if (isLasting && value && value.getDefiningOp<nn::ParameterOp>())
    bodyWeights[&tensor] = value;
  return value;
}

const ModelValue *GraphImport::find(Scope &scope, StringRef name) {
  for (Scope *s = &scope; s; s = s->outer)
    if (auto it = s->values.find(name); it != s->values.end())
      return &it->second;
  return nullptr;
}

GraphImport::Scope &GraphImport::getOutermost(Scope &scope) {
  Scope *outermost = &scope;
  while (outermost->outer)
    outermost = outermost->outer;
  return *outermost;
}

bool GraphImport::hasInitializer(Scope &scope, StringRef name) {
  return getOutermost(scope).depth == 0 && initializers.contains(name);
}

ModelValue GraphImport::lookup(Scope &scope, StringRef name, Location loc) {
  if (const ModelValue *known = find(scope, name))
    return *known;
  if (hasInitializer(scope, name)) {
    Value value = weights.materialize(*initializers.lookup(name), name,
                                      getNodeLoc(module.getContext(), name),
                                      options.keepWeights);
    if (value)
      getOutermost(scope).values[name] = value;
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

LogicalResult GraphImport::importNodes(
    const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
    Location loc, Scope &scope) {
  auto isGiven = [&](StringRef name) {
    return scope.values.contains(name) ||
           (!scope.outer && hasInitializer(scope, name));
  };
  auto isOuter = [&](StringRef name) {
    return scope.outer &&
           (find(*scope.outer, name) || hasInitializer(*scope.outer, name));
  };
  NodeList sorted = PARTITA_TRY(sortNodes(nodes, loc, isGiven, isOuter));
  scope.nodes = &sorted;
  llvm::scope_exit forget([&] { scope.nodes = nullptr; });
  for (const onnx::NodeProto *node : sorted)
    PARTITA_TRY(importNode(*node, scope));
  return success();
}

LogicalResult GraphImport::importNode(const onnx::NodeProto &original,
                                      Scope &scope) {
  const std::string own = getModuleScope(original, scope.module);
  Location loc =
      scope.location
          ? *scope.location
          : nn::makeNodeLoc(module.getContext(),
                            scope.prefix + getNodeDisplayName(original), own);
  if (!scope.location && nodeNames.insert(cast<NameLoc>(loc).getName())) {
    nodeOutputs.push_back(b.getStringAttr(
        original.output_size() == 1 ? original.output(0) : std::string()));
    nodeScopes.push_back(b.getStringAttr(own));
    nodeOps.push_back(b.getStringAttr(original.op_type()));
  }
  crash::AtNode at(loc);
  if (!scope.isAgain)
    randomBefore[&original] = randomNodes;
  // Functions that call functions can grow without bound.
  if (++numNodes > 4'000'000)
    return emitError(loc) << "the model has too many nodes once its functions "
                             "are expanded";
  std::optional<onnx::NodeProto> resolved;
  if (scope.attributes)
    resolved = resolveAttributes(original, *scope.attributes);
  const onnx::NodeProto &node = resolved ? *resolved : original;

  auto said = PARTITA_TRY(annotations.getStage(node, loc));
  std::optional<int64_t> outerStage = stage;
  if (said)
    stage = said;
  llvm::scope_exit restore([&] { stage = outerStage; });

  SmallVector<ModelValue> inputs;
  for (const std::string &name : node.input()) {
    const ModelValue *known = find(scope, name);
    if (known || name.empty()) // the call of a function may omit it, too
      inputs.push_back(known ? *known : ModelValue());
    else
      inputs.push_back(PARTITA_TRY(lookup(scope, name, loc)));
  }
  while (!inputs.empty() && !inputs.back())
    inputs.pop_back();
  if (training.mode == TrainingMode::learn)
    noteRoles(node, inputs, weights);
  PARTITA_TRY(importOp({node, inputs, loc, scope}));
  // What is made of the body of a schema's function belongs to the node.
  return scope.location || scope.isAgain
             ? success()
             : annotate(original, inputs, cast<NameLoc>(loc), scope);
}

LogicalResult GraphImport::importOp(Call call) {
  const onnx::NodeProto &node = call.node;
  StringRef domain = normalizeDomain(node.domain());
  auto local =
      functions.find(getFunctionKey(domain, node.op_type(), node.overload()));
  if (local != functions.end())
    return expand(call, *local->second);
  auto version = call.scope.opsets.find(domain);
  if (version != call.scope.opsets.end())
    call.opset = version->second;
  call.op = findOp(domain, node.op_type(), call.opset);
  if (call.op.function)
    return importByTable(call);
  if (call.op.expandable)
    return expandSchemaFunction(call);
  return emitError(call.loc) << "the op " << node.op_type()
                             << " is not supported (it comes from the "
                                "definition of the node's op)";
}

/// A few numbers among constants take part in computing a shape or an
/// attribute, such as the scales of a Resize: they fold.
void GraphImport::foldSmallWeights(MutableArrayRef<ModelValue> inputs) {
  constexpr int64_t maxElements = 64;
  bool hasConstant = false;
  SmallVector<ModelValue *> small;
  auto isKept = [&](nn::ParameterOp parameter) {
    nn::WeightOp weight = weights.find(parameter.getWeight());
    return options.keepWeights &&
           weights.mayBeTrained(weight.getOrigin(),
                                cast<RankedTensorType>(parameter.getType()));
  };
  for (ModelValue &input : inputs) {
    Value tensor = input.tensor();
    Operation *op = tensor ? tensor.getDefiningOp() : nullptr;
    if (isa_and_present<nn::ConstantOp>(op))
      hasConstant = true;
    else if (isa_and_present<nn::ParameterOp>(op) &&
             NodeImport::typeOf(tensor).getNumElements() <= maxElements &&
             !isKept(cast<nn::ParameterOp>(op)))
      small.push_back(&input);
    else if (input)
      return;
  }
  if (!hasConstant)
    return;
  for (ModelValue *input : small) {
    auto parameter = input->tensor().getDefiningOp<nn::ParameterOp>();
    if (DenseElementsAttr elements = weights.read(parameter.getWeight()))
      *input = Value(nn::ConstantOp::create(b, parameter.getLoc(),
                                            parameter.getType(), elements));
  }
}

LogicalResult GraphImport::importByTable(Call call) {
  const auto &[node, inputs, loc, scope, opset, op] = call;
  if (op.schema)
    PARTITA_TRY(checkNode(node, *op.schema, inputs, loc));
  if (!op.schema && (inputs.empty() || !inputs.front().tensor()))
    return emitError(loc) << node.op_type() << ": input 0 is missing";
  SmallVector<ModelValue> operands(inputs);
  foldSmallWeights(operands);
  call.inputs = operands; // `inputs` are these from here on
  NodeImport import(node, opset, inputs, loc, b, *this);
  llvm::scope_exit restore([&, outer = current] { current = outer; });
  current = &call;
  if (failed(op.function(import)))
    return import.reportUnknownInputs();
  bindResults(node, import.results, scope);
  return success();
}

void GraphImport::bindResults(const onnx::NodeProto &node,
                              ArrayRef<ModelValue> results, Scope &scope) {
  for (auto [i, name] : enumerate(node.output()))
    if (!name.empty() && i < results.size() && results[i])
      scope.values[name] = results[i];
}

FailureOr<SmallVector<ModelValue>>
GraphImport::importBody(const onnx::GraphProto &body,
                        ArrayRef<ModelValue> arguments, StringRef part) {
  const Call &at = *current;
  if (at.scope.depth >= 32)
    return emitError(at.loc)
           << at.node.op_type() << ": graphs are nested more than 32 deep";
  if (static_cast<int>(arguments.size()) != body.input_size())
    return emitError(at.loc)
           << at.node.op_type() << ": its graph '" << body.name() << "' has "
           << abi::countOf(body.input_size(), "input") << ", and "
           << arguments.size() << (arguments.size() == 1 ? " is" : " are")
           << " given";
  Scope scope = at.scope.nest();
  scope.module = getModuleScope(at.node, scope.module);
  scope.prefix += getNodeDisplayName(at.node) + "/";
  if (!part.empty())
    scope.prefix += (part + "/").str();

  for (auto [input, argument] : zip_equal(body.input(), arguments)) {
    // A loop may begin with an optional and go on with what its body makes.
    std::optional<DeclaredType> declared = getDeclaredType(input.type());
    bool wantsOptional = declared && declared->kind &&
                         *declared->kind != CollectionKind::sequence;
    scope.values[input.name()] =
        wantsOptional ? makeOptional(argument) : argument;
  }
  for (const onnx::TensorProto &tensor : body.initializer()) {
    Value value =
        PARTITA_TRY(materializeInBody(tensor, tensor.name(), at.loc, scope,
                                      /*isNode=*/false));
    scope.values.try_emplace(tensor.name(), value);
  }
  PARTITA_TRY(importNodes(body.node(), at.loc, scope));
  SmallVector<ModelValue> results;
  for (const onnx::ValueInfoProto &output : body.output())
    results.push_back(PARTITA_TRY(lookup(scope, output.name(), at.loc)));
  return results;
}

/// Of a node whose op has a schema.
LogicalResult GraphImport::expandBody(const onnx::FunctionProto &body) {
  return expand(*current, body);
}

LogicalResult GraphImport::expandSchemaFunction(const Call &call) {
  const auto &[node, inputs, loc, scope, opset, op] = call;
  PARTITA_TRY(checkNode(node, *op.schema, inputs, loc));
  // Not those of a loss that the definition of another one is made of.
  NodeImport import(node, opset, inputs, loc, b, *this);
  if (!scope.location)
    PARTITA_TRY(checkLabelsOf(import));
  const onnx::FunctionProto *body =
      op.schema->GetFunction(static_cast<int>(opset));
  // A body that was written later says in which opset it is to be read.
  if (!body && !op.schema->HasContextDependentFunction())
    body = op.schema->GetFunction();
  if (body)
    return expand(call, *body);

  // The newest body that is not newer than the model's opset, in the opset for
  // which it was written.
  int version = -1;
  for (int candidate : op.schema->context_dependent_function_opset_versions())
    if (candidate <= opset)
      version = std::max(version, candidate);
  std::vector<onnx::TypeProto> types;
  for (const ModelValue &input : inputs)
    types.push_back(input ? input.type() : onnx::TypeProto());
  // In a function, an input may be omitted although it has a name.
  onnx::NodeProto given = node;
  for (int i = 0; i < given.input_size(); ++i)
    if (static_cast<size_t>(i) >= inputs.size() || !inputs[i])
      given.set_input(i, "");
  onnx::FunctionBodyBuildContextImpl context(given, types);
  onnx::FunctionProto built;
  if (version < 0 ||
      !op.schema->BuildContextDependentFunction(context, built, version))
    return emitError(loc) << node.op_type()
                          << ": ONNX defines this op by others, but not for "
                             "these inputs and attributes";
  return expand(call, built);
}

LogicalResult GraphImport::expand(const Call &call,
                                  const onnx::FunctionProto &function) {
  const auto &[node, inputs, loc, outer, opset, op] = call;
  if (outer.depth >= 32)
    return emitError(loc) << node.op_type()
                          << ": functions call each other more than 32 deep";
  if (static_cast<int>(inputs.size()) > function.input_size())
    return emitError(loc) << node.op_type() << ": "
                          << abi::countOf(inputs.size(), "input")
                          << " for a function that has "
                          << function.input_size();
  Scope scope;
  scope.depth = outer.depth + 1;
  scope.isAgain = outer.isAgain;
  scope.opsets = getOpsets(function.opset_import());
  // A definition that is silent about a domain means the caller's version.
  for (const auto &each : outer.opsets)
    scope.opsets.try_emplace(each.first(), each.second);
  scope.module = getModuleScope(node, outer.module);
  const bool isLocal = !op.schema;
  if (isLocal && !outer.location)
    scope.prefix = outer.prefix + getNodeDisplayName(node) + "/";
  else
    scope.location = loc;

  for (auto [i, name] : enumerate(function.input()))
    scope.values[name] = i < inputs.size() ? inputs[i] : ModelValue();
  StringMap<const onnx::AttributeProto *> attributes;
  if (op.schema)
    for (const auto &[name, attribute] : op.schema->attributes())
      if (attribute.default_value.has_type())
        attributes[name] = &attribute.default_value;
  for (const onnx::AttributeProto &attribute : function.attribute_proto())
    attributes[attribute.name()] = &attribute;
  for (const onnx::AttributeProto &attribute : node.attribute())
    attributes[attribute.name()] = &attribute;
  scope.attributes = &attributes;

  PARTITA_TRY(importNodes(function.node(), loc, scope));
  SmallVector<ModelValue> results;
  for (const std::string &name : function.output())
    results.push_back(scope.values.lookup(name));
  bindResults(node, results, outer);
  return success();
}

} // namespace partita::import
