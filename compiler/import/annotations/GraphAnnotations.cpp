//===- GraphAnnotations.cpp - Annotations of imported nodes ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/GraphImport.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

LogicalResult GraphImport::annotate(const onnx::NodeProto &node,
                                    ArrayRef<ModelValue> inputs, NameLoc loc,
                                    Scope &scope) {
  auto lookup = [&](StringRef name) {
    for (auto [input, value] : llvm::zip(node.input(), inputs))
      if (name == input)
        return value;
    return scope.values.lookup(name);
  };
  auto tensors = PARTITA_TRY(annotations.getTensors(node, loc, lookup));
  const std::string name = loc.getName().str();
  if (stage || !tensors.empty())
    annotated.nodes.push_back({name, std::nullopt, stage, std::move(tensors)});
  if (!numbers)
    return success();
  // A copy, in the body of a function, has no place in the file.
  auto number = numbers->find(&node);
  if (number == numbers->end())
    return success();
  dist::NodeAnnotation numberedNode{name, number->second, std::nullopt, {}};
  auto describe = [&](const std::string &tensor, bool isOutput) {
    const ModelValue value = tensor.empty() ? ModelValue() : lookup(tensor);
    if (!value || !value.tensor())
      return;
    dist::TensorAnnotation known = describeTensor(tensor, value.tensor());
    // Other nodes say how they make what this one reads.
    if (isOutput ? known.kind == dist::TensorKind::result
                 : known.kind == dist::TensorKind::weight ||
                       known.kind == dist::TensorKind::input)
      numberedNode.tensors.push_back(std::move(known));
  };
  llvm::StringSet<> read;
  for (const std::string &input : node.input())
    if (read.insert(input).second)
      describe(input, /*isOutput=*/false);
  for (const std::string &output : node.output())
    describe(output, /*isOutput=*/true);
  numbered.nodes.push_back(std::move(numberedNode));
  return success();
}

void GraphImport::writeAnnotations() {
  if (const onnx::DeviceConfigurationProto *configuration =
          annotations.getConfiguration()) {
    annotated.configuration = configuration->name();
    annotated.devices = configuration->num_devices();
    module->setAttr(dist::kAnnotationsAttr, annotated.getAttr(b.getContext()));
  }
  if (numbers) {
    numbered.configuration = annotated.configuration;
    module->setAttr(dist::kNumberedNodesAttr, numbered.getAttr(b.getContext()));
  }
}

} // namespace partita::import
