//===- NNRecurrent.cpp - Layers that run over time ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"

#include "dialects/support/Try.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

namespace partita::nn {

//===----------------------------------------------------------------------===//
// GateFunctionAttr
//===----------------------------------------------------------------------===//

void GateFunctionAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyGateFunctionKind(getKind());
  if (getAlpha() != 0 || getBeta() != 0) {
    printer << ' ';
    printer.printFloat(APFloat(getAlpha()));
    printer << ", ";
    printer.printFloat(APFloat(getBeta()));
  }
  printer << '>';
}

Attribute GateFunctionAttr::parse(AsmParser &parser, Type) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&keyword))
    return {};
  std::optional<GateFunctionKind> kind = symbolizeGateFunctionKind(keyword);
  if (!kind) {
    parser.emitError(loc) << "unknown gate function '" << keyword << "'";
    return {};
  }
  APFloat alpha(0.0), beta(0.0);
  if (failed(parser.parseOptionalGreater()))
    if (parser.parseFloat(APFloat::IEEEdouble(), alpha) ||
        parser.parseComma() || parser.parseFloat(APFloat::IEEEdouble(), beta) ||
        parser.parseGreater())
      return {};
  return get(parser.getContext(), *kind, alpha.convertToDouble(),
             beta.convertToDouble());
}

//===----------------------------------------------------------------------===//
// RecurrentOp
//===----------------------------------------------------------------------===//

LogicalResult RecurrentOp::verify() {
  RankedTensorType x = getX().getType(), weights = getWeights().getType();
  RankedTensorType result = getType();
  Cell cell = getCell();
  int64_t gates = getNumGates(cell);
  if (x.getRank() != 4 || x.getDimSize(0) < 1 || weights.getRank() != 3 ||
      weights.getDimSize(1) != gates * weights.getDimSize(2) ||
      x.getDimSize(2) != weights.getDimSize(0) ||
      x.getDimSize(3) != weights.getDimSize(1) ||
      x.getElementType() != weights.getElementType() ||
      x.getElementType() != result.getElementType()) // C1
    return emitOpError("needs x [T, B, D, ")
           << gates << " * H] of at least one step and weights [D, " << gates
           << " * H, H] of the result's element type, not " << x << " and "
           << weights;
  int64_t batch = x.getDimSize(1), directions = x.getDimSize(2);
  int64_t hidden = getHiddenSize();
  int64_t shape[] = {x.getDimSize(0) + getNumFinalStates(cell), directions,
                     batch, hidden};
  if (result.getShape() != ArrayRef<int64_t>(shape)) // C2
    return emitOpError("result has shape [")
           << result.getShape() << "] instead of [" << ArrayRef<int64_t>(shape)
           << "]";
  auto verifyShape = [&](StringRef name, Value value,
                         ArrayRef<int64_t> expected) -> LogicalResult {
    if (!value)
      return success();
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getShape() != expected ||
        (type.getElementType() != x.getElementType() &&
         !type.getElementType().isInteger(32))) // C3
      return emitOpError("needs '") << name << "' of shape [" << expected
                                    << "] and x's element type, not " << type;
    return success();
  };
  PARTITA_TRY(verifyShape("lengths", getLengths(), {batch}));
  PARTITA_TRY(
      verifyShape("initial", getInitial(), {directions, batch, hidden}));
  PARTITA_TRY(verifyShape("initial_cell", getInitialCell(),
                          {directions, batch, hidden}));
  PARTITA_TRY(
      verifyShape("peepholes", getPeepholes(), {directions, 3 * hidden}));
  PARTITA_TRY(
      verifyShape("hidden_bias", getHiddenBias(), {directions, hidden}));
  if (getHiddenBias() && cell != Cell::gru) // C4
    return emitOpError("has a hidden bias, which only a gru has");
  if ((getInitialCell() || getPeepholes() || getCoupled()) &&
      cell != Cell::lstm)
    return emitOpError("has an operand or attribute that only an lstm has");
  int64_t functions = directions * getNumFunctions(cell);
  if (static_cast<int64_t>(getReversed().size()) != directions ||
      static_cast<int64_t>(getFunctions().size()) != functions) // C5
    return emitOpError("needs ")
           << directions << " entries of 'reversed' and " << functions
           << " of 'functions', but has " << getReversed().size() << " and "
           << getFunctions().size();
  if (!(getClip().convertToDouble() >= 0))
    return emitOpError("cannot clip to a negative bound");
  return success();
}

Cost RecurrentOp::getCost() {
  RankedTensorType x = getX().getType();
  int64_t hidden = getHiddenSize();
  // The product, and about 25 operations for the function of a gate.
  Cost cost = makeCost(*this, x.getNumElements() * (2 * hidden + 25),
                       CostKind::recurrent);
  // Every step reads the weights again.
  cost.bytes += (getNumSteps() - 1) * getByteSize(getWeights().getType());
  return cost;
}

} // namespace partita::nn
