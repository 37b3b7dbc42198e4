//===- PackedDotCall.cpp - Products with weights of few bits --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The weights stay as they lie in the model's file. A few rows of x are
// multiplied by numbers as these are unpacked, so that reading the weights
// takes the time. For more rows, a thread unpacks some rows of the weights into
// its scratch, where the library multiplies all of x by them. The work is cut
// by shapes alone, so results do not depend on the number of threads.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/BestLevel.h"
#include "runtime/device/cpu/onednn/ThreadProduct.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"
#include "runtime/device/cpu/simd/PackedRows.h"

#include <algorithm>
#include <atomic>
#include <omp.h>

namespace partita::runtime {
namespace {

/// x[M, K] . weights[N, K]^T = result[M, N].
class PackedDot : public Task {
public:
  PackedDot(ResolvedCall resolved, const ThreadTeam &team)
      : call(std::move(resolved)), team(team) {
    const abi::PackedDot &details = *call.call->details_as_PackedDot();
    functions = atBestLevel(packedFunctionsBaseline, packedFunctionsV3,
                            packedFunctionsV4)(details.bits());
    rows = x().dims[0];
    depth = x().dims[1];
    columns = call.result().dims[1];
    weights.blocks = call.operands[1].dims[1];
    weights.bytes = call.operands[1].dims[2];
    padded = weights.blocks * weights.bytes * 8 / details.bits();
  }

  void visitAddresses(const AddressVisitor &visit) override {
    for (Operand &operand : call.operands)
      visit(&operand.data);
    visit(&call.zeros.data);
  }

protected:
  Operand &x() { return call.operands[0]; }

  /// Operands may have moved since the last run.
  void readAddresses() {
    weights.numbers = reinterpret_cast<uint8_t *>(call.operands[1].data);
    weights.scales = call.operands[2].data;
    weights.zeros = call.has_zeros ? call.zeros.data : nullptr;
  }

  ResolvedCall call;
  const ThreadTeam &team;
  PackedFunctions functions;
  PackedRows weights;
  int64_t rows, depth, columns;
  int64_t padded; ///< numbers in a row of weights
};

class FewRows final : public PackedDot {
public:
  using PackedDot::PackedDot;

  bool run() override {
    readAddresses();
    for (int64_t row = 0; row < rows; ++row)
      functions.arrange(weights, x().data + row * depth, depth,
                        arranged + row * padded);
    team.split(columns, std::max<int64_t>(kGrain / padded, 1), runRange, this);
    return true;
  }
  size_t scratchBytes() const override {
    return static_cast<size_t>(rows * padded) * sizeof(float);
  }
  void useScratch(uint8_t *data) override {
    arranged = reinterpret_cast<float *>(data);
  }

private:
  /// Fewer weights than this are not worth waking another thread.
  static constexpr int64_t kGrain = 32 << 10;

  static void runRange(void *self, int, int64_t begin, int64_t end) {
    auto *task = static_cast<FewRows *>(self);
    PackedProduct product;
    product.weights = task->weights;
    product.begin = begin;
    product.end = end;
    product.step = task->columns;
    for (int64_t row = 0; row < task->rows; row += kFewVectors) {
      product.vectors = task->arranged + row * task->padded;
      product.count = std::min(task->rows - row, kFewVectors);
      product.result = task->call.result().data + row * task->columns;
      task->functions.multiply(product);
    }
  }

  float *arranged = nullptr;
};

class ManyRows final : public PackedDot {
public:
  ManyRows(ResolvedCall resolved, const ThreadTeam &team)
      : PackedDot(std::move(resolved), team),
        tiles(rules::tilePackedDot(rows, columns, padded)) {}

  Status prepare(OnednnContext &context) {
    // Each thread runs the primitives by itself.
    omp_set_num_threads(1);
    Status status = makeProducts(context);
    omp_set_num_threads(team.size());
    if (!status.ok())
      return status;
    for (int i = 0; i < team.size(); ++i) {
      auto worker = std::make_unique<Worker>();
      if (dnnl_stream_create(worker->stream.out(), context.engine(),
                             dnnl_stream_default_flags) != dnnl_success)
        return Status::error("oneDNN makes no stream for a thread");
      for (auto &ofRows : products)
        for (const ThreadProduct &product : ofRows) {
          worker->arguments.emplace_back();
          if (status = worker->arguments.back().make(context, product);
              !status.ok())
            return status;
        }
      workers.push_back(std::move(worker));
    }
    return Status();
  }

  bool run() override {
    readAddresses();
    failed.store(false, std::memory_order_relaxed);
    omp_set_num_threads(1);
    team.split(count(rows, tiles.rows) * count(columns, tiles.columns), 1,
               runRange, this);
    team.enter();
    return !failed.load(std::memory_order_relaxed);
  }
  size_t scratchBytes() const override {
    return workerBytes() * static_cast<size_t>(team.size());
  }
  void useScratch(uint8_t *data) override {
    for (size_t i = 0; i < workers.size(); ++i) {
      uint8_t *own = data + i * workerBytes();
      workers[i]->unpacked = reinterpret_cast<float *>(own);
      for (ThreadArguments &arguments : workers[i]->arguments)
        arguments.useScratch(own + unpackedBytes());
    }
  }

private:
  struct Worker {
    OwnedStream stream;
    std::vector<ThreadArguments> arguments; ///< in the order of `products`
    float *unpacked = nullptr;
  };

  static int64_t count(int64_t extent, int64_t part) {
    return (extent + part - 1) / part;
  }
  /// The extent of the last part.
  static int64_t rest(int64_t extent, int64_t part) {
    return extent - (count(extent, part) - 1) * part;
  }

  size_t unpackedBytes() const {
    return static_cast<size_t>(rules::packedDotRoom(rows, columns, padded));
  }
  size_t workerBytes() const {
    size_t library = 0;
    for (auto &ofRows : products)
      for (const ThreadProduct &product : ofRows)
        library = std::max(library, product.made.scratch_bytes);
    return unpackedBytes() + rules::alignScratch(library);
  }

  Status makeProducts(OnednnContext &context) {
    const int64_t heights[] = {tiles.rows, rest(rows, tiles.rows)},
                  widths[] = {tiles.columns, rest(columns, tiles.columns)};
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) {
        ThreadProduct &product = products[i][j];
        product.lhs = {heights[i], depth, depth, 1};
        product.rhs = {depth, widths[j], tiles.step, 1};
        product.result = {heights[i], widths[j], columns, 1};
        if (Status status =
                product.make(context, "this product with packed weights");
            !status.ok())
          return status;
      }
    return Status();
  }

  static void runRange(void *self, int thread, int64_t begin, int64_t end) {
    auto *task = static_cast<ManyRows *>(self);
    FlushDenormals flush;
    for (int64_t i = begin; i < end; ++i)
      if (!task->runTile(*task->workers[thread], i))
        task->failed.store(true, std::memory_order_relaxed);
  }

  bool runTile(Worker &worker, int64_t index) {
    const int64_t across = count(columns, tiles.columns),
                  down = count(rows, tiles.rows);
    const int64_t row = index / across * tiles.rows,
                  column = index % across * tiles.columns;
    const bool isLastRow = index / across == down - 1,
               isLastColumn = index % across == across - 1;
    const int64_t end = std::min(column + tiles.columns, columns);
    functions.unpack(weights, column, end, worker.unpacked, tiles.step);
    const size_t number = 2 * size_t(isLastRow) + size_t(isLastColumn);
    return worker.arguments[number].run(
        products[isLastRow][isLastColumn], worker.stream.get(),
        x().data + row * depth, worker.unpacked,
        call.result().data + row * columns + column);
  }

  const rules::PackedDotTiles tiles;
  /// Of whole tiles and the last ones: by rows, then by columns.
  ThreadProduct products[2][2];
  std::vector<std::unique_ptr<Worker>> workers;
  std::atomic<bool> failed = false;
};

} // namespace

Expected<std::unique_ptr<Task>> preparePackedDot(ResolvedCall call,
                                                 OnednnContext &context,
                                                 const ThreadTeam &team, bool) {
  for (Operand *operand : {&call.operands[1], &call.operands[2], &call.zeros})
    if (operand->constant)
      context.readInPlace(*operand);
  if (call.operands[0].dims[0] <= rules::kFewRows)
    return std::unique_ptr<Task>(
        std::make_unique<FewRows>(std::move(call), team));
  auto task = std::make_unique<ManyRows>(std::move(call), team);
  if (Status status = task->prepare(context); !status.ok())
    return status;
  return std::unique_ptr<Task>(std::move(task));
}

} // namespace partita::runtime
