//===- ShardFunction.cpp - An op computed in parts ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShardFunction.h"

using namespace mlir;

namespace partita::nn::test {
namespace {

Value reshape(OpBuilder &b, Value x, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(x.getType()).clone(shape);
  return ReshapeOp::create(b, x.getLoc(), type, x);
}

class PartBuilder {
public:
  PartBuilder(OpBuilder &b, ShardableOpInterface op)
      : b(b), op(op), rule(op.getShardingRule()),
        shards(rule.factors.size(), 1), begins(rule.factors.size()) {}

  SmallVector<Value> build(SmallVector<Value> operands, ArrayRef<Cut> cuts) {
    if (cuts.empty())
      return SmallVector<Value>(
          op.buildLocal(b, rule, getLocalSizes(), operands, begins)
              ->getResults());
    auto [factor, parts] = cuts.front();
    SmallVector<SmallVector<Value>> partial(op->getNumResults());
    SmallVector<SmallVector<Value>> cut;
    for (auto [value, dims] : llvm::zip_equal(operands, rule.operands))
      cut.push_back(split(value, dims, factor, parts));
    shards[factor] = parts;
    for (int64_t part = 0; part < parts; ++part) {
      SmallVector<Value> local;
      for (ArrayRef<Value> ofOperand : cut)
        local.push_back(ofOperand[part]);
      if (rule.factors[factor].needs_begin)
        begins[factor] = makeScalar(part * rule.factors[factor].size / parts);
      for (auto [results, result] :
           llvm::zip_equal(partial, build(local, cuts.drop_front())))
        results.push_back(result);
    }
    SmallVector<Value> joined;
    for (auto [values, dims] : llvm::zip_equal(partial, rule.results))
      joined.push_back(join(values, dims, factor));
    shards[factor] = 1;
    begins[factor] = {};
    return joined;
  }

private:
  Value makeScalar(int64_t number) {
    auto type = RankedTensorType::get({}, b.getI64Type());
    return ConstantOp::create(
        b, op.getLoc(),
        DenseElementsAttr::get(type, b.getI64IntegerAttr(number)));
  }

  /// The tensor's shape with a dimension that is the factor alone, and which
  /// one; nothing if the tensor has no such factor.
  std::pair<SmallVector<int64_t>, std::optional<int64_t>>
  isolate(Value value, const DimFactors &dims, int64_t factor) {
    SmallVector<int64_t> shape;
    std::optional<int64_t> place;
    for (auto [size, factors] : llvm::zip_equal(
             cast<RankedTensorType>(value.getType()).getShape(), dims)) {
      const int64_t *found = llvm::find(factors, factor);
      if (found == factors.end()) {
        shape.push_back(size);
        continue;
      }
      int64_t inner = 1;
      for (int64_t other : ArrayRef(found + 1, factors.end()))
        inner *= getLocalSize(other);
      int64_t own = getLocalSize(factor);
      shape.push_back(size / (own * inner));
      place = static_cast<int64_t>(shape.size());
      shape.push_back(own);
      shape.push_back(inner);
    }
    return {shape, place};
  }

  SmallVector<int64_t> getLocalSizes() const {
    SmallVector<int64_t> sizes;
    for (auto [factor, parts] : llvm::zip_equal(rule.factors, shards))
      sizes.push_back(factor.size / parts);
    return sizes;
  }

  int64_t getLocalSize(int64_t factor) const {
    return rule.factors[factor].size / shards[factor];
  }

  /// The parts of a tensor, or the whole as many times if it has no such
  /// factor.
  SmallVector<Value> split(Value value, const DimFactors &dims, int64_t factor,
                           int64_t parts) {
    auto [shape, place] = isolate(value, dims, factor);
    if (!place)
      return SmallVector<Value>(parts, value);
    Value isolated = reshape(b, value, shape);
    int64_t size = shape[*place] / parts;
    SmallVector<int64_t> starts(shape.size(), 0), strides(shape.size(), 1);
    SmallVector<int64_t> limits(shape), partShape(shape);
    partShape[*place] = size;
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> localShape(type.getShape());
    for (auto [extent, factors] : llvm::zip_equal(localShape, dims))
      if (llvm::is_contained(factors, factor))
        extent /= parts;
    SmallVector<Value> slices;
    for (int64_t part = 0; part < parts; ++part) {
      starts[*place] = part * size;
      limits[*place] = (part + 1) * size;
      Value slice = SliceOp::create(b, value.getLoc(), type.clone(partShape),
                                    isolated, starts, limits, strides);
      slices.push_back(reshape(b, slice, localShape));
    }
    return slices;
  }

  Value join(ArrayRef<Value> parts, const DimFactors &dims, int64_t factor) {
    auto [shape, place] = isolate(parts[0], dims, factor);
    if (!place)
      return combine(parts, rule.factors[factor].combine);
    SmallVector<Value> isolated;
    for (Value part : parts)
      isolated.push_back(reshape(b, part, shape));
    int64_t count = static_cast<int64_t>(parts.size());
    shape[*place] *= count;
    auto type = cast<RankedTensorType>(parts[0].getType());
    Value whole = ConcatOp::create(b, parts[0].getLoc(), type.clone(shape),
                                   isolated, *place);
    SmallVector<int64_t> wholeShape(type.getShape());
    for (auto [extent, factors] : llvm::zip_equal(wholeShape, dims))
      if (llvm::is_contained(factors, factor))
        extent *= count;
    return reshape(b, whole, wholeShape);
  }

  Value combine(ArrayRef<Value> parts, ReduceKind kind) {
    Value all = parts[0];
    Location loc = all.getLoc();
    Type type = all.getType();
    for (Value part : parts.drop_front())
      switch (kind) {
      case ReduceKind::sum:
        all = AddOp::create(b, loc, type, all, part);
        break;
      case ReduceKind::prod:
        all = MulOp::create(b, loc, type, all, part);
        break;
      case ReduceKind::max:
        all = MaxOp::create(b, loc, type, all, part);
        break;
      case ReduceKind::min:
        all = MinOp::create(b, loc, type, all, part);
        break;
      }
    return all;
  }

  OpBuilder &b;
  ShardableOpInterface op;
  ShardingRule rule;
  SmallVector<int64_t> shards; ///< by factor: parts that are cut already
  SmallVector<Value> begins;   ///< by factor: where this part begins
};

} // namespace

SmallVector<Value> buildInParts(OpBuilder &builder, ShardableOpInterface op,
                                ArrayRef<Cut> cuts) {
  return PartBuilder(builder, op)
      .build(SmallVector<Value>(op->getOperands()), cuts);
}

} // namespace partita::nn::test
