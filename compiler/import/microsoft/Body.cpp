//===- Body.cpp - Functions that take the place of nodes ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/microsoft/Microsoft.h"

#include "onnx/defs/schema.h"

using namespace llvm;
using namespace mlir;

namespace partita::import::microsoft {

/// The opset in which bodies are written.
constexpr int64_t kBodyOpset = 24;

Body::Body(NodeImport &n) : n(n), builder(function) {
  const onnx::OpSchema &schema = *onnx::OpSchemaRegistry::Schema(
      n.node.op_type(), 1, kMicrosoftDomain.str());
  onnx::OperatorSetIdProto &opset = *function.add_opset_import();
  opset.set_version(kBodyOpset);
  const auto &formals = schema.inputs();
  for (size_t i = 0; i < std::max(formals.size(), n.values.size()); ++i) {
    const size_t last = formals.size() - 1;
    const bool isOne =
        formals[std::min(i, last)].GetOption() != onnx::OpSchema::Variadic;
    if (isOne || i < n.values.size())
      function.add_input(formals[std::min(i, last)].GetName() +
                         (isOne ? "" : std::to_string(i - last)));
  }
  for (const auto &formal : schema.outputs())
    function.add_output(formal.GetName());
}

Body &Body::add(const Twine &nodes) {
  builder.Add(nodes.str().c_str());
  return *this;
}

Body &Body::byte(const std::string &name, uint8_t value) {
  onnx::TensorProto tensor;
  tensor.set_data_type(onnx::TensorProto::UINT8);
  tensor.add_int32_data(value);
  builder.Const(name, tensor);
  return *this;
}

Body &Body::ints(const std::string &name, ArrayRef<int64_t> values) {
  builder.Const(name, std::vector<int64_t>(values));
  return *this;
}

LogicalResult Body::expand() { return n.source.expandBody(function); }

LogicalResult checkInt(NodeImport &n, StringRef attribute, int64_t supported) {
  const int64_t value = n.intAttr(attribute, supported);
  if (value == supported)
    return success();
  return n.error(attribute + " = " + Twine(value) +
                 " is not supported; it can be " + Twine(supported));
}

LogicalResult checkOmitted(NodeImport &n, unsigned input, StringRef name) {
  if (!isGiven(n, input))
    return success();
  return n.error("input " + Twine(input) + " (" + name +
                 ") is not supported: leave it out");
}

} // namespace partita::import::microsoft

ArrayRef<partita::import::OpRow> partita::import::getMicrosoftOps() {
  using namespace microsoft;
  static const std::vector<OpRow> rows = registerOps(
      kMicrosoftDomain,
      {getAttentionOps(), getExpertOps(), getFusedOps(),
       microsoft::getNormalizationOps(), getPackedOps(), getQuantizedOps()});
  return rows;
}
