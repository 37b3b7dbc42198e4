//===- KernelWork.cpp - What a kernel of a GPU has to do ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/KernelWork.h"

#include "compiler/codegen/cuda/SpecialKernels.h"
#include "dialects/nn/NNDialect.h"

#include "llvm/ADT/TypeSwitch.h"

#include <optional>

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

/// Operations for a pair of elements: two comparisons, those of their places,
/// what joins them, and the sum of the hits.
constexpr double kPairOperations = 8;
/// For an element of a long scan: its share of what a warp and a block join.
constexpr double kScanOperations = 8;
/// For an element that may be one of a sum: a comparison, a choice, the sum.
constexpr double kTermOperations = 3;
/// What a block takes to agree on an update, for all its threads.
constexpr double kTurnOperations = 4096;
/// A thread has about as many elements of a reduction at least, and a result
/// as many threads at most.
constexpr double kElementsOfThread = 4, kThreadsOfResult = 256;

double countElements(Value tensor) {
  return static_cast<double>(
      cast<RankedTensorType>(tensor.getType()).getNumElements());
}

/// What a kernel reduces: so many elements to each of so many results.
struct Reducing {
  double results, length;
};

double getSize(Value tensor, int64_t dim) {
  return static_cast<double>(
      cast<RankedTensorType>(tensor.getType()).getDimSize(dim));
}

std::optional<Reducing> getReducing(Operation *op) {
  using Found = std::optional<Reducing>;
  return llvm::TypeSwitch<Operation *, Found>(op)
      .Case([](nn::TopKOp topK) {
        // The threads of a row compare its elements with each other.
        const double columns = getSize(topK.getX(), 1);
        return Reducing{getSize(topK.getX(), 0), columns * columns};
      })
      .Case([](nn::ScanOp scan) {
        const double length = getSize(scan.getX(), scan.getDim()),
                     elements = countElements(scan.getX());
        return Reducing{isLongScan(scan) ? elements / length : elements,
                        length};
      })
      .Case([](nn::ScatterOp scatter) {
        if (isRowScatter(scatter))
          return Reducing{static_cast<double>(countBlocks(scatter)),
                          kElementsOfThread * kThreadsOfResult};
        return Reducing{countElements(scatter.getX()),
                        countElements(scatter.getPlaces())};
      })
      .Default([](Operation *op) -> Found {
        if (auto rowwise = dyn_cast<nn::RowwiseOpInterface>(op)) {
          double length = 1;
          for (int64_t dim : rowwise.getRowDims())
            length *= getSize(op->getOperand(0), dim);
          length = std::max(length, 1.0);
          return Reducing{countElements(op->getOperand(0)) / length, length};
        }
        auto costed = dyn_cast<nn::CostOpInterface>(op);
        if (!costed)
          return std::nullopt;
        const nn::Cost cost = costed.getCost();
        const double results = std::max(countElements(op->getResult(0)), 1.0);
        switch (cost.kind) {
        case nn::CostKind::reduction:
        case nn::CostKind::dot:
        case nn::CostKind::conv:
        case nn::CostKind::attention:
          return Reducing{results, static_cast<double>(cost.flops) / results};
        default:
          return std::nullopt;
        }
      });
}

} // namespace

double countOperations(Operation *op) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case([](nn::TopKOp topK) {
        const double elements = countElements(topK.getX()),
                     chosen = countElements(topK.getResult()),
                     columns = getSize(topK.getX(), 1);
        if (isSelected(topK))
          return kPairOperations * chosen * (columns + kPassElements);
        return columns *
               (kPairOperations * elements + kTermOperations * chosen);
      })
      .Case<nn::ScanOp, nn::ScatterOp>([](Operation *op) {
        if (auto scatter = dyn_cast<nn::ScatterOp>(op);
            scatter && isRowScatter(scatter))
          return kTermOperations *
                 (static_cast<double>(countBlocks(scatter)) *
                      (countElements(scatter.getPlaces()) + kTurnOperations) +
                  countElements(scatter.getX()) +
                  countElements(scatter.getUpdates()));
        const Reducing work = *getReducing(op);
        auto scan = dyn_cast<nn::ScanOp>(op);
        return (scan && isLongScan(scan) ? kScanOperations : kTermOperations) *
               work.results * work.length;
      })
      .Default([](Operation *op) {
        auto costed = dyn_cast<nn::CostOpInterface>(op);
        return costed ? static_cast<double>(costed.getCost().flops) : 0;
      });
}

double countThreads(ArrayRef<Operation *> ops) {
  double points = 1;
  std::optional<double> least;
  for (Operation *op : ops) {
    if (auto layer = dyn_cast<nn::RecurrentOp>(op))
      return static_cast<double>(countBlocks(layer) * kSpecialThreads);
    for (Value result : op->getResults())
      points = std::max(points, countElements(result));
    // Reductions of a kernel share its rows.
    std::optional<Reducing> work = getReducing(op);
    if (!work)
      continue;
    const double threads =
        std::max(work->results, 1.0) *
        std::clamp(work->length / kElementsOfThread, 1.0, kThreadsOfResult);
    least = std::min(threads, least.value_or(threads));
  }
  return least.value_or(points);
}

} // namespace partita::codegen::cuda
