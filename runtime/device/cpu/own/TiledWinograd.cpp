//===- TiledWinograd.cpp - Winograd's method by matrix products -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tiles of all images, block after block: the pixels of each tile are
// transformed into the scratch, element by element of the tile a matrix
// [tiles, inputs]; each of these is multiplied with the same element of the
// transformed filter, [inputs, outputs]; and the products are transformed into
// pixels of the result. A product is a primitive made for one thread, and the
// threads share out the elements. How the tiles are cut into blocks is decided
// by shape and room alone, for the same bits with any number of threads.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/BestLevel.h"
#include "runtime/device/cpu/onednn/ImageLayout.h"
#include "runtime/device/cpu/onednn/ThreadTask.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"
#include "runtime/device/cpu/simd/TileRows.h"

#include <algorithm>
#include <atomic>
#include <limits>

namespace partita::runtime {
namespace {

constexpr int64_t kWindow = 3;
constexpr int kMostElements = 36;

/// G, by the side of a tile.
constexpr double kFilter2[4][3] = {
    {1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};
constexpr double p = kNearPoint, q = kFarPoint,
                 kNear = 1 / (2 * p * p * (p * p - q * q)),
                 kFar = 1 / (2 * q * q * (q * q - p * p));
constexpr double kFilter4[6][3] = {
    {1 / (p * p * q * q), 0, 0},        {kNear, kNear * p, kNear * p * p},
    {kNear, -kNear * p, kNear * p * p}, {kFar, kFar * q, kFar * q * q},
    {kFar, -kFar * q, kFar * q * q},    {0, 0, 1}};

TileFunctions tileFunctions() {
  return atBestLevel(tileFunctionsBaseline, tileFunctionsV3, tileFunctionsV4)();
}

/// Where an element lies in a matrix [rows, columns] of which the library keeps
/// blocks together (described with more axes, of extent 1).
class BlockedMatrix {
public:
  explicit BlockedMatrix(const dnnl_memory_desc_t &desc)
      : blocking(desc.format_desc.blocking), offset(desc.offset0) {}

  int64_t at(int64_t row, int64_t column) const {
    int64_t position[2] = {row, column}, index = offset, stride = 1;
    for (int i = blocking.inner_nblks; i-- > 0;) {
      int64_t &axis = position[blocking.inner_idxs[i]];
      index += axis % blocking.inner_blks[i] * stride;
      axis /= blocking.inner_blks[i];
      stride *= blocking.inner_blks[i];
    }
    return index + position[0] * blocking.strides[0] +
           position[1] * blocking.strides[1];
  }

private:
  const dnnl_blocking_desc_t &blocking;
  int64_t offset;
};

/// Makes one of the matrix products, of `tiles` rows. Its second argument is
/// the filter.
Status makeProduct(OnednnContext &context, int64_t tiles, int64_t inputs,
                   int64_t outputs, ThreadPrimitive &product) {
  const std::vector<int64_t> none = {0, 0}, ones = {1, 1};
  auto describe = [&](int64_t channels) {
    const std::vector<int64_t> dims = {1, channels, 1, tiles};
    return stridedDesc(dims, denseStrides(dims, true));
  };
  const dnnl_memory_desc_t input = describe(inputs), result = describe(outputs),
                           any = anyDesc({outputs, inputs, 1, 1});
  OwnedAttr attr;
  PARTITA_TRY(makeAttributes({}, {}, attr));
  OwnedPrimitiveDesc desc;
  dnnl_convolution_desc_t op;
  dnnl_status_t status = dnnl_convolution_forward_desc_init(
      &op, dnnl_forward_inference, dnnl_convolution_direct, &input, &any,
      nullptr, &result, ones.data(), none.data(), none.data());
  // All threads run it at once: it must need no scratch.
  auto getRoom = [](const OwnedPrimitiveDesc &each) -> int64_t {
    return isNamed(each, "jit_1x1:avx2") && !scratchBytes(each) ? 0 : -1;
  };
  if (status == dnnl_success)
    status = context.choose(&op, attr, desc, getRoom);
  constexpr const char *kWhat = "oneDNN does not take these tiles";
  PARTITA_TRY(context.check(status, kWhat));
  const dnnl_memory_desc_t filter = queryDesc(desc, dnnl_query_weights_md);
  if (filter.format_kind != dnnl_blocked)
    return Status::error("the library packs the filter in an unknown way");
  return product.make(context, desc,
                      {{DNNL_ARG_SRC, input},
                       {DNNL_ARG_WEIGHTS, filter},
                       {DNNL_ARG_DST, result}},
                      kWhat);
}

class TiledWinograd final : public Task {
public:
  TiledWinograd(const ResolvedCall &call, const ThreadTeam &team)
      : input(call.operands[0]), weights(call.operands[1]),
        result(call.operands.back()), bias(call.bias),
        top(call.call->details_as_Conv()->pads_low()->Get(0)),
        left(call.call->details_as_Conv()->pads_low()->Get(1)), team(team),
        functions(tileFunctions()) {
    const rules::WindowedImages shape = {result.dims[0], input.dims[1],
                                         result.dims[1], result.dims[2],
                                         result.dims[3]};
    side = rules::winogradTileSide(shape);
    elements = (side + kWindow - 1) * (side + kWindow - 1);
    rows = (result.dims[2] + side - 1) / side;
    columns = (result.dims[3] + side - 1) / side;
    tiles = result.dims[0] * rows * columns;
    // The most that fit, in blocks of about the same size.
    const int64_t bytes =
        elements * (inputs() + outputs()) * static_cast<int64_t>(sizeof(float));
    const int64_t most = std::max<int64_t>(
        std::min(rules::winogradRoom(shape), kMostBytes) / bytes, 1);
    const int64_t blocks = (tiles + most - 1) / most;
    block = (tiles + blocks - 1) / blocks;
  }

  /// Sets what comes after the convolution; false if it cannot be had here.
  bool bound(const std::vector<PostOperation> &post_ops) {
    for (const PostOperation &post : post_ops)
      if (post.kind == abi::PostOpKind::relu) {
        least = std::max(least, 0.0f);
        most = std::max(most, 0.0f);
      } else if (post.kind == abi::PostOpKind::clip) {
        least = std::min(std::max(least, post.alpha), post.beta);
        most = std::min(std::max(most, post.alpha), post.beta);
      } else {
        return false;
      }
    return true;
  }

  Status prepare(OnednnContext &context) {
    PARTITA_TRY(makeProducts(context));
    const dnnl_memory_desc_t &filter = kinds[0].product.arguments[1].desc;
    if (!dnnl_memory_desc_equal(&filter,
                                &kinds.back().product.arguments[1].desc))
      return Status::error("the library packs a filter in two ways");
    auto packed = PARTITA_TRY(packFilter(context, filter));
    const size_t floats = dnnl_memory_desc_get_size(&filter) / sizeof(float);
    for (Kind &kind : kinds)
      for (size_t i = 0; i < static_cast<size_t>(elements); ++i) {
        ThreadArguments &arguments = kind.arguments.emplace_back();
        PARTITA_TRY(arguments.make(context, kind.product));
        arguments.setAddress(1, packed + i * floats);
      }
    for (int i = 0; i < team.size(); ++i)
      PARTITA_TRY(context.makeStream(streams.emplace_back()));
    zeros.assign(static_cast<size_t>(inputs()), 0.0f);
    return Status();
  }

  bool run() override {
    failed.store(false, std::memory_order_relaxed);
    for (first = 0; first < tiles; first += block) {
      const int64_t count = std::min(block, tiles - first);
      kind = &kinds[count == block ? 0 : 1];
      team.split(count, kLeastTiles, [&](int, int64_t begin, int64_t end) {
        runInput(begin, end);
      });
      team.split(elements, 1, [&](int thread, int64_t begin, int64_t end) {
        runProducts(thread, begin, end);
      });
      team.split(count, kLeastTiles, [&](int, int64_t begin, int64_t end) {
        runOutput(begin, end);
      });
    }
    return !failed.load(std::memory_order_relaxed);
  }

  size_t scratchBytes() const override {
    return static_cast<size_t>(transformedBytes(inputs()) +
                               transformedBytes(outputs()));
  }
  void useScratch(uint8_t *data) override {
    transformed = reinterpret_cast<float *>(data);
    products = reinterpret_cast<float *>(data + transformedBytes(inputs()));
    for (Kind &each : kinds)
      for (int64_t i = 0; i < elements; ++i) {
        ThreadArguments &arguments = each.arguments[static_cast<size_t>(i)];
        arguments.setAddress(0, transformed + i * block * inputs());
        arguments.setAddress(2, products + i * block * outputs());
      }
  }
  void visitAddresses(const AddressVisitor &visit) override {
    visit(&input.data);
    visit(&result.data);
    if (bias)
      visit(&bias->data);
  }

private:
  /// Of a block's transformed tiles: they stay in the caches that cores share.
  static constexpr int64_t kMostBytes = int64_t(4) << 20;
  /// Fewer tiles are not worth waking another thread.
  static constexpr int64_t kLeastTiles = 2;

  /// Blocks of one size.
  struct Kind {
    ThreadPrimitive product;
    std::vector<ThreadArguments> arguments; ///< by element
  };

  /// Of whole blocks and, if it is smaller, the last one.
  Status makeProducts(OnednnContext &context) {
    const AloneInTeam alone(team);
    for (int64_t count : {block, tiles % block})
      if (count)
        PARTITA_TRY(makeProduct(context, count, inputs(), outputs(),
                                kinds.emplace_back().product));
    return Status();
  }

  int64_t inputs() const { return input.dims[1]; }
  int64_t outputs() const { return result.dims[1]; }
  int64_t transformedBytes(int64_t channels) const {
    return rules::alignScratch(elements * block * channels * sizeof(float));
  }

  /// G g G^T of each pair of channels, a packed matrix for each element.
  Expected<float *> packFilter(OnednnContext &context,
                               const dnnl_memory_desc_t &packed) {
    const size_t bytes = dnnl_memory_desc_get_size(&packed);
    std::string key = "winograd" + std::to_string(side);
    key.append(reinterpret_cast<const char *>(&packed), sizeof(packed));
    return context.packedBy(
        weights, key, bytes * static_cast<size_t>(elements), [&](float *to) {
          const BlockedMatrix matrix(packed);
          const auto step = static_cast<int64_t>(bytes / sizeof(float));
          team.split(outputs(), 1, [&](int, int64_t begin, int64_t end) {
            packRange(matrix, step, begin, end, to);
          });
          return Status();
        });
  }
  /// Of outputs [begin, end). `step`: floats from element to element.
  void packRange(const BlockedMatrix &matrix, int64_t step, int64_t begin,
                 int64_t end, float *to) const {
    const int64_t n = side + kWindow - 1;
    const double (*filter)[3] = side == 2 ? kFilter2 : kFilter4;
    const std::vector<int64_t> &strides = weights.strides;
    for (int64_t o = begin; o < end; ++o)
      for (int64_t c = 0; c < inputs(); ++c) {
        const float *g = weights.data + o * strides[0] + c * strides[1];
        float *place = to + matrix.at(o, c);
        double half[6][3];
        for (int64_t i = 0; i < n; ++i)
          for (int64_t k = 0; k < kWindow; ++k)
            half[i][k] = filter[i][0] * g[k * strides[3]] +
                         filter[i][1] * g[strides[2] + k * strides[3]] +
                         filter[i][2] * g[2 * strides[2] + k * strides[3]];
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j)
            place[(i * n + j) * step] = static_cast<float>(
                half[i][0] * filter[j][0] + half[i][1] * filter[j][1] +
                half[i][2] * filter[j][2]);
      }
  }

  /// Image, row and column of a tile's first pixel in the result.
  struct Place {
    int64_t image, row, column;
  };
  Place placeOf(int64_t tile) const {
    return {tile / (rows * columns), tile / columns % rows * side,
            tile % columns * side};
  }
  static float *pixelOf(const Operand &image, int64_t number, int64_t row,
                        int64_t column) {
    if (row < 0 || row >= image.dims[2] || column < 0 ||
        column >= image.dims[3])
      return nullptr;
    return image.data +
           ((number * image.dims[2] + row) * image.dims[3] + column) *
               image.dims[1];
  }

  void runInput(int64_t begin, int64_t end) const {
    const int64_t n = side + kWindow - 1;
    const float *pixels[kMostElements];
    TileInput tile;
    tile.pixels = pixels;
    tile.channels = inputs();
    tile.step = block * tile.channels;
    auto *transform = side == 2 ? functions.input2 : functions.input4;
    for (int64_t t = begin; t < end; ++t) {
      const auto [image, row, column] = placeOf(first + t);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
          const float *pixel =
              pixelOf(input, image, row + i - top, column + j - left);
          pixels[i * n + j] = pixel ? pixel : zeros.data();
        }
      tile.to = transformed + t * tile.channels;
      transform(tile);
    }
  }

  void runProducts(int thread, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      if (!kind->arguments[static_cast<size_t>(i)].run(
              kind->product, streams[static_cast<size_t>(thread)]))
        failed.store(true, std::memory_order_relaxed);
  }

  void runOutput(int64_t begin, int64_t end) const {
    float *pixels[kMostElements];
    TileOutput tile;
    tile.pixels = pixels;
    tile.channels = outputs();
    tile.step = block * tile.channels;
    tile.bias = bias ? bias->data : nullptr;
    tile.least = least;
    tile.most = most;
    auto *transform = side == 2 ? functions.output2 : functions.output4;
    for (int64_t t = begin; t < end; ++t) {
      const auto [image, row, column] = placeOf(first + t);
      for (int64_t i = 0; i < side; ++i)
        for (int64_t j = 0; j < side; ++j)
          pixels[i * side + j] = pixelOf(result, image, row + i, column + j);
      tile.from = products + t * tile.channels;
      transform(tile);
    }
  }

  Operand input, weights, result;
  std::optional<Operand> bias;
  const int64_t top, left; ///< pads
  const ThreadTeam &team;
  const TileFunctions functions;
  int64_t side, elements, rows, columns, tiles; ///< rows, columns of tiles
  int64_t block;                                ///< tiles at a time
  float least = -std::numeric_limits<float>::infinity(),
        most = std::numeric_limits<float>::infinity();
  std::vector<Kind> kinds;
  std::vector<OwnedStream> streams; ///< by thread
  std::vector<float> zeros;         ///< a pixel of the padding
  float *transformed = nullptr, *products = nullptr;
  // Of the block that is being computed.
  int64_t first = 0;
  const Kind *kind = nullptr;
  std::atomic<bool> failed = false;
};

} // namespace

Expected<std::unique_ptr<Task>> prepareTiledWinograd(const ResolvedCall &call,
                                                     OnednnContext &context,
                                                     const ThreadTeam &team) {
  const Operand &result = call.operands.back(), &weights = call.operands[1];
  const abi::Conv &shape = *call.call->details_as_Conv();
  auto are = [](const flatbuffers::Vector<int64_t> *all, int64_t value) {
    return std::all_of(all->begin(), all->end(),
                       [=](int64_t each) { return each == value; });
  };
  if (result.rank() != 4 || shape.groups() != 1 || !are(shape.strides(), 1) ||
      !are(shape.dilations(), 1) || weights.dims[2] != kWindow ||
      weights.dims[3] != kWindow)
    return Status::error("it has groups, or other windows than of 3x3");
  DescribeOperand describe = [](const Operand &image) {
    return imageDesc(image, true);
  };
  return fusePostOps(
      context, call.post_ops, result, describe,
      [&](const std::vector<PostOperation> &fused,
          bool & /*slow*/) -> Expected<std::unique_ptr<Task>> {
        auto task = std::make_unique<TiledWinograd>(call, team);
        if (!task->bound(fused))
          return Status::error("it has post-ops that the tiles do not take");
        if (static_cast<int64_t>(task->scratchBytes()) > context.scratchRoom())
          return Status::error("the plan has no room for the tiles");
        PARTITA_TRY(task->prepare(context));
        return std::unique_ptr<Task>(std::move(task));
      });
}

} // namespace partita::runtime
