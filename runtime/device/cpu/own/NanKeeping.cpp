//===- NanKeeping.cpp - What the library drops NaN in, by loops -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/own/NanKeeping.h"

#include <algorithm>
#include <immintrin.h>
#include <limits>

namespace partita::runtime {
namespace {

using Kind = abi::PostOpKind;

/// The larger and the smaller of two numbers, the second if they are equal:
/// which of two zeros it is, too, is as the library has it. NaN if one is.
float largerOf(float x, float y) { return (x > y) | (x != x) ? x : y; }
float smallerOf(float x, float y) { return (x < y) | (x != x) ? x : y; }

/// The same of four numbers at once: branches on the signs of numbers are
/// mispredicted. The instructions give their second operand where one is NaN,
/// or where both are equal.
using Floats = __m128;
Floats keepNan(Floats x, Floats y) {
  const Floats isNan = _mm_cmpunord_ps(x, x);
  return _mm_or_ps(_mm_and_ps(isNan, x), _mm_andnot_ps(isNan, y));
}
Floats largerOf(Floats x, Floats y) { return keepNan(x, _mm_max_ps(x, y)); }
Floats smallerOf(Floats x, Floats y) { return keepNan(x, _mm_min_ps(x, y)); }

/// An operand's dimensions, the one whose elements lie closest in the result
/// last.
void makeInnermost(Operand &operand, int axis) {
  std::rotate(operand.dims.begin() + axis, operand.dims.begin() + axis + 1,
              operand.dims.end());
  std::rotate(operand.strides.begin() + axis,
              operand.strides.begin() + axis + 1, operand.strides.end());
}

class NanKeepingPostOp final : public Task {
public:
  NanKeepingPostOp(const PostOperation &given, const Operand &to,
                   const ThreadTeam &team)
      : post(given), result(to), team(team) {
    int closest = result.rank() - 1;
    for (int axis = closest; axis >= 0; --axis)
      if (result.dims[axis] > 1 &&
          (result.dims[closest] == 1 ||
           result.strides[axis] < result.strides[closest]))
        closest = axis;
    makeInnermost(result, closest);
    if (post.operand.rank())
      makeInnermost(post.operand, closest);
    rows = 1;
    for (int axis = 0; axis < result.rank() - 1; ++axis)
      rows *= result.dims[axis];
  }

  bool run() override {
    constexpr int64_t kElements = 4096; // less is not worth another thread
    const int64_t row = std::max<int64_t>(result.dims.back(), 1);
    team.split(rows, std::max<int64_t>(kElements / row, 1),
               [&](int, int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   computeRow(i);
               });
    return true;
  }
  void visitAddresses(const AddressVisitor &visit) override {
    visit(&result.data);
    if (post.operand.rank())
      visit(&post.operand.data);
  }

private:
  /// Where a row of all dimensions but the last begins.
  float *rowOf(const Operand &operand, int64_t row) const {
    return operand.data +
           operand.offsetOf(result.dims, 0, result.rank() - 1, row);
  }

  /// x = function(x, y) for each x of a row, and the y that lie `apart`; 0: one
  /// y for all of them.
  template <typename Function>
  void mapRow(int64_t row, const float *y, int64_t apart, Function function) {
    float *x = rowOf(result, row);
    const int64_t count = result.dims.back(), stride = result.strides.back();
    int64_t i = 0;
    if (stride == 1 && apart <= 1)
      for (; i + 4 <= count; i += 4)
        _mm_storeu_ps(x + i,
                      function(_mm_loadu_ps(x + i),
                               apart ? _mm_loadu_ps(y + i) : _mm_set1_ps(*y)));
    for (; i < count; ++i)
      x[i * stride] = function(x[i * stride], y[i * apart]);
  }

  void computeRow(int64_t row) {
    constexpr float kZero = 0;
    auto larger = [](auto x, auto y) { return largerOf(x, y); };
    auto smaller = [](auto x, auto y) { return smallerOf(x, y); };
    if (post.kind == Kind::relu)
      return mapRow(row, &kZero, 0, larger);
    if (post.kind == Kind::clip) {
      mapRow(row, &post.alpha, 0, larger);
      return mapRow(row, &post.beta, 0, smaller);
    }
    const float *other = rowOf(post.operand, row);
    const int64_t apart = post.operand.strides.back();
    if (post.kind == Kind::max)
      mapRow(row, other, apart, larger);
    else
      mapRow(row, other, apart, smaller);
  }

  PostOperation post;
  Operand result;
  int64_t rows;
  const ThreadTeam &team;
};

class NanKeepingPool final : public CallTask {
public:
  NanKeepingPool(const ResolvedCall &resolved, const ThreadTeam &team)
      : CallTask(resolved), team(team) {
    // As three spatial dimensions, the first ones of one element.
    auto extend = [](Operand &operand) {
      while (operand.rank() < 5) {
        operand.dims.insert(operand.dims.begin() + 2, 1);
        operand.strides.insert(operand.strides.begin() + 2, 0);
      }
    };
    const abi::Pool &pool = *call.call->details_as_Pool();
    const int given = input.rank() - 2;
    extend(input);
    extend(result);
    for (int i = 0; i < given; ++i) {
      const int axis = 3 - given + i;
      window[axis] = pool.window()->Get(i);
      stride[axis] = pool.strides()->Get(i);
      dilation[axis] = pool.dilations()->Get(i);
      pad[axis] = pool.pads_low()->Get(i);
    }
  }

  bool run() override {
    team.split(result.dims[0] * result.dims[2] * result.dims[3], 1,
               [&](int, int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row)
                   computeRow(row);
               });
    return true;
  }

private:
  /// The windows at one place of all spatial dimensions but the last.
  void computeRow(int64_t row) {
    const int64_t y = row % result.dims[3], z = row / result.dims[3];
    const int64_t image = z / result.dims[2];
    for (int64_t x = 0; x < result.dims[4]; ++x) {
      const int64_t at[3] = {z % result.dims[2], y, x};
      float *to = result.data + image * result.strides[0];
      for (int i = 0; i < 3; ++i)
        to += at[i] * result.strides[2 + i];
      computeWindow(input.data + image * input.strides[0], at, to);
    }
  }

  /// One window in all channels: tap after tap, so that channels that lie side
  /// by side are computed at once.
  void computeWindow(const float *from, const int64_t (&at)[3],
                     float *to) const {
    const int64_t channels = result.dims[1], apart = result.strides[1];
    for (int64_t c = 0; c < channels; ++c)
      to[c * apart] = std::numeric_limits<float>::lowest();
    for (int64_t k = 0; k < window[0] * window[1] * window[2]; ++k) {
      const int64_t tap[3] = {k / (window[1] * window[2]),
                              k / window[2] % window[1], k % window[2]};
      int64_t offset = 0;
      bool inside = true;
      for (int i = 0; i < 3; ++i) {
        const int64_t place = at[i] * stride[i] + tap[i] * dilation[i] - pad[i];
        inside &= place >= 0 && place < input.dims[2 + i];
        offset += place * input.strides[2 + i];
      }
      if (!inside)
        continue;
      const float *pixel = from + offset;
      if (apart == 1 && input.strides[1] == 1)
        for (int64_t c = 0; c < channels; ++c)
          to[c] = largerOf(pixel[c], to[c]);
      else
        for (int64_t c = 0; c < channels; ++c)
          to[c * apart] = largerOf(pixel[c * input.strides[1]], to[c * apart]);
    }
  }

  Operand &input = call.operands[0], &result = call.operands.back();
  int64_t window[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1},
          pad[3] = {0, 0, 0};
  const ThreadTeam &team;
};

} // namespace

std::unique_ptr<Task> makeNanKeeping(const PostOperation &post,
                                     const Operand &result,
                                     const ThreadTeam &team) {
  return std::make_unique<NanKeepingPostOp>(post, result, team);
}

std::unique_ptr<Task> makeNanKeepingPool(const ResolvedCall &call,
                                         const ThreadTeam &team) {
  return std::make_unique<NanKeepingPool>(call, team);
}

} // namespace partita::runtime
