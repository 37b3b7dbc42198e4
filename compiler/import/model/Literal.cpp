//===- Literal.cpp - Values that are written on the command line ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/TensorData.h"

#include "runtime/abi/Text.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

static bool isNumber(StringRef text) {
  double value;
  return text == "true" || text == "false" || !text.getAsDouble(value);
}

/// Nothing if elements of the type cannot be that.
static Attribute getElement(StringRef text, Type type) {
  if (text == "true" || text == "false")
    return type.isInteger(1) ? BoolAttr::get(type.getContext(), text == "true")
                             : Attribute();
  if (auto floats = dyn_cast<FloatType>(type)) {
    double value;
    text.getAsDouble(value);
    return FloatAttr::get(floats, value);
  }
  auto integers = cast<IntegerType>(type);
  bool isNegative = text.consume_front("-");
  APInt magnitude;
  const bool isSigned = !integers.isUnsigned() && integers.getWidth() > 1;
  if (text.getAsInteger(10, magnitude))
    return {};
  magnitude = magnitude.zext(std::max(magnitude.getBitWidth(), 64u) + 1);
  if (isNegative)
    magnitude.negate();
  const unsigned width = integers.getWidth();
  if (isSigned ? !magnitude.isSignedIntN(width)
               : magnitude.isNegative() || !magnitude.isIntN(width))
    return {};
  return IntegerAttr::get(integers, magnitude.trunc(width));
}

static SmallVector<StringRef> splitLiteral(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef &part : parts)
    part = part.trim();
  return parts;
}

bool isLiteral(StringRef text) { return all_of(splitLiteral(text), isNumber); }

FailureOr<DenseElementsAttr> readLiteral(StringRef text, RankedTensorType type,
                                         StringRef inputName, Location loc) {
  SmallVector<StringRef> parts = splitLiteral(text);
  if (parts.size() != 1 &&
      static_cast<int64_t>(parts.size()) != type.getNumElements())
    return emitError(loc) << "--constant " << inputName << "=" << text
                          << ": these are " << parts.size()
                          << " numbers, and the input has "
                          << abi::countOf(type.getNumElements(), "element");
  SmallVector<Attribute> elements;
  for (StringRef part : parts) {
    elements.push_back(getElement(part, type.getElementType()));
    if (!elements.back())
      return emitError(loc)
             << "--constant " << inputName << ": " << part << " is no value of "
             << getOnnxTypeName(getOnnxType(type.getElementType()));
  }
  return DenseElementsAttr::get(type, elements);
}

} // namespace partita::import
