//===- ScheduleAttr.cpp - A kernel's schedule in the IR -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/kernels/KernelSchedule.h"

using namespace mlir;

namespace partita::codegen {

static constexpr llvm::StringLiteral kRows = "rows", kTiles = "tiles",
                                     kGrain = "grain", kInPlace = "in_place";

/// Nothing if the attribute is not the schedule of the function.
static std::optional<KernelSchedule> readAttr(func::FuncOp func,
                                              DictionaryAttr attr) {
  KernelSchedule schedule;
  schedule.scalar = func->hasAttr(kReferenceAttr);
  auto rows = attr.getAs<ArrayAttr>(kRows);
  auto tiles = attr.getAs<DenseI64ArrayAttr>(kTiles);
  auto grain = attr.getAs<IntegerAttr>(kGrain);
  auto inPlace = attr.getAs<DenseI64ArrayAttr>(kInPlace);
  auto stages = func.getOps<linalg::GenericOp>();
  if (!rows || !tiles || !grain || !inPlace ||
      static_cast<size_t>(llvm::range_size(stages)) != rows.size())
    return std::nullopt;
  schedule.tiles = SmallVector<int64_t>(tiles.asArrayRef());
  schedule.sizes.assign(schedule.tiles.size(), -1);
  schedule.grain = grain.getInt();
  schedule.inPlace = SmallVector<int64_t>(inPlace.asArrayRef());
  for (auto [op, numbers] : llvm::zip_equal(stages, rows)) {
    StageSchedule stage{op, op.getStaticLoopRanges(), {}};
    auto loops = dyn_cast<DenseI64ArrayAttr>(numbers);
    if (!loops || loops.size() != static_cast<int64_t>(stage.sizes.size()))
      return std::nullopt;
    for (auto [row, size] : llvm::zip_equal(loops.asArrayRef(), stage.sizes)) {
      stage.rows.push_back(static_cast<int>(row));
      if (row < 0)
        continue;
      if (row >= static_cast<int64_t>(schedule.sizes.size()))
        return std::nullopt;
      // All loops along a row are cut alike.
      int64_t &known = schedule.sizes[row];
      if (known >= 0 && known != size)
        return std::nullopt;
      known = size;
    }
    schedule.stages.push_back(std::move(stage));
  }
  for (auto [size, tile] : llvm::zip_equal(schedule.sizes, schedule.tiles))
    if (size < 0 || tile < 1 || tile > std::max<int64_t>(size, 1))
      return std::nullopt;
  schedule.extent = llvm::product_of(schedule.getTileCounts());
  return schedule;
}

void writeSchedule(func::FuncOp func, const KernelSchedule &schedule) {
  Builder b(func.getContext());
  SmallVector<Attribute> rows;
  for (const StageSchedule &stage : schedule.stages)
    rows.push_back(b.getDenseI64ArrayAttr(
        SmallVector<int64_t>(stage.rows.begin(), stage.rows.end())));
  func->setAttr(
      kScheduleAttr,
      b.getDictionaryAttr({
          b.getNamedAttr(kRows, b.getArrayAttr(rows)),
          b.getNamedAttr(kTiles, b.getDenseI64ArrayAttr(schedule.tiles)),
          b.getNamedAttr(kGrain, b.getI64IntegerAttr(schedule.grain)),
          b.getNamedAttr(kInPlace, b.getDenseI64ArrayAttr(schedule.inPlace)),
      }));
}

FailureOr<KernelSchedule> readSchedule(func::FuncOp func) {
  auto attr = func->getAttrOfType<DictionaryAttr>(kScheduleAttr);
  if (!attr)
    return func.emitError("the kernel has no schedule: run --lower-clusters");
  std::optional<KernelSchedule> schedule = readAttr(func, attr);
  if (!schedule)
    return func.emitError("the kernel's schedule is not one of its stages");
  return std::move(*schedule);
}

} // namespace partita::codegen
