//===- DeviceAnnotations.cpp - What the nodes say of devices --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/annotations/DeviceAnnotations.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringSet.h"

#include <map>

using namespace llvm;
using namespace mlir;

namespace partita::import {

static bool hasAnnotations(const onnx::ModelProto &model) {
  return model.configuration_size() > 0 ||
         llvm::any_of(model.graph().node(), [](const onnx::NodeProto &node) {
           return node.device_configurations_size() > 0;
         });
}

std::string DeviceAnnotations::listConfigurations() const {
  std::string text;
  for (const onnx::DeviceConfigurationProto &each : model->configuration())
    text += (text.empty() ? "'" : ", '") + each.name() + "' (" +
            std::to_string(each.num_devices()) +
            (each.num_devices() == 1 ? " device)" : " devices)");
  return text.empty() ? "it has no configurations" : "it has " + text;
}

FailureOr<DeviceAnnotations>
DeviceAnnotations::choose(const onnx::ModelProto &model,
                          const ImportOptions &options, Location loc) {
  DeviceAnnotations annotations;
  annotations.model = &model;
  if (!options.annotationsOverride.empty()) {
    annotations.ignored = true;
    if (hasAnnotations(model))
      emitRemark(loc) << "the model's own annotations of stages and shardings "
                         "are not taken: "
                      << options.annotationsOverride << " says how it is split";
    return annotations;
  }
  llvm::StringSet<> names;
  for (const onnx::DeviceConfigurationProto &each : model.configuration()) {
    if (each.name().empty())
      return emitError(loc) << "a device configuration of the model has no "
                               "name";
    if (!names.insert(each.name()).second)
      return emitError(loc) << "the model has two device configurations '"
                            << each.name() << "'";
    if (options.configuration.empty() || each.name() == options.configuration)
      annotations.chosen = &each;
  }
  if (!options.configuration.empty() && !annotations.chosen)
    return emitError(loc) << "the model has no device configuration '"
                          << options.configuration
                          << "': " << annotations.listConfigurations();
  if (options.configuration.empty() && model.configuration_size() > 1)
    return emitError(loc)
           << "the model has several device configurations; name one with "
              "--configuration: "
           << annotations.listConfigurations();
  const onnx::DeviceConfigurationProto *chosen = annotations.chosen;
  if (!chosen)
    return annotations;
  if (chosen->num_devices() < 1 || chosen->num_devices() > dist::kMostDevices)
    return emitError(loc) << "the device configuration '" << chosen->name()
                          << "' has " << chosen->num_devices()
                          << " devices; 1 to " << dist::kMostDevices
                          << " are possible";
  if (chosen->device_size() != 0 &&
      chosen->device_size() != chosen->num_devices())
    return emitError(loc) << "the device configuration '" << chosen->name()
                          << "' has "
                          << abi::countOf(chosen->num_devices(), "device")
                          << " and names " << chosen->device_size();
  return annotations;
}

FailureOr<const onnx::NodeDeviceConfigurationProto *>
DeviceAnnotations::find(const onnx::NodeProto &node, Location loc) const {
  const onnx::NodeDeviceConfigurationProto *found = nullptr;
  if (ignored)
    return found;
  for (const auto &each : node.device_configurations()) {
    StringRef id = each.configuration_id();
    if (llvm::none_of(model->configuration(),
                      [&](const auto &known) { return id == known.name(); }))
      return emitError(loc)
             << "it is annotated for the device configuration '" << id
             << "', which the model does not have: " << listConfigurations();
    if (!chosen || id != chosen->name())
      continue;
    if (found)
      return emitError(loc) << "it is annotated twice for the device "
                               "configuration '"
                            << id << "'";
    found = &each;
  }
  return found;
}

FailureOr<std::optional<int64_t>>
DeviceAnnotations::getStage(const onnx::NodeProto &node, Location loc) const {
  auto found = PARTITA_TRY(find(node, loc));
  if (!found || !found->has_pipeline_stage())
    return std::optional<int64_t>();
  const int64_t stage = found->pipeline_stage();
  if (stage < 0 || stage >= dist::kMostDevices)
    return emitError(loc) << "it names the pipeline stage " << stage
                          << "; stages are 0 to " << dist::kMostDevices - 1;
  return std::optional<int64_t>(stage);
}

/// Reads how the dimensions of a tensor are cut.
static LogicalResult readDims(const onnx::ShardingSpecProto &spec, Location loc,
                              dist::TensorAnnotation &tensor) {
  auto error = [&]() {
    return emitError(loc) << "the sharding of tensor '" << tensor.name << "': ";
  };
  const auto rank = static_cast<int64_t>(tensor.shape.size());
  int64_t all = 1;
  for (const onnx::ShardedDimProto &sharded : spec.sharded_dim()) {
    if (!sharded.has_axis())
      return error() << "a sharded dimension has no axis";
    if (sharded.axis() < -rank || sharded.axis() >= rank)
      return error() << "axis " << sharded.axis() << " does not exist: it has "
                     << abi::countOf(rank, "dimension");
    dist::DimAnnotation dim;
    dim.dim = sharded.axis() < 0 ? sharded.axis() + rank : sharded.axis();
    if (llvm::any_of(tensor.dims, [&](const dist::DimAnnotation &other) {
          return other.dim == dim.dim;
        }))
      return error() << "axis " << dim.dim << " is there twice";
    const int64_t size = tensor.shape[dim.dim];
    int64_t known = 1;
    std::optional<size_t> unknown;
    for (const onnx::SimpleShardedDimProto &simple :
         sharded.simple_sharding()) {
      if (simple.num_shards() < 1)
        return error() << "axis " << dim.dim << " is cut into "
                       << simple.num_shards() << " shards";
      if (simple.num_shards() > dist::kMostDevices / all)
        return error() << "it has more than " << dist::kMostDevices
                       << " shards";
      all *= simple.num_shards();
      dim.parts.push_back(simple.num_shards());
      // The size of a whole dimension is known, also if it has a name only.
      const bool isSaid =
          simple.has_dim_value() && sharded.simple_sharding_size() > 1;
      if (simple.has_dim_value() && !isSaid && simple.dim_value() != size)
        return error() << "axis " << dim.dim << " has the size " << size
                       << ", not " << simple.dim_value();
      if (!isSaid && unknown)
        return error() << "axis " << dim.dim
                       << " has several dimensions of unknown size: give "
                          "dim_value";
      if (!isSaid)
        unknown = dim.sizes.size();
      dim.sizes.push_back(isSaid ? simple.dim_value() : 1);
      if (isSaid && (simple.dim_value() < 1 ||
                     simple.dim_value() > std::max<int64_t>(size / known, 1)))
        return error() << "axis " << dim.dim << " has the size " << size
                       << ", and consists of dimensions of more elements";
      known *= dim.sizes.back();
    }
    if (dim.parts.empty())
      continue;
    if (size % known || (!unknown && known != size))
      return error() << "axis " << dim.dim << " has the size " << size
                     << ", and consists of dimensions of "
                     << abi::countOf(known, "element");
    if (unknown)
      dim.sizes[*unknown] = size / known;
    tensor.dims.push_back(std::move(dim));
  }
  return success();
}

FailureOr<std::vector<dist::TensorAnnotation>> DeviceAnnotations::getTensors(
    const onnx::NodeProto &node, Location loc,
    llvm::function_ref<ModelValue(StringRef)> lookup) const {
  std::vector<dist::TensorAnnotation> tensors;
  auto found = PARTITA_TRY(find(node, loc));
  if (!found)
    return tensors;
  llvm::StringSet<> names;
  for (const onnx::ShardingSpecProto &spec : found->sharding_spec()) {
    const std::string &name = spec.tensor_name();
    if (name.empty() || (!llvm::is_contained(node.input(), name) &&
                         !llvm::is_contained(node.output(), name)))
      return emitError(loc) << "it shards the tensor '" << name
                            << "', which is neither an input nor an output of "
                               "the node";
    if (!names.insert(name).second)
      return emitError(loc) << "it shards the tensor '" << name << "' twice";
    const ModelValue value = lookup(name);
    if (!value)
      continue; // nobody reads it, so nothing computes it
    if (!value.tensor()) {
      emitRemark(loc) << "the sharding of '" << name
                      << "' is not taken: it is no tensor but a "
                      << getKindName(value.collection()->kind);
      continue;
    }
    tensors.push_back(describeTensor(name, value.tensor()));
    PARTITA_TRY(readDims(spec, loc, tensors.back()));
    PARTITA_TRY(readDevices(spec, loc, tensors.back()));
  }
  return tensors;
}

LogicalResult
DeviceAnnotations::readDevices(const onnx::ShardingSpecProto &spec,
                               Location loc,
                               dist::TensorAnnotation &tensor) const {
  auto error = [&]() {
    return emitError(loc) << "the sharding of tensor '" << tensor.name << "': ";
  };
  using Group = llvm::SmallVector<int64_t, 1>;
  std::map<int64_t, Group> groups;
  for (const onnx::IntIntListEntryProto &entry :
       spec.index_to_device_group_map()) {
    if (!groups
             .try_emplace(entry.key(),
                          Group(entry.value().begin(), entry.value().end()))
             .second)
      return error() << "the device group " << entry.key() << " is there twice";
    if (entry.value().empty())
      return error() << "the device group " << entry.key() << " is empty";
  }
  const int64_t count = chosen->num_devices();
  llvm::SmallBitVector used(count);
  auto add = [&](int64_t device, Group &group) -> LogicalResult {
    if (device < 0 || device >= count)
      return error() << "device " << device
                     << " does not exist: the configuration '" << chosen->name()
                     << "' has " << count
                     << ", and index_to_device_group_map has no such group";
    if (used.test(device))
      return error() << "device " << device << " is there twice";
    used.set(device);
    group.push_back(device);
    return success();
  };
  for (int64_t device : spec.device()) {
    Group &group = tensor.devices.emplace_back();
    auto it = groups.find(device);
    for (int64_t each : it == groups.end() ? Group{device} : it->second)
      PARTITA_TRY(add(each, group));
  }
  const int64_t parts = tensor.countParts();
  const auto named = static_cast<int64_t>(tensor.devices.size());
  if (named == 0 || named == parts)
    return success();
  if (parts != 1)
    return error() << "it has " << parts << " shards, and " << named
                   << " devices or groups of devices";
  // Each has the whole tensor.
  Group all;
  for (const Group &group : tensor.devices)
    all.append(group);
  tensor.devices.assign(1, all);
  return success();
}

dist::TensorAnnotation describeTensor(StringRef name, Value value) {
  dist::TensorAnnotation tensor;
  tensor.name = name.str();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  tensor.shape.assign(shape.begin(), shape.end());
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    tensor.kind = dist::TensorKind::input;
    tensor.where = function
                       .getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                     nn::kNameAttr)
                       .str();
  } else if (auto parameter = value.getDefiningOp<nn::ParameterOp>()) {
    tensor.kind = dist::TensorKind::weight;
    tensor.where = parameter.getWeight().str();
  } else if (!value.getDefiningOp<nn::ConstantOp>()) {
    tensor.kind = dist::TensorKind::result;
    tensor.where = nn::getNodeName(value.getDefiningOp());
  }
  return tensor;
}

} // namespace partita::import
