//===- NNStructure.cpp - Parameters, constants, clusters ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;

namespace partita::nn {

//===----------------------------------------------------------------------===//
// Weights and constants
//===----------------------------------------------------------------------===//

bool WeightOp::isCarried() {
  auto role = (*this)->getAttrOfType<StringAttr>(kRoleAttr);
  return role && role == "carried";
}

LogicalResult WeightOp::verify() {
  if (getPart()) {
    auto part = cast<RankedTensorType>(*getPart()),
         whole = cast<RankedTensorType>(getType());
    if (!getState() || part.getRank() != whole.getRank() ||
        part.getElementType() != whole.getElementType()) // C4
      return emitOpError("of type ") << whole << " has a part " << part;
  }
  if (getFile().has_value() == getValue().has_value()) // C1
    return emitOpError("needs either a file or a value");
  if (std::optional<ElementsAttr> value = getValue()) {
    if (value->getType() != getType()) // C3
      return emitOpError("has a value of type ")
             << value->getType() << " but is " << getType();
    return success();
  }
  if (!getOffset() || !getBytes())
    return emitOpError("needs the offset and the number of its bytes in ")
           << getFileAttr();
  int64_t expected = getByteSize(getType());
  if (static_cast<int64_t>(*getOffset()) < 0 ||
      static_cast<int64_t>(*getBytes()) != expected) // C2
    return emitOpError("of type ")
           << getType() << " needs " << expected
           << " bytes at an offset of at least 0, not "
           << static_cast<int64_t>(*getBytes()) << " at "
           << static_cast<int64_t>(*getOffset());
  return success();
}

LogicalResult ParameterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto weight =
      symbols.lookupNearestSymbolFrom<WeightOp>(*this, getWeightAttr());
  if (!weight) // C1
    return emitOpError("names the weight ")
           << getWeightAttr() << ", which the module does not have";
  if (weight.getPartType() != getType())
    return emitOpError("is ")
           << getType() << ", but the weight " << getWeightAttr() << " is "
           << weight.getPartType();
  if (getState() != weight.getState()) // C2
    return emitOpError("and the weight ")
           << getWeightAttr() << " must agree on whether it is a state";
  return success();
}

Cost ParameterOp::getCost() { return {}; }

Cost AccumulatorOp::getCost() {
  return {/*flops=*/0, getByteSize(getType()), CostKind::movement};
}

LogicalResult AccumulatorOp::verify() {
  if (getLanes() < 1) // C1
    return emitOpError("has ") << getLanes() << " lanes";
  return success();
}

LogicalResult SumMicroBatchesOp::verify() {
  if (getAccumulator() && getAccumulator().getType() != getType()) // C1
    return emitOpError("sums up ")
           << getType() << " in an accumulator " << getAccumulator().getType();
  if (!getLane())
    return success();
  if (!getAccumulator())
    return emitOpError("has a lane of no accumulator"); // C2
  auto of = getAccumulator().getDefiningOp<AccumulatorOp>();
  const auto lane = static_cast<int64_t>(*getLane());
  if (lane < 0 || (of && lane >= static_cast<int64_t>(of.getLanes()))) // C2
    return emitOpError("is lane ")
           << lane << " of an accumulator of " << (of ? of.getLanes() : 0);
  return success();
}

/// It is another name for the bytes of its operand.
Cost SumMicroBatchesOp::getCost() { return {}; }

Cost ConstantOp::getCost() { return {0, 0, CostKind::none, /*free=*/true}; }

//===----------------------------------------------------------------------===//
// Gradients that a model asks for
//===----------------------------------------------------------------------===//

FailureOr<grad::Cotangents> VariableOp::buildVjp(const grad::Term &dy) {
  return grad::Cotangents{dy};
}

LogicalResult GradientOp::verify() {
  llvm::SmallPtrSet<Operation *, 4> seen;
  for (Value variable : getVariables()) // C1
    if (auto op = variable.getDefiningOp<VariableOp>();
        !op || !seen.insert(op).second)
      return emitOpError("needs the results of different nn.variable ops");
  if (!llvm::equal(getVariables().getTypes(), getResultTypes())) // C2
    return emitOpError("has results of other types than its variables");
  return success();
}

//===----------------------------------------------------------------------===//
// Cluster
//===----------------------------------------------------------------------===//

LogicalResult ClusterOp::verify() {
  Block *body = &getBody().front();
  if (!llvm::equal(body->getArgumentTypes(), getOperandTypes())) // C1
    return emitOpError("needs a block whose arguments have the types of the "
                       "operands");
  auto yield = dyn_cast<YieldOp>(body->getTerminator());
  if (yield && !llvm::equal(yield.getOperandTypes(), getResultTypes())) // C2
    return emitOpError("yields values that have not the types of the results");
  LoweringAttrInterface lowering = getLoweringAttr();
  if (lowering && lowering.getClusterKind() != getKind()) // C3
    return emitOpError("has a lowering of another kind");
  return success();
}

/// The heavier sort of work: the enum has them in that order. All kinds of
/// products weigh the same.
static CostKind heavier(CostKind a, CostKind b) {
  if (a == CostKind::none || b == CostKind::none)
    return a == CostKind::none ? b : a;
  static_assert(CostKind::movement < CostKind::pointwise &&
                CostKind::pointwise < CostKind::reduction &&
                CostKind::reduction < CostKind::dot);
  return std::min(b, CostKind::dot) > std::min(a, CostKind::dot) ? b : a;
}

Cost ClusterOp::getCost() {
  Cost cost;
  for (auto op : getBody().front().getOps<CostOpInterface>()) {
    Cost part = op.getCost();
    cost.flops += part.flops;
    cost.kind = heavier(cost.kind, part.kind);
  }
  cost.bytes = getTouchedBytes(*this);
  return cost;
}

void ClusterOp::print(OpAsmPrinter &p) {
  p << ' ' << stringifyClusterKind(getKind()) << " (";
  llvm::interleaveComma(
      llvm::zip_equal(getBody().getArguments(), getOperands()), p,
      [&](auto pair) {
        auto [argument, operand] = pair;
        p << argument << " = " << operand;
      });
  p << ") : ";
  p.printFunctionalType(getOperation());
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getKindAttrName()});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

ParseResult ClusterOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  FunctionType type;
  FailureOr<ClusterKind> kind = FieldParser<ClusterKind>::parse(parser);
  if (failed(kind))
    return failure();
  result.addAttribute(getKindAttrName(result.name),
                      ClusterKindAttr::get(parser.getContext(), *kind));
  SMLoc operandsLoc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(
          OpAsmParser::Delimiter::Paren,
          [&]() -> ParseResult {
            return failure(parser.parseArgument(arguments.emplace_back()) ||
                           parser.parseEqual() ||
                           parser.parseOperand(operands.emplace_back()));
          }) ||
      parser.parseColonType(type) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      // An attribute of another kind would be dropped in silence.
      failed(
          verifyInherentAttrs(result.name, result.attributes,
                              [&] { return parser.emitError(operandsLoc); })) ||
      parser.resolveOperands(operands, type.getInputs(), operandsLoc,
                             result.operands))
    return failure();
  for (auto [argument, argumentType] :
       llvm::zip_equal(arguments, type.getInputs()))
    argument.type = argumentType;
  result.addTypes(type.getResults());
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), result.location);
  return success();
}

} // namespace partita::nn
