//===- DistSharding.cpp - Sharded tensors and collectives -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/DistDialect.h"

#include "dialects/support/Try.h"
#include "runtime/abi/Collectives.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace partita::dist;
namespace abi = partita::abi;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

/// {"tensor" blocks 3 alignment 4}
static void printDim(DimAttr dim, AsmPrinter &printer) {
  printer << '{';
  llvm::interleaveComma(dim.getAxes(), printer,
                        [&](StringAttr axis) { printer.printAttribute(axis); });
  if (dim.getBlocks() != 1)
    printer << " blocks " << dim.getBlocks();
  if (dim.getAlignment() != 1)
    printer << " alignment " << dim.getAlignment();
  printer << '}';
}

static ParseResult parseDim(AsmParser &parser, DimAttr &dim) {
  SmallVector<StringAttr> axes;
  int64_t blocks = 1, alignment = 1;
  if (parser.parseLBrace())
    return failure();
  while (failed(parser.parseOptionalRBrace())) {
    StringAttr axis;
    if (succeeded(parser.parseOptionalKeyword("blocks"))) {
      if (parser.parseInteger(blocks))
        return failure();
      continue;
    }
    if (succeeded(parser.parseOptionalKeyword("alignment"))) {
      if (parser.parseInteger(alignment))
        return failure();
      continue;
    }
    if (parser.parseAttribute(axis))
      return failure();
    axes.push_back(axis);
    (void)parser.parseOptionalComma();
  }
  if (blocks < 1 || alignment < 1)
    return parser.emitError(parser.getNameLoc(),
                            "blocks and alignment must be at least 1");
  dim = DimAttr::get(parser.getContext(), axes, blocks, alignment);
  return success();
}

void DimAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printDim(*this, printer);
  printer << '>';
}

Attribute DimAttr::parse(AsmParser &parser, Type) {
  DimAttr dim;
  if (parser.parseLess() || parseDim(parser, dim) || parser.parseGreater())
    return {};
  return dim;
}

bool ShardingAttr::isWhole() const {
  return getPartial().empty() && llvm::all_of(getDims(), [](DimAttr dim) {
           return dim.getAxes().empty();
         });
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer,
                        [&](DimAttr dim) { printDim(dim, printer); });
  printer << ']';
  if (!getPartial().empty()) {
    printer << " partial [";
    llvm::interleaveComma(getPartial(), printer, [&](PartialAttr partial) {
      printer.printAttribute(partial);
    });
    printer << ']';
  }
  printer << '>';
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<DimAttr> dims;
  SmallVector<PartialAttr> partial;
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parseDim(parser, dims.emplace_back());
      }))
    return {};
  if (succeeded(parser.parseOptionalKeyword("partial")) &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseAttribute(partial.emplace_back());
      }))
    return {};
  if (parser.parseGreater())
    return {};
  return ShardingAttr::get(parser.getContext(), dims, partial);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

RowsAndPart partita::dist::getRowsAndPart(RankedTensorType part, int64_t dim,
                                          int64_t blocks) {
  RowsAndPart shape{blocks, 1};
  for (auto [index, size] : llvm::enumerate(part.getShape())) {
    if (static_cast<int64_t>(index) < dim)
      shape.rows *= size;
    else
      shape.part *= size;
  }
  shape.part /= blocks;
  return shape;
}

int64_t partita::dist::getGroupSize(Operation *function, ArrayAttr axes) {
  auto all = function->getAttrOfType<ArrayAttr>(kAxesAttr);
  int64_t size = 1;
  if (all)
    for (auto axis : all.getAsRange<AxisAttr>())
      if (llvm::is_contained(axes.getAsValueRange<StringAttr>(),
                             axis.getName()))
        size *= axis.getSize();
  return size;
}

/// `part` is what one device has of `whole`; `rounds`: maybe rounded up.
static LogicalResult verifyPart(Operation *op, RankedTensorType whole,
                                RankedTensorType part, int64_t dim,
                                int64_t blocks, bool rounds = false) {
  if (whole.getRank() != part.getRank() || dim < 0 || dim >= whole.getRank() ||
      whole.getElementType() != part.getElementType() || blocks < 1)
    return op->emitOpError("(C1) ")
           << part << " is no part of " << whole << " along dimension " << dim;
  for (int64_t i = 0; i < whole.getRank(); ++i) {
    const int64_t all = whole.getDimSize(i), own = part.getDimSize(i);
    const bool divides = own > 0 && all % own == 0 && own % blocks == 0;
    const bool fits = i != dim
                          ? own == all
                          : divides || (rounds && own > 0 && own <= all &&
                                        own % blocks == 0 && all % blocks == 0);
    if (!fits)
      return op->emitOpError("(C1) ")
             << part << " is no part of " << whole << " along dimension " << dim
             << " in " << blocks << " blocks";
  }
  return success();
}

int64_t CollectiveOpInterface::getSentBytes(int64_t devices) {
  const RowsAndPart shape = getRowsAndPart();
  const Type element = getElementTypeOrSelf((*this)->getResult(0));
  return abi::sentBytes(getCollectiveKind(),
                        partita::nn::getByteSize(RankedTensorType::get(
                            {shape.rows, shape.part}, element)),
                        devices);
}

RowsAndPart AllReduceOp::getRowsAndPart() {
  return {1, cast<RankedTensorType>(getType()).getNumElements()};
}

RowsAndPart ReduceScatterOp::getRowsAndPart() {
  return dist::getRowsAndPart(cast<RankedTensorType>(getType()), getDim(),
                              getBlocks());
}

LogicalResult ReduceScatterOp::verify() {
  return verifyPart(*this, cast<RankedTensorType>(getX().getType()),
                    cast<RankedTensorType>(getType()), getDim(), getBlocks());
}

RowsAndPart AllGatherOp::getRowsAndPart() {
  return dist::getRowsAndPart(cast<RankedTensorType>(getX().getType()),
                              getDim(), getBlocks());
}

LogicalResult AllGatherOp::verify() {
  return verifyPart(*this, cast<RankedTensorType>(getType()),
                    cast<RankedTensorType>(getX().getType()), getDim(),
                    getBlocks());
}

RankedTensorType AllToAllOp::getPartType() {
  auto type = cast<RankedTensorType>(getType());
  return type.clone(type.getShape().drop_front());
}

RowsAndPart AllToAllOp::getRowsAndPart() {
  return dist::getRowsAndPart(getPartType(), getDim(), getBlocks());
}

LogicalResult AllToAllOp::verify() {
  auto whole = cast<RankedTensorType>(getX().getType());
  auto type = cast<RankedTensorType>(getType());
  if (type.getRank() != whole.getRank() + 1)
    return emitOpError("(C1) ")
           << type << " needs one dimension more than " << whole;
  const RankedTensorType part = getPartType();
  PARTITA_TRY(verifyPart(*this, whole, part, getDim(), getBlocks()));
  const int64_t devices =
      whole.getDimSize(getDim()) / part.getDimSize(getDim());
  if (type.getDimSize(0) != devices)
    return emitOpError("(C1) has parts for ")
           << devices << " devices in " << whole << ", and of "
           << type.getDimSize(0) << " in " << type;
  return success();
}

RowsAndPart BroadcastOp::getRowsAndPart() {
  return {1, cast<RankedTensorType>(getType()).getNumElements()};
}

RowsAndPart ShardOp::getRowsAndPart() {
  return dist::getRowsAndPart(cast<RankedTensorType>(getType()), getDim(),
                              getBlocks());
}

LogicalResult ShardOp::verify() {
  return verifyPart(*this, cast<RankedTensorType>(getX().getType()),
                    cast<RankedTensorType>(getType()), getDim(), getBlocks(),
                    /*rounds=*/true);
}

//===----------------------------------------------------------------------===//
// How they are cut along further axes
//===----------------------------------------------------------------------===//

/// Elements move along `dim`; all other dimensions pass through.
static partita::nn::ShardingRule getRuleAlong(Operation *op, int64_t dim) {
  return partita::nn::movingRule(
      op, [&](int64_t other) { return other != dim; },
      partita::nn::FactorKind::replicated);
}

partita::nn::ShardingRule AllReduceOp::getShardingRule() {
  return partita::nn::sameShapeRule(*this);
}

partita::nn::ShardingRule BroadcastOp::getShardingRule() {
  return partita::nn::sameShapeRule(*this);
}

partita::nn::ShardingRule ReduceScatterOp::getShardingRule() {
  return getRuleAlong(*this, getDim());
}

partita::nn::ShardingRule AllGatherOp::getShardingRule() {
  return getRuleAlong(*this, getDim());
}

partita::nn::ShardingRule ShardOp::getShardingRule() {
  return getRuleAlong(*this, getDim());
}

partita::nn::ShardingRule AllToAllOp::getShardingRule() {
  using namespace partita::nn;
  auto from = cast<RankedTensorType>(getX().getType());
  auto to = cast<RankedTensorType>(getType());
  ShardingRule rule;
  rule.operands.resize(1);
  rule.results.resize(1);
  rule.results[0].push_back(
      {rule.addFactor(to.getDimSize(0), FactorKind::replicated)});
  for (int64_t dim = 0; dim < from.getRank(); ++dim) {
    const bool moves = dim == static_cast<int64_t>(getDim());
    const FactorKind kind =
        moves ? FactorKind::replicated : FactorKind::pass_through;
    const int64_t factor = rule.addFactor(from.getDimSize(dim), kind);
    rule.operands[0].push_back({factor});
    rule.results[0].push_back(
        {moves ? rule.addFactor(to.getDimSize(dim + 1), kind) : factor});
  }
  return rule;
}
