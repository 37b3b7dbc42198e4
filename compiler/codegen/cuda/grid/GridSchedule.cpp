//===- GridSchedule.cpp - Which thread computes what ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/grid/GridSchedule.h"

#include "compiler/codegen/cuda/grid/Tile.h"
#include "compiler/codegen/kernels/EmitBody.h"
#include "dialects/support/Try.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace partita::codegen::cuda {

/// Elements that a warp combines well; longer rows are for a block.
static constexpr int64_t kWarpElements = 1024;
/// Threads that fill a GPU: fewer should not have several points each.
static constexpr int64_t kFillingThreads = 32 * 1024;
/// Blocks for most processors of a GPU.
static constexpr int64_t kManyBlocks = 128;
/// Elements that are long for a thread to reduce, if most of a GPU is idle.
static constexpr int64_t kLongColumn = 128;

int64_t GridSchedule::getBlocks() const {
  if (!tile.empty()) {
    int64_t blocks = 1;
    for (auto [size, rows] : llvm::zip_equal(kernel.sizes, tile))
      blocks *= llvm::divideCeil(size, rows);
    return blocks;
  }
  const int64_t rows = rowThreads == 1 ? threads * width : threads / rowThreads;
  return std::max<int64_t>(llvm::divideCeil(kernel.extent, rows), 1);
}

static bool isReduction(linalg::GenericOp op, unsigned loop) {
  return op.getIteratorTypesArray()[loop] == utils::IteratorType::reduction;
}

int64_t countPoints(const StageSchedule &stage) {
  linalg::GenericOp op = stage.op;
  int64_t points = 1;
  for (auto [loop, size] : llvm::enumerate(stage.sizes))
    if (!isReduction(op, loop) && stage.rows[loop] < 0)
      points *= size;
  return points;
}

int64_t countReduced(const StageSchedule &stage) {
  linalg::GenericOp op = stage.op;
  int64_t elements = 1;
  for (auto [loop, size] : llvm::enumerate(stage.sizes))
    if (isReduction(op, loop))
      elements *= size;
  return elements;
}

bool isKept(const StageSchedule &stage) {
  if (countPoints(stage) != 1)
    return false;
  linalg::GenericOp op = stage.op;
  // What is read at computed positions must lie somewhere.
  SmallVector<Value> names{op.getResult(0)};
  while (!names.empty())
    for (Operation *user : names.pop_back_val().getUsers()) {
      if (isa<tensor::ExtractOp>(user))
        return false;
      if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(user))
        names.push_back(user->getResult(0));
    }
  return true;
}

static int64_t getBytes(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementTypeBitWidth() / 8;
}

/// How addresses of a dense tensor change with the loop, or -1 if some other
/// step is no multiple of `width`.
static int64_t getAlignedStep(Value tensor, AffineMap map, unsigned loop,
                              int64_t width) {
  const SmallVector<int64_t> strides =
      computeStrides(cast<RankedTensorType>(tensor.getType()).getShape());
  int64_t first = 0, step = getAddressStep(strides, map, loop);
  for (unsigned other = 0; other < map.getNumDims(); ++other)
    if (other != loop && getAddressStep(strides, map, other) % width != 0)
      return step == 0 ? 0 : -1;
  SmallVector<AffineExpr> origin(map.getNumDims(),
                                 getAffineConstantExpr(0, map.getContext()));
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides))
    first +=
        cast<AffineConstantExpr>(expr.replaceDims(origin)).getValue() * stride;
  return step == 0 || first % width == 0 ? step : -1;
}

int64_t getVectorWidth(const StageSchedule &stage, unsigned loop) {
  linalg::GenericOp op = stage.op;
  for (Operation &inner : op.getBody()->without_terminator())
    if (inner.getNumRegions() != 0 ||
        !(isa<arith::ConstantOp>(inner) ||
          OpTrait::hasElementwiseMappableTraits(&inner)))
      return 1;
  int64_t bytes = getBytes(op.getResult(0));
  for (OpOperand *operand : op.getDpsInputOperands())
    if (!op.getMatchingBlockArgument(operand).use_empty())
      bytes = std::max(bytes, getBytes(operand->get()));
  auto fits = [&](int64_t width) {
    if (stage.sizes[loop] % width != 0)
      return false;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      if (op.getMatchingBlockArgument(operand).use_empty())
        continue;
      int64_t step = getAlignedStep(
          operand->get(), op.getMatchingIndexingMap(operand), loop, width);
      if (step != 0 && step != 1)
        return false;
    }
    return isReduction(op, loop) ||
           getAlignedStep(op.getResult(0), op.getIndexingMapsArray().back(),
                          loop, width) == 1;
  };
  int64_t width = kVectorBytes / bytes;
  while (width > 1 && !fits(width))
    width /= 2;
  return std::max<int64_t>(width, 1);
}

/// Whether the operands of a reduction lie along its last loop: neighbouring
/// threads should read neighbouring elements of one row.
static bool runsAlongRows(const StageSchedule &stage) {
  linalg::GenericOp op = stage.op;
  SmallVector<unsigned> loops;
  op.getReductionDims(loops);
  if (loops.empty() || countReduced(stage) < kWarp || !findCombiner(op))
    return false;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (op.getMatchingBlockArgument(operand).use_empty())
      continue;
    auto type = cast<RankedTensorType>(operand->get().getType());
    int64_t step =
        getAddressStep(computeStrides(type.getShape()),
                       op.getMatchingIndexingMap(operand), loops.back());
    if (step != 0 && step != 1)
      return false;
  }
  return true;
}

/// The rows of a thread: as many as it loads at once, if there are enough.
static int64_t getRowsOfThread(const KernelSchedule &schedule) {
  if (schedule.sizes.empty())
    return 1;
  const int last = static_cast<int>(schedule.sizes.size()) - 1;
  int64_t width = kVectorBytes;
  for (const StageSchedule &stage : schedule.stages) {
    auto loop = llvm::find(stage.rows, last);
    if (loop == stage.rows.end() || countReduced(stage) != 1)
      return 1;
    width = std::min(width, getVectorWidth(stage, loop - stage.rows.begin()));
  }
  while (width > 1 && schedule.extent / width < kFillingThreads)
    width /= 2;
  return width;
}

/// The neighbouring rows that a block reduces together, where a thread a row
/// would be few threads with much to do each; 0: a thread a row is as good.
static int64_t chooseColumns(const KernelSchedule &schedule, int64_t threads) {
  if (schedule.sizes.empty() || schedule.extent >= kFillingThreads)
    return 0;
  const StageSchedule *longest = nullptr;
  for (const StageSchedule &stage : schedule.stages) {
    if (countReduced(stage) < kLongColumn)
      continue;
    if (!findCombiner(stage.op))
      return 0;
    if (!longest || countReduced(stage) > countReduced(*longest))
      longest = &stage;
  }
  if (!longest)
    return 0;
  // What neighbours read at once is a sector of 32 bytes, or more where there
  // are rows enough for many blocks.
  linalg::GenericOp op = longest->op;
  int64_t bytes = 8;
  for (OpOperand *operand : op.getDpsInputOperands())
    if (!op.getMatchingBlockArgument(operand).use_empty())
      bytes = std::min(bytes, std::max<int64_t>(getBytes(operand->get()), 1));
  int64_t columns =
      std::min<int64_t>(llvm::PowerOf2Ceil(schedule.sizes.back()), kWarp);
  while (columns * bytes > 32 && schedule.extent / columns < kManyBlocks)
    columns /= 2;
  // Each thread has a few elements at least.
  return std::max<int64_t>(
      columns, llvm::PowerOf2Ceil(threads * 4 / countReduced(*longest)));
}

GridSchedule scheduleGrid(func::FuncOp func) {
  GridSchedule schedule;
  schedule.kernel = scheduleKernel(func, /*tiled=*/false);
  int64_t longest = 0;
  bool shares = false;
  for (const StageSchedule &stage : schedule.kernel.stages) {
    const int64_t points = countPoints(stage);
    longest = std::max(longest, points * countReduced(stage));
    shares |= points != 1 || runsAlongRows(stage) || !isKept(stage);
  }
  if (!shares) {
    if (int64_t columns = chooseColumns(schedule.kernel, schedule.threads)) {
      schedule.columns = columns;
      schedule.rowThreads = schedule.threads / columns;
      return schedule;
    }
    schedule.width = getRowsOfThread(schedule.kernel);
    if (schedule.kernel.extent < kFillingThreads)
      schedule.threads = 128;
    else if (auto transposition = findTransposition(schedule.kernel))
      schedule.tile = chooseTile(schedule.kernel, *transposition);
    return schedule;
  }
  schedule.rowThreads = longest <= kWarpElements ? kWarp : schedule.threads;
  if (schedule.rowThreads == kWarp) {
    schedule.threads = 4 * kWarp;
    if (getSharedBytes(schedule) > kMostSharedBytes)
      schedule.threads = kWarp;
  }
  return schedule;
}

int64_t getSharedBytes(const GridSchedule &schedule) {
  if (!schedule.tile.empty())
    return getStagedBytes(schedule, *findTransposition(schedule.kernel));
  // As many partial results as a block has warps, for each stage; as it has
  // threads, where these alternate.
  const int64_t partials =
      static_cast<int64_t>(schedule.kernel.stages.size()) *
      (schedule.columns > 1 ? 8 * schedule.threads : 8 * kWarp);
  return schedule.rowThreads == 1
             ? 0
             : schedule.kernel.stackBytes *
                       (schedule.threads / schedule.rowThreads) +
                   partials;
}

void writeGrid(func::FuncOp func, const GridSchedule &schedule) {
  writeSchedule(func, schedule.kernel);
  Builder b(func.getContext());
  SmallVector<NamedAttribute> attributes{
      b.getNamedAttr("threads", b.getI64IntegerAttr(schedule.threads)),
      b.getNamedAttr("row_threads", b.getI64IntegerAttr(schedule.rowThreads)),
      b.getNamedAttr("width", b.getI64IntegerAttr(schedule.width)),
  };
  if (schedule.columns != 1)
    attributes.push_back(
        b.getNamedAttr("columns", b.getI64IntegerAttr(schedule.columns)));
  if (!schedule.tile.empty())
    attributes.push_back(
        b.getNamedAttr("tile", b.getDenseI64ArrayAttr(schedule.tile)));
  func->setAttr(kGridAttr, b.getDictionaryAttr(attributes));
}

/// Whether the tile is of the two dimensions of a kernel that transposes.
static bool isTile(const GridSchedule &schedule) {
  auto transposition = findTransposition(schedule.kernel);
  if (!transposition || schedule.rowThreads != 1 || schedule.width != 1 ||
      schedule.tile.size() != schedule.kernel.sizes.size())
    return false;
  for (auto [row, extent] : llvm::enumerate(schedule.tile))
    if (extent < 1 || extent > schedule.kernel.sizes[row] ||
        (extent != 1 && row != transposition->read &&
         row != transposition->written))
      return false;
  return getStagedBytes(schedule, *transposition) <= kMostSharedBytes;
}

FailureOr<GridSchedule> readGrid(func::FuncOp func) {
  KernelSchedule kernel = PARTITA_TRY(readSchedule(func));
  GridSchedule schedule;
  schedule.kernel = std::move(kernel);
  auto attr = func->getAttrOfType<DictionaryAttr>(kGridAttr);
  if (!attr)
    return func.emitError("the kernel has no grid: run --lower-clusters");
  bool whole = true;
  auto read = [&](StringRef name, int64_t &value) {
    auto number = attr.getAs<IntegerAttr>(name);
    whole &= number && number.getInt() > 0;
    value = number ? number.getInt() : 1;
  };
  read("threads", schedule.threads);
  read("row_threads", schedule.rowThreads);
  read("width", schedule.width);
  if (attr.contains("columns"))
    read("columns", schedule.columns);
  for (int64_t tile : schedule.kernel.tiles)
    whole &= tile == 1;
  if (schedule.columns == 1)
    whole &= schedule.rowThreads == 1 || schedule.rowThreads == kWarp ||
             schedule.rowThreads == schedule.threads;
  else
    whole &= schedule.rowThreads > 1 &&
             llvm::isPowerOf2_64(schedule.rowThreads) &&
             schedule.rowThreads * schedule.columns == schedule.threads;
  whole &= schedule.threads <= 1024 && schedule.threads % kWarp == 0;
  if (schedule.rowThreads == 1 || schedule.columns != 1)
    for (const StageSchedule &stage : schedule.kernel.stages)
      whole &= countPoints(stage) == 1 && isKept(stage);
  if (auto tile = attr.getAs<DenseI64ArrayAttr>("tile")) {
    schedule.tile.assign(tile.asArrayRef().begin(), tile.asArrayRef().end());
    whole &= isTile(schedule);
  }
  if (schedule.width != 1)
    whole &= schedule.rowThreads == 1 &&
             getRowsOfThread(schedule.kernel) % schedule.width == 0;
  if (!whole)
    return func.emitError("the kernel's grid is not one of its stages");
  return schedule;
}

} // namespace partita::codegen::cuda
