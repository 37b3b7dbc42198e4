//===- ModelValue.cpp - What a name of a model stands for -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/ModelValue.h"

#include "compiler/import/model/TensorData.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

StringRef getKindName(CollectionKind kind) {
  switch (kind) {
  case CollectionKind::sequence:
    return "sequence";
  case CollectionKind::optional_tensor:
    return "optional";
  case CollectionKind::optional_sequence:
    return "optional sequence";
  }
  return "";
}

Type ModelValue::element() const {
  return list    ? list->element
         : value ? cast<RankedTensorType>(value.getType()).getElementType()
                 : Type();
}

onnx::TypeProto ModelValue::type() const {
  onnx::TypeProto type;
  onnx::TypeProto *inner = &type;
  if (list && list->isOptional())
    inner = inner->mutable_optional_type()->mutable_elem_type();
  if (list && list->kind != CollectionKind::optional_tensor)
    inner = inner->mutable_sequence_type()->mutable_elem_type();
  auto *tensor = inner->mutable_tensor_type();
  tensor->set_elem_type(getOnnxType(element()));
  if (value)
    for (int64_t size : cast<RankedTensorType>(value.getType()).getShape())
      tensor->mutable_shape()->add_dim()->set_dim_value(size);
  // A number has a shape too, one without dimensions.
  if (value)
    tensor->mutable_shape();
  return type;
}

ModelValue makeOptional(const ModelValue &value) {
  const Collection *collection = value.collection();
  if (!value || (collection && collection->isOptional()))
    return value;
  if (collection)
    return Collection{CollectionKind::optional_sequence, collection->element,
                      true, collection->tensors};
  return Collection{
      CollectionKind::optional_tensor, value.element(), true, {value.tensor()}};
}

std::optional<DeclaredType> getDeclaredType(const onnx::TypeProto &type) {
  const onnx::TypeProto *inner = &type;
  bool isOptional = inner->has_optional_type();
  if (isOptional)
    inner = &inner->optional_type().elem_type();
  bool isSequence = inner->has_sequence_type();
  if (isSequence)
    inner = &inner->sequence_type().elem_type();
  if (!inner->has_tensor_type())
    return std::nullopt;
  DeclaredType declared{std::nullopt, &inner->tensor_type()};
  if (isSequence)
    declared.kind = isOptional ? CollectionKind::optional_sequence
                               : CollectionKind::sequence;
  else if (isOptional)
    declared.kind = CollectionKind::optional_tensor;
  return declared;
}

std::string getElementName(StringRef sequence, size_t position) {
  return (sequence + "." + Twine(position)).str();
}

} // namespace partita::import
