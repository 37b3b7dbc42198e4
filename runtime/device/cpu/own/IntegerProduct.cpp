//===- IntegerProduct.cpp - Exact products of 8-bit integers --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// VNNI instructions sum four products of 8-bit integers in 32 bits. On a
// processor without them the library's code adds pairs of products in 16 bits,
// and saturates. The tasks of this file are exact: they widen both sides to 16
// bits, a few rows at a time. They are about as fast as f32 products, take any
// strides, and need no memory except scratch.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/BestLevel.h"
#include "runtime/device/cpu/onednn/LibraryCalls.h"
#include "runtime/device/cpu/simd/IntegerRows.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace partita::runtime {
namespace {

/// Elements of a row that are widened at once, at most.
constexpr int64_t kMostDepth = 4096;
/// Terms of a convolution's sums: views that repeat an element say any number.
constexpr int64_t kMostTerms = int64_t(1) << 22;
/// Widened rows of the right side that one core keeps, in bytes.
constexpr int64_t kRightBytes = 256 << 10;

int64_t roundUp(int64_t value, int64_t block) {
  return (value + block - 1) / block * block;
}

IntegerFunctions integerFunctions() {
  static const IntegerFunctions best = atBestLevel(
      integerFunctionsBaseline, integerFunctionsV3, integerFunctionsV4)();
  return best;
}

const uint8_t *bytesOf(const Operand &operand) {
  return reinterpret_cast<const uint8_t *>(operand.data);
}

int16_t widened(const uint8_t *from, bool has_sign) {
  return has_sign ? int16_t(static_cast<int8_t>(*from)) : int16_t(*from);
}

/// Products of rows, for each of several groups (of channels, or matrices of a
/// batch): result(row, column) = sum over `depth` of left(row) * right(column).
/// Rows of the left side go to threads.
class IntegerRowsTask : public CallTask {
public:
  bool run() override {
    team.split(groups * rows, std::max<int64_t>(kGrain / columns, 1),
               [&](int thread, int64_t begin, int64_t end) {
                 runRows(thread, begin, end);
               });
    return true;
  }
  size_t scratchBytes() const override {
    return static_cast<size_t>(team.size() * perThread());
  }
  void useScratch(uint8_t *data) override { scratch = data; }

protected:
  IntegerRowsTask(const ResolvedCall &call, const ThreadTeam &team)
      : CallTask(call), team(team) {}

  void setShape(int64_t group_count, int64_t row_count, int64_t column_count,
                int64_t depth_count, int64_t result_step) {
    column_step = result_step;
    groups = group_count;
    rows = row_count;
    columns = column_count;
    depth = depth_count;
    part = roundUp(std::min(depth, kMostDepth), 2);
    block = std::clamp<int64_t>(kRightBytes / (2 * part), kIntegerColumns,
                                roundUp(columns, kIntegerColumns));
    block = block / kIntegerColumns * kIntegerColumns;
  }

  /// Elements [begin, end) of a row, widened.
  virtual void readLeft(int64_t group, int64_t row, int64_t begin, int64_t end,
                        int16_t *to) const = 0;
  virtual void readRight(int64_t group, int64_t column, int64_t begin,
                         int64_t end, int16_t *to) const = 0;
  virtual int32_t *resultAt(int64_t group, int64_t row,
                            int64_t column) const = 0;

  /// Of an operand, `count` elements from the one `first` on.
  void widenAll(const Operand &operand, int64_t first, int64_t step,
                int64_t count, int16_t *to) const {
    const uint8_t *from = bytesOf(operand) + first;
    const bool has_sign = operand.type == abi::DType::i8;
    if (step == 1)
      return functions.widen(from, count, has_sign, to);
    for (int64_t i = 0; i < count; ++i, from += step)
      to[i] = widened(from, has_sign);
  }

  const ThreadTeam &team;
  const Operand &left = call.operands[0], &right = call.operands[1],
                &result = call.operands[2];
  const IntegerFunctions functions = integerFunctions();

private:
  static constexpr int64_t kGrain = 4096; ///< results

  /// Rows of the left side, a column on its way, and columns of the right side.
  int64_t perThread() const {
    return roundUp(2 * part * (kIntegerRows + 1 + block), 64);
  }

  void runRows(int thread, int64_t begin, int64_t end) const {
    for (int64_t at = begin; at < end;) {
      const int64_t group = at / rows, row = at % rows;
      const int64_t last = std::min(rows, row + end - at);
      multiply(group, row, last,
               reinterpret_cast<int16_t *>(scratch + thread * perThread()));
      at += last - row;
    }
  }

  void multiply(int64_t group, int64_t first, int64_t last,
                int16_t *left_rows) const {
    int16_t *single = left_rows + part * kIntegerRows,
            *right_columns = single + part;
    for (int64_t k = 0; k < depth; k += part)
      for (int64_t column = 0; column < columns; column += block) {
        const int64_t stop = std::min(column + block, columns);
        fillRight(group, k, column, stop, single, right_columns);
        for (int64_t row = first; row < last; row += kIntegerRows) {
          const int64_t end = std::min(row + kIntegerRows, last);
          fillLeft(group, k, row, end, left_rows);
          for (int64_t j = column; j < stop; j += kIntegerColumns) {
            IntegerTile tile;
            tile.left = left_rows;
            tile.right = right_columns + (j - column) * part;
            tile.depth = part;
            functions.tile(tile);
            store(tile, group, row, end, j, std::min(j + kIntegerColumns, stop),
                  k > 0);
          }
        }
      }
  }

  /// Rows [begin, end) from element k on, filled up with 0.
  void fillLeft(int64_t group, int64_t k, int64_t begin, int64_t end,
                int16_t *to) const {
    const int64_t stop = std::min(k + part, depth);
    for (int64_t row = begin; row < end; ++row, to += part) {
      readLeft(group, row, k, stop, to);
      std::fill(to + (stop - k), to + part, int16_t(0));
    }
    std::fill_n(to, (kIntegerRows - (end - begin)) * part, int16_t(0));
  }

  /// The same of columns, in tiles of pairs.
  void fillRight(int64_t group, int64_t k, int64_t begin, int64_t end,
                 int16_t *single, int16_t *to) const {
    const int64_t stop = std::min(k + part, depth);
    std::fill(single + (stop - k), single + part, int16_t(0));
    const int64_t last = begin + roundUp(end - begin, kIntegerColumns);
    for (int64_t column = begin; column < last; ++column) {
      const int64_t at = column - begin, inside = at % kIntegerColumns;
      if (column < end)
        readRight(group, column, k, stop, single);
      else
        std::fill(single, single + part, int16_t(0));
      int16_t *pairs = to + (at - inside) * part + 2 * inside;
      for (int64_t i = 0; i < part; i += 2, pairs += 2 * kIntegerColumns) {
        pairs[0] = single[i];
        pairs[1] = single[i + 1];
      }
    }
  }

  void store(const IntegerTile &tile, int64_t group, int64_t row, int64_t end,
             int64_t column, int64_t stop, bool add) const {
    for (int64_t i = row; i < end; ++i) {
      int32_t *to = resultAt(group, i, column);
      const int32_t *sums = tile.sums[i - row];
      for (int64_t j = 0; j < stop - column; ++j, to += column_step)
        *to =
            static_cast<int32_t>(uint32_t(sums[j]) + (add ? uint32_t(*to) : 0));
    }
  }

  int64_t groups = 0, rows = 0, columns = 0, depth = 0;
  int64_t column_step = 0; ///< elements of the result
  int64_t part = 0;        ///< of the depth
  int64_t block = 0;       ///< of the columns
  uint8_t *scratch = nullptr;
};

/// [B.., M, K] x [B.., K, N]; batches are groups.
class IntegerDot final : public IntegerRowsTask {
public:
  IntegerDot(const ResolvedCall &call, const ThreadTeam &team)
      : IntegerRowsTask(call, team) {
    broadcastBatch(this->call);
    const int rank = result.rank();
    setShape(std::accumulate(result.dims.begin(), result.dims.end() - 2,
                             int64_t(1), std::multiplies<>()),
             result.dims[rank - 2], result.dims[rank - 1], left.dims[rank - 1],
             result.strides[rank - 1]);
  }

private:
  /// Elements from the operand's begin to [i, j] of a matrix.
  int64_t offset(const Operand &operand, int64_t group, int64_t i,
                 int64_t j) const {
    const int batch = result.rank() - 2;
    return operand.offsetOf(result.dims, 0, batch, group) +
           i * operand.strides[batch] + j * operand.strides[batch + 1];
  }
  void readLeft(int64_t group, int64_t row, int64_t begin, int64_t end,
                int16_t *to) const override {
    widenAll(left, offset(left, group, row, begin), left.strides.back(),
             end - begin, to);
  }
  void readRight(int64_t group, int64_t column, int64_t begin, int64_t end,
                 int16_t *to) const override {
    widenAll(right, offset(right, group, begin, column),
             right.strides[right.rank() - 2], end - begin, to);
  }
  int32_t *resultAt(int64_t group, int64_t row, int64_t column) const override {
    return reinterpret_cast<int32_t *>(result.data) +
           offset(result, group, row, column);
  }
};

int64_t groupsOf(const ResolvedCall &call) {
  return call.call->details_as_Conv()->groups();
}

/// How the windows of a convolution lie, and the way through them.
class Windows {
public:
  explicit Windows(const ResolvedCall &resolved)
      : Windows(*resolved.call->details_as_Conv(), resolved) {}
  Windows(const abi::Conv &conv, const ResolvedCall &resolved)
      : strides(conv.strides()->begin(), conv.strides()->end()),
        dilations(conv.dilations()->begin(), conv.dilations()->end()),
        pads(conv.pads_low()->begin(), conv.pads_low()->end()),
        input(resolved.operands[0]), weights(resolved.operands[1]),
        result(resolved.operands[2]) {
    steps.resize(static_cast<size_t>(taps()));
    for (int64_t tap = 0; tap < taps(); ++tap) {
      Step &step = steps[static_cast<size_t>(tap)];
      int64_t left = tap;
      for (int axis = weights.rank() - 1; axis >= 2; --axis) {
        step.along[axis - 2] = left % weights.dims[axis] * dilations[axis - 2];
        step.offset += step.along[axis - 2] * input.strides[axis];
        left /= weights.dims[axis];
      }
    }
  }

  int64_t pixels() const { return product(result, 2) * result.dims[0]; }
  int64_t taps() const { return product(weights, 2); }

  /// Elements from the begin of the operand to a pixel of its first channel;
  /// pixels of all images are counted.
  int64_t resultOffset(int64_t pixel) const {
    int64_t at = 0;
    for (int axis = result.rank() - 1; axis >= 2; --axis) {
      at += pixel % result.dims[axis] * result.strides[axis];
      pixel /= result.dims[axis];
    }
    return at + pixel * result.strides[0];
  }
  /// Where the window of a pixel of the result begins, outside perhaps.
  struct Place {
    int64_t first[3] = {}; ///< by spatial axis
    int64_t offset = 0;    ///< elements from the begin of the image
  };
  Place place(int64_t pixel) const {
    Place place;
    for (int axis = result.rank() - 1; axis >= 2; --axis) {
      int64_t &first = place.first[axis - 2];
      first = pixel % result.dims[axis] * strides[axis - 2] - pads[axis - 2];
      place.offset += first * input.strides[axis];
      pixel /= result.dims[axis];
    }
    place.offset += pixel * input.strides[0];
    return place;
  }
  /// Elements from the begin of the image to what a tap meets; -1: outside.
  int64_t inputOffset(const Place &place, int64_t tap) const {
    const Step &step = steps[static_cast<size_t>(tap)];
    for (int axis = 2; axis < input.rank(); ++axis) {
      const int64_t at = place.first[axis - 2] + step.along[axis - 2];
      if (at < 0 || at >= input.dims[axis])
        return -1;
    }
    return place.offset + step.offset;
  }
  int64_t weightOffset(int64_t tap) const {
    return weights.offsetOf(weights.dims, 2, weights.rank(), tap);
  }

private:
  static int64_t product(const Operand &operand, int first) {
    return std::accumulate(operand.dims.begin() + first, operand.dims.end(),
                           int64_t(1), std::multiplies<>());
  }
  /// From the first tap of a window to another one.
  struct Step {
    int64_t along[3] = {}; ///< by spatial axis
    int64_t offset = 0;
  };
  const std::vector<int64_t> strides, dilations, pads; ///< by spatial axis
  const Operand input, weights, result;
  std::vector<Step> steps; ///< by tap
};

/// Rows are pixels, and an element of a row is a tap of a channel, taps outer.
class IntegerConv final : public IntegerRowsTask {
public:
  IntegerConv(const ResolvedCall &call, const ThreadTeam &team)
      : IntegerRowsTask(call, team), windows(call), inputs(right.dims[1]),
        outputs(right.dims[0] / groupsOf(call)) {
    setShape(groupsOf(call), windows.pixels(), outputs, windows.taps() * inputs,
             result.strides[1]);
  }

private:
  void readLeft(int64_t group, int64_t row, int64_t begin, int64_t end,
                int16_t *to) const override {
    const Windows::Place place = windows.place(row);
    forEachTap(begin, end, [&](int64_t tap, int64_t first, int64_t last) {
      const int64_t at = windows.inputOffset(place, tap);
      if (at < 0)
        std::fill_n(to, last - first, int16_t(0));
      else
        widenAll(left, at + (group * inputs + first) * left.strides[1],
                 left.strides[1], last - first, to);
      to += last - first;
    });
  }
  void readRight(int64_t group, int64_t column, int64_t begin, int64_t end,
                 int16_t *to) const override {
    forEachTap(begin, end, [&](int64_t tap, int64_t first, int64_t last) {
      widenAll(right,
               windows.weightOffset(tap) +
                   (group * outputs + column) * right.strides[0] +
                   first * right.strides[1],
               right.strides[1], last - first, to);
      to += last - first;
    });
  }
  /// The parts of [begin, end) that are channels of one tap each.
  template <typename Visit>
  void forEachTap(int64_t begin, int64_t end, const Visit &visit) const {
    for (int64_t k = begin; k < end;) {
      const int64_t tap = k / inputs, first = k % inputs,
                    last = std::min(inputs, first + end - k);
      visit(tap, first, last);
      k += last - first;
    }
  }
  int32_t *resultAt(int64_t group, int64_t row, int64_t column) const override {
    return reinterpret_cast<int32_t *>(result.data) +
           windows.resultOffset(row) +
           (group * outputs + column) * result.strides[1];
  }

  const Windows windows;
  const int64_t inputs, outputs; ///< of a group
};

/// One channel a group, channels innermost.
class IntegerDepthwise final : public CallTask {
public:
  IntegerDepthwise(const ResolvedCall &call, const ThreadTeam &team)
      : CallTask(call), team(team), windows(call), taps(windows.taps()),
        channels(call.operands[2].dims[1]) {}

  static bool takes(const ResolvedCall &call) {
    const Operand &x = call.operands[0], &weights = call.operands[1],
                  &y = call.operands[2];
    return weights.dims[1] == 1 && groupsOf(call) == weights.dims[0] &&
           (x.strides[1] == 1 || x.dims[1] == 1) &&
           (y.strides[1] == 1 || y.dims[1] == 1);
  }

  bool run() override {
    auto *wide = reinterpret_cast<int16_t *>(scratch);
    const Operand &weights = call.operands[1];
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t c = 0; c < channels; ++c)
        wide[tap * channels + c] =
            widened(bytesOf(weights) + windows.weightOffset(tap) +
                        c * weights.strides[0],
                    true);
    team.split(windows.pixels(), std::max<int64_t>(kGrain / channels, 1),
               [&](int thread, int64_t begin, int64_t end) {
                 runPixels(thread, begin, end);
               });
    return true;
  }
  size_t scratchBytes() const override {
    return static_cast<size_t>(weightBytes() +
                               team.size() * taps * int64_t(sizeof(void *)));
  }
  void useScratch(uint8_t *data) override { scratch = data; }

private:
  static constexpr int64_t kGrain = 16384; ///< results

  int64_t weightBytes() const { return roundUp(2 * taps * channels, 64); }

  void runPixels(int thread, int64_t begin, int64_t end) const {
    auto *pixels = reinterpret_cast<const uint8_t **>(scratch + weightBytes()) +
                   thread * taps;
    IntegerPixel pixel;
    pixel.pixels = pixels;
    pixel.weights = reinterpret_cast<const int16_t *>(scratch);
    pixel.taps = taps;
    pixel.channels = channels;
    pixel.has_sign = call.operands[0].type == abi::DType::i8;
    for (int64_t i = begin; i < end; ++i) {
      const Windows::Place place = windows.place(i);
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t at = windows.inputOffset(place, tap);
        pixels[tap] = at < 0 ? nullptr : bytesOf(call.operands[0]) + at;
      }
      pixel.to = reinterpret_cast<int32_t *>(call.operands[2].data) +
                 windows.resultOffset(i);
      functions.pixel(pixel);
    }
  }

  const ThreadTeam &team;
  const Windows windows;
  const int64_t taps, channels;
  const IntegerFunctions functions = integerFunctions();
  uint8_t *scratch = nullptr;
};

Expected<std::unique_ptr<Task>> checked(std::unique_ptr<Task> task,
                                        const Operand &weights,
                                        OnednnContext &context) {
  if (static_cast<int64_t>(task->scratchBytes()) > context.scratchRoom())
    return Status::error("this product of integers needs " +
                         std::to_string(task->scratchBytes()) +
                         " bytes of scratch, and the plan has " +
                         std::to_string(context.scratchRoom()) +
                         "; compile the model again with a larger --workspace");
  context.readInPlace(weights);
  return task;
}

} // namespace

bool multipliesIntegers(const ResolvedCall &call) {
  return call.operands[0].type != abi::DType::f32;
}

bool hasExactIntegers() {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_vnni) ==
         dnnl_cpu_isa_avx512_core_vnni;
}

Expected<std::unique_ptr<Task>> prepareIntegerDot(ResolvedCall call,
                                                  OnednnContext &context,
                                                  const ThreadTeam &team) {
  return checked(std::make_unique<IntegerDot>(call, team), call.operands[1],
                 context);
}

Expected<std::unique_ptr<Task>> prepareIntegerConv(ResolvedCall call,
                                                   OnednnContext &context,
                                                   const ThreadTeam &team) {
  const Operand &weights = call.operands[1];
  int64_t depth = weights.dims[1];
  for (int axis = 2; axis < weights.rank(); ++axis)
    if (__builtin_mul_overflow(depth, weights.dims[axis], &depth) ||
        depth > kMostTerms)
      return Status::error("the windows of this convolution of integers are "
                           "too large");
  if (IntegerDepthwise::takes(call))
    if (auto task = checked(std::make_unique<IntegerDepthwise>(call, team),
                            call.operands[1], context))
      return task;
  return checked(std::make_unique<IntegerConv>(call, team), call.operands[1],
                 context);
}

} // namespace partita::runtime
