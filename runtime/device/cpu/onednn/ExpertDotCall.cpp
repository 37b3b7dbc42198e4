//===- ExpertDotCall.cpp - Rows times the matrices of their experts -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows of x are listed by their experts, in groups. A group is multiplied by
// parts of its expert's matrix, so this is read once for all rows that chose
// it, and others are not read. Weights stay as they lie in the model's file,
// floats or packed: a few rows are multiplied by them directly; for more of
// them, a thread writes a part of the matrix as columns into its scratch,
// unless it lies so, and the library multiplies. The work is cut by shapes and
// by the experts that rows chose, so results do not depend on the number of
// threads.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/BestLevel.h"
#include "runtime/device/cpu/own/ExpertList.h"
#include "runtime/device/cpu/simd/ColumnRows.h"
#include "runtime/device/cpu/simd/PackedRows.h"

#include <algorithm>
#include <cstring>

namespace partita::runtime {
namespace {

/// The heights of the library's products. A group gets the next one, and rows
/// of zeros.
constexpr int64_t kHeights[] = {12, 16, 24, 32, 48, 64, 96, 128};

class ExpertDot final : public ExpertTask {
public:
  ExpertDot(ResolvedCall resolved, const ThreadTeam &team,
            const rules::ExpertDotShape &shape)
      : ExpertTask(std::move(resolved), team, shape,
                   rules::tileExpertDot(shape)),
        across{shape.columns, tiles.columns}, depth(call.operands[0].dims[1]),
        isTransposed(!call.experts && call.operands[1].strides[1] == 1 &&
                     call.operands[1].strides[2] != 1),
        most(isTransposed ? 1 : rules::kFewRows) {}

  Status prepare(OnednnContext &context) {
    multiplyColumns = atBestLevel(multiplyColumnsBaseline, multiplyColumnsV3,
                                  multiplyColumnsV4);
    const int64_t floats =
        (tiles.rows + tiles.step) * shape.depth + tiles.rows * tiles.step;
    return ThreadProductTask::prepare(
        context, describeProducts(), rules::alignScratch(floatBytes(floats)),
        across.count(), "this product of experts");
  }

  bool run() override {
    const int64_t *chosen = experts();
    list.fill(chosen);
    for (int64_t row = 0; row < shape.rows; ++row)
      if (!list.isHere(chosen[row]))
        std::memset(result(row), 0, floatBytes(shape.columns));
    setPartCount(list.size() * across.count());
    return ThreadProductTask::run();
  }

private:
  /// By heights, then of whole tiles and the last one.
  std::vector<ThreadProduct> describeProducts() const {
    std::vector<ThreadProduct> products;
    if (shape.rows <= most)
      return products;
    for (int64_t height : kHeights)
      for (int64_t column : {int64_t(0), across.count() - 1}) {
        if (height > tiles.rows)
          return products;
        const int64_t width = across.size(column);
        products.push_back(
            {{height, depth, depth, 1},
             {depth, width, isTransposed ? shape.columns : tiles.step, 1},
             {height, width, width, 1}});
      }
    return products;
  }

  const int64_t *experts() const {
    const Operand &chosen = call.experts ? *call.experts : call.operands[2];
    return reinterpret_cast<const int64_t *>(chosen.data);
  }
  float *x(int64_t row) const { return call.operands[0].data + row * depth; }
  float *result(int64_t row) const {
    return call.operands.back().data + row * shape.columns;
  }

  /// The matrix [K, N] of an expert, if it lies so.
  float *matrixOf(int64_t expert) const {
    return call.operands[1].data + expert * shape.columns * shape.depth;
  }

  bool runPart(Worker &worker, int64_t index) override {
    // Neighbours have the same columns, so each thread has parts of all groups.
    const ExpertList::Group &group = list[index % list.size()];
    const int64_t column = index / list.size(), begin = column * across.part,
                  width = across.size(column),
                  row = group.expert * shape.columns + begin; // of weights
    float *rows = worker.scratch(), *out = rows + tiles.rows * shape.depth,
          *unpacked = out + tiles.rows * tiles.step;
    const int32_t *of = list.order() + group.first;
    if (group.count <= most && isTransposed) {
      multiplyColumns({matrixOf(group.expert) + begin, depth, width,
                       shape.columns, x(of[0]), out});
    } else if (group.count <= most) {
      const PackedRows weights = packedRows(call).from(row);
      for (int64_t i = 0; i < group.count; ++i)
        functions.arrange(weights, x(of[i]), depth, rows + i * shape.depth);
      for (int64_t i = 0; i < group.count; i += kFewVectors)
        functions.multiply({weights, 0, width, rows + i * shape.depth,
                            std::min(group.count - i, kFewVectors),
                            out + i * width, width});
    } else {
      const int64_t *height = std::ranges::lower_bound(kHeights, group.count);
      const size_t number = 2 * static_cast<size_t>(height - kHeights) +
                            static_cast<size_t>(across.isLast(column));
      for (int64_t i = 0; i < group.count; ++i)
        std::memcpy(rows + i * depth, x(of[i]), floatBytes(depth));
      std::memset(rows + group.count * depth, 0,
                  floatBytes((*height - group.count) * depth));
      if (!isTransposed)
        functions.unpack(packedRows(call).from(row), 0, width, unpacked,
                         tiles.step);
      if (!multiply(worker, number, rows,
                    isTransposed ? matrixOf(group.expert) + begin : unpacked,
                    out))
        return false;
    }
    for (int64_t i = 0; i < group.count; ++i)
      std::memcpy(result(of[i]) + begin, out + i * width, floatBytes(width));
    return true;
  }

  const Parts across;
  const int64_t depth; ///< of x
  const bool isTransposed;
  /// So many rows are multiplied directly. Of transposed matrices the library
  /// is faster from two rows on: 2.5 ms instead of 3.7 for eight experts with
  /// two rows each (2816x1024, two cores of a Zen 5).
  const int64_t most;
  const PackedFunctions functions = packedFunctions(call);
  void (*multiplyColumns)(const ColumnProduct &) = nullptr;
};

} // namespace

Expected<std::unique_ptr<Task>> prepareExpertDot(ResolvedCall call,
                                                 OnednnContext &context,
                                                 const ThreadTeam &team, bool) {
  for (const Operand &operand : call.operands)
    context.readInPlace(operand);
  if (call.zeros)
    context.readInPlace(*call.zeros);
  const std::vector<int64_t> &weights = call.operands[1].dims;
  const abi::PackedDot *packed = call.call->details_as_PackedDot();
  const rules::ExpertDotShape shape{
      call.operands[0].dims[0], weights[1],
      packed ? weights[2] * weights[3] * 8 / packed->bits() : weights[2],
      weights[0]};
  return prepared(std::make_unique<ExpertDot>(std::move(call), team, shape),
                  context);
}

} // namespace partita::runtime
