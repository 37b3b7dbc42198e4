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

LogicalResult Body::expand() { return n.source.expandBody(function, n.values); }

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

//===----------------------------------------------------------------------===//
// Schemas, by which nodes are checked
//===----------------------------------------------------------------------===//

using onnx::OpSchema;

static void addFormals(OpSchema &schema, StringRef list, bool isInput) {
  SmallVector<StringRef> names;
  list.split(names, ", ");
  for (auto [i, name] : enumerate(names)) {
    OpSchema::FormalParameterOption option =
        name.consume_back("?")   ? OpSchema::Optional
        : name.consume_back("*") ? OpSchema::Variadic
                                 : OpSchema::Single;
    if (isInput)
      schema.Input(static_cast<int>(i), name.str(), "", "T", option,
                   /*is_homogeneous=*/false);
    else
      schema.Output(static_cast<int>(i), name.str(), "", "T", option,
                    /*is_homogeneous=*/false);
  }
}

static void addAttribute(OpSchema &schema, StringRef text) {
  using onnx::AttributeProto;
  auto [declared, byDefault] = text.split(" = ");
  auto [name, type] = declared.split(": ");
  if (type == "int" && !byDefault.empty()) {
    int64_t value = 0;
    byDefault.getAsInteger(10, value);
    schema.Attr(name.str(), "", AttributeProto::INT, value);
  } else if (type == "float" && !byDefault.empty()) {
    double value = 0;
    byDefault.getAsDouble(value);
    schema.Attr(name.str(), "", AttributeProto::FLOAT, asFloat(value));
  } else {
    schema.Attr(name.str(), "",
                type == "int"      ? AttributeProto::INT
                : type == "float"  ? AttributeProto::FLOAT
                : type == "string" ? AttributeProto::STRING
                : type == "ints"   ? AttributeProto::INTS
                : type == "floats" ? AttributeProto::FLOATS
                                   : AttributeProto::STRINGS,
                /*required=*/false);
  }
}

static std::vector<OpRow> registerOps() {
  auto &versions = onnx::OpSchemaRegistry::DomainToVersionRange::Instance();
  versions.AddDomainToVersion(kMicrosoftDomain.str(), 1, 1);
  std::vector<OpRow> rows;
  for (ArrayRef<Op> family :
       {getAttentionOps(), getExpertOps(), getFusedOps(), getNormalizationOps(),
        getPackedOps(), getQuantizedOps()})
    for (const Op &op : family) {
      OpSchema schema(op.name.str(), __FILE__, __LINE__);
      schema.SetDomain(kMicrosoftDomain.str()).SinceVersion(1);
      addFormals(schema, op.inputs, /*isInput=*/true);
      addFormals(schema, op.outputs, /*isInput=*/false);
      SmallVector<StringRef> attributes;
      op.attributes.split(attributes, ", ", -1, /*KeepEmpty=*/false);
      for (StringRef attribute : attributes)
        addAttribute(schema, attribute);
      schema.TypeConstraint("T", OpSchema::all_tensor_types_ir13(), "");
      onnx::RegisterSchema(schema);
      rows.push_back({op.name, 1, 1, op.function});
    }
  return rows;
}

} // namespace partita::import::microsoft

ArrayRef<partita::import::OpRow> partita::import::getMicrosoftOps() {
  static const std::vector<OpRow> rows = microsoft::registerOps();
  return rows;
}
