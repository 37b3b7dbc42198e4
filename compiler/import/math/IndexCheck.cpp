//===- IndexCheck.cpp - Indices that a model may not have -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/math/IndexCheck.h"
#include "compiler/import/math/IndexMath.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

//===----------------------------------------------------------------------===//
// What is known
//===----------------------------------------------------------------------===//

static std::optional<NumberRange> findRange(DenseElementsAttr elements) {
  if (!isa<IntegerType>(elements.getElementType()) || elements.empty())
    return std::nullopt;
  const bool isUnsigned = elements.getElementType().isUnsignedInteger() ||
                          elements.getElementType().isInteger(1);
  NumberRange range{INT64_MAX, INT64_MIN};
  auto add = [&](const APInt &element) {
    const int64_t number = isUnsigned
                               ? static_cast<int64_t>(element.getZExtValue())
                               : element.getSExtValue();
    range = {std::min(range.low, number), std::max(range.high, number)};
  };
  if (elements.isSplat())
    add(elements.getSplatValue<APInt>());
  else
    for (const APInt &element : elements.getValues<APInt>())
      add(element);
  return range;
}

/// What a type of fewer than 32 bits can hold.
static std::optional<NumberRange> findRange(Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer || integer.getWidth() > 16)
    return std::nullopt;
  const int64_t count = int64_t(1) << integer.getWidth();
  if (integer.isUnsigned() || integer.getWidth() == 1)
    return NumberRange{0, count - 1};
  return NumberRange{-count / 2, count / 2 - 1};
}

static std::optional<NumberRange> findRange(NodeImport &n, Value value,
                                            int depth = 0);

static std::optional<NumberRange> unite(NodeImport &n, OperandRange values,
                                        int depth) {
  std::optional<NumberRange> all;
  for (Value value : values) {
    std::optional<NumberRange> range = findRange(n, value, depth + 1);
    if (!range)
      return std::nullopt;
    all = all ? NumberRange{std::min(all->low, range->low),
                            std::max(all->high, range->high)}
              : *range;
  }
  return all;
}

/// Of the larger or smaller one of two: a bound of one of them is enough.
static std::optional<NumberRange> findExtreme(NodeImport &n, Operation *op,
                                              int depth) {
  const NumberRange any{INT64_MIN, INT64_MAX};
  const NumberRange
      x = findRange(n, op->getOperand(0), depth + 1).value_or(any),
      y = findRange(n, op->getOperand(1), depth + 1).value_or(any);
  return isa<nn::MaxOp>(op)
             ? NumberRange{std::max(x.low, y.low), std::max(x.high, y.high)}
             : NumberRange{std::min(x.low, y.low), std::min(x.high, y.high)};
}

/// What the elements of a value can be; nothing if it is not known.
static std::optional<NumberRange> findRange(NodeImport &n, Value value,
                                            int depth) {
  constexpr int kDeepest = 16;
  Operation *op = value.getDefiningOp();
  if (!op || depth > kDeepest)
    return findRange(n.elementOf(value));
  using Found = std::optional<NumberRange>;
  return llvm::TypeSwitch<Operation *, Found>(op)
      .Case([&](nn::ConstantOp constant) -> Found {
        auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
        return elements ? findRange(elements) : std::nullopt;
      })
      .Case([&](nn::IotaOp iota) -> Found {
        const int64_t size = n.shapeOf(iota)[iota.getDim()];
        if (!isa<IntegerType>(n.elementOf(iota)) || size == 0)
          return std::nullopt;
        return NumberRange{0, size - 1};
      })
      .Case([&](nn::TopKOp chosen) -> Found {
        return NumberRange{0, n.shapeOf(chosen.getX())[1] - 1};
      })
      .Case<nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp, nn::SliceOp,
            nn::ReverseOp>([&](Operation *moved) {
        return findRange(n, moved->getOperand(0), depth + 1);
      })
      .Case<nn::GatherOp, nn::GatherElementsOp>([&](Operation *gather) {
        return findRange(n, gather->getOperand(0), depth + 1);
      })
      .Case([&](nn::ConcatOp parts) {
        return unite(n, parts->getOperands(), depth);
      })
      .Case([&](nn::SelectOp choice) {
        return unite(n, choice->getOperands().drop_front(), depth);
      })
      .Case([&](nn::ReduceOp reduced) -> Found {
        // Without an element to choose it is the lowest or highest of all.
        const bool chooses = reduced.getKind() == nn::ReduceKind::max ||
                             reduced.getKind() == nn::ReduceKind::min;
        return chooses ? findRange(n, reduced.getX(), depth + 1) : std::nullopt;
      })
      .Case<nn::MaxOp, nn::MinOp>(
          [&](Operation *extreme) { return findExtreme(n, extreme, depth); })
      .Case([&](nn::CastOp cast) -> Found {
        auto from = dyn_cast<IntegerType>(n.elementOf(cast.getX()));
        auto to = dyn_cast<IntegerType>(n.elementOf(cast));
        if (from && to && from.getWidth() <= to.getWidth() &&
            !to.isUnsigned() && !from.isUnsignedInteger(64) &&
            !from.isUnsignedInteger(32))
          return findRange(n, cast.getX(), depth + 1);
        return to ? findRange(to) : std::nullopt;
      })
      .Default([&](Operation *) { return findRange(n.elementOf(value)); });
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static std::string getTensorName(NodeImport &n, CheckedOperand operand) {
  const int input = static_cast<int>(operand.input);
  return input < n.node.input_size() ? n.node.input(input) : std::string();
}

/// Of indices that are known.
static LogicalResult checkKnown(NodeImport &n, DenseElementsAttr indices,
                                ArrayRef<NumberRange> allowed,
                                CheckedOperand operand) {
  for (auto [i, element] : enumerate(indices.getValues<APInt>())) {
    const int64_t index = element.getSExtValue();
    const auto [low, high] = allowed[i % allowed.size()];
    if (index >= low && index <= high)
      continue;
    SmallVector<std::string> position;
    int64_t rest = static_cast<int64_t>(i);
    for (int64_t size : reverse(indices.getType().getShape())) {
      position.insert(position.begin(), std::to_string(rest % size));
      rest /= size;
    }
    const std::string tensor = getTensorName(n, operand);
    return n.error(
        Twine(index) +
        (position.empty() ? "" : " at [" + join(position, ", ") + "]") +
        " of its " + operand.name +
        (tensor.empty() ? "" : " '" + tensor + "'") + " is out of range: " +
        Twine(low) + " to " + Twine(high) + " are allowed");
  }
  return success();
}

/// The bounds as a tensor like the indices.
static Value makeBounds(NodeImport &n, Value indices,
                        ArrayRef<NumberRange> allowed,
                        int64_t NumberRange::*bound) {
  Shape bounds = map_to_vector<6>(
      allowed, [&](const NumberRange &range) { return range.*bound; });
  if (bounds.size() == 1)
    return n.splat(static_cast<double>(bounds[0]), indices);
  return n.broadcastDims(n.indices(bounds), {n.typeOf(indices).getRank() - 1},
                         n.shapeOf(indices));
}

/// As a matrix, with a row for each entry of the first dimension. It may count
/// samples, if that does not make many short rows. Replicas have entries of
/// their own, and so do sequences.
static Value makeRows(NodeImport &n, Value x) {
  constexpr int64_t kShortest = 4;
  if (!x)
    return {};
  ArrayRef<int64_t> shape = n.shapeOf(x);
  const int64_t count = n.typeOf(x).getNumElements();
  const bool hasRows =
      !shape.empty() && (n.source.replicas > 1 || n.source.checkSamples ||
                         shape[0] == 1 || count / shape[0] >= kShortest);
  const int64_t rows = hasRows ? shape[0] : 1;
  return n.reshape(x, {rows, count / rows});
}

/// [rows, 2]: the place of the first wrong index in each row, and that index.
static Value makeCheck(NodeImport &n, Value indices,
                       ArrayRef<NumberRange> allowed) {
  indices = n.cast(indices, n.b.getI64Type());
  Value isRight = n.binary<nn::AndOp>(
      n.ge(indices, makeBounds(n, indices, allowed, &NumberRange::low)),
      n.le(indices, makeBounds(n, indices, allowed, &NumberRange::high)));
  Value rows = makeRows(n, indices);
  isRight = makeRows(n, isRight);
  if (!rows || !isRight)
    return {};
  const int64_t length = n.shapeOf(rows)[1];
  Value place = makeIota(n, n.shapeOf(rows), 1);
  Value first = PARTITA_TRY(n.reduce(nn::ReduceKind::min,
                                     n.select(isRight, length, place), {1},
                                     /*keep=*/true));
  Value at = n.min(first, length - 1);
  Value index = n.make<nn::GatherElementsOp>(n.typeOf(first), rows, at, 1);
  return n.concat({first, index}, 1);
}

static DictionaryAttr describe(NodeImport &n, Value indices,
                               ArrayRef<NumberRange> allowed,
                               CheckedOperand operand) {
  Shape shape(n.shapeOf(indices)), low, high;
  if (shape.empty() && n.source.replicas > 1)
    shape.push_back(1);
  if (n.source.replicas > 1)
    shape[0] *= n.source.replicas;
  for (const NumberRange &range : allowed) {
    low.push_back(range.low);
    high.push_back(range.high);
  }
  auto name = [&](StringRef key, const Twine &text) {
    return n.b.getNamedAttr(key, n.b.getStringAttr(text));
  };
  auto numbers = [&](StringRef key, ArrayRef<int64_t> list) {
    return n.b.getNamedAttr(key, n.b.getDenseI64ArrayAttr(list));
  };
  return n.b.getDictionaryAttr(
      {name("op", n.node.op_type()), name("node", nn::getNodeName(n.loc)),
       name("operand", operand.name), name("tensor", getTensorName(n, operand)),
       numbers("shape", shape), numbers("low", low), numbers("high", high)});
}

LogicalResult checkRange(NodeImport &n, Value indices,
                         ArrayRef<NumberRange> allowed,
                         CheckedOperand operand) {
  if (!indices)
    return failure();
  if (n.typeOf(indices).getNumElements() == 0)
    return success();
  if (DenseElementsAttr known = n.getConstant(indices))
    return checkKnown(n, known, allowed, operand);
  if (std::optional<NumberRange> range = findRange(n, indices);
      range && all_of(allowed, [&](const NumberRange &each) {
        return range->low >= each.low && range->high <= each.high;
      }))
    return success();
  // Two nodes that read the same indices would find the same.
  for (const ValueSource::Check &other : n.source.checks)
    if (other.indices == indices && ArrayRef(other.allowed) == allowed)
      return success();
  Value check = PARTITA_TRY(makeCheck(n, indices, allowed));
  n.source.checks.push_back({indices, SmallVector<NumberRange>(allowed), check,
                             describe(n, indices, allowed, operand)});
  return success();
}

LogicalResult checkIndices(NodeImport &n, Value indices,
                           ArrayRef<int64_t> sizes, CheckedOperand operand) {
  return checkRange(
      n, indices,
      map_to_vector(sizes,
                    [](int64_t size) { return NumberRange{-size, size - 1}; }),
      operand);
}

LogicalResult checkLabelsOf(NodeImport &n) {
  struct Loss {
    StringRef op, labels;
  };
  constexpr Loss losses[] = {{"NegativeLogLikelihoodLoss", "target"},
                             {"SoftmaxCrossEntropyLoss", "labels"}};
  for (const Loss &loss : losses) {
    if (n.node.op_type() != loss.op)
      continue;
    Value scores = n.input(0), labels = n.input(1);
    if (!scores || !labels || n.typeOf(scores).getRank() < 2 ||
        n.shapeOf(scores)[1] == 0)
      return success(); // the definition says what is wrong
    const int64_t last = n.shapeOf(scores)[1] - 1;
    // One that is ignored need not be a class.
    const int64_t ignored = n.intAttr("ignore_index", 0);
    if (ignored < 0 || ignored > last)
      labels = n.select(n.eq(labels, ignored), 0, labels);
    return checkRange(n, labels, NumberRange{0, last}, {1, loss.labels});
  }
  return success();
}

} // namespace partita::import
