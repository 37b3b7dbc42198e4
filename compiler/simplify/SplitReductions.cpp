//===- SplitReductions.cpp - Reduce in two steps, for all cores -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/simplify/Passes.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace partita::simplify {

#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

// Elements from which two steps are worth their start.
constexpr int64_t kLeastElements = 1 << 16;
// A core computes so many neighbouring results at once.
constexpr int64_t kTogether = 64;
// As many parts keep all cores of a device busy.
constexpr int64_t kEnoughParts = 32;

/// The number of the outermost of `dims` that become the second step; 0 if one
/// step is as good.
size_t countOuter(nn::ReduceOp op) {
  auto type = cast<RankedTensorType>(op.getX().getType());
  ArrayRef<int64_t> dims = op.getDims();
  if (type.getNumElements() < kLeastElements)
    return 0;
  int64_t last = type.getRank() - 1;
  int64_t parts = cast<RankedTensorType>(op.getType()).getNumElements();
  // Results of which many lie next to each other are computed together.
  if (!dims.empty() && dims.back() != last)
    parts = std::max<int64_t>(
        parts / std::min(type.getDimSize(last), kTogether), 1);
  for (size_t outer = 0; outer < dims.size(); ++outer) {
    if (parts >= kEnoughParts)
      return outer;
    parts *= type.getDimSize(dims[outer]);
  }
  // All of them: then at least the innermost stays.
  return dims.empty() ? 0 : dims.size() - 1;
}

struct SplitReductionsPass
    : impl::SplitReductionsPassBase<SplitReductionsPass> {
  void runOnOperation() override {
    getOperation().walk([](nn::ReduceOp op) {
      size_t outer = countOuter(op);
      if (outer == 0)
        return;
      ArrayRef<int64_t> dims = op.getDims();
      auto type = cast<RankedTensorType>(op.getX().getType());
      SmallVector<int64_t> shape;
      for (auto [dim, size] : llvm::enumerate(type.getShape()))
        if (!llvm::is_contained(dims.drop_front(outer), int64_t(dim)))
          shape.push_back(size);
      // Nothing before the outer dimensions vanishes, so they keep their
      // numbers.
      OpBuilder b(op);
      auto first =
          nn::ReduceOp::create(b, op.getLoc(), type.clone(shape), op.getKind(),
                               op.getX(), dims.drop_front(outer));
      op.getXMutable().assign(first.getResult());
      op.setDims(dims.take_front(outer));
    });
  }
};

} // namespace
} // namespace partita::simplify
