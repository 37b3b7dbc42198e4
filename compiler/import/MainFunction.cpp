//===- MainFunction.cpp - Arguments and results of the model's function ---===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/GraphImport.h"
#include "compiler/import/Import.h"
#include "compiler/import/TensorData.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

LogicalResult GraphImport::run(ArrayRef<ModelInput> inputs) {
  const onnx::GraphProto &graph = file.proto.graph();
  if (failed(addArguments(inputs)))
    return failure();

  Scope scope;
  scope.opsets = getOpsets(file.proto.opset_import());
  llvm::StringSet<> available;
  unsigned argument = 0;
  for (const ModelInput &input : inputs) {
    scope.values[input.name] =
        input.value
            ? weights.materialize(b, input.value, input.name,
                                  getNodeLoc(b.getContext(), input.name))
            : Value(main.getArgument(argument++));
    available.insert(input.name);
  }
  for (const auto &initializer : initializers)
    available.insert(initializer.first());
  Location loc = module.getLoc();
  FailureOr<NodeList> sorted = sortNodes(graph.node(), available, loc);
  if (failed(sorted))
    return failure();
  for (const onnx::NodeProto *node : *sorted)
    if (failed(importNode(*node, scope)))
      return failure();

  SmallVector<Value> results;
  SmallVector<Type> types;
  for (const onnx::ValueInfoProto &info : graph.output()) {
    if (!scope.values.contains(info.name()) &&
        !initializers.contains(info.name()))
      return emitError(loc)
             << "nothing computes the model's output '" << info.name() << "'";
    Value value = lookup(scope, info.name(), loc);
    if (!value)
      return failure();
    checkDeclaredType(info, value);
    results.push_back(value);
    types.push_back(value.getType());
  }
  func::ReturnOp::create(b, loc, results);
  main.setFunctionType(
      b.getFunctionType(main.getFunctionType().getInputs(), types));
  for (auto [i, info] : enumerate(graph.output())) {
    main.setResultAttr(i, nn::kNameAttr, b.getStringAttr(info.name()));
    main.setResultAttr(i, kPortAttr,
                       b.getI64IntegerAttr(static_cast<int64_t>(i)));
  }
  setBatchAxis(inputs);
  module->setAttr(kNodesAttr, b.getArrayAttr(nodeNames.getArrayRef()));

  // What only computed shapes is not needed any more.
  for (Operation &op : make_early_inc_range(reverse(main.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
  weights.eraseUnused(main);
  return success();
}

LogicalResult GraphImport::addArguments(ArrayRef<ModelInput> inputs) {
  SmallVector<Type> types;
  SmallVector<Location> locs;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Attribute> bound;
  for (const ModelInput &input : inputs) {
    NamedAttribute port(b.getStringAttr(kPortAttr),
                        b.getI64IntegerAttr(input.port));
    NamedAttribute name(b.getStringAttr(nn::kNameAttr),
                        b.getStringAttr(input.name));
    if (input.value) {
      bound.push_back(b.getDictionaryAttr(
          {b.getNamedAttr("name", b.getStringAttr(input.name)),
           b.getNamedAttr("port", b.getI64IntegerAttr(input.port)),
           b.getNamedAttr("type", TypeAttr::get(input.type))}));
      continue;
    }
    types.push_back(input.type);
    locs.push_back(getNodeLoc(b.getContext(), input.name));
    attributes.push_back(b.getDictionaryAttr({name, port}));
    argumentNames.push_back(input.name);
  }
  b.setInsertionPointToEnd(module.getBody());
  main = func::FuncOp::create(b, module.getLoc(), "main",
                              b.getFunctionType(types, {}));
  Block *block = main.addEntryBlock();
  for (auto [i, loc] : enumerate(locs)) {
    block->getArgument(i).setLoc(loc);
    main.setArgAttrs(i, attributes[i]);
  }
  if (!bound.empty())
    module->setAttr(kBoundInputsAttr, b.getArrayAttr(bound));
  b.setInsertionPointToEnd(block);
  return success();
}

/// Declared types are what an exporter believed; what the nodes compute counts.
void GraphImport::checkDeclaredType(const onnx::ValueInfoProto &info,
                                    Value value) {
  if (!info.type().has_tensor_type())
    return;
  const onnx::TypeProto::Tensor &declared = info.type().tensor_type();
  RankedTensorType type = NodeImport::typeOf(value);
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
      << "the model declares its output '" << info.name() << "' as " << text
      << ", but its nodes compute " << type;
}

/// Samples are counted along dimension 0 if all inputs and outputs agree in it.
void GraphImport::setBatchAxis(ArrayRef<ModelInput> inputs) {
  std::optional<int64_t> size;
  std::optional<StringRef> name;
  for (const ModelInput &input : inputs) {
    if (input.value)
      continue;
    if (input.type.getRank() == 0 ||
        size.value_or(input.type.getDimSize(0)) != input.type.getDimSize(0) ||
        name.value_or(input.batchDim) != input.batchDim)
      return;
    size = input.type.getDimSize(0);
    name = input.batchDim;
  }
  if (!size)
    return;
  for (auto [type, info] : zip_equal(main.getFunctionType().getResults(),
                                     file.proto.graph().output())) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getRank() == 0 || tensor.getDimSize(0) != *size)
      return;
    const auto &declared = info.type().tensor_type().shape();
    if (!name->empty() && declared.dim_size() > 0 &&
        !declared.dim(0).dim_param().empty() &&
        declared.dim(0).dim_param() != *name)
      return;
  }
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    main.setArgAttr(i, nn::kBatchAxisAttr, b.getI64IntegerAttr(0));
  for (unsigned i = 0; i < main.getNumResults(); ++i)
    main.setResultAttr(i, nn::kBatchAxisAttr, b.getI64IntegerAttr(0));
}

} // namespace partita::import
