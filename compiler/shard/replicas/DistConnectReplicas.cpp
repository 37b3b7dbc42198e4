//===- DistConnectReplicas.cpp - What crosses replicas --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/ModelFunction.h"
#include "compiler/shard/Passes.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace partita::shard {

#define GEN_PASS_DEF_DISTCONNECTREPLICASPASS
#include "compiler/shard/Passes.h.inc"

namespace {

std::string quoted(Operation *op) { return "'" + nn::getNodeName(op) + "'"; }

//===----------------------------------------------------------------------===//
// Do the replicas fit each other?
//===----------------------------------------------------------------------===//

using Placeholders = SmallVector<dist::PlaceholderOpInterface>;

Placeholders collectPlaceholders(Region &body) {
  Placeholders found;
  body.walk([&](dist::PlaceholderOpInterface op) { found.push_back(op); });
  return found;
}

/// `all_reduce mean of tensor<4xf32>`.
std::string describe(dist::PlaceholderOpInterface op) {
  std::string text = op.describe() + " of ";
  llvm::raw_string_ostream(text) << op->getOperand(0).getType();
  return text;
}

/// Reports each difference between the placeholders of the first replica and
/// those of another one.
LogicalResult matchPlaceholders(const Placeholders &first,
                                const Placeholders &other, size_t replica) {
  bool fits = true;
  for (auto [mine, theirs] : llvm::zip(first, other)) {
    if (describe(mine) == describe(theirs) &&
        mine->getResultTypes() == theirs->getResultTypes())
      continue;
    fits = false;
    InFlightDiagnostic error = theirs->emitError();
    error << quoted(theirs) << " of replica " << replica << " is "
          << describe(theirs) << ", but " << quoted(mine)
          << " in the same place of replica 0 is " << describe(mine)
          << ": replicas must meet in the same order";
    error.attachNote(mine->getLoc()) << quoted(mine) << " of replica 0";
  }
  const size_t common = std::min(first.size(), other.size());
  const bool firstHasMore = first.size() > common;
  for (auto op : llvm::drop_begin(firstHasMore ? first : other, common)) {
    fits = false;
    op->emitError() << quoted(op) << " of replica "
                    << (firstHasMore ? 0 : replica) << ", " << describe(op)
                    << ", waits for replica " << (firstHasMore ? replica : 0)
                    << ", which has only " << common
                    << (common == 1 ? " placeholder" : " placeholders")
                    << ": all replicas must have the same";
  }
  return success(fits);
}

/// Whether another replica computes what the first does, op by op.
LogicalResult matchBodies(Region &first, Region &other, size_t replica) {
  Block &mine = first.front(), &theirs = other.front();
  IRMapping map;
  for (auto [a, b] : llvm::zip(mine.getArguments(), theirs.getArguments()))
    map.map(a, b);
  auto report = [&](Operation *a, Operation *b) {
    InFlightDiagnostic error = b->emitError();
    error << "replica " << replica << " computes " << quoted(b)
          << " where replica 0 computes " << quoted(a)
          << ": one program serves all replicas, so they must compute the same";
    error.attachNote(a->getLoc()) << quoted(a) << " of replica 0";
    return error;
  };
  auto a = mine.begin(), b = theirs.begin();
  for (; a != mine.end() && b != theirs.end(); ++a, ++b) {
    SmallVector<Value> expected = llvm::map_to_vector(
        a->getOperands(), [&](Value value) { return map.lookup(value); });
    if (a->getName() != b->getName() ||
        a->getPropertiesAsAttribute() != b->getPropertiesAsAttribute() ||
        a->getResultTypes() != b->getResultTypes() ||
        !llvm::equal(expected, b->getOperands()))
      return report(&*a, &*b);
    map.map(a->getResults(), b->getResults());
  }
  return success(); // both end with their terminator
}

//===----------------------------------------------------------------------===//
// What one replica computes
//===----------------------------------------------------------------------===//

/// Takes a `dist.replicate` to what each replica computes.
class Connector {
public:
  Connector(dist::ReplicateOp op, int64_t devices)
      : op(op), devices(devices), replicas(op.getReplicas()), builder(op),
        axis(builder.getStringAttr(dist::kReplicaAxis)),
        axes(builder.getArrayAttr({axis})) {}

  LogicalResult run() {
    Placeholders first = collectPlaceholders(op.getBodies().front());
    PARTITA_TRY(checkCounts(first));
    PARTITA_TRY(checkOthers(first));
    PARTITA_TRY(checkSame());
    const bool isCrossing =
        llvm::any_of(first, [](dist::PlaceholderOpInterface placeholder) {
          return placeholder.communicates();
        });
    inlineBody();
    for (dist::PlaceholderOpInterface placeholder : first)
      PARTITA_TRY(replace(placeholder));
    gatherResults();
    if (isCrossing)
      op->getParentOfType<ModuleOp>()->setAttr(dist::kFullMicroBatchesAttr,
                                               builder.getUnitAttr());
    op.erase();
    return success();
  }

private:
  /// Whether all is made for as many replicas as there are.
  LogicalResult checkCounts(const Placeholders &placeholders) {
    if (replicas != devices)
      return op.emitError()
             << (replicas == 1 ? "there is " : "there are ")
             << abi::countOf(replicas, "replica") << ", and "
             << abi::countOf(devices, "device")
             << " along the axis 'replica': give the mesh as many";
    for (dist::PlaceholderOpInterface placeholder : placeholders)
      if (std::optional<int64_t> count = placeholder.getReplicaCount();
          count && *count != replicas)
        return placeholder->emitError()
               << quoted(placeholder) << " is " << describe(placeholder)
               << " for " << abi::countOf(*count, "replica") << ", and there "
               << (replicas == 1 ? "is " : "are ") << replicas;
    return success();
  }

  LogicalResult checkOthers(const Placeholders &first) {
    bool fits = true;
    for (auto [index, body] : llvm::enumerate(op.getBodies()))
      if (index > 0)
        fits &= succeeded(
            matchPlaceholders(first, collectPlaceholders(body), index));
    for (auto [index, body] : llvm::enumerate(op.getBodies()))
      if (fits && index > 0)
        fits &= succeeded(matchBodies(op.getBodies().front(), body, index));
    return success(fits);
  }

  /// What must be the same on all replicas is: a result that is not dealt out,
  /// because one of them gives it, and operands of some placeholders.
  LogicalResult checkSame() {
    if (replicas == 1)
      return success();
    Block &body = op.getBodies().front().front();
    llvm::DenseSet<Value> differ;
    for (auto [argument, dim] :
         llvm::zip(body.getArguments(), op.getArgumentDims()))
      if (dim >= 0)
        differ.insert(argument);
    for (Operation &inner : body.without_terminator()) {
      auto placeholder = dyn_cast<dist::PlaceholderOpInterface>(inner);
      const bool takesDifferent =
          llvm::any_of(inner.getOperands(),
                       [&](Value value) { return differ.contains(value); });
      if (takesDifferent && placeholder && placeholder.needsSameOperand())
        return inner.emitError()
               << quoted(&inner)
               << " deals out a tensor to the replicas, which have different "
                  "ones: join them before (AllReduce, AllGather or Broadcast "
                  "of the domain ai.partita)";
      if (placeholder ? !placeholder.isSameOnAllReplicas() : takesDifferent)
        differ.insert_range(inner.getResults());
    }
    for (auto [index, value] :
         llvm::enumerate(body.getTerminator()->getOperands())) {
      if (op.getResultDims()[index] >= 0 || !differ.contains(value))
        continue;
      if (auto state = getResultAttr<FlatSymbolRefAttr>(index, nn::kStateAttr))
        return emitError(value.getLoc())
               << "it measures '" << state.getValue()
               << "' in training, and each replica has other samples: write it "
                  "with AllReduce of the domain ai.partita, or leave it as at "
                  "inference (--eval-mode)";
      return emitError(value.getLoc())
             << getResultName(index)
             << " has no batch dimension, and replicas compute different "
                "values for it: join them in the model (AllReduce, AllGather "
                "or Broadcast of the domain ai.partita)";
    }
    return success();
  }

  /// Of the model's result that is one of the replicas; null if none has it.
  template <typename Attr> Attr getResultAttr(size_t index, StringRef name) {
    for (OpOperand &use : op.getOutputs()[index].getUses())
      if (isa<func::ReturnOp>(use.getOwner()))
        if (auto found =
                op->getParentOfType<func::FuncOp>().getResultAttrOfType<Attr>(
                    use.getOperandNumber(), name))
          return found;
    return {};
  }

  /// "the output 'y'".
  std::string getResultName(size_t index) {
    if (auto name = getResultAttr<StringAttr>(index, nn::kNameAttr))
      return "the output '" + name.str() + "'";
    return "result " + std::to_string(index);
  }

  void inlineBody() {
    Block &body = op.getBodies().front().front();
    for (auto [argument, input, dim] :
         llvm::zip(body.getArguments(), op.getInputs(), op.getArgumentDims()))
      argument.replaceAllUsesWith(
          dim < 0 || replicas == 1
              ? input
              : Value(dist::ShardOp::create(builder, argument.getLoc(),
                                            argument.getType(), input, dim, 1,
                                            axes)));
    yielded = body.getTerminator();
    op->getBlock()->getOperations().splice(Block::iterator(op),
                                           body.getOperations());
  }

  LogicalResult replace(dist::PlaceholderOpInterface placeholder) {
    builder.setInsertionPoint(placeholder);
    Value made = placeholder->getOperand(0);
    if (replicas > 1)
      made = PARTITA_TRY(placeholder.connect(
          builder, axis, replicas,
          builder.getStringAttr(quoted(placeholder) + " is " +
                                placeholder.describe() +
                                " over the replicas")));
    placeholder->getResult(0).replaceAllUsesWith(made);
    placeholder->erase();
    return success();
  }

  void gatherResults() {
    builder.setInsertionPoint(op);
    for (auto [index, output] : llvm::enumerate(op.getOutputs())) {
      Value value = yielded->getOperand(index);
      const int64_t dim = op.getResultDims()[index];
      if (dim >= 0 && replicas > 1)
        value = dist::AllGatherOp::create(
            builder, value.getLoc(), output.getType(), value, dim, 1, axes,
            builder.getStringAttr(getResultName(index) +
                                  " has the samples of all replicas"));
      output.replaceAllUsesWith(value);
    }
    yielded->erase();
  }

  dist::ReplicateOp op;
  const int64_t devices, replicas;
  OpBuilder builder;
  const StringAttr axis;
  const ArrayAttr axes;
  Operation *yielded = nullptr;
};

struct DistConnectReplicasPass
    : impl::DistConnectReplicasPassBase<DistConnectReplicasPass> {
  LogicalResult run(func::FuncOp function) override {
    const int64_t devices = dist::getGroupSize(
        function, Builder(&getContext()).getStrArrayAttr(dist::kReplicaAxis));
    for (auto op :
         llvm::make_early_inc_range(function.getOps<dist::ReplicateOp>()))
      PARTITA_TRY(Connector(op, devices).run());
    for (auto left : function.getOps<dist::PlaceholderOpInterface>())
      return left->emitError() << quoted(left)
                               << " stands outside of a dist.replicate: run "
                                  "--dist-form-replicas before";
    return success();
  }
};

} // namespace
} // namespace partita::shard
