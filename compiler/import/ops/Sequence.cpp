//===- Sequence.cpp - Sequences of tensors, and optionals -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing is computed here: sequences are lists of values while a model is
// imported, so a position in one must be known when compiling.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/model/TensorData.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// Every tensor of a sequence is a value of the graph: far more than this
/// would take gigabytes.
constexpr size_t kMostTensors = 4096;

LogicalResult importSequenceConstruct(NodeImport &n) {
  return n.result(0, Collection{CollectionKind::sequence,
                                n.elementOf(n.input(0)), true, n.inputs});
}

LogicalResult importSequenceEmpty(NodeImport &n) {
  int64_t dtype = n.intAttr("dtype", onnx::TensorProto::FLOAT);
  Type element = getElementType(n.b.getContext(), static_cast<int32_t>(dtype));
  if (!element)
    return n.error("dtype is " + getOnnxTypeName(dtype) +
                   ", which is not supported");
  return n.result(0, Collection{CollectionKind::sequence, element, true, {}});
}

LogicalResult importSequenceLength(NodeImport &n) {
  int64_t length = n.collection(0)->tensors.size();
  return n.result(0, n.reshape(n.indices({length}), {}));
}

/// A position among `count`; a negative one counts from the end.
FailureOr<int64_t> getPosition(NodeImport &n, unsigned i, int64_t count) {
  int64_t position = PARTITA_TRY(n.constantInt(i, "position"));
  int64_t length = n.collection(0)->tensors.size();
  if (position < -length || position >= count)
    return n.error("position " + Twine(position) +
                   " is outside the sequence, which has " + Twine(length) +
                   " elements");
  return position < 0 ? position + length : position;
}

LogicalResult importSequenceAt(NodeImport &n) {
  const Collection &sequence = *n.collection(0);
  int64_t position = PARTITA_TRY(getPosition(n, 1, sequence.tensors.size()));
  return n.result(0, sequence.tensors[position]);
}

LogicalResult importSequenceErase(NodeImport &n) {
  Collection sequence = *n.collection(0);
  if (sequence.tensors.empty())
    return n.error("there is nothing to erase: the sequence is empty");
  int64_t position = sequence.tensors.size() - 1;
  if (n.input(1))
    position = PARTITA_TRY(getPosition(n, 1, position + 1));
  sequence.tensors.erase(sequence.tensors.begin() + position);
  return n.result(0, std::move(sequence));
}

LogicalResult importSequenceInsert(NodeImport &n) {
  Collection sequence = *n.collection(0);
  Value tensor = n.input(1);
  if (n.elementOf(tensor) != sequence.element)
    return n.error("the tensor is of " +
                   getOnnxTypeName(getOnnxType(n.elementOf(tensor))) +
                   ", and the sequence of " +
                   getOnnxTypeName(getOnnxType(sequence.element)));
  int64_t position = sequence.tensors.size();
  if (n.input(2))
    position = PARTITA_TRY(getPosition(n, 2, position + 1));
  sequence.tensors.insert(sequence.tensors.begin() + position, tensor);
  return n.result(0, std::move(sequence));
}

/// The sizes of the parts along the axis: as listed, or of one size but for the
/// last.
FailureOr<Shape> getSequenceParts(NodeImport &n, int64_t size) {
  int64_t part = 1;
  if (n.input(1)) {
    Shape split = PARTITA_TRY(n.constantInts(1, "split"));
    if (n.typeOf(n.input(1)).getRank() != 0)
      return split;
    part = split.front();
  }
  if (part <= 0)
    return n.error("split is " + Twine(part) + "; it must be positive");
  Shape parts;
  for (int64_t start = 0; start < size; start += part)
    parts.push_back(std::min(part, size - start));
  return parts;
}

LogicalResult importSplitToSequence(NodeImport &n) {
  Value x = n.input(0);
  int64_t axis = PARTITA_TRY(n.axisAttr(0, n.typeOf(x).getRank()));
  int64_t size = n.shapeOf(x)[axis], start = 0;
  Shape parts = PARTITA_TRY(getSequenceParts(n, size));
  if (parts.size() > kMostTensors)
    return n.error("splits into " + Twine(parts.size()) +
                   " tensors; a sequence may have at most " +
                   Twine(kMostTensors));
  bool keep = n.input(1) || n.intAttr("keepdims", 1) != 0;
  Collection sequence{CollectionKind::sequence, n.elementOf(x), true, {}};
  for (int64_t part : parts) {
    if (part < 0 || part > size - start)
      return n.error("the parts do not add up to size " + Twine(size));
    sequence.tensors.push_back(keep ? n.part(x, axis, start, start + part)
                                    : n.at(x, axis, start));
    if (!sequence.tensors.back())
      return failure();
    start += part;
  }
  if (start != size)
    return n.error("the parts do not add up to size " + Twine(size));
  return n.result(0, std::move(sequence));
}

LogicalResult importConcatFromSequence(NodeImport &n) {
  ArrayRef<Value> tensors = n.collection(0)->tensors;
  if (tensors.empty())
    return n.error("the sequence is empty, so the result has no shape");
  bool stack = n.intAttr("new_axis", 0) != 0;
  int64_t rank = n.typeOf(tensors.front()).getRank() + (stack ? 1 : 0);
  const onnx::AttributeProto *given = n.attr("axis");
  int64_t axis = PARTITA_TRY(n.axis(given ? given->i() : 0, rank));
  return n.result(0, stack ? n.stack(tensors, axis) : n.concat(tensors, axis));
}

/// The body is imported once for every element.
LogicalResult importSequenceMap(NodeImport &n) {
  const onnx::GraphProto &body = n.attr("body")->g();
  size_t length = n.collection(0)->tensors.size();
  for (unsigned i = 1; i < n.values.size(); ++i)
    if (const Collection *other = n.collection(i);
        other && other->tensors.size() != length)
      return n.error("input " + Twine(i) + " has " +
                     Twine(other->tensors.size()) +
                     " elements, and input 0 has " + Twine(length));
  SmallVector<Collection> results;
  for (const onnx::ValueInfoProto &output : body.output()) {
    Type element = getElementType(n.b.getContext(),
                                  output.type().tensor_type().elem_type());
    if (!element && length == 0)
      return n.error("the body's output '" + output.name() +
                     "' has no element type, and there is no element to see "
                     "what it is");
    results.push_back({CollectionKind::sequence, element, true, {}});
  }
  for (size_t position = 0; position < length; ++position) {
    SmallVector<ModelValue> arguments;
    for (unsigned i = 0; i < n.values.size(); ++i)
      arguments.push_back(n.collection(i)
                              ? ModelValue(n.collection(i)->tensors[position])
                              : n.value(i));
    auto made = PARTITA_TRY(
        n.source.importBody(body, arguments, std::to_string(position)));
    for (auto [result, value] : zip_equal(results, made)) {
      if (!value.tensor())
        return n.error("the body gives a " +
                       getKindName(value.collection()->kind) +
                       ", and the elements of a sequence are tensors");
      result.tensors.push_back(value.tensor());
      result.element = value.element();
    }
  }
  for (auto [i, result] : enumerate(results))
    PARTITA_TRY(n.result(i, std::move(result)));
  return success();
}

LogicalResult importOptional(NodeImport &n) {
  if (ModelValue value = n.value(0))
    return n.result(0, makeOptional(value));
  const onnx::AttributeProto *type = n.attr("type");
  if (!type)
    return n.error("it has neither an input nor the attribute type");
  // The attribute is the type of what is not there.
  onnx::TypeProto whole;
  *whole.mutable_optional_type()->mutable_elem_type() = type->tp();
  std::optional<DeclaredType> declared = getDeclaredType(whole);
  Type element =
      declared ? getElementType(n.b.getContext(), declared->tensor->elem_type())
               : Type();
  if (!element)
    return n.error("the attribute type is of a kind that is not supported");
  return n.result(0, Collection{*declared->kind, element, false, {}});
}

LogicalResult importOptionalHasElement(NodeImport &n) {
  const Collection *collection = n.collection(0);
  bool has = collection ? collection->present : bool(n.input(0));
  return n.result(0, n.splat(has ? 1 : 0, {}, n.b.getI1Type()));
}

LogicalResult importOptionalGetElement(NodeImport &n) {
  const Collection *collection = n.collection(0);
  if (!collection || !collection->isOptional())
    return n.result(0, n.value(0));
  if (!collection->present)
    return n.error("the optional '" + n.node.input(0) + "' has no value");
  if (collection->kind == CollectionKind::optional_tensor)
    return n.result(0, collection->tensors.front());
  return n.result(0, Collection{CollectionKind::sequence, collection->element,
                                true, collection->tensors});
}

const OpRow sequenceOps[] = {
    {"ConcatFromSequence", 11, 11, importConcatFromSequence},
    {"Optional", 15, 28, importOptional},
    {"OptionalGetElement", 15, 28, importOptionalGetElement},
    {"OptionalHasElement", 15, 28, importOptionalHasElement},
    {"SequenceAt", 11, 11, importSequenceAt},
    {"SequenceConstruct", 11, 11, importSequenceConstruct},
    {"SequenceEmpty", 11, 11, importSequenceEmpty},
    {"SequenceErase", 11, 11, importSequenceErase},
    {"SequenceInsert", 11, 11, importSequenceInsert},
    {"SequenceLength", 11, 11, importSequenceLength},
    {"SequenceMap", 17, 17, importSequenceMap},
    {"SplitToSequence", 11, 24, importSplitToSequence},
};

} // namespace

ArrayRef<OpRow> getSequenceOps() { return sequenceOps; }

} // namespace partita::import
