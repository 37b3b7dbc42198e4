//===- NNDialect.cpp - The nn dialect -------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"

#include "dialects/nn/NodeScopes.h"
#include "dialects/nn/fold/EmptyTensors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/nn/NNDialect.cpp.inc"
#include "dialects/nn/NNEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/nn/NNAttrs.cpp.inc"

namespace partita::nn {

void NNDialect::initialize() {
  addInterface(createEmptyTensorFolds(this));
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/nn/NNAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/nn/NNOps.cpp.inc"
      >();
}

Operation *NNDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                          Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, elements);
}

int64_t getByteSize(Type type) {
  auto tensor = cast<ShapedType>(type);
  int64_t bits = tensor.getElementTypeBitWidth();
  return tensor.getNumElements() * ((bits + 7) / 8);
}

Type getSignlessType(Type type) {
  unsigned width = type.getIntOrFloatBitWidth();
  if (isa<FloatType>(type))
    return width <= 8 ? Type(IntegerType::get(type.getContext(), 8)) : type;
  if (width > 1 && width < 8)
    width = 8;
  return IntegerType::get(type.getContext(), width);
}

TypedAttr getNeutralElement(ReduceKind kind, Type elementType) {
  Type type = getSignlessType(elementType);
  Builder b(type.getContext());
  if (kind == ReduceKind::sum)
    return b.getZeroAttr(type);
  if (kind == ReduceKind::prod)
    return b.getOneAttr(type);
  const bool isMax = kind == ReduceKind::max;
  if (auto floatType = dyn_cast<FloatType>(type))
    return b.getFloatAttr(type, APFloat::getInf(floatType.getFloatSemantics(),
                                                /*Negative=*/isMax));
  const unsigned width = type.getIntOrFloatBitWidth();
  const bool isUnsigned =
      elementType.isUnsignedInteger() || elementType.isInteger(1);
  return b.getIntegerAttr(type, isMax ? APSInt::getMinValue(width, isUnsigned)
                                      : APSInt::getMaxValue(width, isUnsigned));
}

int64_t getWindowedSize(int64_t size, int64_t low, int64_t high, int64_t window,
                        int64_t dilation, int64_t stride) {
  int64_t room = low + size + high - ((window - 1) * dilation + 1);
  return room < 0 ? 0 : room / stride + 1;
}

SmallVector<int64_t> permuted(ArrayRef<int64_t> values,
                              ArrayRef<int64_t> perm) {
  return llvm::map_to_vector(perm, [&](int64_t dim) { return values[dim]; });
}

bool isPermutation(ArrayRef<int64_t> values, int64_t rank) {
  SmallVector<bool> seen(rank, false);
  for (int64_t value : values) {
    if (value < 0 || value >= rank || seen[value])
      return false;
    seen[value] = true;
  }
  return static_cast<int64_t>(values.size()) == rank;
}

std::string getNodeName(Location loc) {
  constexpr size_t kShown = 3;
  SmallVector<StringRef, 2> names = getNodeNames(loc);
  std::string joined = llvm::join(ArrayRef(names).take_front(kShown), "+");
  return names.size() > kShown ? joined + "+..." : joined;
}

std::string getNodeName(Operation *op) {
  std::string name = getNodeName(op->getLoc());
  return name.empty() ? op->getName().getStringRef().str() : name;
}

} // namespace partita::nn
