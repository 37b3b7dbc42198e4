//===- NodeCheck.cpp - A node against its schema --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/GraphImport.h"
#include "compiler/import/model/TensorData.h"

#include "onnx/defs/data_type_utils.h"
#include "onnx/defs/schema.h"

using namespace llvm;
using namespace mlir;
using onnx::OpSchema;

namespace partita::import {

/// ONNX's interned name of a type, e.g. "tensor(float)".
static const std::string *getTypeName(const ModelValue &value) {
  return onnx::Utils::DataTypeUtils::ToType(value.type());
}

LogicalResult checkNode(const onnx::NodeProto &node, const OpSchema &schema,
                        ArrayRef<ModelValue> inputs, Location loc) {
  auto refuse = [&](const Twine &why) -> LogicalResult {
    return emitError(loc) << node.op_type() << ": " << why;
  };
  try {
    schema.Verify(node);
  } catch (const std::exception &e) {
    // The first line says what is wrong; then ONNX prints the context.
    return refuse(
        StringRef(e.what()).take_until([](char c) { return c == '\n'; }));
  }

  StringMap<std::pair<const std::string *, size_t>> bound; // by type variable
  for (size_t i = 0; i < std::max<size_t>(inputs.size(), schema.min_input());
       ++i) {
    const auto &formals = schema.inputs();
    if (formals.empty())
      break;
    const auto &formal = formals[std::min(i, formals.size() - 1)];
    ModelValue value = i < inputs.size() ? inputs[i] : ModelValue();
    if (!value) {
      if (formal.GetOption() != OpSchema::Optional)
        return refuse("input " + Twine(i) + " (" + formal.GetName() +
                      ") is missing");
      continue;
    }
    const std::string *type = getTypeName(value);
    if (!formal.GetTypes().count(type))
      return refuse("input " + Twine(i) + " (" + formal.GetName() +
                    ") cannot be a " + *type + " in this opset");
    if (!formal.GetIsHomogeneous())
      continue;
    auto [it, isNew] = bound.try_emplace(formal.GetTypeStr(), type, i);
    if (!isNew && it->second.first != type)
      return refuse("input " + Twine(i) + " (" + formal.GetName() + ") is a " +
                    *type + ", but input " + Twine(it->second.second) +
                    " is a " + *it->second.first);
  }
  return success();
}

} // namespace partita::import
