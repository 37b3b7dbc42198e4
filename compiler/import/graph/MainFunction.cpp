//===- MainFunction.cpp - Arguments and results of the model's function ---===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/GraphImport.h"
#include "compiler/import/graph/Import.h"
#include "compiler/import/model/TensorData.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/CheckAttr.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

static StringRef getKindText(CollectionKind kind) {
  return kind == CollectionKind::sequence          ? "sequence"
         : kind == CollectionKind::optional_tensor ? "optional_tensor"
                                                   : "optional_sequence";
}

LogicalResult GraphImport::run(const ModelInputs &inputs) {
  addArguments(inputs.tensors);
  PARTITA_TRY(modeGlobs.compile(module.getLoc()));

  Scope scope;
  scope.opsets = getOpsets(file.proto.opset_import());
  bindArguments(inputs, scope);
  Location loc = module.getLoc();
  PARTITA_TRY(importNodes(file.proto.graph().node(), loc, scope));
  PARTITA_TRY(modeGlobs.checkUse(loc));

  auto outputs = PARTITA_TRY(collectOutputs(scope));
  SmallVector<Value> results;
  for (const ModelOutput &output : outputs)
    results.push_back(output.value);
  for (const Check &check : checks)
    results.push_back(check.result);
  for (const Statistic &statistic : statistics)
    results.push_back(statistic.value);
  func::ReturnOp::create(b, loc, results);
  main.setFunctionType(b.getFunctionType(main.getFunctionType().getInputs(),
                                         ValueRange(results).getTypes()));
  for (auto [i, statistic] : enumerate(statistics)) {
    const unsigned result = outputs.size() + checks.size() + i;
    main.setResultAttr(result, nn::kStateAttr, statistic.weight);
    main.setResultAttr(result, nn::kStatisticAttr, b.getUnitAttr());
  }
  for (auto [i, output] : enumerate(outputs)) {
    main.setResultAttr(i, nn::kNameAttr, b.getStringAttr(output.name));
    main.setResultAttr(i, kPortAttr, b.getI64IntegerAttr(output.port));
  }
  for (auto [i, check] : enumerate(checks)) {
    const unsigned result = outputs.size() + i;
    main.setResultAttr(result, nn::kCheckAttr, check.description);
    if (replicas > 1)
      main.setResultAttr(result, nn::kBatchAxisAttr, b.getI64IntegerAttr(0));
  }
  // Statistics of micro-batches are what such a model is about.
  if (replicas > 1 || module->hasAttr(dist::kFullMicroBatchesAttr))
    setReplicaAxes(outputs);
  else
    setBatchAxis();
  module->setAttr(kNodesAttr, b.getArrayAttr(nodeNames.getArrayRef()));
  if (llvm::any_of(nodeScopes, [](Attribute scope) {
        return !cast<StringAttr>(scope).empty();
      }))
    module->setAttr(kNodeScopesAttr, b.getArrayAttr(nodeScopes));
  if (options.recordOps)
    module->setAttr(kNodeOpsAttr, b.getArrayAttr(nodeOps));
  if (options.recordTensors)
    module->setAttr(kNodeOutputsAttr, b.getArrayAttr(nodeOutputs));
  if (!collections.empty())
    module->setAttr(kCollectionsAttr, b.getArrayAttr(collections));
  writeAnnotations();

  // What only computed shapes is not needed any more.
  for (Operation &op : make_early_inc_range(reverse(main.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  weights.eraseUnused(main);
  return success();
}

/// Gives the inputs their names in the graph.
void GraphImport::bindArguments(const ModelInputs &inputs, Scope &scope) {
  SmallVector<Value> tensors;
  unsigned argument = 0;
  for (const ModelInput &input : inputs.tensors)
    tensors.push_back(input.value ? weights.materialize(
                                        input.value, input.name,
                                        getNodeLoc(b.getContext(), input.name))
                                  : Value(main.getArgument(argument++)));
  for (const InputValue &input : inputs.values) {
    auto own = ArrayRef(tensors).slice(input.first, input.count);
    if (!input.kind) {
      scope.values[input.name] = own.front();
      continue;
    }
    Collection collection{*input.kind, input.element, input.present,
                          SmallVector<Value>(own)};
    recordCollection(input.name, input.port, /*isOutput=*/false, collection);
    scope.values[input.name] = std::move(collection);
  }
}

void GraphImport::recordCollection(StringRef name, int64_t port, bool isOutput,
                                   const Collection &collection) {
  int64_t length =
      collection.present ? static_cast<int64_t>(collection.tensors.size()) : -1;
  collections.push_back(b.getDictionaryAttr(
      {b.getNamedAttr("kind", b.getStringAttr(getKindText(collection.kind))),
       b.getNamedAttr("length", b.getI64IntegerAttr(length)),
       b.getNamedAttr("name", b.getStringAttr(name)),
       b.getNamedAttr("output", b.getBoolAttr(isOutput)),
       b.getNamedAttr("port", b.getI64IntegerAttr(port))}));
}

FailureOr<std::vector<ModelOutput>> GraphImport::collectOutputs(Scope &scope) {
  Location loc = module.getLoc();
  std::vector<ModelOutput> outputs;
  for (auto [port, info] : enumerate(file.proto.graph().output())) {
    if (!scope.values.contains(info.name()) &&
        !initializers.contains(info.name()))
      return emitError(loc)
             << "nothing computes the model's output '" << info.name() << "'";
    ModelValue value = PARTITA_TRY(lookup(scope, info.name(), loc));
    addOutput(info, port, value, outputs);
  }
  llvm::StringSet<> names;
  for (const onnx::ValueInfoProto &info : file.proto.graph().output())
    names.insert(info.name());
  for (const ModelOutput &output : outputs)
    if (StringRef sequence =
            file.proto.graph().output(static_cast<int>(output.port)).name();
        sequence != output.name && names.contains(output.name))
      return emitError(loc)
             << "the sequence '" << sequence << "' and the output '"
             << output.name
             << "' cannot be told apart: an element of the sequence has that "
                "name too; rename one of the two in the model";
  if (outputs.empty())
    return emitError(loc)
           << "the model's outputs are empty sequences or absent "
              "optionals: there is nothing to compute";
  return outputs;
}

void GraphImport::addOutput(const onnx::ValueInfoProto &info, int64_t port,
                            const ModelValue &value,
                            std::vector<ModelOutput> &outputs) {
  const Collection *collection = value.collection();
  std::optional<DeclaredType> declared = getDeclaredType(info.type());
  bool agrees = declared && (collection ? declared->kind == collection->kind
                                        : !declared->kind);
  SmallVector<Value> tensors{value.tensor()};
  if (collection) {
    recordCollection(info.name(), port, /*isOutput=*/true, *collection);
    tensors = collection->tensors;
  }
  const bool isSequence =
      collection && collection->kind != CollectionKind::optional_tensor;
  for (auto [i, tensor] : enumerate(tensors)) {
    outputs.push_back(
        {isSequence ? getElementName(info.name(), i) : info.name(), port,
         tensor, agrees ? declared->tensor : nullptr});
    checkDeclaredType(outputs.back());
  }
}

void GraphImport::addArguments(ArrayRef<ModelInput> inputs) {
  SmallVector<Type> types;
  SmallVector<Location> locs;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Attribute> bound;
  for (const ModelInput &input : inputs) {
    StringAttr name = b.getStringAttr(input.name);
    IntegerAttr port = b.getI64IntegerAttr(input.port);
    if (input.value) {
      bound.push_back(b.getDictionaryAttr(
          {b.getNamedAttr("name", name), b.getNamedAttr("port", port),
           b.getNamedAttr("type", TypeAttr::get(input.type))}));
      continue;
    }
    types.push_back(input.type);
    locs.push_back(getNodeLoc(b.getContext(), input.name));
    attributes.push_back(
        b.getDictionaryAttr({b.getNamedAttr(nn::kNameAttr, name),
                             b.getNamedAttr(kPortAttr, port)}));
    arguments.push_back(&input);
  }
  b.setInsertionPointToEnd(module.getBody());
  main = func::FuncOp::create(b, module.getLoc(), "main",
                              b.getFunctionType(types, {}));
  main.setAllArgAttrs(attributes);
  Block *block = main.addEntryBlock();
  for (auto [argument, loc] : zip_equal(block->getArguments(), locs))
    argument.setLoc(loc);
  if (!bound.empty())
    module->setAttr(kBoundInputsAttr, b.getArrayAttr(bound));
  b.setInsertionPointToEnd(block);
}

/// Declared types are what an exporter believed; what the nodes compute counts.
void GraphImport::checkDeclaredType(const ModelOutput &output) {
  if (!output.declared)
    return;
  const onnx::TypeProto::Tensor &declared = *output.declared;
  RankedTensorType type = NodeImport::typeOf(output.value);
  bool contradicts = declared.elem_type() != onnx::TensorProto::UNDEFINED &&
                     declared.elem_type() != getOnnxType(type.getElementType());
  if (declared.has_shape()) {
    contradicts |= declared.shape().dim_size() != type.getRank();
    for (int i = 0; !contradicts && i < declared.shape().dim_size(); ++i) {
      const auto &dim = declared.shape().dim(i);
      contradicts = dim.has_dim_value() && dim.dim_value() >= 0 &&
                    dim.dim_value() != type.getDimSize(i);
    }
  }
  if (!contradicts)
    return;
  std::string text = getOnnxTypeName(declared.elem_type());
  for (const auto &dim : declared.shape().dim())
    text += "x" + (dim.has_dim_value()       ? std::to_string(dim.dim_value())
                   : dim.dim_param().empty() ? "?"
                                             : dim.dim_param());
  emitRemark(module.getLoc())
      << "the model declares its output '" << output.name << "' as " << text
      << ", but its nodes compute " << type;
}

/// Writes along which axes samples are counted; results get theirs by proof.
void GraphImport::setBatchAxis() {
  for (auto [i, input] : enumerate(arguments)) {
    if (!input->sampleAxis)
      continue;
    main.setArgAttr(i, nn::kBatchAxisAttr,
                    b.getI64IntegerAttr(*input->sampleAxis));
    if (size_t axis = *input->sampleAxis;
        axis < input->fixed.size() && input->fixed[axis])
      module->setAttr(kFixedSamplesAttr, b.getUnitAttr());
  }
}

/// Which ports are dealt out to replicas: those whose dimension 0 is the
/// model's batch dimension. That is the symbol that the first input with a
/// symbol has there. Without symbols it is what has the size of the first
/// input's dimension 0.
void GraphImport::setReplicaAxes(ArrayRef<ModelOutput> outputs) {
  const ModelInput *batch = nullptr;
  llvm::StringSet<> symbols;
  for (const ModelInput *input : arguments) {
    if (input->type.getRank() == 0)
      continue;
    const StringRef name = input->getDimName(0);
    symbols.insert(name);
    if (!batch || (batch->getDimName(0).empty() && !name.empty()))
      batch = input;
  }
  if (!batch)
    return;
  const StringRef name = batch->getDimName(0);
  const int64_t size = batch->type.getDimSize(0);
  for (auto [i, input] : enumerate(arguments))
    if (input->type.getRank() > 0 && input->getDimName(0) == name &&
        input->type.getDimSize(0) == size)
      main.setArgAttr(i, nn::kBatchAxisAttr, b.getI64IntegerAttr(0));
  for (auto [i, output] : enumerate(outputs)) {
    RankedTensorType type = NodeImport::typeOf(output.value);
    if (type.getRank() == 0 || type.getDimSize(0) != size)
      continue;
    // An exporter may have called it something else, or nothing.
    if (!name.empty() && output.declared && output.declared->has_shape() &&
        output.declared->shape().dim_size() > 0) {
      const auto &dim = output.declared->shape().dim(0);
      if (dim.has_dim_value() ||
          (dim.dim_param() != name && symbols.contains(dim.dim_param())))
        continue;
    }
    main.setResultAttr(i, nn::kBatchAxisAttr, b.getI64IntegerAttr(0));
  }
}

} // namespace partita::import
