//===- DistAssignStages.cpp - Which stage computes what -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/CostModels.h"
#include "compiler/model/Decision.h"
#include "compiler/model/DeviceMesh.h"
#include "compiler/model/NodeNames.h"
#include "compiler/model/PartitionFile.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/AloneTime.h"
#include "compiler/pipeline/partition/Balance.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "compiler/pipeline/partition/ScheduleFile.h"
#include "compiler/pipeline/partition/StageOrder.h"
#include "compiler/pipeline/phases/Followers.h"
#include "compiler/pipeline/phases/HeldMemory.h"
#include "compiler/pipeline/phases/StateHomes.h"

#include "dialects/nn/NNDialect.h"
#include "dialects/nn/NodeScopes.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/StringMap.h"

#include <map>
#include <set>
#include <tuple>

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_DISTASSIGNSTAGESPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

class StageAssigner {
public:
  /// `times`: of each cluster, by model.
  StageAssigner(func::FuncOp function, PartitionGraph &graph,
                const CostModels &models,
                const std::vector<std::vector<ClusterTime>> &times,
                NamedSchedule asked, int memoryTry, bool wholeNodes)
      : function(function), graph(graph), models(models), times(times),
        asked(std::move(asked)), kind(*this->asked.kind), memoryTry(memoryTry),
        wholeNodes(wholeNodes), builder(function.getContext()),
        phases(function), devices(getDevices(function)),
        annotatedStages(function->getAttrOfType<DictionaryAttr>(
            dist::kAnnotatedStagesAttr)),
        deviceCount(getInteger(function, kDeviceCountAttr, 0)) {}

  LogicalResult assign() {
    if (phases.isTrained())
      leaders = findLeaders(graph, phases);
    for (const ClusterNode &node : graph.nodes) {
      const dist::Phase phase = phases.get(node.ops.front());
      returns.push_back(phases.isTrained() && phase != dist::Phase::forward);
      isOnce.push_back(phase == dist::Phase::prologue ||
                       phase == dist::Phase::update);
    }
    bool hasBlocks = function->hasAttr(kStageBlocksAttr);
    const bool hasStages = annotatedStages != nullptr;
    for (const ClusterNode &node : graph.nodes)
      for (Operation *op : node.ops)
        hasBlocks |= op->hasAttr(dist::kBlockAttr);
    const bool isBalanced = !hasBlocks && !hasStages;
    if (hasBlocks) {
      PARTITA_TRY(fromBlocks());
    } else if (hasStages) {
      PARTITA_TRY(fromAnnotations());
    } else {
      balance();
    }
    if (!isBalanced && function->hasAttr(kStageCountAttr))
      function.emitRemark("the number of stages that was asked for is not "
                          "taken: the partition file or the model names them");
    if (wholeNodes && !hasStages && failed(keepNodesWhole()))
      return failure();
    // Gradients and updates follow.
    for (size_t i = 0; i < leaders.size(); ++i) {
      stageOf[i] = stageOf[leaders[i]];
      blockOf[i] = blockOf[leaders[i]];
    }
    PARTITA_TRY(chooseDevices());
    write();
    return success(succeeded(getStageOrder(function)));
  }

private:
  /// Whether a cluster decides for itself where it is.
  bool isForward(size_t node) const {
    return leaders.empty() || leaders[node] == static_cast<int>(node);
  }

  //===--------------------------------------------------------------------===//
  // From blocks
  //===--------------------------------------------------------------------===//

  LogicalResult fromBlocks() {
    llvm::StringMap<int64_t> stageOfBlock;
    if (auto named = function->getAttrOfType<ArrayAttr>(kStageBlocksAttr)) {
      for (auto [stage, blocks] :
           llvm::enumerate(named.getAsRange<ArrayAttr>())) {
        stages.emplace_back();
        for (auto block : blocks.getAsRange<StringAttr>()) {
          stageOfBlock[block.getValue()] = stage;
          stages.back().push_back(block.str());
        }
      }
    } else if (failed(stagesOfBlocks(stageOfBlock))) {
      return failure();
    }
    for (auto [index, node] : llvm::enumerate(graph.nodes)) {
      if (!isForward(index)) {
        stageOf.push_back(0);
        blockOf.emplace_back();
        continue;
      }
      llvm::StringRef block = getBlockName(node.heaviest);
      auto it = stageOfBlock.find(block);
      if (it == stageOfBlock.end())
        return node.heaviest->emitError()
               << "'" << nn::getNodeName(node.heaviest) << "' is in "
               << (block.empty() ? "no block" : ("block '" + block + "'").str())
               << ", which is in no stage";
      remarkIfCut(node, stageOfBlock);
      stageOf.push_back(it->second);
      blockOf.push_back(block.str());
    }
    remarkIfTakenEmpty(stageOfBlock);
    return success();
  }

  /// Stages that lose all their operations to clusters of others.
  void remarkIfTakenEmpty(const llvm::StringMap<int64_t> &stageOfBlock) {
    std::vector<SmallVector<std::string>> names(stages.size());
    std::vector<std::set<int64_t>> taken(stages.size());
    for (auto [node, to] : llvm::zip_equal(graph.nodes, stageOf))
      for (Operation *op : node.ops) {
        auto from = stageOfBlock.find(getBlockName(op));
        if (from == stageOfBlock.end())
          continue;
        std::string name =
            "'" + nn::getNodeName(op) + "'" + nn::inScope(op->getLoc());
        if (!llvm::is_contained(names[from->second], name))
          names[from->second].push_back(name);
        taken[from->second].insert(to);
      }
    for (size_t s = 0; s < stages.size(); ++s) {
      if (names[s].empty() || taken[s].count(static_cast<int64_t>(s)))
        continue;
      constexpr size_t mostShown = 4;
      InFlightDiagnostic remark = function.emitRemark();
      remark << "stage " << s << " stays empty: its operations are computed "
             << "together with those of other stages, ";
      for (size_t i = 0; i < std::min(names[s].size(), mostShown); ++i)
        remark << (i ? ", " : "") << names[s][i];
      if (names[s].size() > mostShown)
        remark << " and " << names[s].size() - mostShown << " more";
      remark << (taken[s].size() == 1 ? " in stage " : " in stages ");
      for (auto [i, to] : llvm::enumerate(taken[s]))
        remark << (i ? ", " : "") << to;
    }
  }

  /// Stages where only blocks were named.
  LogicalResult stagesOfBlocks(llvm::StringMap<int64_t> &stageOfBlock) {
    SmallVector<std::string> order;
    if (auto named = function->getAttrOfType<ArrayAttr>(kBlockOrderAttr)) {
      for (auto block : named.getAsRange<StringAttr>())
        order.push_back(block.str());
    } else {
      for (const ClusterNode &node : graph.nodes)
        for (Operation *op : node.ops)
          if (StringRef block = getBlockName(op);
              !block.empty() && !llvm::is_contained(order, block))
            order.push_back(block.str());
    }
    if (!devices.empty() && devices.size() != order.size())
      return function.emitError(devices.size() == 1 ? "there is "
                                                    : "there are ")
             << abi::countOf(devices.size(), "device") << " for "
             << abi::countOf(order.size(), "block")
             << ": name the device of each block, or name `stages`";
    bool sameDevice = getString(function, kAutoStageAttr, "same_as_device") ==
                          "same_as_device" &&
                      !devices.empty();
    SmallVector<int64_t> stageDevices;
    for (auto [index, block] : llvm::enumerate(order)) {
      size_t stage = stages.size();
      if (sameDevice)
        stage = llvm::find(stageDevices, devices[index]) - stageDevices.begin();
      if (stage == stages.size()) {
        stages.emplace_back();
        stageDevices.push_back(devices.empty() ? int64_t(index)
                                               : devices[index]);
      }
      stages[stage].push_back(block);
      stageOfBlock[block] = stage;
    }
    if (!devices.empty())
      devices = stageDevices;
    return success();
  }

  void remarkIfCut(ClusterNode &node,
                   const llvm::StringMap<int64_t> &stageOfBlock) {
    auto stage = [&](Operation *op) {
      return stageOfBlock.lookup(getBlockName(op));
    };
    for (Operation *op : node.ops)
      if (stage(op) != stage(node.heaviest)) {
        node.heaviest->emitRemark()
            << "blocks '" << getBlockName(op) << "' and '"
            << getBlockName(node.heaviest)
            << "' cut operations that are computed together; '"
            << nn::getNodeName(op) << "'" << nn::inScope(op->getLoc())
            << " goes with '" << nn::getNodeName(node.heaviest) << "'"
            << nn::inScope(node.heaviest->getLoc()) << " to stage "
            << stage(node.heaviest);
        return;
      }
  }

  //===--------------------------------------------------------------------===//
  // From the model's own annotations
  //===--------------------------------------------------------------------===//

  LogicalResult fromAnnotations() {
    int64_t most = 0;
    std::vector<int64_t> own; // what the model says of each cluster
    for (ClusterNode &node : graph.nodes) {
      // The heaviest op that says something decides for its cluster.
      Operation *decides = nullptr;
      int64_t heaviest = -1;
      for (Operation *op : node.ops)
        if (getAnnotatedStage(op))
          if (int64_t flops = countFlops(op); flops > heaviest) {
            heaviest = flops;
            decides = op;
          }
      int64_t stage = decides ? *getAnnotatedStage(decides) : -1;
      if (decides && (stage < 0 || stage >= dist::kMostDevices))
        return decides->emitError()
               << "'" << nn::getNodeName(decides) << "' names stage " << stage
               << "; stages are 0 to " << dist::kMostDevices - 1;
      most = std::max(most, stage);
      own.push_back(stage);
      // What is computed once goes with what reads it: its node may be a part
      // of a cluster of another one, e.g. of a convolution.
      const bool isOnce = phases.get(node.ops.front()) == dist::Phase::prologue;
      stageOf.push_back(isOnce ? -1 : stage);
    }
    for (const ClusterValue &value : graph.values) // in order of producers
      if (value.producer >= 0)
        for (int consumer : value.consumers)
          if (!isAnnotated(consumer))
            stageOf[consumer] =
                std::max(stageOf[consumer], stageOf[value.producer]);
    for (const ClusterValue &value : llvm::reverse(graph.values))
      if (value.producer >= 0 && stageOf[value.producer] < 0)
        for (int consumer : value.consumers)
          if (stageOf[consumer] >= 0 &&
              (stageOf[value.producer] < 0 ||
               stageOf[consumer] < stageOf[value.producer]))
            stageOf[value.producer] = stageOf[consumer];
    for (auto [stage, said] : llvm::zip_equal(stageOf, own))
      stage = stage < 0 ? said : stage;
    stages.resize(std::max<size_t>(most + 1, devices.size()));
    nameBlocksByStage("B");
    return success();
  }

  bool isAnnotated(int node) const {
    return llvm::any_of(graph.nodes[node].ops, [&](Operation *op) {
      return getAnnotatedStage(op).has_value();
    });
  }

  /// The stage of the last of its nodes that names one.
  std::optional<int64_t> getAnnotatedStage(Operation *op) const {
    std::optional<int64_t> stage;
    for (StringRef name : getNodeNames(op->getLoc()))
      if (auto named = annotatedStages.getAs<IntegerAttr>(name))
        stage = named.getInt();
    return stage;
  }

  /// Moves each node that is cut to the stage of its op with the most work, as
  /// if the model had named these stages. It is an error if stages depend on
  /// each other in a cycle then.
  LogicalResult keepNodesWhole() {
    std::map<StringRef, std::pair<int64_t, int64_t>> heaviest; // stage, flops
    std::set<StringRef> cut;
    for (auto [node, stage] : llvm::zip_equal(graph.nodes, stageOf))
      for (Operation *op : node.ops)
        for (StringRef name : getNodeNames(op->getLoc())) {
          const std::pair<int64_t, int64_t> own = {stage, countFlops(op)};
          auto [it, isNew] = heaviest.try_emplace(name, own);
          if (it->second.first != stage)
            cut.insert(name);
          if (own.second > it->second.second)
            it->second = own;
        }
    if (cut.empty())
      return success();
    std::vector<std::string> names;
    for (StringRef name : cut)
      names.push_back("'" + name.str() + "'");
    NamedAttrList list;
    for (auto &[name, best] : heaviest)
      list.set(name, builder.getI64IntegerAttr(best.first));
    stageOf.clear();
    blockOf.clear();
    stages.clear();
    annotatedStages = list.getDictionary(builder.getContext());
    bool isGood = succeeded(fromAnnotations());
    writeStages();
    {
      ScopedDiagnosticHandler quiet(builder.getContext(),
                                    [](Diagnostic &) { return success(); });
      isGood = isGood && succeeded(getStageOrder(function));
    }
    if (!isGood)
      return function.emitError()
             << "annotations cannot say that nodes of several operations are "
                "cut by stages ("
             << abi::namesText(names)
             << "), and with each in one stage, stages depend on each other in "
                "a cycle: take another number of stages, or --emit-partition, "
                "which can say it";
    function->setAttr(dist::kAnnotatedStagesAttr, annotatedStages);
    function.emitRemark()
        << abi::countOf(static_cast<int64_t>(names.size()), "node")
        << " of several operations would be cut by stages ("
        << abi::namesText(names)
        << "), which annotations cannot say: each is in one stage now";
    return success();
  }

  void nameBlocksByStage(StringRef prefix) {
    for (int64_t &stage : stageOf) {
      stage = std::max<int64_t>(stage, 0);
      std::string name = (prefix + Twine(stage)).str();
      if (stages[stage].empty())
        stages[stage].push_back(name);
      blockOf.push_back(name);
    }
  }

  //===--------------------------------------------------------------------===//
  // By the cost model
  //===--------------------------------------------------------------------===//

  /// What the clusters need, and what a stage may need if its device has room
  /// for `bytes`. The estimate knows neither how values share the arena nor how
  /// the library orders weights, so each try aims an eighth lower; the last one
  /// at as little as can be.
  BalanceMemory getMemory(int64_t bytes, int64_t stageCount) const {
    std::vector<int> placeOf;
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      placeOf.push_back(numberOf[leaders.empty() ? i : leaders[i]]);
    BalanceMemory memory = estimateHeldMemory(
        graph, phases, placeOf, countHeld(stageCount), asked.splitsBackward());
    int64_t perDevice = std::max<int64_t>(
        1, (stageCount + deviceCount - 1) / std::max<int64_t>(deviceCount, 1));
    if (memoryTry < kLastMemoryTry)
      memory.limit = std::max<int64_t>(1, bytes / perDevice / kLastMemoryTry *
                                              (kLastMemoryTry - memoryTry));
    return memory;
  }

  /// How many micro-batches each stage will hold by the schedule.
  schedule::HeldMicroBatches countHeld(int64_t count) const {
    const std::vector<int> one(count, 1);
    if (!phases.isTrained())
      return {one, one, one};
    schedule::TrainingChain chain;
    for (int64_t stage = 0; stage < count; ++stage)
      chain.deviceOf.push_back(static_cast<int>(getPlace(stage)));
    chain.microBatches = static_cast<int>(getMicroBatches(count));
    chain.isSplit = asked.splitsBackward();
    chain.hasLastBackward = chain.isSplit || asked.file;
    const schedule::ScheduleProblem problem = schedule::makeProblem(chain);
    schedule::UnitOrders orders;
    if (!asked.file)
      orders = kind.order(problem);
    else if (schedule::orderByFile(problem, *asked.file,
                                   static_cast<int>(count), orders))
      return {one, one, one}; // an error, once the units are there
    return schedule::countHeld(problem, orders);
  }

  int64_t getMicroBatches(int64_t stageCount) const {
    return pipeline::getMicroBatches(function, kind, stageCount,
                                     std::max<int64_t>(deviceCount, 1));
  }

  /// As many as are asked for; else one for each device that stages were given
  /// to; else as many a device as the schedule wants.
  int64_t countStages() {
    if (int64_t count = getInteger(function, kStageCountAttr, 0))
      return count;
    if (!devices.empty())
      return devices.size();
    return deviceCount > 1 ? deviceCount * kind.stagesPerDevice : 1;
  }

  /// The place of a stage along the axis "stage".
  int64_t getPlace(int64_t stage) const {
    return stage < static_cast<int64_t>(devices.size())
               ? devices[stage]
               : schedule::placeStage(kind.placement, stage,
                                      std::max<int64_t>(deviceCount, 1));
  }

  /// What stages take on their devices, and how long it takes to bring values
  /// there from the device before: by kinds, of which returns that of each
  /// stage.
  std::vector<int> makeKinds(int64_t count,
                             const std::vector<BalanceValue> &values,
                             std::vector<BalanceKind> &kinds) const {
    std::map<std::pair<size_t, size_t>, int> known;
    std::vector<int> kindOf;
    for (int64_t stage = 0; stage < count; ++stage) {
      const int64_t place = getPlace(stage),
                    before = getPlace(std::max<int64_t>(stage - 1, 0));
      const size_t index = models.getIndex(place);
      auto [it, isNew] = known.try_emplace({models.getIndex(before), index},
                                           static_cast<int>(kinds.size()));
      kindOf.push_back(it->second);
      if (!isNew)
        continue;
      BalanceKind &made = kinds.emplace_back();
      for (const ClusterTime &time : times[index])
        made.clusterNs.push_back(time.ns);
      for (const BalanceValue &value : values)
        made.transferNs.push_back(
            value.isOrder ? 0
                          : models.getTransferNs(before, place, value.bytes));
      made.unitNs = models.at(place).getUnitNs();
      if (!leaders.empty())
        made.clusterNs = sumUp(made.clusterNs, getMicroBatches(count));
    }
    return kindOf;
  }

  /// Forward clusters are numbered anew, and have the times of those that
  /// follow them. What comes once a step is shared by its micro-batches.
  std::vector<double> sumUp(const std::vector<double> &ns,
                            int64_t microBatches) const {
    std::vector<double> sums(numberOf.size(), 0);
    size_t count = 0;
    for (size_t i = 0; i < ns.size(); ++i) {
      sums[numberOf[leaders[i]]] += ns[i] / (isOnce[i] ? microBatches : 1);
      count += isForward(i);
    }
    sums.resize(count);
    return sums;
  }

  /// What flows between clusters that decide for themselves.
  std::vector<BalanceValue> getValues() {
    numberOf.assign(graph.nodes.size(), -1);
    int number = 0;
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (isForward(i))
        numberOf[i] = number++;
    std::vector<BalanceValue> values;
    std::set<std::pair<int, int>> back;
    auto numberOfLeader = [&](int node) {
      return numberOf[leaders.empty() ? node : leaders[node]];
    };
    for (const ClusterValue &value : graph.values) {
      if (value.producer >= 0 && returns[value.producer]) {
        addReturning(value, back); // it follows
        continue;
      }
      BalanceValue flowing{value.producer < 0 ? -1
                                              : numberOfLeader(value.producer),
                           {},
                           0,
                           nn::getByteSize(value.value.getType())};
      std::set<int> consumers;
      for (int consumer : value.consumers)
        if (!returns[consumer] &&
            (value.producer < 0 || numberOfLeader(consumer) > flowing.producer))
          consumers.insert(numberOfLeader(consumer));
      flowing.consumers.assign(consumers.begin(), consumers.end());
      if (!flowing.consumers.empty())
        values.push_back(std::move(flowing));
    }
    for (auto [reader, maker] : back)
      values.push_back({reader, {maker}, 0, 0, /*isOrder=*/true});
    return values;
  }

  /// Gradients go the other way. What several branches give to one value is
  /// summed from one branch to the next, the last one first; so they must not
  /// be exchanged.
  void addReturning(const ClusterValue &value,
                    std::set<std::pair<int, int>> &back) const {
    if (isOnce[value.producer])
      return;
    const int maker = numberOf[leaders[value.producer]];
    for (int consumer : value.consumers)
      if (const int reader = numberOf[leaders[consumer]];
          !isOnce[consumer] && reader < maker)
        back.insert({reader, maker});
  }

  void balance() {
    int64_t count = countStages();
    if (!leaders.empty())
      joinReturning(graph, phases, leaders);
    else
      leaders = joinStates(function, graph);
    const std::vector<BalanceValue> values = getValues();
    std::vector<BalanceKind> kinds;
    const std::vector<int> kindOf = makeKinds(count, values, kinds);
    std::optional<BalanceMemory> memory;
    if (int64_t bytes = getInteger(function, kMemoryAttr, 0);
        bytes > 0 && memoryTry > 0)
      memory = getMemory(bytes, count);
    const std::vector<int> chosen =
        balanceStages(kinds, kindOf, values, memory ? &*memory : nullptr);
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      stageOf.push_back(isForward(i) ? chosen[numberOf[i]] : 0);
    // A device of the list that gets nothing keeps its empty stage.
    int64_t used = stageOf.empty()
                       ? 1
                       : *std::max_element(stageOf.begin(), stageOf.end()) + 1;
    int64_t made = devices.empty() ? used : count;
    stages.resize(made);
    if (used < made)
      function.emitRemark()
          << made - used << " of " << abi::countOf(made, "stage")
          << (made - used == 1 ? " stays" : " stay")
          << " empty: the model has only "
          << abi::countOf(graph.nodes.size(), "operation")
          << " that can be parted";
    nameBlocksByStage("B");
  }

  //===--------------------------------------------------------------------===//
  // Devices
  //===--------------------------------------------------------------------===//

  LogicalResult chooseDevices() {
    if (stages.empty())
      stages.emplace_back();
    int64_t count = deviceCount > 0 ? deviceCount : stages.size();
    if (devices.empty())
      for (size_t stage = 0; stage < stages.size(); ++stage)
        devices.push_back(schedule::placeStage(
            kind.placement, static_cast<int64_t>(stage), count));
    if (devices.size() != stages.size())
      return function.emitError(devices.size() == 1 ? "there is "
                                                    : "there are ")
             << abi::countOf(devices.size(), "device") << " for "
             << abi::countOf(stages.size(), "stage")
             << ": name one for each stage";
    size_t before = stages.size();
    for (int64_t device = 0; device < count; ++device)
      if (!llvm::is_contained(devices, device)) {
        devices.push_back(device);
        stages.emplace_back();
      }
    if (stages.size() > before)
      function.emitRemark()
          << stages.size() - before << " of " << count
          << (stages.size() - before == 1 ? " devices stays" : " devices stay")
          << " empty: the model has only " << abi::countOf(before, "stage");
    deviceCount = count;
    // Times are those of the device that a cluster is on.
    for (auto [index, node] : llvm::enumerate(graph.nodes))
      node.time = times[models.getIndex(devices[stageOf[index]])][index];
    return checkTargets();
  }

  LogicalResult checkTargets() {
    auto targets = function->getAttrOfType<ArrayAttr>(kTargetsAttr);
    if (!targets || static_cast<int64_t>(targets.size()) == deviceCount)
      return success();
    return function.emitError(deviceCount == 1 ? "there is " : "there are ")
           << abi::countOf(deviceCount, "device") << ", and targets of "
           << targets.size() << ": name one for each device";
  }

  void writeStages() {
    for (auto [index, node] : llvm::enumerate(graph.nodes))
      for (Operation *op : node.ops) {
        op->setAttr(dist::kStageAttr,
                    builder.getI64IntegerAttr(stageOf[index]));
        op->setAttr(dist::kBlockAttr, builder.getStringAttr(blockOf[index]));
      }
  }

  void write() {
    writeStages();
    function->setAttr(dist::kDevicesAttr,
                      builder.getDenseI64ArrayAttr(devices));
    function->setAttr(kDeviceCountAttr, builder.getI64IntegerAttr(deviceCount));
    SmallVector<Attribute> lists;
    for (const SmallVector<std::string> &blocks : stages)
      lists.push_back(builder.getStrArrayAttr(
          SmallVector<StringRef>(blocks.begin(), blocks.end())));
    function->setAttr(kStageBlocksAttr, builder.getArrayAttr(lists));
    function->removeAttr(kBlockOrderAttr);
    function->removeAttr(kAutoStageAttr);
    function->removeAttr(kStageCountAttr);
  }

  func::FuncOp function;
  PartitionGraph &graph;
  const CostModels &models;
  const std::vector<std::vector<ClusterTime>> &times;
  const NamedSchedule asked;
  const schedule::ScheduleKind &kind; // the one that is asked for
  const int memoryTry;
  const bool wholeNodes;
  Builder builder;
  const Phases phases;
  SmallVector<int64_t> devices;   // by stage
  DictionaryAttr annotatedStages; // by node; null: the model names none
  int64_t deviceCount;
  SmallVector<SmallVector<std::string>> stages; // blocks, by stage
  std::vector<int64_t> stageOf;                 // by node
  std::vector<int> leaders;  // by node; empty: each decides for itself
  std::vector<bool> returns; // by node: it is no part of the forward phase
  std::vector<bool> isOnce;  // by node: it is computed once a step
  std::vector<int> numberOf; // among those that decide for themselves, by node
  std::vector<std::string> blockOf;
};

struct DistAssignStagesPass
    : impl::DistAssignStagesPassBase<DistAssignStagesPass> {
  using DistAssignStagesPassBase::DistAssignStagesPassBase;

  LogicalResult run(func::FuncOp function) override {
    auto models = PARTITA_TRY(CostModels::get(function));
    FailureOr<PartitionGraph> graph;
    std::vector<std::vector<ClusterTime>> times;
    for (const auto &model : models->getAll()) {
      graph = PARTITA_TRY(PartitionGraph::build(function, *model));
      for (auto &of = times.emplace_back();
           const ClusterNode &node : graph->nodes)
        of.push_back(node.time);
    }
    auto asked = PARTITA_TRY(getSchedule(function));
    PARTITA_TRY(StageAssigner(function, *graph, *models, times,
                              std::move(asked), memoryTry, wholeNodes)
                    .assign());
    graph->writePrices();
    return setAlone(function);
  }

private:
  /// What one device would take, if there are several and that is not set.
  static LogicalResult setAlone(func::FuncOp function) {
    const DeviceMesh mesh(function, getInteger(function, kDeviceCountAttr, 1));
    if (mesh.getSize() == 1 || function->hasAttr(kAloneAttr) || isCut(function))
      return success();
    function->setAttr(kAloneAttr, PARTITA_TRY(predictAlone(function)));
    return success();
  }
};

} // namespace
} // namespace partita::pipeline
