//===- Annotations.cpp - What a model says of devices ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Annotations.h"

#include "dialects/dist/DistDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace partita::dist {

int64_t TensorAnnotation::countParts() const {
  int64_t count = 1;
  for (const DimAnnotation &dim : dims)
    for (int64_t parts : dim.parts)
      count *= parts;
  return count;
}

static constexpr std::pair<TensorKind, llvm::StringLiteral> kKinds[] = {
    {TensorKind::weight, "weight"},
    {TensorKind::input, "input"},
    {TensorKind::result, "result"}};

static Attribute getTensorAttr(Builder &b, const TensorAnnotation &tensor) {
  NamedAttrList attrs;
  attrs.set("name", b.getStringAttr(tensor.name));
  for (auto &[kind, key] : kKinds)
    if (tensor.kind == kind)
      attrs.set(key, b.getStringAttr(tensor.where));
  attrs.set("shape", b.getDenseI64ArrayAttr(tensor.shape));
  SmallVector<Attribute> dims, devices;
  for (const DimAnnotation &dim : tensor.dims)
    dims.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("dim", b.getI64IntegerAttr(dim.dim)),
         b.getNamedAttr("parts", b.getDenseI64ArrayAttr(dim.parts)),
         b.getNamedAttr("sizes", b.getDenseI64ArrayAttr(dim.sizes))}));
  for (ArrayRef<int64_t> group : tensor.devices)
    devices.push_back(b.getDenseI64ArrayAttr(group));
  if (!dims.empty())
    attrs.set("dims", b.getArrayAttr(dims));
  if (!devices.empty())
    attrs.set("devices", b.getArrayAttr(devices));
  return attrs.getDictionary(b.getContext());
}

Attribute Annotations::getAttr(MLIRContext *context) const {
  Builder b(context);
  SmallVector<Attribute> list;
  for (const NodeAnnotation &node : nodes) {
    NamedAttrList attrs;
    attrs.set("node", b.getStringAttr(node.node));
    if (node.number)
      attrs.set("number", b.getI64IntegerAttr(*node.number));
    if (node.stage)
      attrs.set("stage", b.getI64IntegerAttr(*node.stage));
    SmallVector<Attribute> tensors;
    for (const TensorAnnotation &tensor : node.tensors)
      tensors.push_back(getTensorAttr(b, tensor));
    if (!tensors.empty())
      attrs.set("tensors", b.getArrayAttr(tensors));
    list.push_back(attrs.getDictionary(context));
  }
  return b.getDictionaryAttr(
      {b.getNamedAttr("configuration", b.getStringAttr(configuration)),
       b.getNamedAttr("devices", b.getI64IntegerAttr(devices)),
       b.getNamedAttr("nodes", b.getArrayAttr(list))});
}

/// The elements of a list of dictionaries, none if there is no list; false if
/// it is something else.
static bool getDictionaries(DictionaryAttr attrs, StringRef name,
                            SmallVectorImpl<DictionaryAttr> &list) {
  Attribute attr = attrs.get(name);
  auto array = dyn_cast_if_present<ArrayAttr>(attr);
  if (!array)
    return !attr;
  for (Attribute each : array) {
    auto dictionary = dyn_cast<DictionaryAttr>(each);
    if (!dictionary)
      return false;
    list.push_back(dictionary);
  }
  return true;
}

/// `count`: devices of the configuration.
static std::optional<TensorAnnotation> readTensor(DictionaryAttr attrs,
                                                  int64_t count) {
  TensorAnnotation tensor;
  auto name = attrs.getAs<StringAttr>("name");
  auto shape = attrs.getAs<DenseI64ArrayAttr>("shape");
  SmallVector<DictionaryAttr> dims;
  if (!name || !shape || !getDictionaries(attrs, "dims", dims))
    return std::nullopt;
  tensor.name = name.str();
  tensor.shape.assign(shape.asArrayRef().begin(), shape.asArrayRef().end());
  for (auto &[kind, key] : kKinds)
    if (auto where = attrs.getAs<StringAttr>(key)) {
      tensor.kind = kind;
      tensor.where = where.str();
    }
  for (DictionaryAttr each : dims) {
    auto dim = each.getAs<IntegerAttr>("dim");
    auto sizes = each.getAs<DenseI64ArrayAttr>("sizes");
    auto parts = each.getAs<DenseI64ArrayAttr>("parts");
    if (!dim || !sizes || !parts || sizes.size() != parts.size() ||
        dim.getInt() < 0 ||
        dim.getInt() >= static_cast<int64_t>(tensor.shape.size()))
      return std::nullopt;
    int64_t all = 1;
    for (auto [size, count] : llvm::zip(sizes.asArrayRef(), parts.asArrayRef()))
      if (size < 0 || count < 1 || llvm::MulOverflow(all, size, all))
        return std::nullopt;
    if (sizes.size() > 0 && all != tensor.shape[dim.getInt()])
      return std::nullopt;
    tensor.dims.push_back({dim.getInt(),
                           llvm::SmallVector<int64_t, 1>(sizes.asArrayRef()),
                           llvm::SmallVector<int64_t, 1>(parts.asArrayRef())});
  }
  if (auto devices = attrs.getAs<ArrayAttr>("devices"))
    for (Attribute each : devices) {
      auto group = dyn_cast<DenseI64ArrayAttr>(each);
      if (!group || group.empty() ||
          llvm::any_of(group.asArrayRef(), [&](int64_t device) {
            return device < 0 || device >= count;
          }))
        return std::nullopt;
      tensor.devices.emplace_back(group.asArrayRef());
    }
  int64_t parts = 1;
  for (const DimAnnotation &dim : tensor.dims)
    for (int64_t each : dim.parts)
      if (llvm::MulOverflow(parts, each, parts))
        return std::nullopt;
  if (!tensor.devices.empty() &&
      static_cast<int64_t>(tensor.devices.size()) != parts)
    return std::nullopt;
  return tensor;
}

std::optional<Annotations> Annotations::fromAttr(Attribute attr) {
  auto attrs = dyn_cast_if_present<DictionaryAttr>(attr);
  if (!attrs)
    return std::nullopt;
  auto name = attrs.getAs<StringAttr>("configuration");
  auto devices = attrs.getAs<IntegerAttr>("devices");
  SmallVector<DictionaryAttr> nodes;
  if (!name || !devices || devices.getInt() < 0 ||
      devices.getInt() > kMostDevices ||
      !getDictionaries(attrs, "nodes", nodes))
    return std::nullopt;
  Annotations annotations{name.str(), devices.getInt(), {}};
  for (DictionaryAttr each : nodes) {
    NodeAnnotation &node = annotations.nodes.emplace_back();
    auto called = each.getAs<StringAttr>("node");
    SmallVector<DictionaryAttr> tensors;
    if (!called || !getDictionaries(each, "tensors", tensors))
      return std::nullopt;
    node.node = called.str();
    if (auto number = each.getAs<IntegerAttr>("number"))
      node.number = number.getInt();
    if (auto stage = each.getAs<IntegerAttr>("stage"))
      node.stage = stage.getInt();
    for (DictionaryAttr one : tensors) {
      std::optional<TensorAnnotation> tensor =
          readTensor(one, annotations.devices);
      if (!tensor)
        return std::nullopt;
      node.tensors.push_back(std::move(*tensor));
    }
  }
  return annotations;
}

} // namespace partita::dist
