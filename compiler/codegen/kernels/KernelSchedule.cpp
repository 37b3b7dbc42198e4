//===- KernelSchedule.cpp - The parallel loop of a kernel -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/KernelSchedule.h"

#include "compiler/codegen/Codegen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace partita::codegen {

/// Elements that are worth an iteration of the parallel loop, and of one that
/// runs over columns.
static constexpr int64_t kTileElements = 2048;
static constexpr int64_t kColumnTile = 64;

Value skipViews(Value tensor) {
  while (isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
      tensor.getDefiningOp()))
    tensor = tensor.getDefiningOp()->getOperand(0);
  return tensor;
}

Value getStorageRoot(Value tensor) {
  tensor = skipViews(tensor);
  while (auto op = tensor.getDefiningOp<DestinationStyleOpInterface>())
    tensor = skipViews(op.getDpsInits()[0]);
  return tensor;
}

static linalg::GenericOp getStage(Value tensor) {
  return skipViews(tensor).getDefiningOp<linalg::GenericOp>();
}

/// Whether a stage reads such a tensor at computed positions.
static bool readsInBody(linalg::GenericOp stage,
                        llvm::function_ref<bool(Value)> isSuch) {
  bool reads = false;
  stage.getBody()->walk(
      [&](tensor::ExtractOp extract) { reads |= isSuch(extract.getTensor()); });
  return reads;
}

const StageSchedule *KernelSchedule::find(Operation *stage) const {
  const StageSchedule *it = llvm::find_if(
      stages, [&](const StageSchedule &known) { return known.op == stage; });
  return it == stages.end() ? nullptr : it;
}

SmallVector<int64_t> KernelSchedule::getTileCounts() const {
  SmallVector<int64_t> counts;
  for (auto [size, tile] : llvm::zip_equal(sizes, tiles))
    counts.push_back(llvm::divideCeil(size, tile));
  return counts;
}

SmallVector<int64_t>
KernelSchedule::getTileShape(const StageSchedule &stage) const {
  SmallVector<int64_t> shape;
  linalg::GenericOp op = stage.op;
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  for (auto [size, row] : llvm::zip_equal(type.getShape(), getRows(stage)))
    shape.push_back(row < 0 ? size : tiles[row]);
  return shape;
}

SmallVector<int> KernelSchedule::getRows(const StageSchedule &stage) const {
  SmallVector<int> rows;
  linalg::GenericOp op = stage.op;
  AffineMap map = op.getIndexingMapsArray().back();
  for (AffineExpr expr : map.getResults())
    rows.push_back(stage.rows[cast<AffineDimExpr>(expr).getPosition()]);
  return rows;
}

/// How the element's place in a dense tensor changes with a loop, or -1.
static int64_t getStep(RankedTensorType type, AffineMap map, unsigned loop) {
  int64_t step = 0, stride = 1;
  for (int64_t dim = type.getRank(); dim-- > 0;
       stride *= type.getDimSize(dim)) {
    AffineExpr expr = map.getResult(dim);
    if (expr == getAffineDimExpr(loop, map.getContext()))
      step += stride;
    else if (expr.isFunctionOfDim(loop))
      return -1;
  }
  return step;
}

std::optional<Crossing> findCrossing(linalg::GenericOp op) {
  if (op.getNumReductionLoops() != 0 || op.getNumLoops() < 2)
    return std::nullopt;
  for (Operation &inner : op.getBody()->without_terminator())
    if (!isa<arith::ConstantOp>(inner) &&
        (inner.getNumRegions() != 0 ||
         !OpTrait::hasElementwiseMappableTraits(&inner)))
      return std::nullopt;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  AffineMap map = op.getIndexingMapsArray().back();
  auto result = cast<RankedTensorType>(op.getResult(0).getType());
  std::optional<unsigned> written, read;
  for (unsigned loop = 0; loop < sizes.size(); ++loop)
    if (getStep(result, map, loop) == 1 && sizes[loop] != 1)
      written = loop;
  if (!written)
    return std::nullopt;
  Crossing crossing;
  crossing.written = *written;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (op.getMatchingBlockArgument(operand).use_empty())
      continue;
    auto type = cast<RankedTensorType>(operand->get().getType());
    AffineMap map = op.getMatchingIndexingMap(operand);
    int64_t step = getStep(type, map, *written);
    if (step == 0 || step == 1)
      continue;
    std::optional<unsigned> along;
    for (unsigned loop = 0; loop < sizes.size(); ++loop)
      if (loop != *written && sizes[loop] != 1 && getStep(type, map, loop) == 1)
        along = loop;
    if (!along || (read && *read != *along))
      return std::nullopt;
    read = along;
    crossing.operands.push_back(operand->getOperandNumber());
  }
  if (!read || sizes[*read] < 4)
    return std::nullopt;
  crossing.read = *read;
  if (sizes[*written] >= 4)
    return crossing;
  // All operands must be vectors or one element along the read loop.
  crossing.interleaves = getStep(result, map, *read) == sizes[*written];
  for (OpOperand *operand : op.getDpsInputOperands()) {
    int64_t step = getStep(cast<RankedTensorType>(operand->get().getType()),
                           op.getMatchingIndexingMap(operand), *read);
    crossing.interleaves &= step == 0 || step == 1;
  }
  return crossing.interleaves ? std::optional(crossing) : std::nullopt;
}

namespace {

class Scheduler {
public:
  Scheduler(func::FuncOp func, bool tiled) : func(func), tiled(tiled) {
    schedule.scalar = func->hasAttr(kReferenceAttr);
    for (auto op : func.getOps<linalg::GenericOp>()) {
      StageSchedule stage{op, op.getStaticLoopRanges(), {}};
      schedule.stages.push_back(stage);
    }
  }

  KernelSchedule run() {
    if (schedule.stages.empty())
      return schedule;
    findRows();
    chooseTiles();
    measure();
    if (!schedule.scalar)
      findInPlace();
    return std::move(schedule);
  }

private:
  StageSchedule &root() { return schedule.stages.back(); }
  bool isResult(StageSchedule &stage) {
    return isa<BlockArgument>(getStorageRoot(stage.op.getResult(0)));
  }

  /// Drops candidates among the root's loops until all stages can be cut along
  /// all that are left.
  void findRows() {
    bool empty = llvm::is_contained(root().sizes, 0);
    for (auto iterator : root().op.getIteratorTypesArray())
      candidate.push_back(iterator == utils::IteratorType::parallel && !empty);
    while (!tryRows()) {
    }
    // Number the rows that are left.
    SmallVector<int> numbers;
    for (auto [loop, yes] : llvm::enumerate(candidate)) {
      numbers.push_back(yes ? static_cast<int>(schedule.sizes.size()) : -1);
      if (yes)
        schedule.sizes.push_back(root().sizes[loop]);
    }
    for (StageSchedule &stage : schedule.stages)
      for (int &row : stage.rows)
        row = row < 0 ? -1 : numbers[row];
  }

  /// Drops a candidate: the loops are to be labelled again.
  bool drop(int loop) {
    candidate[loop] = false;
    return false;
  }
  /// Drops all of them, if there are any.
  bool dropAll() {
    if (!llvm::is_contained(candidate, true))
      return true;
    candidate.assign(candidate.size(), false);
    return false;
  }

  /// Labels the loops of all stages with the root's loops. If a candidate does
  /// not work, drops it and returns false.
  bool tryRows() {
    for (StageSchedule &stage : schedule.stages)
      stage.rows.assign(stage.sizes.size(), -1);
    for (size_t loop = 0; loop < candidate.size(); ++loop)
      if (candidate[loop])
        root().rows[loop] = loop;
    int64_t rootWork = getWork(root());
    for (size_t i = schedule.stages.size() - 1; i-- > 0;) {
      StageSchedule &stage = schedule.stages[i];
      bool isRead = false;
      for (size_t j = i + 1; j < schedule.stages.size(); ++j) {
        StageSchedule &reader = schedule.stages[j];
        for (OpOperand *operand : reader.op.getDpsInputOperands()) {
          if (getStage(operand->get()) != stage.op)
            continue;
          if (!label(stage, reader, *operand, !isRead))
            return false;
          isRead = true;
        }
        // A read at computed positions may be anywhere.
        if (readsInBody(reader.op, [&](Value tensor) {
              return getStage(tensor) == stage.op;
            }))
          return dropAll();
      }
      // What no other stage reads may be cut in any way that computes it once.
      if (!isRead)
        for (size_t loop = 0;
             loop < std::min(candidate.size(), stage.sizes.size()); ++loop)
          if (candidate[loop] && stage.sizes[loop] == root().sizes[loop] &&
              stage.op.getIteratorTypesArray()[loop] ==
                  utils::IteratorType::parallel)
            stage.rows[loop] = loop;
      bool result = isResult(stage);
      for (size_t loop = 0; loop < candidate.size(); ++loop) {
        if (!candidate[loop] || llvm::is_contained(stage.rows, int(loop)))
          continue;
        // Without the row, the stage is computed again in each iteration.
        if (result || getWork(stage) > rootWork)
          return drop(loop);
      }
    }
    return true;
  }

  /// Iterations of the loops that are not rows.
  static int64_t getWork(const StageSchedule &stage) {
    int64_t work = 1;
    for (auto [size, row] : llvm::zip_equal(stage.sizes, stage.rows))
      work *= row < 0 ? size : 1;
    return work;
  }

  /// Labels the loops of `stage` as a reader needs it. `first` tells whether no
  /// other reader did.
  bool label(StageSchedule &stage, StageSchedule &reader, OpOperand &operand,
             bool first) {
    if (operand.get().getDefiningOp() != stage.op)
      return dropAll(); // through a view, with other dimensions
    AffineMap read = reader.op.getMatchingIndexingMap(&operand);
    AffineMap written = stage.op.getIndexingMapsArray().back();
    SmallVector<int> rows(stage.sizes.size(), -1);
    for (auto [from, to] :
         llvm::zip_equal(read.getResults(), written.getResults())) {
      unsigned loop = cast<AffineDimExpr>(to).getPosition();
      if (auto dim = dyn_cast<AffineDimExpr>(from)) {
        rows[loop] = reader.rows[dim.getPosition()];
        continue;
      }
      // At a computed position of a row: the row cannot be cut.
      for (auto [i, row] : llvm::enumerate(reader.rows))
        if (row >= 0 && from.isFunctionOfDim(i))
          return drop(row);
    }
    if (first)
      stage.rows = rows;
    for (auto [mine, yours] : llvm::zip_equal(stage.rows, rows))
      if (mine != yours)
        return drop(mine >= 0 ? mine : yours);
    for (int row : rows)
      if (row >= 0 && llvm::count(rows, row) > 1)
        return drop(row);
    return true;
  }

  /// Whether the root's vectors lie along the last row dimension: it is its
  /// innermost loop, or the operands that it reduces lie along it.
  bool runsAlongColumns() {
    int last = static_cast<int>(schedule.sizes.size()) - 1;
    StageSchedule &stage = root();
    if (stage.op.getNumReductionLoops() == 0 || stage.rows.back() >= 0)
      return stage.rows.back() == last;
    unsigned loop = stage.op.getNumParallelLoops() - 1;
    return stage.rows[loop] == last &&
           llvm::all_of(
               stage.op.getDpsInputOperands(), [&](OpOperand *operand) {
                 int64_t step =
                     getStep(cast<RankedTensorType>(operand->get().getType()),
                             stage.op.getMatchingIndexingMap(operand), loop);
                 return step == 0 || step == 1;
               });
  }

  void chooseTiles() {
    schedule.tiles.assign(schedule.sizes.size(), 1);
    if (schedule.sizes.empty() || schedule.scalar || !tiled)
      return;
    bool single = schedule.stages.size() == 1;
    bool columns = runsAlongColumns();
    bool reduces = llvm::any_of(schedule.stages, [](StageSchedule &stage) {
      return stage.op.getNumReductionLoops() != 0;
    });
    int64_t elements = getWork(root());
    if (single)
      if (std::optional<Crossing> crossing = findCrossing(root().op))
        return chooseSquare(*crossing);
    if (columns) {
      // A tile of columns as wide as the vectors want it.
      int64_t size = schedule.sizes.back(), tile = kTileElements;
      if (reduces)
        tile = kColumnTile;
      schedule.tiles.back() = size <= 2 * tile ? size : tile;
      if (reduces && size > tile && size <= 2 * tile)
        schedule.tiles.back() = tile;
      elements *= schedule.tiles.back();
    }
    // Several short rows an iteration.
    for (size_t row = schedule.sizes.size() - columns;
         single && !reduces && row-- > 0 && elements < kTileElements / 2;) {
      if (row + 1 < schedule.sizes.size() &&
          schedule.tiles[row + 1] < schedule.sizes[row + 1])
        break;
      schedule.tiles[row] = std::min(
          schedule.sizes[row], std::max<int64_t>(1, kTileElements / elements));
      elements *= schedule.tiles[row];
    }
  }

  /// Tiles with about as many elements along either of two loops that cross.
  void chooseSquare(const Crossing &crossing) {
    int64_t elements = 1;
    for (unsigned loop : {crossing.written, crossing.read}) {
      int row = root().rows[loop];
      int64_t size = root().sizes[loop];
      int64_t tile = loop == crossing.written
                         ? kColumnTile
                         : std::max<int64_t>(kTileElements / elements, 16);
      if (crossing.interleaves && loop == crossing.written)
        tile = size;
      if (row < 0) {
        elements *= size;
        continue;
      }
      schedule.tiles[row] = size <= 2 * tile ? size : tile;
      elements *= schedule.tiles[row];
    }
  }

  void measure() {
    schedule.extent = llvm::product_of(schedule.getTileCounts());
    int64_t work = 0;
    for (StageSchedule &stage : schedule.stages) {
      int64_t points = 1;
      for (auto [size, row] : llvm::zip_equal(stage.sizes, stage.rows))
        points *= row < 0 ? size : schedule.tiles[row];
      int64_t weight = 1;
      stage.op.getBody()->walk([&](Operation *op) {
        if (op->getDialect() && op->getDialect()->getNamespace() ==
                                    math::MathDialect::getDialectNamespace())
          weight += 8;
      });
      work += points * weight;
      if (isResult(stage))
        continue;
      Type element = cast<RankedTensorType>(stage.op.getResult(0).getType())
                         .getElementType();
      int64_t bytes = llvm::product_of(schedule.getTileShape(stage)) *
                      (element.getIntOrFloatBitWidth() / 8);
      schedule.stackBytes += llvm::alignTo(bytes, 64);
    }
    // About as long as it takes to wake another thread.
    constexpr int64_t kGrainWork = 32768;
    schedule.grain = std::clamp<int64_t>(
        kGrainWork / std::max<int64_t>(work, 1), 1, schedule.extent);
  }

  /// A result may take the bytes of an operand which nobody reads elsewhere
  /// than at the result's own position, or before it in the same iteration.
  /// Whoever places results takes one operand for each, and none twice.
  void findInPlace() {
    const int64_t inputs = func.getNumArguments() - func.getNumResults();
    // The root first: kernels with one result, its root, are the most.
    for (size_t i = schedule.stages.size(); i-- > 0;) {
      auto target = dyn_cast<BlockArgument>(
          getStorageRoot(schedule.stages[i].op.getResult(0)));
      if (!target)
        continue;
      for (BlockArgument input : func.getArguments().take_front(inputs))
        if (input.getType() == target.getType() && canShare(input, i))
          schedule.inPlace.append({int64_t(input.getArgNumber()),
                                   int64_t(target.getArgNumber()) - inputs});
    }
  }

  /// Whether the result of a stage may be written upon an input.
  bool canShare(BlockArgument input, size_t writer) {
    StageSchedule &target = schedule.stages[writer];
    AffineMap written = target.op.getIndexingMapsArray().back();
    bool isRead = false;
    for (auto [index, stage] : llvm::enumerate(schedule.stages)) {
      if (readsInBody(stage.op, [&](Value tensor) {
            return getStorageRoot(tensor) == input;
          }))
        return false;
      for (OpOperand *operand : stage.op.getDpsInputOperands()) {
        if (getStorageRoot(operand->get()) != input)
          continue;
        AffineMap map = stage.op.getMatchingIndexingMap(operand);
        if (index > writer ||
            operand->get().getType() != target.op.getResult(0).getType())
          return false;
        isRead = true;
        if (index == writer) {
          if (map != written || target.op.getNumReductionLoops() != 0)
            return false;
          continue;
        }
        // Earlier stages read the same rows and nothing else.
        for (auto [from, to] :
             llvm::zip_equal(map.getResults(), written.getResults())) {
          auto dim = dyn_cast<AffineDimExpr>(from);
          int row = target.rows[cast<AffineDimExpr>(to).getPosition()];
          if (!dim || stage.rows[dim.getPosition()] != row)
            return false;
        }
      }
    }
    return isRead;
  }

  func::FuncOp func;
  const bool tiled;
  KernelSchedule schedule;
  SmallVector<bool> candidate; ///< of the root's loops: may be a row dimension
};

} // namespace

KernelSchedule scheduleKernel(func::FuncOp func, bool tiled) {
  return Scheduler(func, tiled).run();
}

} // namespace partita::codegen
