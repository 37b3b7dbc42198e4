//===- PlanGroupKernels.cpp - Small kernels that start together -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/BlockOrder.h"
#include "compiler/analysis/Rates.h"
#include "compiler/codegen/Backend.h"
#include "compiler/cost/CostModels.h"
#include "compiler/model/Decision.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/support/Try.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_PLANGROUPKERNELSPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

using Clusters = SmallVector<nn::ClusterOp>;

/// What clusters read: each value once, and for each of their operands, one
/// cluster after another, which value it is.
struct Inputs {
  explicit Inputs(const Clusters &clusters) {
    llvm::SmallDenseMap<Value, int64_t> known;
    for (nn::ClusterOp cluster : clusters)
      for (Value operand : cluster->getOperands()) {
        auto [number, isNew] = known.try_emplace(operand, values.size());
        if (isNew)
          values.push_back(operand);
        numbers.push_back(number->second);
      }
  }
  SmallVector<Value> values;
  SmallVector<int64_t> numbers;
};

plan::KernelAttr getKernel(nn::ClusterOp cluster) {
  return cast<plan::KernelAttr>(cluster.getLoweringAttr());
}

/// Clusters that may become one, in the order of their block.
struct Group {
  Clusters members;
  llvm::SmallDenseSet<Value> results; ///< of members, and views of them

  void add(nn::ClusterOp cluster) {
    members.push_back(cluster);
    results.insert_range(cluster.getResults());
  }
  bool isReadBy(Operation &op) const {
    return llvm::any_of(op.getOperands(), [&](Value operand) {
      return results.contains(operand);
    });
  }
};

/// Makes the groups of a model's stages.
class KernelGrouper {
public:
  explicit KernelGrouper(ModuleOp module) {
    for (ModuleOp kernels : codegen::getKernelsModules(module))
      for (auto kernel : kernels.getOps<func::FuncOp>())
        functions[kernel.getName()] = kernel;
  }

  /// `launchNs`: what one launch less saves.
  void run(dist::StageOp stage, double launchNs) {
    grouping = codegen::getBackend(stage).getKernelGrouping();
    if (!grouping)
      return;
    Block &block = stage.getBody().front();
    const SmallVector<Clusters> groups = collect(block);
    for (const Clusters &group : groups)
      form(group, launchNs);
    // A group stands where its last member stood: views may stand before.
    if (!groups.empty())
      analysis::putBehindOperands(block);
  }

  /// Kernels that are part of groups alone are not compiled by themselves.
  void hideMembers(ModuleOp module) {
    llvm::StringSet<> started;
    module->walk([&](nn::ClusterOp cluster) {
      if (auto kernel =
              dyn_cast_or_null<plan::KernelAttr>(cluster.getLoweringAttr()))
        started.insert(kernel.getName());
    });
    for (StringRef name : grouped.keys())
      if (!started.contains(name))
        functions.lookup(name).setPrivate();
  }

private:
  /// Members move to the place of the last one. So nothing in between may need
  /// them, which also means that none needs another's result. What is not a
  /// cluster stays behind those that were before it.
  SmallVector<Clusters> collect(Block &block) {
    SmallVector<Clusters> done;
    llvm::SmallMapVector<int64_t, Group, 4> open; // by threads of a block
    auto close = [&](Group &group) {
      if (group.members.size() > 1)
        done.push_back(group.members);
      group = Group();
    };
    analysis::Rates rates;
    for (Operation &op : block.without_terminator()) {
      if (isa<nn::ParameterOp, nn::ReshapeOp>(op)) {
        for (auto &[threads, group] : open)
          if (group.isReadBy(op))
            group.results.insert(op.getResult(0));
        continue;
      }
      auto cluster = dyn_cast<nn::ClusterOp>(op);
      for (auto &[threads, group] : open)
        if (!cluster || group.isReadBy(op))
          close(group);
      if (!cluster || rates.isLoad(&op) || !grouping->isSmall(cluster))
        continue;
      // What was said of one of them would be said of all.
      NamedAttrList said(cluster->getDiscardableAttrDictionary());
      said.erase(kPriceAttr);
      if (!said.empty())
        continue;
      Group &group = open[getKernel(cluster).getLaunch().back()];
      Clusters joined = group.members;
      joined.push_back(cluster);
      if (joined.size() > 1 &&
          !grouping->canGroup(findKernels(joined), Inputs(joined).numbers))
        close(group);
      group.add(cluster);
    }
    for (auto &[threads, group] : open)
      close(group);
    return done;
  }

  SmallVector<func::FuncOp> findKernels(const Clusters &clusters) const {
    return llvm::map_to_vector(clusters, [&](nn::ClusterOp cluster) {
      return functions.lookup(getKernel(cluster).getName());
    });
  }

  /// The kernel of a group. Groups of the same kernels that share as many
  /// operands share it.
  plan::KernelAttr getGroupKernel(const Clusters &group,
                                  ArrayRef<int64_t> inputs) {
    std::string key;
    for (nn::ClusterOp member : group)
      key += getKernel(member).getName().str() + " ";
    for (int64_t input : inputs)
      key += std::to_string(input) + " ";
    plan::KernelAttr &kernel = groups[key];
    if (kernel)
      return kernel;
    SmallVector<func::FuncOp> kernels = findKernels(group);
    OpBuilder b = OpBuilder::atBlockEnd(kernels.front()->getBlock());
    codegen::BuiltKernel built = grouping->group(b, kernels, inputs);
    // Of "k3_relu" the word: it tells a reader of a profile what it is.
    const std::string name = ("g" + Twine(groups.size() - 1) + "_" +
                              kernels.front().getName().split('_').second +
                              "_x" + Twine(group.size()))
                                 .str();
    built.function.setName(name);
    return kernel =
               plan::KernelAttr::get(b.getContext(), name, built.extent,
                                     built.grain, built.inPlace, built.launch);
  }

  void form(const Clusters &group, double launchNs) {
    const Inputs inputs(group);
    SmallVector<Type> types;
    SmallVector<Location> locations;
    for (nn::ClusterOp member : group) {
      llvm::append_range(types, member->getResultTypes());
      locations.push_back(member.getLoc());
      grouped.insert(getKernel(member).getName());
    }
    OpBuilder b(group.back());
    auto all = nn::ClusterOp::create(b, b.getFusedLoc(locations), types,
                                     inputs.values, nn::ClusterKind::kernel,
                                     getGroupKernel(group, inputs.numbers));
    writePrice(all, group, launchNs);
    Block &merged = all.getBody().emplaceBlock();
    for (Value value : inputs.values)
      merged.addArgument(value.getType(), value.getLoc());
    b.setInsertionPointToEnd(&merged);
    IRMapping mapping;
    SmallVector<Value> yielded;
    ArrayRef<int64_t> numbers = inputs.numbers;
    for (nn::ClusterOp member : group) {
      Block &body = member.getBody().front();
      for (BlockArgument argument : body.getArguments())
        mapping.map(argument, merged.getArgument(static_cast<unsigned>(
                                  numbers[argument.getArgNumber()])));
      numbers = numbers.drop_front(body.getNumArguments());
      for (Operation &op : body.without_terminator())
        b.clone(op, mapping);
      for (Value value : body.getTerminator()->getOperands())
        yielded.push_back(mapping.lookup(value));
    }
    nn::YieldOp::create(b, all.getLoc(), yielded);
    ResultRange results = all->getResults();
    for (nn::ClusterOp member : group) {
      const size_t count = member->getNumResults();
      member->replaceAllUsesWith(results.take_front(count));
      results = results.drop_front(count);
      member->erase();
    }
  }

  /// That of the members, with one launch.
  static void writePrice(nn::ClusterOp all, const Clusters &group,
                         double launchNs) {
    SmallVector<double> sum = {0, 0};
    for (nn::ClusterOp member : group) {
      auto price = member->getAttrOfType<DenseF64ArrayAttr>(kPriceAttr);
      if (!price || price.size() != 2)
        return;
      const double saved = member == group.front() ? 0 : launchNs;
      for (size_t i = 0; i < 2; ++i)
        sum[i] += std::max(price[i] - saved, 0.0);
    }
    all->setAttr(kPriceAttr, DenseF64ArrayAttr::get(all.getContext(), sum));
  }

  llvm::StringMap<func::FuncOp> functions;  ///< kernels by name
  llvm::StringMap<plan::KernelAttr> groups; ///< by the names of their members
  llvm::StringSet<> grouped;                ///< names of members
  const codegen::KernelGrouping *grouping = nullptr;
};

struct PlanGroupKernelsPass
    : impl::PlanGroupKernelsPassBase<PlanGroupKernelsPass> {
  using PlanGroupKernelsPassBase::PlanGroupKernelsPassBase;

  LogicalResult run(func::FuncOp function) override {
    auto models = PARTITA_TRY(CostModels::get(function));
    const SmallVector<int64_t> places = getDevices(function);
    KernelGrouper grouper(getOperation());
    for (auto stage : function.getOps<dist::StageOp>())
      grouper.run(stage, models->at(places[stage.getStage()]).getLaunchNs());
    grouper.hideMembers(getOperation());
    return success();
  }
};

} // namespace
} // namespace partita::pipeline
