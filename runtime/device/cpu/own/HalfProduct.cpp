//===- HalfProduct.cpp - Products of bf16 without instructions ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Processors with AVX512_BF16 or AMX multiply bf16 faster than f32. On others
// the library has no such products, or slow ones. There bf16 is widened, a tile
// at a time, and multiplied as f32.
//
// A thread computes a tile of the result at a time. It widens blocks of both
// operands into its scratch, multiplies them there, adds up the products, and
// rounds the sum. The work is cut by shapes alone, so results do not depend on
// the number of threads.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/SmallFloats.h"
#include "runtime/device/cpu/onednn/ThreadTask.h"

#include <algorithm>

namespace partita::runtime {
namespace {

/// Of a tile. A thread's blocks take a third of the scratch that a product of
/// bf16 has.
constexpr int64_t kRows = 128, kColumns = 256, kDepth = 512;

/// A matrix in the arena, and how its blocks lie in the scratch: transposed, if
/// its rows do not lie densely, but its columns do.
struct Side {
  uint16_t *data;
  int64_t row_stride, column_stride;

  bool isTransposed() const { return column_stride != 1 && row_stride == 1; }
  Matrix block(int64_t rows, int64_t columns, int64_t most_rows,
               int64_t most_columns) const {
    return isTransposed() ? Matrix{rows, columns, 1, most_rows}
                          : Matrix{rows, columns, most_columns, 1};
  }
  /// Copies a block into the scratch.
  void widen(int64_t row, int64_t column, const Matrix &block,
             float *to) const {
    const uint16_t *from = data + row * row_stride + column * column_stride;
    const bool turned = isTransposed();
    const int64_t lines = turned ? block.columns : block.rows,
                  length = turned ? block.rows : block.columns,
                  line = turned ? column_stride : row_stride,
                  inner = turned ? row_stride : column_stride,
                  step = turned ? block.column_stride : block.row_stride;
    for (int64_t i = 0; i < lines; ++i, from += line, to += step)
      if (inner == 1)
        widenBrains(from, to, static_cast<int>(length));
      else
        for (int64_t j = 0; j < length; ++j)
          widenBrains(from + j * inner, to + j, 1);
  }
};

class BrainDot final : public ThreadProductTask {
public:
  BrainDot(ResolvedCall resolved, const ThreadTeam &team)
      : ThreadProductTask(std::move(resolved), team),
        batch(call.result().rank() - 2), rows{at(2, batch), kRows},
        columns{at(2, batch + 1), kColumns}, depth{at(0, batch + 1), kDepth} {
    for (int axis = 0; axis < batch; ++axis)
      batches *= at(2, axis);
    broadcastBatch(call);
  }

  Status prepare(OnednnContext &context) {
    return ThreadProductTask::prepare(context, describeProducts(), kBlockBytes,
                                      batches * rows.count() * columns.count(),
                                      "this product of bf16");
  }

private:
  static constexpr int64_t kBlocks =
      kRows * kDepth + kDepth * kColumns + kRows * kColumns;
  static constexpr size_t kBlockBytes = kBlocks * sizeof(float);
  static_assert(kBlockBytes % 64 == 0);

  int64_t at(size_t operand, int axis) const {
    return call.operands[operand].dims[static_cast<size_t>(axis)];
  }
  /// The product for parts that are the last ones of their dimensions, or not,
  /// and whether it adds to the one before.
  static size_t numberOf(bool row, bool column, bool deep, bool adds) {
    return 8 * size_t(row) + 4 * size_t(column) + 2 * size_t(deep) +
           size_t(adds);
  }

  std::vector<ThreadProduct> describeProducts() const {
    auto sizeOf = [](const Parts &parts, bool last) {
      return parts.size(last ? parts.count() - 1 : 0);
    };
    std::vector<ThreadProduct> products; // in the order of `numberOf`
    for (bool row : {false, true})
      for (bool column : {false, true})
        for (bool deep : {false, true})
          for (bool adds : {false, true}) {
            const int64_t m = sizeOf(rows, row), n = sizeOf(columns, column),
                          k = sizeOf(depth, deep);
            products.push_back({sideOf(0, 0).block(m, k, kRows, kDepth),
                                sideOf(1, 0).block(k, n, kDepth, kColumns),
                                {m, n, kColumns, 1},
                                adds});
          }
    return products;
  }

  /// An operand's matrix of the batch.
  Side sideOf(size_t operand, int64_t number) const {
    const Operand &all = call.operands[operand];
    auto *data = reinterpret_cast<uint16_t *>(all.data) +
                 all.offsetOf(call.operands[2].dims, 0, batch, number);
    return {data, all.strides[size_t(batch)], all.strides[size_t(batch) + 1]};
  }

  bool runPart(Worker &worker, int64_t index) override {
    const int64_t column = index % columns.count();
    const int64_t row = index / columns.count() % rows.count();
    const int64_t number = index / columns.count() / rows.count();
    const Side left = sideOf(0, number), right = sideOf(1, number),
               result = sideOf(2, number);
    float *a = worker.scratch(), *b = a + kRows * kDepth,
          *sums = b + kDepth * kColumns;
    for (int64_t k = 0; k < depth.count(); ++k) {
      const size_t which = numberOf(rows.isLast(row), columns.isLast(column),
                                    depth.isLast(k), k > 0);
      const ThreadProduct &product = products[which];
      left.widen(row * kRows, k * kDepth, product.lhs, a);
      right.widen(k * kDepth, column * kColumns, product.rhs, b);
      if (!multiply(worker, which, a, b, sums))
        return false;
    }
    const int64_t height = rows.size(row), width = columns.size(column);
    uint16_t *to = result.data + row * kRows * result.row_stride +
                   column * kColumns * result.column_stride;
    for (int64_t i = 0; i < height; ++i) {
      const float *from = sums + i * kColumns;
      uint16_t *line = to + i * result.row_stride;
      if (result.column_stride == 1)
        narrowBrains(from, line, static_cast<int>(width));
      else
        for (int64_t j = 0; j < width; ++j)
          narrowBrains(from + j, line + j * result.column_stride, 1);
    }
    return true;
  }

  const int batch; ///< axes
  int64_t batches = 1;
  const Parts rows, columns, depth;
};

} // namespace

bool hasBrainProducts() {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) ==
         dnnl_cpu_isa_avx512_core_bf16;
}

Expected<std::unique_ptr<Task>> prepareBrainDot(ResolvedCall call,
                                                OnednnContext &context,
                                                const ThreadTeam &team) {
  for (Operand *operand : {&call.operands[0], &call.operands[1]})
    context.readInPlace(*operand);
  return prepared(std::make_unique<BrainDot>(std::move(call), team), context);
}

} // namespace partita::runtime
