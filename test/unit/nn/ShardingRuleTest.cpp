//===- ShardingRuleTest.cpp - Every op has a sound sharding rule ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Examples.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace mlir;

namespace partita::nn::test {
namespace {

/// How often each factor is in the tensor. Fails if a dimension is not the
/// product of its factors.
std::vector<int> countFactors(const ShardingRule &rule, Type type,
                              const DimFactors &dims) {
  std::vector<int> counts(rule.factors.size());
  auto tensor = cast<RankedTensorType>(type);
  EXPECT_EQ(static_cast<int64_t>(dims.size()), tensor.getRank());
  for (auto [size, factors] : llvm::zip(tensor.getShape(), dims)) {
    int64_t product = 1;
    for (int64_t factor : factors) {
      product *= rule.factors[factor].size;
      ++counts[factor];
    }
    EXPECT_EQ(product, size);
  }
  return counts;
}

void checkRule(Operation *op, const ShardingRule &rule) {
  ASSERT_EQ(rule.operands.size(), op->getNumOperands());
  ASSERT_EQ(rule.results.size(), op->getNumResults());
  std::vector<int> inOperands(rule.factors.size()), inResults(inOperands);
  auto add = [&](TypeRange types, ArrayRef<DimFactors> tensors,
                 std::vector<int> &total) {
    for (auto [type, dims] : llvm::zip(types, tensors))
      for (auto [factor, count] :
           llvm::enumerate(countFactors(rule, type, dims))) {
        EXPECT_LE(count, 1) << "factor " << factor << " is twice in a tensor";
        total[factor] += count;
      }
  };
  add(op->getOperandTypes(), rule.operands, inOperands);
  add(op->getResultTypes(), rule.results, inResults);
  for (auto [i, factor] : llvm::enumerate(rule.factors)) {
    EXPECT_GE(factor.size, 0);
    EXPECT_GT(inOperands[i] + inResults[i], 0)
        << "factor " << i << " is unused";
    // A shard computes a part of every result.
    if (factor.kind == FactorKind::pass_through)
      EXPECT_EQ(inResults[i], static_cast<int>(op->getNumResults()));
    if (factor.kind == FactorKind::reduction) {
      EXPECT_EQ(inResults[i], 0) << "factor " << i << " is reduced";
    } else {
      EXPECT_EQ(factor.combine, ReduceKind::sum);
    }
  }
}

class ShardingRules : public ::testing::Test {
protected:
  MLIRContext context;
  Examples examples{context};
};

TEST_F(ShardingRules, EveryOpHasOneAndAnExample) {
  // Gradients that a model asks for are resolved when it is read.
  const std::set<std::string> without = {
      "nn.cluster", "nn.gradient", "nn.variable", "nn.weight", "nn.yield"};
  // A function of its own cannot compute these: they need a step of training.
  const std::set<std::string> ofSteps = {"nn.accumulator",
                                         "nn.sum_micro_batches"};
  std::set<std::string> shown;
  for (Example example : examples.all()) {
    ASSERT_TRUE(example.op) << example.name;
    shown.insert(example.op->getName().getStringRef().str());
  }
  int count = 0;
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    if (name.getDialectNamespace() != "nn")
      continue;
    std::string text = name.getStringRef().str();
    ++count;
    EXPECT_EQ(name.hasInterface<ShardableOpInterface>(), !without.count(text))
        << text;
    EXPECT_EQ(shown.count(text), !without.count(text) && !ofSteps.count(text))
        << text << " needs an example in " << PARTITA_TEST_EXAMPLES;
  }
  EXPECT_GT(count, 60);
}

TEST_F(ShardingRules, AreAsWritten) {
  for (Example example : examples.all()) {
    std::string text;
    llvm::raw_string_ostream(text) << example.op.getShardingRule();
    EXPECT_EQ(text, example.rule) << example.name;
  }
}

TEST_F(ShardingRules, AreWellFormed) {
  for (Example example : examples.all()) {
    SCOPED_TRACE(example.name);
    checkRule(example.op, example.op.getShardingRule());
  }
}

/// The position along each factor of an element of a tensor; -1 along others.
SmallVector<int64_t> getDigits(const ShardingRule &rule, const DimFactors &dims,
                               int64_t element) {
  SmallVector<int64_t> digits(rule.factors.size(), -1);
  for (const auto &factors : llvm::reverse(dims))
    for (int64_t factor : llvm::reverse(factors)) {
      digits[factor] = element % rule.factors[factor].size;
      element /= rule.factors[factor].size;
    }
  return digits;
}

SmallVector<int64_t> getRandomShape(int64_t elements, std::mt19937 &random) {
  SmallVector<int64_t> shape;
  while (elements > 1) {
    int64_t size = 1 + random() % elements;
    if (elements % size != 0)
      continue;
    shape.push_back(size);
    elements /= size;
  }
  return shape;
}

TEST(ShardingRule, ReshapeKeepsPlacesAlongFactors) {
  MLIRContext context;
  context.loadDialect<NNDialect>();
  std::mt19937 random(1);
  int shared = 0;
  for (int i = 0; i < 300; ++i) {
    int64_t elements = (i % 2 ? 96 : 360);
    SmallVector<int64_t> from = getRandomShape(elements, random);
    SmallVector<int64_t> to = getRandomShape(elements, random);
    OpBuilder b(&context);
    Type f32 = b.getF32Type();
    auto type = RankedTensorType::get(from, f32);
    OwningOpRef<ConstantOp> x = ConstantOp::create(
        b, b.getUnknownLoc(), DenseElementsAttr::get(type, 0.0f));
    OwningOpRef<ReshapeOp> reshape = ReshapeOp::create(
        b, b.getUnknownLoc(), RankedTensorType::get(to, f32), *x);
    ShardingRule rule = reshape->getShardingRule();
    checkRule(*reshape, rule);
    for (int64_t element = 0; element < elements; ++element) {
      auto before = getDigits(rule, rule.operands[0], element);
      auto after = getDigits(rule, rule.results[0], element);
      for (auto [f, factor] : llvm::enumerate(rule.factors))
        if (factor.canShard()) {
          ASSERT_EQ(before[f], after[f]);
          ++shared;
        }
    }
  }
  EXPECT_GT(shared, 100000);
}

TEST(ShardingRule, PrintsManyFactors) {
  ShardingRule rule;
  DimFactors dims;
  for (int i = 0; i < 20; ++i)
    dims.push_back({rule.addFactor(2)});
  rule.operands = {dims, {{}, {0, 19}}};
  rule.factors[19].kind = FactorKind::replicated;
  std::string text;
  llvm::raw_string_ostream(text) << rule;
  EXPECT_EQ(text, "([i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,z_1,z_2],[1,iz_2])->()"
                  " replicated={z_2}");
}

} // namespace
} // namespace partita::nn::test
