//===- ExpertOuterCall.cpp - Derivatives to the matrices of experts -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread computes some rows of an expert's matrix at a time. It copies what
// the product reads of the rows that chose the expert, some of them at a time,
// and the library adds their product. The work is cut by shapes and by the
// experts that rows chose, so results do not depend on the number of threads.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/own/ExpertList.h"

#include <cstring>

namespace partita::runtime {
namespace {

/// How many rows a product of the library sums over. Fewer rows are filled up
/// with zeros.
constexpr int64_t kDepths[] = {8, 16, 32, 64, 128};

class ExpertOuter final : public ExpertTask {
public:
  ExpertOuter(ResolvedCall resolved, const ThreadTeam &team,
              const rules::ExpertDotShape &shape)
      : ExpertTask(std::move(resolved), team, shape,
                   rules::tileExpertOuter(shape)),
        down{shape.columns, tiles.columns} {}

  Status prepare(OnednnContext &context) {
    const int64_t floats = tiles.rows * (tiles.columns + shape.depth);
    return ThreadProductTask::prepare(
        context, describeProducts(), rules::alignScratch(floatBytes(floats)),
        shape.experts * down.count(), "this derivative of experts");
  }

  bool run() override {
    list.fill(reinterpret_cast<const int64_t *>(call.operands[2].data));
    return ThreadProductTask::run();
  }

private:
  /// By depths, then of whole tiles and the last one, then the first product of
  /// a tile and the next ones.
  std::vector<ThreadProduct> describeProducts() const {
    std::vector<ThreadProduct> products;
    for (int64_t depth : kDepths)
      for (int64_t tile : {int64_t(0), down.count() - 1})
        for (bool adds : {false, true}) {
          const int64_t height = down.size(tile);
          products.push_back({{height, depth, 1, height},
                              {depth, shape.depth, shape.depth, 1},
                              {height, shape.depth, shape.depth, 1},
                              adds});
        }
    return products;
  }

  bool runPart(Worker &worker, int64_t index) override {
    // Neighbours have the same rows, so each thread has parts of all experts.
    const int64_t expert = index % shape.experts, tile = index / shape.experts,
                  first = tile * down.part, height = down.size(tile);
    float *out =
        call.result().data + (expert * shape.columns + first) * shape.depth;
    int64_t next = list.begin(expert);
    const int64_t end = list.end(expert);
    if (next == end)
      std::memset(out, 0, floatBytes(height * shape.depth));
    float *left = worker.scratch(), *right = left + tiles.rows * tiles.columns;
    for (bool adds = false; next < end; adds = true) {
      const int64_t count = std::min(end - next, tiles.rows);
      const int64_t *depth = std::ranges::lower_bound(kDepths, count);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = list.order()[next + i];
        std::memcpy(left + i * height,
                    call.operands[0].data + row * shape.columns + first,
                    floatBytes(height));
        std::memcpy(right + i * shape.depth,
                    call.operands[1].data + row * shape.depth,
                    floatBytes(shape.depth));
      }
      std::memset(left + count * height, 0,
                  floatBytes((*depth - count) * height));
      std::memset(right + count * shape.depth, 0,
                  floatBytes((*depth - count) * shape.depth));
      const size_t number = 4 * static_cast<size_t>(depth - kDepths) +
                            2 * static_cast<size_t>(down.isLast(tile)) + adds;
      if (!multiply(worker, number, left, right, out))
        return false;
      next += count;
    }
    return true;
  }

  const Parts down;
};

} // namespace

Expected<std::unique_ptr<Task>> prepareExpertOuter(ResolvedCall call,
                                                   OnednnContext &context,
                                                   const ThreadTeam &team,
                                                   bool) {
  const rules::ExpertDotShape shape{
      call.operands[0].dims[0], call.operands[0].dims[1],
      call.operands[1].dims[1], call.result().dims[0]};
  return prepared(std::make_unique<ExpertOuter>(std::move(call), team, shape),
                  context);
}

} // namespace partita::runtime
