//===- Fusion.cpp - Post-ops that oneDNN computes rightly -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/rules/Fusion.h"

namespace partita::rules {

using abi::CallKind;
using abi::PostOpKind;

namespace {

enum class Fusion { never, always, by_form };
enum class Nan { kept, lost };

struct PostOpInfo {
  Fusion fusion;
  Nan nan;
};

/// Of a kind that plan.fbs names.
PostOpInfo getInfo(PostOpKind kind) {
  switch (kind) {
#define PARTITA_POST_OP(name, algorithm, takes, fusion, nan)                   \
  case PostOpKind::name:                                                       \
    return {Fusion::fusion, Nan::nan};
#include "runtime/device/cpu/onednn/rules/PostOps.def"
#undef PARTITA_POST_OP
  }
  return {Fusion::never, Nan::lost};
}

/// Dimensions of one element, and those along which a tensor is broadcast, have
/// no place in memory.
bool varies(const Strided &tensor, size_t dim) {
  return tensor.shape[dim] != 1 && tensor.strides[dim] != 0;
}

/// Whether what varies lies without gaps, the last dimension innermost.
bool isRowMajor(const Strided &tensor) {
  int64_t stride = 1;
  for (size_t dim = tensor.shape.size(); dim-- > 0;) {
    if (!varies(tensor, dim))
      continue;
    if (tensor.strides[dim] != stride)
      return false;
    stride *= tensor.shape[dim];
  }
  return true;
}

/// Whether a product is one of two matrices.
bool isMatrix(const Strided &result) {
  for (size_t dim = 0; dim + 2 < result.shape.size(); ++dim)
    if (result.shape[dim] != 1)
      return false;
  return true;
}

} // namespace

OperandForm getOperandForm(CallKind call, const Strided &result,
                           const Strided &operand) {
  const size_t rank = result.shape.size();
  const bool product = call == CallKind::dot;
  bool whole = true;
  size_t count = 0, only = 0;
  for (size_t dim = 0; dim < rank; ++dim) {
    if (result.shape[dim] == 1)
      continue;
    whole &=
        varies(operand, dim) && operand.strides[dim] == result.strides[dim];
    if (varies(operand, dim)) {
      ++count;
      only = dim;
    }
  }
  if (count == 0)
    return OperandForm::one;
  if (whole)
    return OperandForm::whole;
  const bool vector = count == 1 && operand.strides[only] == 1 &&
                      (!product || isMatrix(result) || isRowMajor(result));
  if (vector && only == (product ? rank - 1 : 1))
    return OperandForm::channel;
  if (vector && product && only == rank - 2 && isMatrix(result))
    return OperandForm::row;
  return product && isRowMajor(result) && isRowMajor(operand)
             ? OperandForm::broadcast
             : OperandForm::other;
}

bool mayFuse(CallKind call, PostOpKind kind, OperandForm form) {
  const bool product = call == CallKind::dot;
  if (!product && call != CallKind::conv)
    return false;
  const Fusion fusion = getInfo(kind).fusion;
  if (fusion != Fusion::by_form)
    return fusion == Fusion::always;
  const bool ofProducts =
      form == OperandForm::row || form == OperandForm::broadcast;
  return form != OperandForm::other && (product || !ofProducts);
}

bool mayFollow(PostOpKind first, PostOpKind second) {
  auto isRelu = [](PostOpKind kind) {
    return kind == PostOpKind::relu || kind == PostOpKind::leaky_relu;
  };
  return first == second || !isRelu(first) || !isRelu(second);
}

bool losesNan(PostOpKind kind) { return getInfo(kind).nan == Nan::lost; }

} // namespace partita::rules
