//===- AttentionCall.cpp - Attention, kept whole --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The work is cut into (batch, head, block of rows), whatever the number of
// threads, so that results do not depend on it. A thread computes one block at
// a time: scores into its scratch, softmax there, then the product with v. The
// two products are primitives made for one thread. Columns that a constant mask
// hides from all rows of a block (the future, in a causal model) are left out.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/BestLevel.h"
#include "runtime/device/cpu/onednn/ThreadTask.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"
#include "runtime/device/cpu/simd/ScoreRows.h"

#include <algorithm>

namespace partita::runtime {

ScoreFunction softmaxRows() {
  return atBestLevel(softmaxRowsBaseline, softmaxRowsV3, softmaxRowsV4);
}

namespace {

/// What a mask adds to hide a column: with any number that a model computes, it
/// makes the softmax exactly 0.
constexpr float kHidden = -1e30f;
constexpr int64_t kColumnStep = 16;

class Attention final : public ThreadProductTask {
public:
  Attention(ResolvedCall resolved, const ThreadTeam &team)
      : ThreadProductTask(std::move(resolved), team), softmax(softmaxRows()) {
    rows = q().dims[2];
    columns = k().dims[2];
    block = rules::attentionBlockRows(rows);
    blocks = (rows + block - 1) / block;
    std::vector<int64_t> scores = {q().dims[0], q().dims[1], rows, columns};
    for (std::optional<Operand> *mask : {&call.mask_mul, &call.mask_add})
      if (*mask)
        (*mask)->broadcastTo(scores);
  }

  /// `ready`: constants have their values.
  Status prepare(OnednnContext &context, bool ready) {
    for (int64_t i = 0; i < blocks; ++i)
      addBlock(i, ready && call.mask_add && call.mask_add->constant);
    return ThreadProductTask::prepare(
        context, describeProducts(),
        static_cast<size_t>(rules::attentionScoreRoom(rows, columns)),
        q().dims[0] * q().dims[1] * blocks, "this attention");
  }

private:
  /// Blocks of one size.
  struct Kind {
    int64_t rows, columns;
    bool operator==(const Kind &) const = default;
  };

  Operand &q() { return call.operands[0]; }
  Operand &k() { return call.operands[1]; }
  Operand &v() { return call.operands[2]; }

  /// Two for each kind: the scores, and the sums.
  std::vector<ThreadProduct> describeProducts() {
    std::vector<ThreadProduct> products;
    const Operand &result = call.result();
    const int64_t depth = q().dims[3], width = v().dims[3];
    for (const auto &[count, columns] : kinds) {
      const Matrix scores = {count, columns, columns, 1};
      products.push_back({{count, depth, q().strides[2], q().strides[3]},
                          {depth, columns, k().strides[3], k().strides[2]},
                          scores});
      products.push_back(
          {scores,
           {columns, width, v().strides[2], v().strides[3]},
           {count, width, result.strides[2], result.strides[3]}});
    }
    return products;
  }

  void addBlock(int64_t index, bool masked) {
    int64_t first = index * block, count = std::min(block, rows - first);
    int64_t seen = columns;
    if (masked) {
      seen = 0;
      for (int64_t row = first; row < first + count; ++row)
        seen = std::max(seen, seenColumns(row));
      seen = (seen + kColumnStep - 1) / kColumnStep * kColumnStep;
      seen = std::min(seen, columns);
    }
    const Kind kind = {count, seen};
    auto found = std::ranges::find(kinds, kind);
    if (found == kinds.end())
      found = kinds.insert(found, kind);
    kindOf.push_back(static_cast<size_t>(found - kinds.begin()));
  }

  /// How many columns it takes to have all that the mask does not hide in a
  /// row; all, if it hides them all.
  int64_t seenColumns(int64_t row) const {
    const Operand &mask = *call.mask_add;
    int64_t batches = mask.strides[0] ? mask.dims[0] : 1;
    int64_t heads = mask.strides[1] ? mask.dims[1] : 1;
    int64_t most = 0;
    for (int64_t batch = 0; batch < batches; ++batch)
      for (int64_t head = 0; head < heads; ++head) {
        const float *data = at(mask, batch, head, row);
        int64_t seen = columns;
        while (seen > 0 && data[(seen - 1) * mask.strides[3]] <= kHidden)
          --seen;
        most = std::max(most, seen ? seen : columns);
      }
    return most;
  }

  static float *at(const Operand &operand, int64_t batch, int64_t head,
                   int64_t row) {
    return operand.data + batch * operand.strides[0] +
           head * operand.strides[1] + row * operand.strides[2];
  }

  bool runPart(Worker &worker, int64_t index) override {
    int64_t row = index % blocks * block;
    int64_t head = index / blocks % q().dims[1];
    int64_t batch = index / blocks / q().dims[1];
    size_t number = kindOf[index % blocks];
    const Kind &kind = kinds[number];

    float *scores = worker.scratch();
    if (!multiply(worker, 2 * number, at(q(), batch, head, row),
                  at(k(), batch, head, 0), scores))
      return false;
    ScoreRows part;
    part.scores = scores;
    part.rows = kind.rows;
    part.columns = kind.columns;
    part.scale = call.call->details_as_Attention()->scale();
    for (auto [mask, to] : {std::pair(&call.mask_mul, &part.multiplied),
                            std::pair(&call.mask_add, &part.added)})
      if (*mask)
        *to = {at(**mask, batch, head, row), (*mask)->strides[2],
               (*mask)->strides[3]};
    softmax(part);
    return multiply(worker, 2 * number + 1, scores, at(v(), batch, head, 0),
                    at(call.result(), batch, head, row));
  }

  ScoreFunction softmax;
  int64_t rows, columns, block, blocks;
  std::vector<Kind> kinds;
  std::vector<size_t> kindOf; ///< by block
};

} // namespace

Expected<std::unique_ptr<Task>> prepareAttention(ResolvedCall call,
                                                 OnednnContext &context,
                                                 const ThreadTeam &team,
                                                 bool ready) {
  return prepared(std::make_unique<Attention>(std::move(call), team), context,
                  ready);
}

} // namespace partita::runtime
