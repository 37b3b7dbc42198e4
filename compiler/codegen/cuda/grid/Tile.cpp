//===- Tile.cpp - Which kernels transpose, and their tiles ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/grid/Tile.h"

#include "compiler/codegen/kernels/EmitBody.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace partita::codegen::cuda {

/// A block reads as many pieces of an operand, each of many elements: caches
/// serve it well.
static constexpr int64_t kFewPieces = 8;
/// Of a block, so that many blocks have room.
static constexpr int64_t kMostStagedBytes = 24 * 1024;
static constexpr int64_t kBankBytes = 4, kBanks = 32;

static int64_t getElementBytes(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementTypeBitWidth() / 8;
}

/// How the addresses of a dense tensor change along each row dimension.
static SmallVector<int64_t> getRowSteps(const KernelSchedule &kernel,
                                        const StageSchedule &stage,
                                        Value tensor, AffineMap map) {
  const SmallVector<int64_t> strides =
      computeStrides(cast<RankedTensorType>(tensor.getType()).getShape());
  SmallVector<int64_t> steps(kernel.sizes.size());
  for (auto [loop, row] : llvm::enumerate(stage.rows))
    if (row >= 0)
      steps[row] = getAddressStep(strides, map, loop);
  return steps;
}

/// The row dimension of several rows along which elements are neighbours.
static std::optional<unsigned> findContiguous(const KernelSchedule &kernel,
                                              ArrayRef<int64_t> steps) {
  for (auto [row, step] : llvm::enumerate(steps))
    if (step == 1 && kernel.sizes[row] > 1)
      return row;
  return std::nullopt;
}

/// Whether the operand is another stage's result, which threads keep.
static bool isKeptElement(const KernelSchedule &kernel, Value tensor) {
  return kernel.find(skipViews(tensor).getDefiningOp());
}

std::optional<Transposition> findTransposition(const KernelSchedule &kernel) {
  if (kernel.sizes.size() < 2 || llvm::any_of(kernel.sizes, [](int64_t size) {
        return size > std::numeric_limits<int32_t>::max() / 2;
      }))
    return std::nullopt;
  const StageSchedule &root = kernel.stages.back();
  linalg::GenericOp rootOp = root.op;
  std::optional<unsigned> written =
      findContiguous(kernel, getRowSteps(kernel, root, rootOp.getResult(0),
                                         rootOp.getIndexingMapsArray().back()));
  if (!written || kernel.sizes[*written] <= kFewPieces)
    return std::nullopt;
  Transposition found;
  found.written = *written;
  SmallVector<std::pair<OpOperand *, unsigned>> candidates;
  int64_t largest = 0;
  for (const StageSchedule &stage : kernel.stages) {
    linalg::GenericOp op = stage.op;
    if (countPoints(stage) != 1 || countReduced(stage) != 1)
      return std::nullopt;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      if (op.getMatchingBlockArgument(operand).use_empty() ||
          isKeptElement(kernel, operand->get()))
        continue;
      SmallVector<int64_t> steps = getRowSteps(
          kernel, stage, operand->get(), op.getMatchingIndexingMap(operand));
      std::optional<unsigned> read = findContiguous(kernel, steps);
      if (!read || std::abs(steps[*written]) <= 1)
        continue;
      candidates.push_back({operand, *read});
      auto type = cast<RankedTensorType>(operand->get().getType());
      if (type.getNumElements() <= largest)
        continue;
      largest = type.getNumElements();
      found.read = *read;
    }
  }
  int64_t bytes = 0;
  for (auto [operand, read] : candidates)
    if (read == found.read)
      bytes = std::max(bytes, getElementBytes(operand->get()));
  // As many as have room: a tile has no more than so many elements.
  const int64_t most = bytes <= 2 ? 70 * 70 : 36 * 36;
  int64_t room = kMostStagedBytes;
  for (auto [operand, read] : candidates) {
    const int64_t needed = most * getElementBytes(operand->get());
    if (read != found.read || room < needed)
      continue;
    room -= needed;
    found.staged.push_back(operand);
  }
  return found.staged.empty() ? std::nullopt : std::optional(found);
}

SmallVector<int64_t> chooseTile(const KernelSchedule &kernel,
                                const Transposition &transposition) {
  int64_t bytes = 0;
  for (OpOperand *operand : transposition.staged)
    bytes = std::max(bytes, getElementBytes(operand->get()));
  // Lines of whole sectors on both sides, and elements enough to wait for.
  const int64_t side = bytes <= 2 ? 64 : 32;
  const int64_t sizes[] = {kernel.sizes[transposition.read],
                           kernel.sizes[transposition.written]};
  int64_t extents[] = {std::min(sizes[0], side), std::min(sizes[1], side)};
  // Where one side is short, the other may be longer.
  for (int i : {0, 1})
    if (extents[i] < side)
      extents[1 - i] = std::min<int64_t>(
          sizes[1 - i], side * side / extents[i] / kWarp * kWarp);
  SmallVector<int64_t> tile(kernel.sizes.size(), 1);
  tile[transposition.read] = extents[0];
  tile[transposition.written] = extents[1];
  return tile;
}

StagedTile getStagedTile(const GridSchedule &schedule,
                         const Transposition &transposition,
                         OpOperand &operand) {
  const int64_t read = schedule.tile[transposition.read],
                written = schedule.tile[transposition.written],
                bytes = getElementBytes(operand.get());
  // Those who read at once are of `written` lines, and neighbours in a line.
  // Lines begin at distances of as many banks as these neighbours take.
  const int64_t word = std::max(bytes, kBankBytes),
                elements = word / bytes, // of a word
      threads = kBanks * kBankBytes / word;
  const int64_t step = llvm::bit_floor(static_cast<uint64_t>(
      std::max<int64_t>(threads / (written * elements), 1)));
  int64_t words = llvm::divideCeil(read, elements);
  words += (step - words % (2 * step) + 2 * step) % (2 * step);
  // Every thread loads as often as the others.
  const int64_t loaded = llvm::alignTo(read * written, schedule.threads);
  return {words * elements,
          static_cast<int64_t>(llvm::divideCeil(loaded, read))};
}

int64_t getStagedBytes(const GridSchedule &schedule,
                       const Transposition &transposition) {
  int64_t bytes = 0;
  for (OpOperand *operand : transposition.staged) {
    StagedTile tile = getStagedTile(schedule, transposition, *operand);
    bytes +=
        llvm::alignTo(tile.pitch * tile.lines * getElementBytes(operand->get()),
                      kVectorBytes);
  }
  return bytes;
}

} // namespace partita::codegen::cuda
