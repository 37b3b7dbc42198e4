//===- Weights.cpp - Tensors of the model as weights and constants --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/Weights.h"

#include "compiler/import/model/TensorData.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/support/Try.h"

#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

static bool becomesConstant(RankedTensorType type) {
  int64_t count = type.getNumElements();
  return isa<IntegerType>(type.getElementType())
             ? count <= nn::kMaxFoldedElements
             : count <= 1;
}

bool Weights::mayBeTrained(StringRef name, RankedTensorType type) const {
  if (!isa<FloatType>(type.getElementType()))
    return false;
  return type.getRank() > 0 ||
         torchTensors.lookup(name) == nn::kDeclaredParameter;
}

bool Weights::isTable(const onnx::TensorProto &tensor) {
  using onnx::TensorProto;
  return tensor.dims_size() > 0 &&
         is_contained({TensorProto::FLOAT, TensorProto::DOUBLE,
                       TensorProto::FLOAT16, TensorProto::BFLOAT16},
                      tensor.data_type());
}

std::string Weights::makeSymbol(StringRef name) {
  std::string base = name.empty() ? "weight" : name.str();
  std::string symbol = base;
  for (unsigned i = 1; entries.contains(symbol) || symbol == "main"; ++i)
    symbol = base + "_" + std::to_string(i);
  return symbol;
}

Value Weights::makeWeight(StringRef name, RankedTensorType type,
                          const std::optional<FileSpan> &span,
                          DenseElementsAttr value,
                          const onnx::TensorProto *tensor, Location loc) {
  std::string symbol = makeSymbol(name);
  OpBuilder top(module.getContext());
  if (last)
    top.setInsertionPointAfter(last);
  else
    top.setInsertionPointToStart(module.getBody());
  StringAttr path;
  IntegerAttr offset, bytes;
  if (span) {
    path = b.getStringAttr(span->file);
    offset = b.getI64IntegerAttr(span->offset);
    bytes = b.getI64IntegerAttr(span->bytes);
  }
  auto weight = nn::WeightOp::create(top, loc, b.getStringAttr(symbol),
                                     b.getStringAttr(name), TypeAttr::get(type),
                                     path, offset, bytes, value,
                                     /*state=*/UnitAttr(), /*part=*/TypeAttr());
  if (auto it = torchTensors.find(name); it != torchTensors.end())
    weight->setAttr(nn::kDeclaredAttr, b.getStringAttr(it->second));
  last = weight;
  // A copy, for the node of a function's body may be a copy itself; it is
  // small, as the elements are in a file.
  entries[symbol] =
      Entry{weight, tensor && !value ? *tensor : onnx::TensorProto(), value};
  return nn::ParameterOp::create(b, loc, type, symbol);
}

Value Weights::materialize(const onnx::TensorProto &tensor, StringRef name,
                           Location loc, bool keep) {
  RankedTensorType type = PARTITA_TRY(getTensorType(tensor, loc));
  std::string storage;
  TensorBytes bytes =
      PARTITA_TRY(getElementBytes(file, tensor, type, storage, loc));
  const bool isConstant =
      becomesConstant(type) && !(keep && mayBeTrained(name, type));
  if (isConstant && bytes.isAbsent)
    return (void)reportAbsent(tensor, bytes, loc), Value();
  if (isConstant)
    return nn::ConstantOp::create(b, loc, type, makeElements(type, bytes.data));
  DenseElementsAttr value;
  if (!bytes.span || bytes.span->bytes == 0)
    value = makeElements(type, bytes.data);
  return makeWeight(name, type, value ? std::nullopt : bytes.span, value,
                    &tensor, loc);
}

Value Weights::materializeConstant(const onnx::TensorProto &tensor,
                                   StringRef name, Location loc) {
  Value value = materialize(tensor, name, loc);
  auto parameter =
      value ? value.getDefiningOp<nn::ParameterOp>() : nn::ParameterOp();
  if (parameter && hasInitializers)
    find(parameter.getWeight())
        ->setAttr(nn::kDeclaredAttr, b.getStringAttr("constant"));
  return value;
}

Value Weights::materialize(DenseElementsAttr elements, StringRef name,
                           Location loc) {
  auto type = cast<RankedTensorType>(elements.getType());
  if (becomesConstant(type))
    return nn::ConstantOp::create(b, loc, type, elements);
  return makeWeight(name, type, std::nullopt, elements, nullptr, loc);
}

DenseElementsAttr Weights::read(StringRef symbol) {
  auto it = entries.find(symbol);
  if (it == entries.end())
    return {};
  Entry &entry = it->second;
  auto type = cast<RankedTensorType>(entry.op.getType());
  if (type.getNumElements() > nn::kMaxFoldedElements)
    return {};
  // What is not there is not folded.
  if (!entry.elements && file.filesMayBeAbsent)
    if (auto raw = file.getRawBytes(entry.tensor, entry.op.getLoc());
        failed(raw) || (*raw && (**raw).isAbsent))
      return {};
  if (!entry.elements)
    if (auto read = readElements(file, entry.tensor, entry.op.getLoc());
        succeeded(read))
      entry.elements = *read;
  return entry.elements;
}

void Weights::eraseUnused(Operation *function) {
  llvm::StringSet<> used;
  function->walk([&](nn::ParameterOp op) { used.insert(op.getWeight()); });
  for (nn::WeightOp op :
       make_early_inc_range(module.getBody()->getOps<nn::WeightOp>()))
    if (!used.contains(op.getSymName())) {
      entries.erase(op.getSymName());
      op.erase();
    }
}

} // namespace partita::import
