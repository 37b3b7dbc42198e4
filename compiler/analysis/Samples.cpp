//===- Samples.cpp - Which dimension of a value holds samples -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Samples.h"

#include "dialects/nn/CheckAttr.h"

using namespace mlir;

namespace partita::analysis {

static std::string describeSamples(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto axis =
            function.getArgAttrOfType<IntegerAttr>(i, nn::kBatchAxisAttr)) {
      auto name = function.getArgAttrOfType<StringAttr>(i, nn::kNameAttr);
      return "dimension " + std::to_string(axis.getInt()) + " of '" +
             (name ? name.str() : "input" + std::to_string(i)) + "'";
    }
  return "no dimension";
}

static bool isCheck(func::FuncOp function, unsigned result) {
  return static_cast<bool>(function.getResultAttr(result, nn::kCheckAttr));
}

SmallVector<Operation *> getOutputOps(func::FuncOp function, bool withChecks) {
  Block &body = function.getBody().front();
  llvm::DenseSet<Value> needed;
  for (OpOperand &result : body.getTerminator()->getOpOperands())
    if (withChecks || !isCheck(function, result.getOperandNumber()))
      needed.insert(result.get());
  SmallVector<Operation *> ops;
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    if (llvm::none_of(op.getResults(),
                      [&](Value result) { return needed.contains(result); }))
      continue;
    needed.insert(op.operand_begin(), op.operand_end());
    ops.push_back(&op);
  }
  std::reverse(ops.begin(), ops.end());
  return ops;
}

Samples::Samples(func::FuncOp function, bool withChecks)
    : what(describeSamples(function)) {
  for (BlockArgument argument : function.getArguments()) {
    auto axis = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                       nn::kBatchAxisAttr);
    if (!axis)
      continue;
    const int64_t size = nn::getTensorType(argument).getDimSize(axis.getInt());
    if (samples != 0 && size != samples) {
      mixed = {nullptr, "the inputs differ in the number of samples"};
      return;
    }
    samples = size;
    known[argument] = {axis.getInt(), size, 1};
  }
  if (samples == 0)
    return;
  for (Operation *op : getOutputOps(function, withChecks)) {
    visit(op);
    if (mixed)
      return;
  }
}

std::optional<DimPart> Samples::find(Value value) const {
  auto it = known.find(value);
  return it == known.end() ? std::nullopt : std::optional(it->second);
}

void Samples::mix(Operation *op, const Twine &does) {
  mixed = {op, ("'" + nn::getNodeName(op) + "' (" +
                op->getName().getStringRef() + ") " + does + " " + what)
                   .str()};
}

static StringRef getVerb(nn::FactorKind kind) {
  switch (kind) {
  case nn::FactorKind::pass_through:
    return "";
  case nn::FactorKind::reduction:
    return "combines the entries of";
  case nn::FactorKind::replicated:
    return "needs all entries of";
  case nn::FactorKind::permutation:
  case nn::FactorKind::blocked:
    return "moves the entries of";
  }
  llvm_unreachable("every kind is listed");
}

void Samples::visit(Operation *op) {
  OpOperand *first =
      llvm::find_if(op->getOpOperands(), [&](OpOperand &operand) {
        return known.contains(operand.get());
      });
  if (first == op->getOpOperands().end())
    return;
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op))
    return visitReshape(reshape, known.lookup(reshape.getX()));
  auto shardable = dyn_cast<nn::ShardableOpInterface>(op);
  if (!shardable)
    return mix(op, "may combine the entries of");
  const nn::ShardingRule rule = shardable.getShardingRule();
  const FactorParts parts =
      splitPart(rule, rule.operands[first->getOperandNumber()],
                known.lookup(first->get()));
  if (parts.empty())
    return mix(op, "does not keep apart the entries of");
  for (const FactorPart &part : parts)
    if (nn::FactorKind kind = rule.factors[part.factor].kind;
        kind != nn::FactorKind::pass_through)
      return mix(op, getVerb(kind));
  for (OpOperand &operand : op->getOpOperands()) {
    const nn::DimFactors &dims = rule.operands[operand.getOperandNumber()];
    if (auto it = known.find(operand.get()); it != known.end()) {
      if (splitPart(rule, dims, it->second) != parts)
        return mix(op, "combines, in two dimensions, the entries of");
    } else if (hasFactors(dims, parts)) {
      std::optional<DimPart> place = placeParts(rule, dims, parts);
      if (!place || !isUniform(operand.get(), *place))
        return mix(op, "has a number of its own for each of the entries of");
    }
  }
  for (auto [result, dims] : llvm::zip_equal(op->getResults(), rule.results)) {
    std::optional<DimPart> place = placeParts(rule, dims, parts);
    if (!place)
      return mix(op, "does not keep apart the entries of");
    known[result] = *place;
  }
}

/// Elements keep their row-major order, so it does not matter how the shapes
/// split into factors.
void Samples::visitReshape(nn::ReshapeOp op, DimPart part) {
  std::optional<DimPart> place = reshapePart(op.getX().getType().getShape(),
                                             op.getType().getShape(), part);
  if (!place)
    return mix(op, "does not keep apart the entries of");
  known[op.getResult()] = *place;
}

std::optional<int64_t> Samples::getResultAxis(Value result, StringRef name,
                                              std::string &why) const {
  RankedTensorType type = nn::getTensorType(result);
  auto isMajor = [&](DimPart part) {
    return part.inner * part.size == type.getDimSize(part.dim);
  };
  if (std::optional<DimPart> part = find(result)) {
    if (isMajor(*part))
      return part->dim;
    why = "the output '" + name.str() + "' has them within dimension " +
          std::to_string(part->dim) + ", behind others: " + what;
    return std::nullopt;
  }
  if (type.getRank() > 0 && type.getDimSize(0) == samples &&
      isUniform(result, {0, samples, 1}))
    return 0;
  why = "the output '" + name.str() +
        "' has no entry for each of the entries of " + what;
  return std::nullopt;
}

SmallVector<int64_t> proveSamples(func::FuncOp function, const Samples &samples,
                                  std::string &why) {
  SmallVector<int64_t> axes;
  if (samples.mixing()) {
    why = samples.mixing()->text;
    return axes;
  }
  Operation *end = function.getBody().front().getTerminator();
  for (OpOperand &result : end->getOpOperands()) {
    if (isCheck(function, result.getOperandNumber()))
      break; // they come last
    auto name = function.getResultAttrOfType<StringAttr>(
        result.getOperandNumber(), nn::kNameAttr);
    std::optional<int64_t> axis = samples.getResultAxis(
        result.get(),
        name ? name.str()
             : "output" + std::to_string(result.getOperandNumber()),
        why);
    if (!axis)
      return {};
    axes.push_back(*axis);
  }
  return axes;
}

void setSampleAxes(func::FuncOp function, ArrayRef<int64_t> axes,
                   StringRef why) {
  Builder b(function.getContext());
  for (auto [i, axis] : llvm::enumerate(axes))
    function.setResultAttr(i, nn::kBatchAxisAttr, b.getI64IntegerAttr(axis));
  if (why.empty())
    return;
  const StringAttr name = b.getStringAttr(nn::kBatchAxisAttr);
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    function.removeArgAttr(i, name);
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    function.removeResultAttr(i, name);
  function->getParentOfType<ModuleOp>()->setAttr(kMixesAttr,
                                                 b.getStringAttr(why));
}

bool isWhole(ModuleOp module) {
  return module->hasAttr(kMixesAttr) ||
         llvm::any_of(module.getOps<nn::WeightOp>(),
                      [](nn::WeightOp weight) { return weight.isCarried(); });
}

//===----------------------------------------------------------------------===//
// Values that are the same for all samples
//===----------------------------------------------------------------------===//

/// Whether the elements of a constant are the same along a part of a dimension.
static bool isUniformConstant(Attribute value, DimPart part) {
  auto dense = dyn_cast_or_null<DenseElementsAttr>(value);
  if (!dense)
    return false;
  if (dense.isSplat())
    return true;
  constexpr int64_t kMostElements = 1 << 20;
  if (dense.getNumElements() > kMostElements)
    return false;
  const int64_t stride =
      part.inner * ShapedType::getNumElements(
                       dense.getType().getShape().drop_front(part.dim + 1));
  auto elements = dense.getValues<Attribute>();
  for (int64_t i = 0; i < dense.getNumElements(); ++i)
    if (const int64_t entry = i / stride % part.size;
        entry > 0 && elements[i] != elements[i - entry * stride])
      return false;
  return true;
}

bool Samples::isUniform(Value value, DimPart part, int depth) const {
  if (part.size == 1)
    return true;
  const Question question = {value.getAsOpaquePointer(), part.dim, part.size,
                             part.inner};
  if (auto it = uniform.find(question); it != uniform.end())
    return it->second;
  return uniform[question] = depth > 0 && findUniform(value, part, depth - 1);
}

bool Samples::findUniform(Value value, DimPart part, int depth) const {
  Operation *op = value.getDefiningOp();
  if (known.contains(value) || !op)
    return false;
  if (auto constant = dyn_cast<nn::ConstantOp>(op))
    return isUniformConstant(constant.getValue(), part);
  if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
    auto weight = SymbolTable::lookupNearestSymbolFrom<nn::WeightOp>(
        op, parameter.getWeightAttr());
    return weight && !weight.getState() &&
           isUniformConstant(weight.getValueAttr(), part);
  }
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
    std::optional<DimPart> place =
        reshapePart(reshape.getType().getShape(),
                    reshape.getX().getType().getShape(), part);
    return place && isUniform(reshape.getX(), *place, depth);
  }
  auto shardable = dyn_cast<nn::ShardableOpInterface>(op);
  if (!shardable)
    return false;
  const nn::ShardingRule rule = shardable.getShardingRule();
  const FactorParts parts = splitPart(
      rule, rule.results[cast<OpResult>(value).getResultNumber()], part);
  if (parts.empty() || llvm::any_of(parts, [&](const FactorPart &each) {
        return rule.factors[each.factor].kind != nn::FactorKind::pass_through;
      }))
    return false;
  for (auto [operand, dims] :
       llvm::zip_equal(op->getOperands(), rule.operands)) {
    if (!hasFactors(dims, parts))
      continue;
    std::optional<DimPart> place = placeParts(rule, dims, parts);
    if (!place || !isUniform(operand, *place, depth))
      return false;
  }
  return true;
}

} // namespace partita::analysis
