//===- DistCutStates.cpp - States that replicas share ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/Decision.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/shard/Passes.h"
#include "compiler/shard/Sharding.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/nn/grad/GradientAttr.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace partita::shard {

#define GEN_PASS_DEF_DISTCUTSTATESPASS
#include "compiler/shard/Passes.h.inc"

namespace {

/// Small parameters stay whole: their messages take longer to begin than to
/// send. They are the smallest ones that together have at most this share of
/// all that are trained.
constexpr double kWholeShare = 0.01;

struct DistCutStatesPass : impl::DistCutStatesPassBase<DistCutStatesPass> {
  LogicalResult run(func::FuncOp function) override {
    const int64_t level = getInteger(function, dist::kZeroAttr, 0);
    // Replicas that evaluate need each other's parts, so none may be idle.
    if (level > 2 && hasState(function))
      getOperation()->setAttr(dist::kFullStepsAttr,
                              UnitAttr::get(&getContext()));
    const Axes axes(function);
    if (!axes.getData())
      return success();
    SymbolTable symbols(getOperation());
    const llvm::StringSet<> small = findSmall(function, symbols);
    llvm::StringMap<Sharding> ofParameter;
    SmallVector<std::pair<nn::ParameterOp, nn::WeightOp>> kept;
    for (auto parameter : function.getOps<nn::ParameterOp>()) {
      if (!parameter.getState())
        continue;
      auto state = symbols.lookup<nn::WeightOp>(parameter.getWeight());
      if (isOfOptimizer(state)) {
        kept.push_back({parameter, state});
        continue;
      }
      // What every micro-batch reads, each replica has, or gathers for it.
      Sharding sharding = getSharding(parameter);
      if (level > 2 && state->hasAttr(nn::kTrainedAttr) &&
          !small.contains(state.getOrigin()))
        share(nn::getTensorType(parameter), axes, sharding);
      fixSharding(parameter, sharding);
      ofParameter[state.getOrigin()] = sharding;
    }
    for (auto [parameter, state] : kept) {
      // "fc.weight/exp_avg" is of "fc.weight".
      const StringRef of = state.getOrigin().rsplit('/').first;
      Sharding sharding = ofParameter.lookup(of);
      if (level > 0 && !small.contains(of))
        share(nn::getTensorType(parameter), axes, sharding);
      fixSharding(parameter, sharding);
    }
    if (level < 2)
      return success();
    for (auto sum : llvm::to_vector(function.getOps<nn::SumMicroBatchesOp>()))
      if (auto of = sum->getAttrOfType<FlatSymbolRefAttr>(nn::kGradientAttr))
        if (auto state = symbols.lookup<nn::WeightOp>(of.getValue());
            state && !small.contains(state.getOrigin()))
          joinEarly(sum, state, axes, ofParameter.lookup(state.getOrigin()));
    return success();
  }

  static llvm::StringSet<> findSmall(func::FuncOp function,
                                     SymbolTable &symbols) {
    llvm::SmallSetVector<std::pair<int64_t, StringRef>, 32> all;
    for (auto parameter : function.getOps<nn::ParameterOp>()) {
      auto state = symbols.lookup<nn::WeightOp>(parameter.getWeight());
      if (!parameter.getState() || !state->hasAttr(nn::kTrainedAttr))
        continue;
      all.insert({state.getType().getNumElements(), state.getOrigin()});
    }
    llvm::StringSet<> small;
    double room = 0;
    for (auto [size, origin] : all)
      room += kWholeShare * static_cast<double>(size);
    auto trained = all.takeVector();
    llvm::sort(trained);
    for (auto [size, origin] : trained)
      if ((room -= static_cast<double>(size)) >= 0)
        small.insert(origin);
    return small;
  }

  /// Each replica adds up its part of a gradient, which is joined in each
  /// micro-batch.
  static void joinEarly(nn::SumMicroBatchesOp sum, nn::WeightOp state,
                        const Axes &axes, Sharding sharding) {
    auto add = sum.getX().getDefiningOp<nn::AddOp>();
    const RankedTensorType type = nn::getTensorType(sum);
    // With one micro-batch there is nothing to add up.
    if (!sum.getAccumulator() || !add ||
        add->getOperand(0) != sum.getAccumulator() || type != state.getType() ||
        !share(type, axes, sharding))
      return;
    // As soon as it is made, so that it takes no room as a whole.
    Value gradient = add->getOperand(1);
    OpBuilder b(add);
    b.setInsertionPointAfterValue(gradient);
    auto own = nn::ReshapeOp::create(b, gradient.getLoc(), type, gradient);
    own->setAttr(kOwnAttr, b.getUnitAttr());
    add->setOperand(1, own);
    sum->setAttr(kJoinedAttr, b.getUnitAttr());
    fixSharding(sum.getAccumulator(), sharding);
  }

  static bool hasState(func::FuncOp function) {
    return llvm::any_of(function.getOps<nn::ParameterOp>(),
                        [](nn::ParameterOp op) { return op.getState(); });
  }

  static bool isOfOptimizer(nn::WeightOp state) {
    auto role = state->getAttrOfType<StringAttr>(nn::kRoleAttr);
    return role && role == "optimizer";
  }

  /// Cuts one more dimension along "data": the first that divides, or else the
  /// longest. One that is cut so already stays as it is. A tensor without a
  /// dimension that is long enough stays whole; the result says whether it is
  /// cut.
  static bool share(RankedTensorType type, const Axes &axes,
                    Sharding &sharding) {
    const int64_t replicas = axes.getSize(axes.getData());
    sharding.resize(type.getRank());
    for (const DimSharding &cut : sharding)
      if (llvm::is_contained(cut.axes, axes.getData()))
        return true;
    std::optional<int64_t> best;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      const int64_t size = type.getDimSize(dim);
      if (!sharding[dim].isWhole() || size < replicas)
        continue;
      if (size % replicas == 0) {
        best = dim;
        break;
      }
      if (size > replicas && (!best || size > type.getDimSize(*best)))
        best = dim;
    }
    if (best)
      sharding[*best].axes = {axes.getData()};
    return best.has_value();
  }
};

} // namespace
} // namespace partita::shard
