//===- CallRule.cpp - How an op becomes the root of a library call --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/CallRule.h"

#include <cmath>

using namespace mlir;

namespace partita::codegen::onednn {

bool isF32(Value value) {
  return nn::getTensorType(value).getElementType().isF32();
}

bool takesF32(Operation *, Value value) { return isF32(value); }

const CallRule *getRule(Operation *op) {
  static const CallRule *const rules[] = {
#define PARTITA_CALL(kind, name) &k##name##Rule,
#include "runtime/device/cpu/onednn/rules/Calls.def"
#undef PARTITA_CALL
  };
  for (const CallRule *rule : rules)
    if (rule->isRoot(op))
      return rule;
  return nullptr;
}

double roundToLanes(double count, int64_t lanes) {
  return count <= lanes ? lanes : std::ceil(count / lanes) * lanes;
}

bool isDense(const StridedView &view) {
  int64_t stride = 1;
  for (size_t dim = view.shape.size(); dim-- > 0;) {
    if (view.shape[dim] != 1 && view.strides[dim] != stride)
      return false;
    stride *= view.shape[dim];
  }
  return true;
}

void takeSum(CallMatcher &call) {
  if (call.postOps.empty() || call.postOps[0].kind != plan::PostOpKind::add ||
      !call.postOps[0].mayAccumulate)
    return;
  const StridedView &view = *call.postOps[0].operand;
  auto isSame = [&](const StridedView &other) {
    return other.base == view.base;
  };
  if (view.shape == call.output.shape && view.strides == call.output.strides &&
      view.offset == call.output.offset && llvm::none_of(call.operands, isSame))
    call.postOps[0].kind = plan::PostOpKind::sum;
}

} // namespace partita::codegen::onednn
