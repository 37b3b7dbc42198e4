//===- ShardedExampleTest.cpp - Shards compute what the whole op does -----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each example is computed whole, and in parts along each factor that its rule
// lets cut, and along all of them. Floats are small integers, so that sums have
// the same bits in any order.
//
//===----------------------------------------------------------------------===//

#include "Examples.h"
#include "RunFunction.h"
#include "ShardFunction.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;

namespace partita::nn::test {
namespace {

using Bytes = std::vector<char>;

template <typename T>
Bytes makeElements(int64_t count, int low, int high, std::mt19937 &random) {
  Bytes bytes(count * sizeof(T));
  for (int64_t i = 0; i < count; ++i) {
    T element =
        static_cast<T>(low + static_cast<int>(random() % (high - low + 1)));
    std::memcpy(&bytes[i * sizeof(T)], &element, sizeof(T));
  }
  return bytes;
}

Bytes makeInput(Type type, std::mt19937 &random) {
  auto tensor = cast<RankedTensorType>(type);
  Type element = tensor.getElementType();
  int64_t count = tensor.getNumElements();
  if (element.isF32())
    return makeElements<float>(count, -3, 3, random);
  if (element.isInteger(1))
    return makeElements<int8_t>(count, 0, 1, random);
  if (element.isUnsignedInteger(8))
    return makeElements<uint8_t>(count, 0, 9, random);
  if (element.isInteger(8))
    return makeElements<int8_t>(count, -9, 9, random);
  if (element.isInteger(32))
    return makeElements<int32_t>(count, -3, 3, random);
  EXPECT_TRUE(element.isInteger(64)) << "an input of a type that is new here";
  return makeElements<int64_t>(count, -3, 3, random);
}

/// The same elements; one NaN is as good as another.
bool areEqual(const Bytes &a, const Bytes &b, Type elementType) {
  if (a == b || !elementType.isF32() || a.size() != b.size())
    return a == b;
  for (size_t i = 0; i < a.size(); i += sizeof(float)) {
    float x, y;
    std::memcpy(&x, &a[i], sizeof x);
    std::memcpy(&y, &b[i], sizeof y);
    if (std::memcmp(&x, &y, sizeof x) != 0 && !(std::isnan(x) && std::isnan(y)))
      return false;
  }
  return true;
}

/// Each factor alone in 2 and in 3 parts, and all of them in 2.
std::vector<std::vector<Cut>> getCuts(const ShardingRule &rule) {
  std::vector<std::vector<Cut>> cuts;
  std::vector<Cut> all;
  for (auto [i, factor] : llvm::enumerate(rule.factors)) {
    if (!factor.canShard() || factor.size == 0)
      continue;
    for (int64_t parts : {2, 3})
      if (factor.size % parts == 0)
        cuts.push_back({{static_cast<int64_t>(i), parts}});
    if (factor.size % 2 == 0 && all.size() < 4)
      all.push_back({static_cast<int64_t>(i), 2});
  }
  if (all.size() > 1)
    cuts.push_back(all);
  return cuts;
}

std::string describe(const std::vector<Cut> &cuts) {
  std::string text;
  for (const Cut &cut : cuts)
    text += " factor " + std::to_string(cut.factor) + " in " +
            std::to_string(cut.parts) + " parts";
  return text;
}

/// A function that returns the op's result and, for each of `cuts`, what its
/// shards give.
OwningOpRef<ModuleOp> buildModule(Example example,
                                  ArrayRef<std::vector<Cut>> cuts) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(example.function->getLoc());
  auto main = cast<func::FuncOp>(example.function->clone());
  module->push_back(main);
  main.setName("main");
  main->removeAttr("rule");
  ShardableOpInterface op = getExampleOp(main);
  Operation *last = main.getBody().front().getTerminator();
  OpBuilder b(last);
  SmallVector<Value> results(op->getResults());
  for (ArrayRef<Cut> cut : cuts)
    llvm::append_range(results, buildInParts(b, op, cut));
  last->setOperands(results);
  main.setType(b.getFunctionType(main.getArgumentTypes(),
                                 ValueRange(results).getTypes()));
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    main.setArgAttr(i, kNameAttr, b.getStringAttr("x" + Twine(i)));
  for (unsigned i = 0; i < results.size(); ++i)
    main.setResultAttr(i, kNameAttr, b.getStringAttr("y" + Twine(i)));
  return module;
}

TEST(ShardedExamples, ComputeWhatTheWholeOpDoes) {
  MLIRContext context(getCompilerDialects());
  context.loadAllAvailableDialects();
  Examples examples(context);
  std::mt19937 random(1);
  int count = 0;
  for (Example example : examples.all()) {
    SCOPED_TRACE(example.name);
    ShardableOpInterface op = example.op;
    std::vector<std::vector<Cut>> cuts = getCuts(op.getShardingRule());
    // The pass that shards a graph cuts parameters itself.
    if (cuts.empty() || isa<ParameterOp>(op))
      continue;
    OwningOpRef<ModuleOp> module = buildModule(example, cuts);
    std::vector<Bytes> inputs;
    for (Type type : example.function.getArgumentTypes())
      inputs.push_back(makeInput(type, random));
    auto results = runFunction(*module, inputs);
    if (!results)
      continue;
    Type element = getElementTypeOrSelf(op->getResult(0));
    for (auto [cut, result] :
         llvm::zip_equal(cuts, ArrayRef(*results).drop_front())) {
      EXPECT_TRUE(areEqual(result, results->front(), element)) << describe(cut);
      ++count;
    }
  }
  EXPECT_GT(count, 300);
}

} // namespace
} // namespace partita::nn::test
