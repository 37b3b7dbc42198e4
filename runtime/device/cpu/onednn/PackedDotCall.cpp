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
#include "runtime/device/cpu/onednn/ThreadTask.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"
#include "runtime/device/cpu/simd/PackedRows.h"

#include <algorithm>

namespace partita::runtime {

PackedRows packedRows(const ResolvedCall &call) {
  const Operand &weights = call.operands[1];
  PackedRows rows;
  rows.numbers = reinterpret_cast<const uint8_t *>(weights.data);
  rows.bytes = weights.dims.back();
  if (call.call->details_as_PackedDot()) {
    rows.blocks = weights.dims[weights.dims.size() - 2];
    rows.scales = call.operands[2].data;
    rows.zeros = call.zeros ? call.zeros->data : nullptr;
  } else {
    rows.blocks = 1;
    rows.bytes *= static_cast<int64_t>(sizeof(float));
  }
  return rows;
}

PackedFunctions packedFunctions(const ResolvedCall &call) {
  constexpr int64_t kFloatBits = 32;
  const abi::PackedDot *packed = call.call->details_as_PackedDot();
  return atBestLevel(packedFunctionsBaseline, packedFunctionsV3,
                     packedFunctionsV4)(packed ? packed->bits() : kFloatBits);
}

namespace {

/// x[M, K] . weights[N, K]^T = result[M, N].
struct Product {
  explicit Product(ResolvedCall &call)
      : call(call), functions(packedFunctions(call)) {
    const PackedRows weights = packedRows(call);
    rows = call.operands[0].dims[0];
    depth = call.operands[0].dims[1];
    columns = call.result().dims[1];
    padded = weights.blocks * weights.bytes * 8 /
             call.call->details_as_PackedDot()->bits();
  }

  float *x(int64_t row) const { return call.operands[0].data + row * depth; }
  float *result(int64_t row) const {
    return call.operands.back().data + row * columns;
  }

  ResolvedCall &call;
  PackedFunctions functions;
  int64_t rows, depth, columns;
  int64_t padded; ///< numbers in a row of weights
};

class FewRows final : public CallTask {
public:
  FewRows(ResolvedCall resolved, const ThreadTeam &team)
      : CallTask(std::move(resolved)), product(call), team(team) {}

  bool run() override {
    PackedProduct part;
    part.weights = packedRows(call);
    part.step = product.columns;
    for (int64_t row = 0; row < product.rows; ++row)
      product.functions.arrange(part.weights, product.x(row), product.depth,
                                arranged + row * product.padded);
    team.split(
        product.columns, std::max<int64_t>(kGrain / product.padded, 1),
        [&](int, int64_t begin, int64_t end) { multiply(part, begin, end); });
    return true;
  }
  size_t scratchBytes() const override {
    return static_cast<size_t>(product.rows * product.padded) * sizeof(float);
  }
  void useScratch(uint8_t *data) override {
    arranged = reinterpret_cast<float *>(data);
  }

private:
  /// Fewer weights than this are not worth waking another thread.
  static constexpr int64_t kGrain = 32 << 10;

  void multiply(PackedProduct part, int64_t begin, int64_t end) const {
    part.begin = begin;
    part.end = end;
    for (int64_t row = 0; row < product.rows; row += kFewVectors) {
      part.vectors = arranged + row * product.padded;
      part.count = std::min(product.rows - row, kFewVectors);
      part.result = product.result(row);
      product.functions.multiply(part);
    }
  }

  Product product;
  const ThreadTeam &team;
  float *arranged = nullptr;
};

class ManyRows final : public ThreadProductTask {
public:
  ManyRows(ResolvedCall resolved, const ThreadTeam &team)
      : ThreadProductTask(std::move(resolved), team), product(call),
        tiles(rules::tilePackedDot(product.rows, product.columns,
                                   product.padded)),
        down{product.rows, tiles.rows}, across{product.columns, tiles.columns} {
  }

  Status prepare(OnednnContext &context) {
    return ThreadProductTask::prepare(
        context, describeProducts(),
        static_cast<size_t>(rules::packedDotRoom(product.rows, product.columns,
                                                 product.padded)),
        down.count() * across.count(), "this product with packed weights");
  }

private:
  /// Of whole tiles and the last ones: by rows, then by columns.
  std::vector<ThreadProduct> describeProducts() const {
    std::vector<ThreadProduct> products;
    for (int64_t row : {int64_t(0), down.count() - 1})
      for (int64_t column : {int64_t(0), across.count() - 1}) {
        const int64_t height = down.size(row), width = across.size(column);
        products.push_back({{height, product.depth, product.depth, 1},
                            {product.depth, width, tiles.step, 1},
                            {height, width, product.columns, 1}});
      }
    return products;
  }

  bool runPart(Worker &worker, int64_t index) override {
    const int64_t row = index / across.count(), column = index % across.count(),
                  begin = column * across.part;
    product.functions.unpack(packedRows(call), begin,
                             begin + across.size(column), worker.scratch(),
                             tiles.step);
    const size_t number =
        2 * size_t(down.isLast(row)) + size_t(across.isLast(column));
    return multiply(worker, number, product.x(row * down.part),
                    worker.scratch(), product.result(row * down.part) + begin);
  }

  Product product;
  const rules::PackedDotTiles tiles;
  const Parts down, across;
};

} // namespace

Expected<std::unique_ptr<Task>> preparePackedDot(ResolvedCall call,
                                                 OnednnContext &context,
                                                 const ThreadTeam &team,
                                                 bool pack) {
  if (call.experts)
    return prepareExpertDot(std::move(call), context, team, pack);
  for (const Operand &operand : call.operands)
    context.readInPlace(operand);
  if (call.zeros)
    context.readInPlace(*call.zeros);
  if (call.operands[0].dims[0] <= rules::kFewRows)
    return std::unique_ptr<Task>(
        std::make_unique<FewRows>(std::move(call), team));
  return prepared(std::make_unique<ManyRows>(std::move(call), team), context);
}

} // namespace partita::runtime
