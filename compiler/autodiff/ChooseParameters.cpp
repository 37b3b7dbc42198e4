//===- ChooseParameters.cpp - Which weights are trained -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Globs.h"
#include "compiler/autodiff/Passes.h"
#include "compiler/autodiff/Ports.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstring>

using namespace mlir;

namespace partita::autodiff {

#define GEN_PASS_DEF_CHOOSEPARAMETERSPASS
#include "compiler/autodiff/Passes.h.inc"

namespace {

/// A mask has zeros, and beside them only ones, or only large negative numbers.
constexpr float kMasked = -1e4F;

bool isMask(ArrayRef<float> elements) {
  bool hasZero = false, hasOne = false, hasMasked = false;
  for (float element : elements) {
    hasZero |= element == 0;
    hasOne |= element == 1;
    hasMasked |= element <= kMasked;
    // Most weights end here, with their first element.
    if (element != 0 && element != 1 && !(element <= kMasked))
      return false;
  }
  return hasZero && hasOne != hasMasked;
}

/// Whether the weight's elements are those of a mask. Of floats that are not of
/// 32 bits nobody makes masks that are weights.
bool isMask(nn::WeightOp weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  if (!type.getElementType().isF32() || type.getRank() < 2)
    return false;
  if (auto value = dyn_cast_or_null<DenseElementsAttr>(
          weight.getValue().value_or(ElementsAttr())))
    return isMask(llvm::to_vector(value.getValues<float>()));
  if (!weight.getFile())
    return false;
  auto bytes = llvm::MemoryBuffer::getFileSlice(
      *weight.getFile(), *weight.getBytes(), *weight.getOffset());
  // That a file cannot be read is said by who needs its bytes.
  if (!bytes)
    return false;
  const char *from = (*bytes)->getBufferStart();
  constexpr size_t kBlock = 1024;
  std::vector<float> block;
  // Looks at the first elements before at all of them.
  const size_t count = (*bytes)->getBufferSize() / sizeof(float);
  for (size_t wanted : {std::min(kBlock, count), count}) {
    block.resize(wanted);
    std::memcpy(block.data(), from, wanted * sizeof(float));
    for (float element : block)
      if (element != 0 && element != 1 && !(element <= kMasked))
        return false;
  }
  return isMask(block);
}

struct ChooseParametersPass
    : impl::ChooseParametersPassBase<ChooseParametersPass> {
  using ChooseParametersPassBase::ChooseParametersPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Location loc = UnknownLoc::get(&getContext());
    Globs frozen("--freeze", *freeze), only("--train-only", *trainOnly);
    if (failed(frozen.compile(loc)) || failed(only.compile(loc)))
      return signalPassFailure();
    llvm::DenseSet<StringAttr> statistics;
    module.walk([&](nn::ParameterOp parameter) {
      if (parameter->hasAttr(kStatisticAttr))
        statistics.insert(parameter.getWeightAttr().getAttr());
    });
    Builder b(&getContext());
    for (auto weight : module.getOps<nn::WeightOp>()) {
      StringRef name = weight.getOrigin();
      const bool isFrozen = frozen.match(name), isNamed = only.match(name);
      auto type = cast<RankedTensorType>(weight.getType());
      StringRef reason =
          !isa<FloatType>(type.getElementType()) ? "its elements are no floats"
          : isFrozen                             ? "--freeze names it"
          : !only.empty() && !isNamed ? "--train-only does not name it"
          : isNamed                   ? ""
          : type.getRank() == 0       ? "it is a single number"
          : statistics.contains(weight.getSymNameAttr())
              ? "it is a running statistic"
          : isMask(weight) ? "it is a mask"
                           : "";
      if (reason.empty())
        weight->setAttr(kTrainedAttr, b.getUnitAttr());
      else
        weight->setAttr(kUntrainedAttr, b.getStringAttr(reason));
    }
    if (failed(frozen.checkUse(loc)) || failed(only.checkUse(loc)))
      signalPassFailure();
  }
};

} // namespace
} // namespace partita::autodiff
