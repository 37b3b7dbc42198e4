//===- ChooseParameters.cpp - Which weights are trained -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Passes.h"
#include "compiler/autodiff/Ports.h"
#include "compiler/files/Globs.h"
#include "dialects/nn/CheckAttr.h"

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
constexpr double kMasked = -1e4;

/// A mask of more elements is not looked for: it would be of more than 8192
/// positions.
constexpr int64_t kMostMaskElements = int64_t(1) << 26;

/// The element of a type of floats that begins at `bytes`.
double readElement(FloatType type, const char *bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, type.getWidth() / 8);
  return APFloat(type.getFloatSemantics(), APInt(type.getWidth(), bits))
      .convertToDouble();
}

/// Whether the elements of a tensor are those of a mask. Those of most weights
/// are not, by their first one.
bool isMask(FloatType type, ArrayRef<char> bytes) {
  bool hasZero = false, hasOne = false, hasMasked = false;
  const size_t width = type.getWidth() / 8;
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    // A mask is long runs of the same element.
    const char *element = bytes.data() + at;
    if (at > 0 && std::memcmp(element, element - width, width) == 0)
      continue;
    const double value = readElement(type, element);
    if (value != 0 && value != 1 && !(value <= kMasked))
      return false;
    hasZero |= value == 0;
    hasOne |= value == 1;
    hasMasked |= value <= kMasked;
  }
  return hasZero && hasOne != hasMasked;
}

bool isMask(nn::WeightOp weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  auto element = dyn_cast<FloatType>(type.getElementType());
  if (!element || element.getWidth() < 16 || type.getRank() < 2 ||
      type.getNumElements() > kMostMaskElements)
    return false;
  if (auto value = dyn_cast_or_null<DenseElementsAttr>(
          weight.getValue().value_or(ElementsAttr())))
    return isMask(element, value.getRawData());
  if (!weight.getFile())
    return false;
  auto bytes = llvm::MemoryBuffer::getFileSlice(
      *weight.getFile(), *weight.getBytes(), *weight.getOffset());
  // That a file cannot be read is said by who needs its bytes.
  return bytes && isMask(element, {(*bytes)->getBufferStart(),
                                   (*bytes)->getBufferSize()});
}

/// Why another plan of the model does not train it; empty: it does.
StringRef getKnownReason(nn::WeightOp weight) {
  auto reason = weight->getAttrOfType<StringAttr>(kUntrainedAttr);
  return reason ? reason.getValue() : "";
}

struct ChooseParametersPass
    : impl::ChooseParametersPassBase<ChooseParametersPass> {
  using ChooseParametersPassBase::ChooseParametersPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Location loc = UnknownLoc::get(&getContext());
    files::Globs frozen("--freeze", *freeze), only("--train-only", *trainOnly);
    if (failed(frozen.compile(loc)) || failed(only.compile(loc)))
      return signalPassFailure();
    llvm::DenseSet<StringAttr> statistics;
    module.walk([&](nn::ParameterOp parameter) {
      if (parameter->hasAttr(nn::kStatisticAttr))
        statistics.insert(parameter.getWeightAttr().getAttr());
    });
    Builder b(&getContext());
    for (auto weight : module.getOps<nn::WeightOp>()) {
      StringRef name = weight.getOrigin();
      const bool isFrozen = frozen.match(name), isNamed = only.match(name);
      auto type = cast<RankedTensorType>(weight.getType());
      const StringRef known = getKnownReason(weight);
      auto declared = weight->getAttrOfType<StringAttr>(nn::kDeclaredAttr);
      const bool isParameter =
          declared && declared.getValue() == nn::kDeclaredParameter;
      const std::string reason =
          !isa<FloatType>(type.getElementType()) ? "its elements are no floats"
          : isFrozen                             ? "--freeze names it"
          : !only.empty() && !isNamed ? "--train-only does not name it"
          : !known.empty()            ? known.str()
          : isNamed || isParameter    ? ""
          : type.getRank() == 0       ? "it is a single number"
          : statistics.contains(weight.getSymNameAttr())
              ? "it is a running statistic"
          : declared       ? "it is a " + declared.getValue().str()
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
