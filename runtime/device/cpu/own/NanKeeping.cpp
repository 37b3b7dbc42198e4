//===- NanKeeping.cpp - What the library drops NaN in, by loops -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/own/NanKeeping.h"

#include <algorithm>
#include <limits>

namespace partita::runtime {
namespace {

using Kind = abi::PostOpKind;

/// The larger and the smaller of two numbers, the second if they are equal:
/// which of two zeros it is, too, is as the library has it. NaN if one is.
float largerOf(float x, float y) { return (x > y) | (x != x) ? x : y; }
float smallerOf(float x, float y) { return (x < y) | (x != x) ? x : y; }

/// An operand's dimensions, the one whose elements lie closest in the result
/// last.
void makeInnermost(Operand &operand, int axis) {
  std::rotate(operand.dims.begin() + axis, operand.dims.begin() + axis + 1,
              operand.dims.end());
  std::rotate(operand.strides.begin() + axis,
              operand.strides.begin() + axis + 1, operand.strides.end());
}

/// Where row `row` of all dimensions but the last begins.
int64_t rowOffset(const Operand &shape, const Operand &operand, int64_t row) {
  int64_t offset = 0;
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    offset += row % shape.dims[axis] * operand.strides[axis];
    row /= shape.dims[axis];
  }
  return offset;
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
    team.split(rows, std::max<int64_t>(kElements / row, 1), runRange, this);
    return true;
  }
  void visitAddresses(const AddressVisitor &visit) override {
    visit(&result.data);
    if (post.operand.rank())
      visit(&post.operand.data);
  }

private:
  static void runRange(void *self, int, int64_t begin, int64_t end) {
    auto *task = static_cast<NanKeepingPostOp *>(self);
    for (int64_t row = begin; row < end; ++row)
      task->computeRow(row);
  }

  template <typename Function> void mapRow(int64_t row, Function function) {
    float *data = result.data + rowOffset(result, result, row);
    const int64_t count = result.dims.back(), stride = result.strides.back();
    if (stride == 1) {
#pragma omp simd
      for (int64_t i = 0; i < count; ++i)
        data[i] = function(data[i], i);
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      data[i * stride] = function(data[i * stride], i);
  }

  void computeRow(int64_t row) {
    if (post.kind == Kind::relu)
      return mapRow(row, [](float x, int64_t) { return largerOf(x, 0.0f); });
    if (post.kind == Kind::clip)
      return mapRow(row,
                    [low = post.alpha, high = post.beta](float x, int64_t) {
                      return smallerOf(largerOf(x, low), high);
                    });
    const float *other =
        post.operand.data + rowOffset(result, post.operand, row);
    const int64_t stride = post.operand.strides.back();
    if (post.kind == Kind::max)
      mapRow(row, [other, stride](float x, int64_t i) {
        return largerOf(x, other[i * stride]);
      });
    else
      mapRow(row, [other, stride](float x, int64_t i) {
        return smallerOf(x, other[i * stride]);
      });
  }

  PostOperation post;
  Operand result;
  int64_t rows;
  const ThreadTeam &team;
};

class NanKeepingPool final : public Task {
public:
  NanKeepingPool(const ResolvedCall &call, const ThreadTeam &team)
      : input(call.operands[0]), result(call.operands.back()), team(team) {
    // As three spatial dimensions, the first ones of one element.
    auto extend = [](Operand &operand) {
      while (operand.rank() < 5) {
        operand.dims.insert(operand.dims.begin() + 2, 1);
        operand.strides.insert(operand.strides.begin() + 2, 0);
      }
    };
    const int given = input.rank() - 2;
    extend(input);
    extend(result);
    for (int i = 0; i < given; ++i) {
      const int axis = 3 - given + i;
      window[axis] = call.call->window()->Get(i);
      stride[axis] = call.call->strides()->Get(i);
      dilation[axis] = call.call->dilations()->Get(i);
      pad[axis] = call.call->pads_low()->Get(i);
    }
  }

  bool run() override {
    team.split(result.dims[0] * result.dims[2] * result.dims[3], 1, runRange,
               this);
    return true;
  }
  void visitAddresses(const AddressVisitor &visit) override {
    visit(&input.data);
    visit(&result.data);
  }

private:
  static void runRange(void *self, int, int64_t begin, int64_t end) {
    auto *task = static_cast<NanKeepingPool *>(self);
    for (int64_t row = begin; row < end; ++row)
      task->computeRow(row);
  }

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

  Operand input, result;
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
