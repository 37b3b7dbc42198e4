//===- CallMemory.cpp - What a library call takes -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/CallMemory.h"

#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

using namespace mlir;

namespace partita::codegen::onednn {

static rules::WindowedImages getImages(plan::CallAttr conv) {
  ArrayRef<int64_t> result = conv.getOperands()[2].getShape();
  return {result[0], conv.getOperands()[0].getShape()[1], result[1], result[2],
          result[3]};
}

/// The library reorders the right side of a product, filters and the weights of
/// recurrent layers.
std::optional<int64_t> getPackedBytes(plan::CallAttr call, unsigned operand,
                                      Type element) {
  if (operand != 1)
    return std::nullopt;
  ArrayRef<int64_t> shape = call.getOperands()[1].getShape();
  const bool integers = element.isInteger(8);
  switch (call.getKind()) {
  case plan::CallKind::dot:
    return integers ? rules::packedIntegerMatrixRoom(shape)
                    : rules::packedMatrixRoom(shape);
  case plan::CallKind::conv:
    if (integers)
      return rules::packedIntegerFilterRoom(shape, call.getGroups());
    if (call.getWinograd())
      return std::max(rules::winogradFilterRoom(getImages(call)),
                      rules::packedFilterRoom(shape, call.getGroups()));
    return rules::packedFilterRoom(shape, call.getGroups());
  case plan::CallKind::recurrent:
    return rules::packedRecurrentRoom(
        shape, call.getRecurrent().getCell() == plan::Cell::gru &&
                   !call.getRecurrent().getHiddenBias());
  default:
    return std::nullopt;
  }
}

int64_t getScratchBytes(plan::CallAttr call, bool packed) {
  ArrayRef<plan::ViewAttr> operands = call.getOperands();
  switch (call.getKind()) {
  case plan::CallKind::recurrent: {
    ArrayRef<int64_t> x = operands[0].getShape();
    return rules::recurrentRoom(x[1], operands[1].getShape()[2], x[3]);
  }
  case plan::CallKind::attention:
    return rules::attentionScoreRoom(operands[0].getShape()[2],
                                     operands[1].getShape()[2]);
  case plan::CallKind::conv:
    if (call.getWinograd())
      return rules::winogradRoom(getImages(call));
    // A filter that is computed is packed in each run.
    return packed ? 0
                  : rules::repackedFilterRoom(operands[1].getShape(),
                                              call.getGroups());
  default:
    return 0;
  }
}

} // namespace partita::codegen::onednn
