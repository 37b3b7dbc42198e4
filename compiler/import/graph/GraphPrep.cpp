//===- GraphPrep.cpp - Checks and order of an ONNX graph ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/GraphPrep.h"

#include "compiler/import/graph/OpTable.h"

#include "onnx/common/version.h"
#include "onnx/defs/schema.h"

#include "mlir/IR/Diagnostics.h"

#include <queue>

using namespace llvm;
using namespace mlir;

namespace partita::import {

StringRef normalizeDomain(StringRef domain) {
  return domain == "ai.onnx" ? StringRef() : domain;
}

std::string getFunctionKey(StringRef domain, StringRef name,
                           StringRef overload) {
  return (normalizeDomain(domain) + "::" + name + "::" + overload).str();
}

std::string getNodeDisplayName(const onnx::NodeProto &node) {
  if (!node.name().empty())
    return node.name();
  std::string name = node.op_type();
  for (const std::string &output : node.output())
    if (!output.empty())
      return name + ":" + output;
  return name;
}

Opsets
getOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>
              &imports) {
  Opsets opsets;
  for (const onnx::OperatorSetIdProto &import : imports)
    opsets[normalizeDomain(import.domain())] = import.version();
  return opsets;
}

LogicalResult checkVersions(const onnx::ModelProto &model, Location loc) {
  if (model.ir_version() < 1 || model.ir_version() > onnx::Version::IR_VERSION)
    return emitError(loc) << "the model has IR version " << model.ir_version()
                          << "; versions 1 to "
                          << static_cast<int64_t>(onnx::Version::IR_VERSION)
                          << " are known";
  const auto &ranges =
      onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  int64_t newest = ranges.at("").second;
  for (const onnx::OperatorSetIdProto &import : model.opset_import())
    if (normalizeDomain(import.domain()).empty() &&
        (import.version() < 1 || import.version() > newest))
      return emitError(loc) << "the model uses opset " << import.version()
                            << "; opsets 1 to " << newest << " are known";
    else if (import.domain() == kReplicaDomain && import.version() != 1)
      return emitError(loc)
             << "the model uses version " << import.version()
             << " of the domain " << kReplicaDomain << "; version 1 is known";
  return success();
}

std::optional<onnx::AttributeProto::AttributeType>
getAttributeType(uint64_t field) {
  using onnx::AttributeProto;
  // Types have the order of the fields.
  constexpr uint64_t first = AttributeProto::kFFieldNumber,
                     last = AttributeProto::kStringsFieldNumber;
  static_assert(first - AttributeProto::FLOAT == 1 &&
                last - AttributeProto::STRINGS == 1);
  if (field < first || field > last)
    return std::nullopt;
  return static_cast<AttributeProto::AttributeType>(field - 1);
}

static void completeType(onnx::AttributeProto &attribute) {
  if (attribute.has_type() || !attribute.ref_attr_name().empty())
    return;
  std::vector<const google::protobuf::FieldDescriptor *> fields;
  attribute.GetReflection()->ListFields(attribute, &fields);
  for (const google::protobuf::FieldDescriptor *field : fields)
    if (auto type = getAttributeType(static_cast<uint64_t>(field->number())))
      return attribute.set_type(*type);
}

void completeAttributeTypes(onnx::ModelProto &model) {
  if (model.ir_version() > 1)
    return;
  for (onnx::NodeProto &node : *model.mutable_graph()->mutable_node())
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      completeType(attribute);
}

std::vector<std::string> getReadNames(const onnx::NodeProto &node) {
  std::vector<std::string> names;
  for (const std::string &input : node.input())
    if (!input.empty())
      names.push_back(input);
  auto addFree = [&](const onnx::GraphProto &graph) {
    llvm::StringSet<> own;
    for (const onnx::ValueInfoProto &input : graph.input())
      own.insert(input.name());
    for (const onnx::TensorProto &tensor : graph.initializer())
      own.insert(tensor.name());
    for (const onnx::NodeProto &inner : graph.node())
      for (const std::string &output : inner.output())
        own.insert(output);
    auto add = [&](const std::string &name) {
      if (!own.contains(name))
        names.push_back(name);
    };
    for (const onnx::NodeProto &inner : graph.node())
      for (const std::string &name : getReadNames(inner))
        add(name);
    for (const onnx::ValueInfoProto &output : graph.output())
      add(output.name());
  };
  const bool isGradient =
      node.domain() == kTrainingDomain && node.op_type() == "Gradient";
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (isGradient && attribute.name() == "y" && !attribute.s().empty())
      names.push_back(attribute.s());
    if (attribute.has_g())
      addFree(attribute.g());
    for (const onnx::GraphProto &graph : attribute.graphs())
      addFree(graph);
  }
  return names;
}

/// The error for nodes that wait for each other: follows unmet inputs from one
/// of them until a node comes again.
static LogicalResult
reportCycle(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
            const StringMap<int> &producers, ArrayRef<unsigned> missing,
            Location loc) {
  int at = 0;
  while (missing[at] == 0)
    ++at;
  std::vector<int> path, position(nodes.size(), -1);
  while (position[at] < 0) {
    position[at] = path.size();
    path.push_back(at);
    for (const std::string &input : getReadNames(nodes[at])) {
      auto it = producers.find(input);
      if (it != producers.end() && missing[it->second] != 0) {
        at = it->second;
        break;
      }
    }
  }
  InFlightDiagnostic error = emitError(loc)
                             << "the graph has a cycle: each of these nodes "
                                "reads from the next: ";
  constexpr size_t maxShown = 8;
  size_t shown = 0;
  for (size_t i = position[at]; i < path.size() && shown < maxShown;
       ++i, ++shown)
    error << "'" << getNodeDisplayName(nodes[path[i]]) << "', ";
  if (path.size() - position[at] > maxShown)
    error << "..., ";
  return error << "'" << getNodeDisplayName(nodes[at]) << "'";
}

FailureOr<NodeList>
sortNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
          Location loc, llvm::function_ref<bool(StringRef)> isGiven,
          llvm::function_ref<bool(StringRef)> isOuter) {
  StringMap<int> producers;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string &output : nodes[i].output()) {
      if (output.empty())
        continue;
      auto [it, isNew] = producers.try_emplace(output, i);
      if (!isNew)
        return emitError(loc)
               << "the name '" << output << "' is defined twice, by nodes '"
               << getNodeDisplayName(nodes[it->second]) << "' and '"
               << getNodeDisplayName(nodes[i]) << "'";
      if (isGiven(output))
        return emitError(loc)
               << "the name '" << output << "' is defined twice, by node '"
               << getNodeDisplayName(nodes[i])
               << "' and as an input or initializer";
    }
  }

  std::vector<std::vector<int>> readers(nodes.size());
  std::vector<unsigned> missing(nodes.size(), 0);
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string &input : getReadNames(nodes[i])) {
      if (isGiven(input))
        continue;
      auto it = producers.find(input);
      if (it == producers.end() && isOuter(input))
        continue;
      if (it == producers.end())
        return emitError(loc)
               << "node '" << getNodeDisplayName(nodes[i]) << "' ("
               << nodes[i].op_type() << ") reads '" << input
               << "', which is no input, no initializer and no node's output";
      readers[it->second].push_back(i);
      ++missing[i];
    }
  }

  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0)
      ready.push(i);
  NodeList sorted;
  while (!ready.empty()) {
    int i = ready.top();
    ready.pop();
    sorted.push_back(&nodes[i]);
    for (int reader : readers[i])
      if (--missing[reader] == 0)
        ready.push(reader);
  }
  if (static_cast<int>(sorted.size()) != nodes.size())
    return reportCycle(nodes, producers, missing, loc);
  return sorted;
}

} // namespace partita::import
