//===- ShardingRule.cpp - Along what an op can be sharded -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/shard/ShardingRule.h"

#include <map>

using namespace mlir;

namespace partita::nn {

int64_t ShardingRule::addFactor(int64_t size, FactorKind kind,
                                ReduceKind combine) {
  factors.push_back({size, kind, combine});
  return static_cast<int64_t>(factors.size()) - 1;
}

RankedTensorType getLocalType(RankedTensorType type, const DimFactors &dims,
                              ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, factors] : llvm::zip_equal(shape, dims))
    if (!factors.empty()) {
      size = 1;
      for (int64_t factor : factors)
        size *= sizes[factor];
    }
  return type.clone(shape);
}

Operation *buildLocalLike(OpBuilder &builder, Operation *op,
                          const ShardingRule &rule, ArrayRef<int64_t> sizes,
                          ValueRange operands) {
  Operation *local = builder.clone(*op);
  local->setOperands(operands);
  for (auto [result, dims] : llvm::zip_equal(local->getResults(), rule.results))
    result.setType(
        getLocalType(cast<RankedTensorType>(result.getType()), dims, sizes));
  return local;
}

ShardingRule sameShapeRule(Operation *op,
                           llvm::function_ref<FactorKind(int64_t)> kindOf) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  ShardingRule rule;
  DimFactors dims;
  for (auto [dim, size] : llvm::enumerate(result.getShape()))
    dims.push_back({rule.addFactor(size, kindOf(dim))});
  rule.operands.assign(op->getNumOperands(), dims);
  rule.results.assign(op->getNumResults(), dims);
  return rule;
}

ShardingRule pointwiseShardingRule(Operation *op) {
  ShardingRule rule = sameShapeRule(op);
  rule.can_pad = true;
  return rule;
}

ShardingRule movingRule(Operation *op,
                        llvm::function_ref<bool(int64_t)> leavesAlone,
                        FactorKind other) {
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  ShardingRule rule;
  rule.operands.resize(op->getNumOperands());
  rule.results.resize(1);
  rule.can_pad = true;
  for (int64_t dim = 0; dim < to.getRank(); ++dim) {
    bool alone = leavesAlone(dim);
    int64_t factor = rule.addFactor(from.getDimSize(dim),
                                    alone ? FactorKind::pass_through : other);
    rule.operands[0].push_back({factor});
    if (!alone)
      factor = rule.addFactor(to.getDimSize(dim), other);
    rule.results[0].push_back({factor});
  }
  return rule;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static void printFactor(raw_ostream &os, int64_t factor) {
  constexpr int64_t kLetters = 'z' - 'i' + 1;
  if (factor < kLetters)
    os << static_cast<char>('i' + factor);
  else
    os << "z_" << factor - kLetters + 1;
}

static void printTensors(raw_ostream &os, ArrayRef<DimFactors> tensors) {
  os << '(';
  llvm::interleave(
      tensors, os,
      [&](const DimFactors &dims) {
        os << '[';
        llvm::interleave(
            dims, os,
            [&](ArrayRef<int64_t> factors) {
              if (factors.empty())
                os << '1';
              for (int64_t factor : factors)
                printFactor(os, factor);
            },
            ",");
        os << ']';
      },
      ",");
  os << ')';
}

static std::string getKindName(const Factor &factor) {
  switch (factor.kind) {
  case FactorKind::pass_through:
    return "";
  case FactorKind::reduction:
    if (factor.combine == ReduceKind::sum)
      return "reduction";
    return ("reduction(" + stringifyReduceKind(factor.combine) + ")").str();
  case FactorKind::replicated:
    return "replicated";
  case FactorKind::permutation:
    return "permutation";
  case FactorKind::blocked:
    return "blocked";
  }
  llvm_unreachable("every kind is listed");
}

raw_ostream &operator<<(raw_ostream &os, const ShardingRule &rule) {
  printTensors(os, rule.operands);
  os << "->";
  printTensors(os, rule.results);
  std::map<std::string, SmallVector<int64_t>> ofKind;
  for (auto [i, factor] : llvm::enumerate(rule.factors))
    if (factor.kind != FactorKind::pass_through)
      ofKind[getKindName(factor)].push_back(i);
  for (auto &[name, factors] : ofKind) {
    os << ' ' << name << "={";
    llvm::interleave(
        factors, os, [&](int64_t factor) { printFactor(os, factor); }, ",");
    os << '}';
  }
  return os;
}

} // namespace partita::nn
