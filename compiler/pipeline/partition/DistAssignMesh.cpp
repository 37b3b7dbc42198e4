//===- DistAssignMesh.cpp - The mesh of all devices -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Samples.h"
#include "compiler/model/Decision.h"
#include "compiler/model/DeviceMesh.h"
#include "compiler/model/PartitionFile.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/partition/PartitionGraph.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_DISTASSIGNMESHPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

struct DistAssignMeshPass : impl::DistAssignMeshPassBase<DistAssignMeshPass> {
  using DistAssignMeshPassBase::DistAssignMeshPassBase;

  LogicalResult run(func::FuncOp function) override {
    FailureOr<PartitionFile> read =
        readPartitionFile(getOperation().getLoc(), file);
    if (failed(read) || failed(collectAxes(function, *read)) ||
        failed(countPlaces(*read)) || failed(checkShards(*read)) ||
        failed(checkReplicas()) || failed(checkZero(*read)))
      return failure();
    if (const int64_t level = getZero(*read))
      function->setAttr(dist::kZeroAttr,
                        Builder(&getContext()).getI64IntegerAttr(level));
    if (const int64_t bytes =
            fusionBytes >= 0 ? fusionBytes : read->fusionBytes.value_or(-1);
        bytes >= 0)
      function->setAttr(dist::kFusionBytesAttr,
                        Builder(&getContext()).getI64IntegerAttr(bytes));
    if (reproducible || read->reproducible)
      function->setAttr(dist::kReproducibleAttr, UnitAttr::get(&getContext()));
    write(function);
    return assignTargets(function, *read);
  }

private:
  struct Axis {
    std::string name;
    int64_t size; ///< 0: not said
    Location loc;
  };

  Location placeOf(const FileText &text) {
    return FileLineColLoc::get(&getContext(), file, text.line, text.column);
  }

  Axis *find(StringRef name) {
    auto it =
        llvm::find_if(axes, [&](const Axis &a) { return a.name == name; });
    return it == axes.end() ? nullptr : &*it;
  }

  /// Along an axis of any name tensors are cut, also if the name is what others
  /// call one that does something else.
  void remarkName(const FileText &axis) {
    static const std::pair<StringRef, StringRef> others[] = {
        {"dp", dist::kDataAxis},      {"batch", dist::kDataAxis},
        {"pp", dist::kStageAxis},     {"pipeline", dist::kStageAxis},
        {"pipe", dist::kStageAxis},   {"tp", dist::kTensorAxis},
        {"model", dist::kTensorAxis}, {"replicas", dist::kReplicaAxis}};
    for (auto [name, meant] : others)
      if (axis.text == name)
        emitRemark(placeOf(axis))
            << "tensors are cut along the axis '" << name << "', and only if "
            << "somebody says how or it is worth it: did you mean '" << meant
            << "'?";
  }

  /// What was said of an axis, in several places maybe.
  LogicalResult say(StringRef name, int64_t size, Location loc,
                    bool outermost) {
    Axis *known = find(name);
    if (!known) {
      axes.insert(outermost ? axes.begin() : axes.end(),
                  {name.str(), size, loc});
      return success();
    }
    if (known->size && known->size != size)
      return emitError(loc)
             << "the axis '" << name << "' has the size " << size
             << " here and " << known->size << " elsewhere: say it once";
    known->size = size;
    return success();
  }

  LogicalResult collectAxes(func::FuncOp function, const PartitionFile &read) {
    Location loc = getOperation().getLoc();
    // The model's own annotations may have said them.
    const int64_t count = getInteger(function, kDeviceCountAttr, 0);
    if (auto known = function->getAttrOfType<ArrayAttr>(dist::kAxesAttr))
      for (auto axis : known.getAsRange<dist::AxisAttr>())
        PARTITA_TRY(
            say(axis.getName(),
                axis.getName() == dist::kStageAxis ? count : axis.getSize(),
                loc, false));
    if (count && !find(dist::kStageAxis))
      axes.push_back({dist::kStageAxis.str(), count, loc});
    for (StringRef text : givenAxes) {
      auto [name, size] = text.split('=');
      int64_t number = 0;
      if (name.empty() || size.getAsInteger(10, number) || number < 1)
        return emitError(loc) << "'" << text << "' is no NAME=SIZE of an axis";
      PARTITA_TRY(say(name, number, loc, false));
    }
    const std::optional<FileAxis> none;
    for (const FileAxis &axis : read.mesh)
      remarkName(axis.name);
    for (const FileAxis &axis : read.mesh)
      PARTITA_TRY(say(axis.name.text, axis.size, placeOf(axis.name), false));
    if (!find(dist::kStageAxis))
      axes.push_back({dist::kStageAxis.str(), 0, loc});
    for (auto [name, flag, said] :
         {std::tuple(StringRef(dist::kReplicaAxis), int64_t(replicas), &none),
          std::tuple(StringRef(dist::kDataAxis), int64_t(dataParallel),
                     &read.dataParallel),
          std::tuple(StringRef(dist::kTensorAxis), int64_t(tensorParallel),
                     &read.tensorParallel)}) {
      const bool outermost = name != dist::kTensorAxis;
      if (flag < 0 || flag > dist::kMostDevices)
        return emitError(loc) << "the axis '" << name << "' must have 1 to "
                              << dist::kMostDevices << " devices, not " << flag;
      if (*said &&
          failed(say(name, (*said)->size, placeOf((*said)->name), outermost)))
        return failure();
      if (flag > 0 && failed(say(name, flag, loc, outermost)))
        return failure();
    }
    return success();
  }

  /// Devices along the axis "stage": what is left of all.
  LogicalResult countPlaces(const PartitionFile &read) {
    Location loc = getOperation().getLoc();
    int64_t others = 1;
    for (const Axis &axis : axes)
      if (axis.name != dist::kStageAxis)
        if (others *= axis.size; others > dist::kMostDevices)
          return emitError(axis.loc) << "the mesh has more than "
                                     << dist::kMostDevices << " devices";
    Axis &stage = *find(dist::kStageAxis);
    if (devices < 0 || devices > dist::kMostDevices)
      return emitError(loc)
             << "the number of devices must be 1 to " << dist::kMostDevices
             << ", not " << int64_t(devices);
    if (devices > 0 && devices % others)
      return emitError(loc) << abi::countOf(devices, "device")
                            << " cannot be dealt out to a mesh with " << others
                            << " at each place of a stage: give a "
                            << "multiple of " << others;
    if (devices > 0 && stage.size && devices / others != stage.size)
      return emitError(stage.loc)
             << "the mesh has " << abi::countOf(stage.size * others, "device")
             << ", not " << int64_t(devices);
    if (stage.size == 0 && devices == 0)
      stage.size = static_cast<int64_t>(read.targets.size());
    places = devices > 0 ? devices / others : stage.size;
    if (!read.targets.empty() &&
        places != static_cast<int64_t>(read.targets.size()))
      return emitError(placeOf(read.targets.front()))
             << "`targets` names "
             << abi::countOf(read.targets.size(), "device")
             << ", and the axis 'stage' has " << places
             << ": name one for each";
    if (std::max<int64_t>(places, 1) * others > dist::kMostDevices)
      return emitError(loc)
             << "the mesh has more than " << dist::kMostDevices << " devices";
    return success();
  }

  int64_t getZero(const PartitionFile &read) const {
    return zero >= 0 ? int64_t(zero) : read.zero.value_or(0);
  }

  /// Replicas can share something if there are several.
  LogicalResult checkZero(const PartitionFile &read) {
    const int64_t level = getZero(read);
    const Location loc =
        zero >= 0 ? getOperation().getLoc() : placeOf(read.zeroAt);
    if (level == kAutoZero)
      return emitError(loc)
             << "zero auto: partita-compile makes a plan of each "
                "level and takes one; name one of them";
    if (level > kMostZero)
      return emitError(loc)
             << "zero " << level
             << ": replicas share nothing (0), what an optimizer keeps (1), "
                "gradients, too (2), or parameters, too (3)";
    if (level > 1 && (reproducible || read.reproducible))
      return emitError(loc)
             << "zero " << level
             << ": replicas share in each micro-batch what `reproducible` "
                "computes together: take zero 1, or leave `reproducible` out";
    const Axis *data = find(dist::kDataAxis);
    if (level > 0 && (!data || data->size < 2))
      return emitError(loc)
             << "zero " << level
             << ": replicas share what an optimizer keeps, and there is one "
                "replica; say how many there are (--data-parallel, or `data` "
                "in `mesh`)";
    return success();
  }

  /// Micro-batches can be dealt out if there may be several.
  LogicalResult checkReplicas() {
    auto mixes =
        getOperation()->getAttrOfType<StringAttr>(analysis::kMixesAttr);
    const Axis *data = find(dist::kDataAxis);
    if (!mixes || !data || data->size <= 1)
      return success();
    return emitError(data->loc)
           << "micro-batches are dealt out along the axis 'data' "
              "(--data-parallel), and there is one alone: "
           << mixes.getValue() << "; leave it out";
  }

  /// What lies along an axis that does not cut tensors; empty if it does.
  static StringRef getOtherUse(StringRef axis) {
    if (axis == dist::kDataAxis)
      return "micro-batches are dealt out along it";
    if (axis == dist::kReplicaAxis)
      return "samples are dealt out along it; the model says what else is "
             "(Shard of the domain ai.partita)";
    if (axis == dist::kStageAxis)
      return "stages lie along it";
    return "";
  }

  /// Axes that shardings name exist.
  LogicalResult checkShards(const PartitionFile &read) {
    for (const FileShard &shard : read.shards) {
      SmallVector<StringRef> used;
      for (const FileShardDim &dim : shard.dims)
        for (const FileText &axis : dim.axes) {
          if (StringRef use = getOtherUse(axis.text); !use.empty())
            return emitError(placeOf(axis))
                   << "tensors are not cut along the axis '" << axis.text
                   << "': " << use;
          if (!find(axis.text))
            return emitError(placeOf(axis))
                   << "the mesh has no axis '" << axis.text
                   << "': name it in `mesh`, e.g. mesh: {" << axis.text
                   << ": 2}";
          if (llvm::is_contained(used, axis.text))
            return emitError(placeOf(axis))
                   << "'" << shard.tensors.text << "' is cut along the axis '"
                   << axis.text << "' twice";
          used.push_back(axis.text);
        }
    }
    return success();
  }

  /// What the devices at each place are, if they are not all the same.
  LogicalResult assignTargets(func::FuncOp function,
                              const PartitionFile &read) {
    std::vector<std::string> all;
    for (const FileText &target : read.targets)
      all.push_back(target.text);
    if (!targets.empty()) {
      auto said = PARTITA_TRY(getTargetsOfPlaces(function));
      for (auto [place, target] : llvm::enumerate(read.targets))
        if (said[place] != target.text)
          return emitError(placeOf(target))
                 << "'" << target.text << "' here, and '" << said[place]
                 << "' by --devices and --target: say it once";
      all = std::move(said);
    }
    if (llvm::all_equal(all))
      return success();
    Builder builder(&getContext());
    SmallVector<StringRef> names(all.begin(), all.end());
    function->setAttr(kTargetsAttr, builder.getStrArrayAttr(names));
    return success();
  }

  /// Devices that share tensors or replicas of a stage are of one kind.
  FailureOr<std::vector<std::string>>
  getTargetsOfPlaces(func::FuncOp function) {
    const DeviceMesh mesh(function, places);
    if (static_cast<int64_t>(targets.size()) != mesh.getSize()) {
      emitError(getOperation().getLoc())
          << abi::countOf(targets.size(), "target") << " for "
          << abi::countOf(mesh.getSize(), "device") << ": name one for each";
      return failure();
    }
    std::vector<std::string> all;
    for (int64_t place = 0; place < places; ++place) {
      const SmallVector<int64_t> numbers = mesh.getDevices(place);
      all.push_back(targets[numbers.front()]);
      for (int64_t number : numbers)
        if (targets[number] != all.back()) {
          emitError(getOperation().getLoc())
              << "devices " << numbers.front() << " ('" << all.back()
              << "') and " << number << " ('" << targets[number]
              << "') have the same stages, and must be of one kind: name the "
                 "kinds in the order of the devices' numbers";
          return failure();
        }
    }
    return all;
  }

  void write(func::FuncOp function) {
    Builder builder(&getContext());
    if (places > 0)
      function->setAttr(kDeviceCountAttr, builder.getI64IntegerAttr(places));
    // An axis of one device is none.
    llvm::erase_if(axes, [](const Axis &axis) {
      return axis.name != dist::kStageAxis && axis.size == 1;
    });
    if (axes.size() == 1)
      return;
    SmallVector<Attribute> list;
    for (const Axis &axis : axes)
      list.push_back(dist::AxisAttr::get(&getContext(), axis.name, axis.size));
    function->setAttr(dist::kAxesAttr, builder.getArrayAttr(list));
  }

  std::vector<Axis> axes; ///< outermost first
  int64_t places = 0;     ///< along the axis "stage"; 0: not said
};

} // namespace
} // namespace partita::pipeline
