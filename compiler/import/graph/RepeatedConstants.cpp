//===- RepeatedConstants.cpp - Names that constants define twice ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/GraphPrep.h"

#include "compiler/import/model/TensorData.h"
#include "dialects/support/Try.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// The value of a `Constant` node as a tensor; nothing if it has none that is
/// one of numbers.
std::optional<onnx::TensorProto> getConstant(const onnx::NodeProto &node) {
  if (node.op_type() != "Constant" || !normalizeDomain(node.domain()).empty() ||
      node.attribute_size() != 1 || node.output_size() != 1 ||
      !node.attribute(0).ref_attr_name().empty())
    return std::nullopt;
  const onnx::AttributeProto &value = node.attribute(0);
  StringRef name = value.name();
  if (name == "value")
    return value.t();
  onnx::TensorProto tensor;
  if (name == "value_float" || name == "value_floats") {
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    if (name == "value_float")
      tensor.add_float_data(value.f());
    else
      *tensor.mutable_float_data() = value.floats();
  } else if (name == "value_int" || name == "value_ints") {
    tensor.set_data_type(onnx::TensorProto::INT64);
    if (name == "value_int")
      tensor.add_int64_data(value.i());
    else
      *tensor.mutable_int64_data() = value.ints();
  } else {
    return std::nullopt;
  }
  if (name.ends_with("s"))
    tensor.add_dims(std::max(value.floats_size(), value.ints_size()));
  return tensor;
}

class RepeatedConstants {
public:
  RepeatedConstants(const ModelFile &file, Location loc)
      : file(file), loc(loc) {}

  LogicalResult visit(onnx::GraphProto &graph) {
    return merge(graph.mutable_initializer(), *graph.mutable_node());
  }

  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
  using Tensors = google::protobuf::RepeatedPtrField<onnx::TensorProto>;

  /// Merges the constants of one graph or function, and of all graphs in it.
  LogicalResult merge(Tensors *initializers, Nodes &nodes) {
    StringMap<Definition> known;
    int left = 0;
    for (int i = 0; initializers && i < initializers->size();) {
      const onnx::TensorProto &tensor = initializers->Get(i);
      Definition own{tensor, "initializer " + std::to_string(i + left)};
      bool isNew = PARTITA_TRY(define(tensor.name(), own, known));
      if (isNew)
        ++i;
      else
        initializers->DeleteSubrange(i, 1);
      left += !isNew;
    }
    for (int i = 0; i < nodes.size();) {
      std::optional<onnx::TensorProto> tensor = getConstant(nodes.Get(i));
      if (!tensor) {
        PARTITA_TRY(visitGraphs(*nodes.Mutable(i++)));
        continue;
      }
      Definition own{*tensor,
                     "node '" + getNodeDisplayName(nodes.Get(i)) + "'"};
      if (PARTITA_TRY(define(nodes.Get(i).output(0), own, known)))
        ++i;
      else
        nodes.DeleteSubrange(i, 1);
    }
    return success();
  }

private:
  struct Definition {
    onnx::TensorProto tensor; ///< small: large payloads stay in the file
    std::string who;
  };

  LogicalResult visitGraphs(onnx::NodeProto &node) {
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        PARTITA_TRY(visit(*attribute.mutable_g()));
      for (onnx::GraphProto &graph : *attribute.mutable_graphs())
        PARTITA_TRY(visit(graph));
    }
    return success();
  }

  /// Whether the name is a new one.
  FailureOr<bool> define(const std::string &name, Definition &own,
                         StringMap<Definition> &known) {
    if (name.empty())
      return true; // what nobody can read
    auto it = known.find(name);
    if (it == known.end()) {
      known[name] = std::move(own);
      return true;
    }
    if (!PARTITA_TRY(haveSameBytes(it->second.tensor, own.tensor)))
      return emitError(loc)
             << "the name '" << name << "' is defined twice, by "
             << it->second.who << " and by " << own.who
             << ", with different values (ONNX Runtime warns, and computes "
                "with the last of them): rename one of them in the model, or "
                "leave out the one that is not meant";
    emitRemark(loc) << "the name '" << name << "' is defined twice, by "
                    << it->second.who << " and by " << own.who
                    << ", with the same value: the second is left out";
    return false;
  }

  FailureOr<bool> haveSameBytes(const onnx::TensorProto &a,
                                const onnx::TensorProto &b) {
    if (a.data_type() != b.data_type() || !equal(a.dims(), b.dims()))
      return false;
    RankedTensorType type = PARTITA_TRY(getTensorType(a, loc));
    std::string storages[2];
    FailureOr<TensorBytes> x = getElementBytes(file, a, type, storages[0], loc);
    FailureOr<TensorBytes> y = getElementBytes(file, b, type, storages[1], loc);
    if (failed(x) || failed(y))
      return failure();
    if (x->isAbsent || y->isAbsent)
      return x->isAbsent && y->isAbsent && x->span->file == y->span->file &&
             x->span->offset == y->span->offset;
    return x->data == y->data;
  }

  const ModelFile &file;
  const Location loc;
};

} // namespace

LogicalResult mergeRepeatedConstants(ModelFile &file, Location loc) {
  RepeatedConstants constants(file, loc);
  PARTITA_TRY(constants.visit(*file.proto.mutable_graph()));
  for (onnx::FunctionProto &function : *file.proto.mutable_functions())
    PARTITA_TRY(constants.merge(nullptr, *function.mutable_node()));
  return success();
}

} // namespace partita::import
