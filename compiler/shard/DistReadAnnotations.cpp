//===- DistReadAnnotations.cpp - What the model says of devices -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Rates.h"
#include "compiler/model/Decision.h"
#include "compiler/model/ModelFunction.h"
#include "compiler/model/NodeNames.h"
#include "compiler/shard/AnnotatedMesh.h"
#include "compiler/shard/NodeTensors.h"
#include "compiler/shard/Passes.h"
#include "compiler/shard/Propagation.h"
#include "dialects/dist/Annotations.h"
#include "dialects/nn/NodeScopes.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;

namespace partita::shard {

#define GEN_PASS_DEF_DISTREADANNOTATIONSPASS
#include "compiler/shard/Passes.h.inc"

namespace {

using Devices = std::vector<int64_t>;

/// "device 3", "devices 0, 1".
std::string describe(ArrayRef<int64_t> devices) {
  std::string text = devices.size() == 1 ? "device " : "devices ";
  llvm::raw_string_ostream os(text);
  constexpr size_t kShown = 8;
  llvm::interleaveComma(devices.take_front(kShown), os);
  return devices.size() > kShown ? text + ", ..." : text;
}

class AnnotationReader {
public:
  AnnotationReader(func::FuncOp function, const dist::Annotations &annotations)
      : function(function), annotations(annotations),
        builder(function.getContext()) {}

  LogicalResult run() {
    if (annotations.nodes.empty()) {
      emitRemark(function->getParentOp()->getLoc())
          << "the device configuration '" << annotations.configuration
          << "' has " << abi::countOf(annotations.devices, "device")
          << ", and no node says what they compute: --devices "
          << annotations.devices << " lets the compiler decide";
      return success();
    }
    PARTITA_TRY(collectStages());
    PARTITA_TRY(collectDevices());
    for (Spec &spec : specs)
      PARTITA_TRY(checkDevices(spec));
    PARTITA_TRY(findAxes());
    PARTITA_TRY(findPlaces());
    writeMesh();
    writeStages();
    return axisNames.empty() ? success() : writeShardings();
  }

private:
  /// One tensor of a node.
  struct Spec {
    const dist::NodeAnnotation *node;
    const dist::TensorAnnotation *tensor;
    int64_t stage; ///< -1: the node names none
  };

  InFlightDiagnostic error(const Spec &spec) {
    return emitError(getLoc(spec))
           << "the sharding of tensor '" << spec.tensor->name << "': ";
  }
  Location getLoc(const Spec &spec) {
    return nn::makeNodeLoc(builder.getContext(), spec.node->node);
  }

  //===--- Stages and their devices ---------------------------------------===//

  LogicalResult collectStages() {
    for (const dist::NodeAnnotation &node : annotations.nodes)
      if (node.stage) {
        auto [it, isNew] = stageOf.try_emplace(node.node, *node.stage);
        if (!isNew && it->second != *node.stage)
          return emitError(nn::makeNodeLoc(builder.getContext(), node.node))
                 << "two nodes of this name have different stages, "
                 << it->second << " and " << *node.stage
                 << ": give them different names";
        stages[*node.stage];
      }
    if (stages.empty()) // the whole model is one
      stages[0];
    for (const dist::NodeAnnotation &node : annotations.nodes)
      for (const dist::TensorAnnotation &tensor : node.tensors)
        specs.push_back(
            {&node, &tensor,
             stageOf.empty() ? 0 : node.stage.value_or(int64_t(-1))});
    return success();
  }

  /// All devices of a tensor, ascending.
  static Devices getDevices(const Spec &spec) {
    Devices devices;
    for (const auto &group : spec.tensor->devices)
      devices.insert(devices.end(), group.begin(), group.end());
    llvm::sort(devices);
    return devices;
  }

  LogicalResult collectDevices() {
    const Spec *first = nullptr;
    std::map<int64_t, const Spec *> largest; // by stage
    for (const Spec &spec : specs) {
      if (spec.tensor->devices.empty() || spec.stage < 0)
        continue;
      Devices all, own = getDevices(spec), &known = stages[spec.stage];
      std::set_union(own.begin(), own.end(), known.begin(), known.end(),
                     std::back_inserter(all));
      if (all.size() > known.size() || !first)
        largest[spec.stage] = &spec;
      known = std::move(all);
      first = first ? first : &spec;
    }
    if (!first)
      return dealOutDevices();
    perStage = stages[first->stage].size();
    for (auto &[stage, spec] : largest) {
      if (stages[stage].size() != perStage)
        return error(*spec)
               << "stage " << stage << " is on " << describe(stages[stage])
               << ", and stage " << first->stage << " on "
               << describe(stages[first->stage])
               << ": all stages have equally many devices";
      for (auto &[other, devices] : stages)
        if (other < stage && devices != stages[stage] &&
            llvm::any_of(
                devices,
                [&](int64_t device) {
                  return llvm::is_contained(stages[stage], device);
                }))
          return error(*spec)
                 << "stage " << stage << " is on " << describe(stages[stage])
                 << ", and stage " << other << " on " << describe(devices)
                 << ": two stages have the same devices, or none in common";
    }
    return success();
  }

  /// Where no tensor names devices, stages have them in order.
  LogicalResult dealOutDevices() {
    perStage = 1;
    const Spec *cut = nullptr;
    for (const Spec &spec : specs)
      if (spec.tensor->countParts() > 1)
        cut = &spec;
    if (!cut) {
      llvm::erase_if(specs, [](const Spec &spec) { return spec.stage < 0; });
      return success();
    }
    const auto count = static_cast<int64_t>(stages.size());
    if (annotations.devices % count)
      return error(*cut) << "it names no devices, and "
                         << abi::countOf(annotations.devices, "device")
                         << " cannot be dealt out to "
                         << abi::countOf(count, "stage");
    perStage = annotations.devices / count;
    int64_t next = 0;
    for (auto &[stage, devices] : stages)
      for (size_t i = 0; i < perStage; ++i)
        devices.push_back(next++);
    return success();
  }

  /// A tensor is on all devices of its stage.
  LogicalResult checkDevices(Spec &spec) {
    const Devices own = getDevices(spec);
    if (spec.stage < 0) {
      // A node without a stage is in that which has its devices.
      SmallVector<int64_t> found;
      for (auto &[stage, devices] : stages)
        if (own.empty() ? spec.tensor->countParts() == 1 : devices == own)
          found.push_back(stage);
      if (found.empty())
        return error(spec) << "the node names no pipeline_stage"
                           << (own.empty()
                                   ? std::string()
                                   : ", and no stage is on " + describe(own));
      spec.stage = found[0];
      if (found.size() == 1 && !own.empty())
        stageOf.try_emplace(spec.node->node, found[0]);
      return success();
    }
    const Devices &all = stages[spec.stage];
    if (own.empty()) {
      const int64_t parts = spec.tensor->countParts();
      if (all.empty() && parts > 1)
        return error(spec) << "it names no devices, nor does another of stage "
                           << spec.stage;
      if (parts != 1 && parts != static_cast<int64_t>(perStage))
        return error(spec) << "it names no devices, and has " << parts
                           << " shards for " << perStage;
      return success();
    }
    if (own != all)
      return error(spec) << "it is on " << describe(own) << ", and stage "
                         << spec.stage << " on " << describe(all)
                         << ": a tensor is on all devices of its stage; "
                            "index_to_device_group_map gives a part to several";
    return success();
  }

  //===--- The mesh -------------------------------------------------------===//

  /// For each entry of `parts` that cuts: its digits of the position among the
  /// devices of the stage.
  std::optional<std::vector<std::vector<Digit>>> getDigits(const Spec &spec) {
    const dist::TensorAnnotation &tensor = *spec.tensor;
    const Devices &all = stages[spec.stage];
    std::vector<int64_t> partOf(perStage);
    for (auto [part, group] : llvm::enumerate(tensor.devices))
      for (int64_t device : group)
        partOf[llvm::lower_bound(all, device) - all.begin()] =
            static_cast<int64_t>(part);
    if (tensor.devices.empty() && tensor.countParts() > 1)
      for (size_t i = 0; i < perStage; ++i)
        partOf[i] = static_cast<int64_t>(i);
    std::vector<std::vector<Digit>> digits;
    int64_t inner = tensor.countParts();
    for (const dist::DimAnnotation &dim : tensor.dims)
      for (int64_t parts : dim.parts) {
        inner /= parts;
        if (parts == 1)
          continue;
        std::optional<std::vector<Digit>> found = findDigits(
            llvm::map_to_vector(
                partOf, [&](int64_t part) { return part / inner % parts; }),
            parts);
        if (!found)
          return std::nullopt;
        digits.push_back(std::move(*found));
      }
    return digits;
  }

  LogicalResult findAxes() {
    AnnotatedMesh mesh(static_cast<int64_t>(perStage));
    const Spec *before = nullptr;
    for (const Spec &spec : specs) {
      auto digits = getDigits(spec);
      if (!digits)
        return error(spec)
               << "its parts do not lie on " << describe(stages[spec.stage])
               << " as on a mesh: number the devices so that parts follow "
                  "them";
      for (const std::vector<Digit> &each : *digits)
        if (!mesh.add(each))
          return error(spec) << "it does not fit into one mesh with tensor '"
                             << before->tensor->name << "' of node '"
                             << before->node->node << "'";
      if (!digits->empty())
        before = &spec;
    }
    axes.emplace(mesh);
    sizes = mesh.getSizes();
    for (size_t i = 0; i < sizes.size(); ++i)
      axisNames.push_back(builder.getStringAttr(
          sizes.size() == 1 ? dist::kTensorAxis.str()
                            : (dist::kTensorAxis + "_" + Twine(i)).str()));
    return success();
  }

  LogicalResult findPlaces() {
    const auto each = static_cast<int64_t>(perStage);
    places = annotations.devices / each;
    std::vector<Devices> lists;
    for (auto &[stage, devices] : stages)
      if (!devices.empty())
        lists.push_back(devices);
    std::optional<size_t> position;
    if (annotations.devices % each == 0)
      position = findStageAxis(sizes, places, lists);
    if (!position)
      return error(*llvm::find_if(
                 specs,
                 [&](const Spec &spec) { return !stages[spec.stage].empty(); }))
             << "the device configuration '" << annotations.configuration
             << "' has " << abi::countOf(annotations.devices, "device")
             << ", and its stages are on "
             << llvm::join(llvm::map_range(lists,
                                           [](const Devices &devices) {
                                             return describe(devices);
                                           }),
                           "; ")
             << ": they are no mesh, whose devices are numbered in rows";
    stageAxis = *position;
    if (lists.empty())
      return success();
    std::set<int64_t> used;
    auto placeOf = [&](const Devices &devices) {
      return getPlace(devices[0], sizes, places, stageAxis);
    };
    for (const Devices &devices : lists)
      used.insert(placeOf(devices));
    placeOfStage.assign(stages.rbegin()->first + 1, -1);
    for (auto &[stage, devices] : stages)
      if (!devices.empty())
        placeOfStage[stage] = placeOf(devices);
    // Others get what is left.
    for (auto [stage, place] : llvm::enumerate(placeOfStage)) {
      if (place >= 0)
        continue;
      if (!stages.count(static_cast<int64_t>(stage))) { // it has no nodes
        place = stage > 0 ? placeOfStage[stage - 1] : 0;
        continue;
      }
      for (place = 0; used.count(place);)
        ++place;
      if (place >= places)
        return emitError(function->getParentOp()->getLoc())
               << "no tensor of stage " << stage
               << " says on which devices it is, and other stages have all";
      used.insert(place);
    }
    return success();
  }

  void writeMesh() {
    function->setAttr(kDeviceCountAttr, builder.getI64IntegerAttr(places));
    if (!placeOfStage.empty())
      function->setAttr(dist::kDevicesAttr,
                        builder.getDenseI64ArrayAttr(placeOfStage));
    if (sizes.empty())
      return;
    SmallVector<Attribute> list;
    for (size_t i = 0; i <= sizes.size(); ++i) {
      if (i == stageAxis)
        list.push_back(dist::AxisAttr::get(builder.getContext(),
                                           dist::kStageAxis, places));
      if (i < sizes.size())
        list.push_back(dist::AxisAttr::get(builder.getContext(),
                                           axisNames[i].getValue(), sizes[i]));
    }
    function->setAttr(dist::kAxesAttr, builder.getArrayAttr(list));
  }

  /// By node: other passes still make ops of them. Without stages the model is
  /// one.
  void writeStages() {
    NamedAttrList list;
    for (auto &[node, stage] : stageOf)
      list.set(node, builder.getI64IntegerAttr(stage));
    function->setAttr(dist::kAnnotatedStagesAttr,
                      list.getDictionary(builder.getContext()));
  }

  //===--- Shardings ------------------------------------------------------===//

  LogicalResult writeShardings() {
    const NodeTensors results(function);
    llvm::StringMap<SmallVector<Value>> weights, inputs;
    for (auto parameter : function.getOps<nn::ParameterOp>())
      weights[parameter.getWeight()].push_back(parameter);
    for (BlockArgument argument : function.getArguments())
      if (auto name = function.getArgAttrOfType<StringAttr>(
              argument.getArgNumber(), nn::kNameAttr))
        inputs[name.getValue()].push_back(argument);
    for (const Spec &spec : specs) {
      Sharding sharding = PARTITA_TRY(getCutsOf(spec));
      switch (spec.tensor->kind) {
      case dist::TensorKind::constant:
        break;
      case dist::TensorKind::weight:
        for (Value value : weights.lookup(spec.tensor->where))
          write(spec, value, sharding);
        break;
      case dist::TensorKind::input:
        for (Value value : inputs.lookup(spec.tensor->where))
          write(spec, value, sharding);
        break;
      case dist::TensorKind::result:
        if (Value value = results.find(spec.tensor->where, spec.tensor->shape))
          write(spec, value, sharding);
        else if (!isWhole(sharding))
          remark(spec, "the compiler does not compute it as a value of its "
                       "own, or in this order of dimensions; it is cut as its "
                       "neighbours are");
        break;
      }
    }
    dropWhatFollows();
    if (numRemarks > kMostRemarks)
      emitRemark(function->getParentOp()->getLoc())
          << "the shardings of " << numRemarks - kMostRemarks
          << " more tensors are not taken";
    return success();
  }

  /// Where all that is said of results follows from weights and inputs, those
  /// alone say it. So what --emit-onnx writes is cut as it was before.
  void dropWhatFollows() {
    Propagation propagation(function);
    SmallVector<Value> results;
    for (BlockArgument argument : function.getArguments())
      propagation.seedWritten(argument);
    for (Operation &op : function.getBody().front().without_terminator())
      for (Value result : op.getResults())
        if (isa<nn::ParameterOp>(op))
          propagation.seedWritten(result);
        else if (getShardingAttr(result))
          results.push_back(result);
    propagation.run();
    if (llvm::all_of(results, [&](Value result) {
          return isSame(getSharding(result), propagation.getSharding(result));
        }))
      for (Value result : results)
        result.getDefiningOp()->removeAttr(dist::kShardingAttr);
  }

  FailureOr<Sharding> getCutsOf(const Spec &spec) {
    const dist::TensorAnnotation &tensor = *spec.tensor;
    const auto digits = getDigits(spec);
    Sharding sharding(tensor.shape.size());
    auto next = digits->begin();
    for (const dist::DimAnnotation &dim : tensor.dims) {
      DimSharding &cut = sharding[dim.dim];
      int64_t parts = 1, below = 1; // elements of a part below what is cut
      int64_t numCut = 0;
      std::optional<std::pair<int64_t, int64_t>> uneven; // what does not divide
      for (auto [size, count] : llvm::zip(dim.sizes, dim.parts)) {
        if (count == 1 && cut.isWhole()) {
          cut.blocks *= size;
          continue;
        }
        if (count > 1) {
          if (below > 1)
            return error(spec)
                   << "axis " << dim.dim
                   << " is cut in several of the dimensions that it consists "
                      "of; that is possible only where a part has one element "
                      "of the outer ones";
          for (int64_t axis : axes->getAxes(*next++))
            cut.axes.push_back(axisNames[axis]);
          parts *= count;
          ++numCut;
          if (size % count)
            uneven = {size, count};
        }
        // The part of a size that does not divide is rounded up.
        if (uneven)
          cut.alignment *= count > 1 ? 1 : size;
        below *= llvm::divideCeil(size, count);
      }
      if (cut.isWhole()) {
        cut.blocks = 1;
        continue;
      }
      if (uneven && numCut > 1)
        return error(spec) << "axis " << dim.dim
                           << " is cut in several of the dimensions that it "
                              "consists of, one of the size "
                           << uneven->first << ", which does not divide into "
                           << uneven->second;
      const int64_t size = tensor.shape[dim.dim], all = parts * cut.blocks;
      if (size == 0 ||
          (size % all && size / (cut.blocks * cut.alignment) < parts))
        return error(spec) << "axis " << dim.dim << " has the size " << size
                           << ", which cannot be cut into " << all
                           << " equal parts";
    }
    return sharding;
  }

  void write(const Spec &spec, Value value, const Sharding &sharding) {
    // Every reader of what depends on weights alone has its own part.
    if (!value.getDefiningOp<nn::ParameterOp>() && rates.isLoad(value))
      return;
    auto [it, isNew] = said.try_emplace(value, &spec);
    if (isNew)
      return fixSharding(value, sharding);
    if (!isSame(getSharding(value), sharding))
      remark(spec, "node '" + it->second->node->node + "' says another one");
  }

  void remark(const Spec &spec, const Twine &why) {
    if (++numRemarks <= kMostRemarks)
      emitRemark(getLoc(spec))
          << "the sharding of tensor '" << spec.tensor->name
          << "' is not taken: " << why;
  }

  static constexpr int kMostRemarks = 8;

  func::FuncOp function;
  const dist::Annotations &annotations;
  Builder builder;
  analysis::Rates rates;
  std::map<std::string, int64_t> stageOf; ///< by node
  std::map<int64_t, Devices> stages;      ///< the devices of each, ascending
  std::vector<Spec> specs;
  size_t perStage = 1; ///< devices
  std::optional<AnnotatedMesh> axes;
  SmallVector<int64_t> sizes; ///< of the axes, outermost first
  SmallVector<StringAttr> axisNames;
  int64_t places = 1; ///< along the axis of stages
  size_t stageAxis = 0;
  std::vector<int64_t> placeOfStage;
  llvm::DenseMap<Value, const Spec *> said;
  int numRemarks = 0;
};

struct DistReadAnnotationsPass
    : impl::DistReadAnnotationsPassBase<DistReadAnnotationsPass> {
  void runOnOperation() override {
    const Attribute attr = getOperation()->getAttr(dist::kAnnotationsAttr);
    if (!attr)
      return;
    getOperation()->removeAttr(dist::kAnnotationsAttr);
    FailureOr<func::FuncOp> function = getModelFunction(getOperation());
    if (failed(function))
      return signalPassFailure();
    std::optional<dist::Annotations> annotations =
        dist::Annotations::fromAttr(attr);
    if (!annotations) {
      getOperation().emitError() << "'" << dist::kAnnotationsAttr
                                 << "' has another form than annotations have";
      return signalPassFailure();
    }
    if (failed(AnnotationReader(*function, *annotations).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::shard
