//===- PlanAttrs.cpp - How a cluster is computed --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace partita::plan;

#define GET_ATTRDEF_CLASSES
#include "dialects/plan/PlanAttrs.cpp.inc"

void PlanDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/plan/PlanAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// CallAttr
//===----------------------------------------------------------------------===//

/// Whether a kind of call has such details; null: none.
static bool fits(CallKind kind, Attribute details) {
  switch (kind) {
  case CallKind::dot:
  case CallKind::update_slice:
  case CallKind::expert_dot:
  case CallKind::expert_outer:
    return !details;
  case CallKind::conv:
  case CallKind::conv_dx:
  case CallKind::conv_dw:
    return isa_and_nonnull<ConvAttr>(details);
  case CallKind::pool_max:
  case CallKind::pool_avg:
    return isa_and_nonnull<PoolAttr>(details);
  case CallKind::attention:
    return isa_and_nonnull<AttentionAttr>(details);
  case CallKind::recurrent:
    return isa_and_nonnull<RecurrentAttr>(details);
  case CallKind::top_k:
    return isa_and_nonnull<TopKAttr>(details);
  case CallKind::scan:
  case CallKind::scatter:
    return isa_and_nonnull<CombineAttr>(details);
  case CallKind::packed_dot:
    return isa_and_nonnull<PackedDotAttr>(details);
  }
  return false;
}

LogicalResult
CallAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                 CallKind kind, ArrayRef<ViewAttr> /*operands*/,
                 Attribute details, ArrayRef<PostOpAttr> /*postOps*/) {
  if (fits(kind, details))
    return success();
  return emitError() << "a call of kind " << stringifyCallKind(kind)
                     << " has no such details: " << details;
}

SmallVector<ViewAttr> CallAttr::getViewsOfDetails() const {
  SmallVector<ViewAttr> views;
  if (!getDetails())
    return views;
  llvm::TypeSwitch<Attribute>(getDetails())
      .Case([&](ConvAttr conv) { views = {conv.getBias()}; })
      .Case([&](AttentionAttr attention) {
        views = {attention.getMaskMul(), attention.getMaskAdd()};
      })
      .Case([&](RecurrentAttr layer) {
        views = {layer.getLengths(), layer.getInitial(), layer.getInitialCell(),
                 layer.getPeepholes(), layer.getHiddenBias()};
      })
      .Case([&](PackedDotAttr packed) {
        views = {packed.getZeros(), packed.getExperts()};
      })
      .Default([](Attribute) {});
  llvm::erase_if(views, [](ViewAttr view) { return !view; });
  return views;
}

//===----------------------------------------------------------------------===//
// How phases see a lowering
//===----------------------------------------------------------------------===//

partita::nn::ClusterKind KernelAttr::getClusterKind() const {
  return partita::nn::ClusterKind::kernel;
}

SmallVector<std::pair<unsigned, unsigned>> KernelAttr::getInPlacePairs() const {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  for (size_t i = 0; i + 1 < getInPlace().size(); i += 2)
    pairs.emplace_back(getInPlace()[i], getInPlace()[i + 1]);
  return pairs;
}

partita::nn::ClusterKind CallAttr::getClusterKind() const {
  return partita::nn::ClusterKind::call;
}

/// A call adds its result upon the operand of a sum, and writes rows upon a
/// table, or a slice upon a tensor.
SmallVector<std::pair<unsigned, unsigned>> CallAttr::getInPlacePairs() const {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  if (getKind() == CallKind::scatter || getKind() == CallKind::update_slice)
    pairs.emplace_back(getOperands().front().getValue(), 0);
  for (PostOpAttr post : getPostOps())
    if (post.getKind() == PostOpKind::sum && post.getView())
      pairs.emplace_back(post.getView().getValue(), 0);
  return pairs;
}
