//===- CollectAnnotations.cpp - The decision as annotations ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/shard/CollectAnnotations.h"

#include "compiler/cost/CostModel.h"
#include "compiler/model/Decision.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/model/NodeNames.h"
#include "dialects/nn/NNDialect.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;

namespace partita::shard {
namespace {

class Collector {
public:
  Collector(ModuleOp module, func::FuncOp function)
      : module(module), function(function),
        places(getInteger(function, kDeviceCountAttr, 1)),
        placeOfStage(getDevices(function)),
        shards(function->getAttrOfType<DictionaryAttr>(kShardsAttr)),
        resultShards(
            function->getAttrOfType<DictionaryAttr>(kResultShardsAttr)) {}

  dist::Annotations run() {
    dist::Annotations annotations;
    auto numbered =
        dist::Annotations::fromAttr(module->getAttr(dist::kNumberedNodesAttr));
    if (!numbered)
      return annotations;
    readAxes();
    readStages();
    annotations.configuration =
        numbered->configuration.empty() ? "partita" : numbered->configuration;
    annotations.devices = places * perStage;
    // A node in the body of a loop or a function is computed several times.
    std::map<int64_t, SmallVector<dist::NodeAnnotation *, 1>> byNumber;
    for (dist::NodeAnnotation &node : numbered->nodes)
      byNumber[*node.number].push_back(&node);
    for (auto &[number, nodes] : byNumber)
      if (std::optional<dist::NodeAnnotation> node = annotate(nodes))
        annotations.nodes.push_back(std::move(*node));
    remarkSplit();
    return annotations;
  }

private:
  struct Axis {
    StringRef name;
    int64_t size, stride;
  };

  /// All but "data".
  void readAxes() {
    int64_t stride = 1;
    auto all = function->getAttrOfType<ArrayAttr>(dist::kAxesAttr);
    bool hasStages = false;
    if (all)
      for (auto axis : llvm::reverse(all.getAsRange<dist::AxisAttr>())) {
        if (axis.getName() == dist::kDataAxis) {
          emitRemark(module.getLoc())
              << "the axis 'data' is not written into the annotated model, "
                 "which says what one replica is: compile it with "
                 "--data-parallel "
              << axis.getSize();
          continue;
        }
        if (axis.getName() == dist::kStageAxis) {
          stageStride = stride;
          stride *= places;
          hasStages = true;
          continue;
        }
        axes.insert(axes.begin(), {axis.getName(), axis.getSize(), stride});
        stride *= axis.getSize();
        perStage *= axis.getSize();
      }
    if (!hasStages)
      stageStride = stride;
  }

  /// The stage of each node: what --dist-assign-stages went by, or that of its
  /// op with the most operations.
  void readStages() {
    std::map<StringRef, int64_t> heaviest;
    if (auto known =
            function->getAttrOfType<DictionaryAttr>(dist::kAnnotatedStagesAttr))
      for (NamedAttribute each : known) {
        heaviest[each.getName()] = std::numeric_limits<int64_t>::max();
        stageOf[each.getName()] = cast<IntegerAttr>(each.getValue()).getInt();
      }
    for (Operation *op : getActiveOps(function.getBody().front())) {
      const int64_t stage = getStage(op), flops = countFlops(op);
      if (stage < 0)
        continue;
      for (StringRef name : getNodeNames(op->getLoc())) {
        auto [it, isNew] = stageOf.try_emplace(name, stage);
        if (it->second != stage)
          split.insert(name);
        if (isNew || flops > heaviest[name]) {
          heaviest[name] = flops;
          it->second = stage;
        }
      }
    }
    if (function->hasAttr(dist::kAnnotatedStagesAttr))
      split.clear(); // clusters decide for all their nodes, then as now
    // What depends on weights alone is where it is read first.
    llvm::DenseMap<Operation *, int64_t> known;
    for (Operation &op :
         llvm::reverse(function.getBody().front().without_terminator())) {
      if (int64_t stage = getStage(&op); stage >= 0) {
        known[&op] = stage;
        continue;
      }
      for (Operation *user : op.getUsers())
        if (auto it = known.find(user); it != known.end()) {
          const int64_t stage = it->second;
          int64_t &own = known.try_emplace(&op, stage).first->second;
          own = std::min(own, stage);
        }
      auto it = known.find(&op);
      if (it == known.end())
        continue;
      if (auto parameter = dyn_cast<nn::ParameterOp>(op))
        stageOfWeight[parameter.getWeight()] = it->second;
      else
        for (StringRef name : getNodeNames(op.getLoc()))
          stageOf.try_emplace(name, it->second);
    }
  }

  std::optional<dist::NodeAnnotation>
  annotate(ArrayRef<dist::NodeAnnotation *> nodes) {
    dist::NodeAnnotation annotation;
    annotation.node = nodes.front()->node;
    annotation.number = nodes.front()->number;
    for (const dist::NodeAnnotation *node : nodes) {
      auto it = stageOf.find(node->node);
      if (it == stageOf.end())
        continue;
      if (annotation.stage.value_or(it->second) != it->second)
        split.insert(it->first);
      else
        annotation.stage = it->second;
    }
    // A node that was folded into others may be the only one that has a weight.
    for (const dist::TensorAnnotation &tensor : nodes.front()->tensors)
      if (auto it = stageOfWeight.find(tensor.where);
          !annotation.stage && tensor.kind == dist::TensorKind::weight &&
          it != stageOfWeight.end())
        annotation.stage = it->second;
    if (!annotation.stage)
      return std::nullopt;
    for (size_t i = 0; i < nodes.front()->tensors.size(); ++i) {
      std::optional<dist::TensorAnnotation> tensor =
          place(nodes.front()->tensors[i], *annotation.stage);
      for (const dist::NodeAnnotation *other : nodes.drop_front())
        if (tensor && (i >= other->tensors.size() ||
                       !isSame(*tensor, other->tensors[i], *annotation.stage)))
          tensor.reset();
      if (tensor)
        annotation.tensors.push_back(std::move(*tensor));
    }
    return annotation;
  }

  bool isSame(const dist::TensorAnnotation &tensor,
              const dist::TensorAnnotation &other, int64_t stage) {
    std::optional<dist::TensorAnnotation> placed = place(other, stage);
    return placed && placed->name == tensor.name &&
           getSharding(other) == getSharding(tensor) &&
           other.shape == tensor.shape;
  }

  /// How a tensor is cut. Nothing if that is not known; null if it is whole.
  std::optional<dist::ShardingAttr>
  getSharding(const dist::TensorAnnotation &tensor) {
    auto find = [](DictionaryAttr all, StringRef name) {
      return all ? all.getAs<dist::ShardingAttr>(name) : dist::ShardingAttr();
    };
    if (axes.empty())
      return dist::ShardingAttr();
    switch (tensor.kind) {
    case dist::TensorKind::constant:
      return std::nullopt;
    case dist::TensorKind::weight: {
      auto weight = module.lookupSymbol<nn::WeightOp>(tensor.where);
      if (!weight)
        return std::nullopt;
      return find(shards, weight.getOrigin());
    }
    case dist::TensorKind::input:
      return find(shards, tensor.where);
    case dist::TensorKind::result:
      if (dist::ShardingAttr sharding =
              find(resultShards, getResultKey(tensor.where, tensor.name)))
        return sharding;
      return std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<dist::TensorAnnotation>
  place(const dist::TensorAnnotation &known, int64_t stage) {
    const std::optional<dist::ShardingAttr> sharding = getSharding(known);
    // Without axes a result says which device the stage has.
    if (!sharding || (axes.empty() && known.kind != dist::TensorKind::result))
      return std::nullopt;
    dist::TensorAnnotation tensor = known;
    SmallVector<const Axis *> cut; // outermost first, of all dimensions
    if (*sharding)
      for (auto [index, dim] : llvm::enumerate(sharding->getDims())) {
        if (dim.getAxes().empty())
          continue;
        int64_t parts = 1;
        for (StringAttr name : dim.getAxes()) {
          cut.push_back(llvm::find_if(
              axes, [&](const Axis &axis) { return axis.name == name; }));
          parts *= cut.back()->size;
        }
        const int64_t size = tensor.shape[index], blocks = dim.getBlocks(),
                      alignment = dim.getAlignment();
        dist::DimAnnotation &annotation = tensor.dims.emplace_back();
        annotation.dim = static_cast<int64_t>(index);
        if (blocks > 1) {
          annotation.sizes.push_back(blocks);
          annotation.parts.push_back(1);
        }
        annotation.sizes.push_back(size / blocks / alignment);
        annotation.parts.push_back(parts);
        if (alignment > 1) {
          annotation.sizes.push_back(alignment);
          annotation.parts.push_back(1);
        }
      }
    tensor.devices.resize(tensor.countParts());
    for (int64_t position = 0; position < perStage; ++position) {
      int64_t rest = position, device = placeOfStage[stage] * stageStride;
      llvm::SmallDenseMap<const Axis *, int64_t> coordinates;
      for (const Axis &axis : llvm::reverse(axes)) {
        coordinates[&axis] = rest % axis.size;
        device += rest % axis.size * axis.stride;
        rest /= axis.size;
      }
      int64_t part = 0;
      for (const Axis *axis : cut)
        part = part * axis->size + coordinates[axis];
      tensor.devices[part].push_back(device);
    }
    return tensor;
  }

  void remarkSplit() {
    if (split.empty())
      return;
    std::vector<std::string> names;
    for (StringRef name : split)
      names.push_back("'" + name.str() + "'");
    emitRemark(module.getLoc())
        << abi::countOf(static_cast<int64_t>(names.size()), "node") << " of "
        << "several operations in different stages (" << abi::namesText(names)
        << "): an annotation names one stage, that of the operation with the "
           "most work";
  }

  ModuleOp module;
  func::FuncOp function;
  const int64_t places;
  const SmallVector<int64_t> placeOfStage;
  const DictionaryAttr shards, resultShards;
  SmallVector<Axis> axes; ///< outermost first
  int64_t stageStride = 1, perStage = 1;
  std::map<StringRef, int64_t> stageOf;       ///< by node
  std::map<StringRef, int64_t> stageOfWeight; ///< by symbol
  std::set<StringRef> split;
};

} // namespace

std::string getResultKey(StringRef node, StringRef tensor) {
  return (node + "\n" + tensor).str();
}

dist::Annotations collectAnnotations(ModuleOp decided) {
  FailureOr<func::FuncOp> function = getModelFunction(decided);
  return failed(function) ? dist::Annotations()
                          : Collector(decided, *function).run();
}

} // namespace partita::shard
