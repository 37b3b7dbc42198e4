//===- ShardingCosts.cpp - What cuts cost, and what devices send ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/shard/ShardingCosts.h"

using namespace mlir;

namespace partita::shard {

/// Pointwise ops are fused with others, which spares most of their traffic: a
/// normalisation of 128 x 768 takes 40 us, its eight ops by themselves 500 us.
static constexpr double kFusedShare = 1.0 / 16;
/// The time that devices wait for the last of them to come to a collective,
/// besides what the collective takes.
static constexpr double kSkewNs = 10000;

OwningOpRef<ModuleOp> makeScratch(Operation *op) {
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(op->getLoc());
  if (auto module = op->getParentOfType<ModuleOp>())
    (*scratch)->setDiscardableAttrs(module->getDiscardableAttrDictionary());
  return scratch;
}

double ShardingCosts::getNs(const llvm::SetVector<Operation *> &ops) {
  double ns = 0;
  llvm::SetVector<Value> values;
  for (Operation *op : ops) {
    if (rates.isLoad(op))
      continue;
    ns += getOpNs(op);
    values.insert(op->operand_begin(), op->operand_end());
    values.insert(op->result_begin(), op->result_end());
  }
  for (Value value : values)
    for (const Exchange &exchange : getExchanges(value))
      ns += exchange.ns + exchange.kinds.size() * kSkewNs;
  return ns;
}

/// An op by itself. `opRates`: of what it reads.
double ShardingCosts::getNs(Operation *op, analysis::Rates &opRates) const {
  auto costed = dyn_cast<nn::CostOpInterface>(op);
  if (!costed)
    return 0;
  const nn::Cost cost = costed.getCost();
  if (cost.free)
    return 0;
  const bool isCall = cost.kind == nn::CostKind::dot ||
                      cost.kind == nn::CostKind::conv ||
                      cost.kind == nn::CostKind::attention;
  const double ns =
      machine
          .getClusterTime(
              {op, isCall ? nn::ClusterKind::call : nn::ClusterKind::kernel,
               cost.bytes, 0, opRates},
              {})
          .modelledNs;
  return isCall ? ns : ns * kFusedShare;
}

/// What a device computes of an op: operands that are whole are read whole by
/// every device.
double ShardingCosts::getOpNs(Operation *op) {
  const FactorShardings factors = propagation.getFactorShardings(op);
  SmallVector<int64_t> sizes;
  if (const nn::ShardingRule *rule = propagation.getRule(op))
    sizes = getPartSizes(*rule, factors, propagation.getAxes());
  auto [it, isNew] = known.try_emplace({op, std::move(sizes)}, 0);
  if (isNew)
    it->second = isWhole(factors) ? getNs(op, rates)
                                  : getLocalNs(op, factors, it->first.second);
  return it->second;
}

/// Builds what a device has of an op, on stand-ins for its operands.
double ShardingCosts::getLocalNs(Operation *op, const FactorShardings &factors,
                                 ArrayRef<int64_t> sizes) {
  const nn::ShardingRule &rule = *propagation.getRule(op);
  OwningOpRef<ModuleOp> scratch = makeScratch(op);
  Block &block = *scratch->getBody();
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToEnd(&block);
  SmallVector<Value> operands, begins(factors.size());
  for (auto [operand, dims] : llvm::zip(op->getOperands(), rule.operands)) {
    const RankedTensorType type = nn::getLocalType(
        cast<RankedTensorType>(operand.getType()), dims, sizes);
    if (rates.isLoad(operand))
      operands.push_back(nn::ParameterOp::create(
          builder, op->getLoc(), type,
          FlatSymbolRefAttr::get(op->getContext(), "part"), UnitAttr()));
    else
      operands.push_back(block.addArgument(type, op->getLoc()));
  }
  for (auto [factor, cut, begin] :
       llvm::zip_equal(rule.factors, factors, begins))
    if (factor.needs_begin && !cut.isWhole())
      begin = block.addArgument(RankedTensorType::get({}, builder.getI64Type()),
                                op->getLoc());
  cast<nn::ShardableOpInterface>(op).buildLocal(builder, rule, sizes, operands,
                                                begins);
  analysis::Rates ofParts;
  double ns = 0;
  for (Operation &local : block)
    if (!ofParts.isLoad(&local))
      ns += getNs(&local, ofParts);
  return ns;
}

SmallVector<Exchange> ShardingCosts::getExchanges(Value value) {
  SmallVector<Exchange> exchanges;
  Operation *op = value.getDefiningOp();
  if (!op || rates.isLoad(value))
    return exchanges;
  const Sharding &wanted = propagation.getSharding(value);
  const Layout made{propagation.getMadeSharding(value),
                    propagation.getPartials(op)};
  add({value}, made, wanted, exchanges);
  SmallVector<Sharding> needs;
  for (OpOperand &use : value.getUses()) {
    const Sharding need = propagation.getNeededSharding(use);
    if (llvm::any_of(
            needs, [&](const Sharding &other) { return isSame(need, other); }))
      continue;
    needs.push_back(need);
    add({value, use.getOwner()}, {wanted, {}}, need, exchanges);
  }
  return exchanges;
}

/// Adds what brings the tensor of an exchange from a layout to cuts, if devices
/// send anything for it.
void ShardingCosts::add(Exchange exchange, const Layout &from,
                        const Sharding &to,
                        SmallVectorImpl<Exchange> &exchanges) const {
  const Reshard reshard =
      chooseReshard(cast<RankedTensorType>(exchange.value.getType()), from, to,
                    propagation.getAxes(), machine);
  for (const Move &move : reshard.moves)
    if (move.collective)
      exchange.kinds.push_back(*move.collective);
  if (exchange.kinds.empty())
    return;
  exchange.sentBytes = reshard.sentBytes;
  exchange.ns = reshard.ns;
  exchanges.push_back(std::move(exchange));
}

} // namespace partita::shard
