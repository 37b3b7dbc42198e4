//===- CallProbe.cpp - A library call to be timed -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/CallProbe.h"

#include "runtime/abi/Calls.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

namespace partita::runtime {
namespace {

/// What the compiler grants by default, and more packed weights than there are.
constexpr OnednnContext::Room kRoom = {int64_t(1) << 34, 1 << 20};

} // namespace

float *CallProbe::take(int64_t elements) {
  size_t count = (size_t(elements) + 1023) / 1024 * 1024;
  if (used + count > space.size())
    return nullptr;
  float *data = space.data() + used;
  used += count;
  return data;
}

Operand CallProbe::dense(std::vector<int64_t> dims, bool constant) {
  Operand operand;
  int64_t elements = 1;
  operand.strides.resize(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    operand.strides[i] = elements;
    elements *= dims[i];
  }
  operand.dims = std::move(dims);
  operand.constant = constant;
  operand.data = constant && weights ? weights : take(elements);
  return operand;
}

Operand CallProbe::image(int64_t channels, int64_t side) {
  Operand operand = dense({1, side, side, channels});
  operand.dims = {1, channels, side, side};
  operand.strides = {operand.strides[0], 1, side * channels, channels};
  return operand;
}

Status CallProbe::prepare(abi::CallKind kind, ResolvedCall call, int64_t window,
                          int64_t stride, int64_t groups, int64_t workspace) {
  for (const Operand &operand : call.operands)
    if (!operand.data)
      return Status::error("the probe's operands do not fit its space");
  auto pair = [&](int64_t value) {
    return buffer.CreateVector(std::vector<int64_t>{value, value});
  };
  auto strides = pair(stride), dilations = pair(1),
       pads = pair((window - 1) / 2),
       pads_high = pair(window - 1 - (window - 1) / 2), windows = pair(window);
  const abi::CallDetails type = abi::detailsOf(kind);
  flatbuffers::Offset<void> details;
  if (type == abi::CallDetails::Conv)
    details = abi::CreateConv(buffer, strides, dilations, pads, pads_high,
                              groups, workspace > 0)
                  .Union();
  else if (type == abi::CallDetails::Pool)
    details =
        abi::CreatePool(buffer, strides, dilations, pads, pads_high, windows)
            .Union();
  else if (type == abi::CallDetails::Attention)
    details = abi::CreateAttention(buffer).Union();
  buffer.Finish(abi::CreateCall(buffer, kind, 0, type, details));
  call.call = flatbuffers::GetRoot<abi::Call>(buffer.GetBufferPointer());
  context.reset();
  packs.clear(); // of another call, whose bytes may have lain here
  OnednnContext::Room room = kRoom;
  room.workspace += workspace;
  room.largest = workspace;
  context = PARTITA_TRY(OnednnContext::create(room, packs));
  task = PARTITA_TRY(prepareCall(std::move(call), *context, team, true));
  scratch =
      PARTITA_TRY(Arena::map(task->scratchBytes(), "the library's scratch"));
  task->useScratch(scratch.data());
  return Status();
}

Status CallProbe::integerDot(int64_t rows, int64_t columns, int64_t depth) {
  ResolvedCall call;
  call.operands = {dense({rows, depth}), dense({depth, columns}, true),
                   dense({rows, columns})};
  call.operands[0].type = abi::DType::u8;
  call.operands[1].type = abi::DType::i8;
  call.operands[2].type = abi::DType::i32;
  return prepare(abi::CallKind::dot, std::move(call), 1, 1, 1);
}

Status CallProbe::dot(int64_t batch, int64_t rows, int64_t columns,
                      int64_t depth, bool constant,
                      const abi::PostOpKind *post) {
  ResolvedCall call;
  auto dims = [&](int64_t a, int64_t b) {
    return batch > 1 ? std::vector<int64_t>{batch, a, b}
                     : std::vector<int64_t>{a, b};
  };
  call.operands = {dense(dims(rows, depth)),
                   dense(dims(depth, columns), constant),
                   dense(dims(rows, columns))};
  if (result)
    call.operands.back().data = result;
  if (batch == 1) {
    call.bias = dense({columns});
    call.bias->constant = true;
  }
  if (post) {
    PostOperation operation;
    operation.kind = *post;
    if (abi::isBinary(*post))
      operation.operand = dense(dims(rows, columns));
    call.post_ops.push_back(std::move(operation));
  }
  return prepare(abi::CallKind::dot, std::move(call), 1, 1, 1);
}

Status CallProbe::convolve(int64_t side, int64_t in, int64_t out,
                           int64_t window, int64_t stride, int64_t groups,
                           int64_t workspace) {
  ResolvedCall call;
  call.operands = {image(in, side * stride),
                   dense({out, in / groups, window, window}, true),
                   image(out, side)};
  call.bias = dense({out});
  call.bias->constant = true;
  return prepare(abi::CallKind::conv, std::move(call), window, stride, groups,
                 workspace);
}

Status CallProbe::winograd(int64_t side, int64_t in, int64_t out) {
  return convolve(side, in, out, 3, 1, 1,
                  rules::winogradRoom({1, in, out, side, side}));
}

Status CallProbe::conv(int64_t side, int64_t in, int64_t out, int64_t window,
                       int64_t stride, bool depthwise) {
  return convolve(side, in, out, window, stride, depthwise ? in : 1);
}

Status CallProbe::pool(int64_t side, int64_t channels, int64_t window) {
  ResolvedCall call;
  call.operands = {image(channels, side * 2), image(channels, side)};
  return prepare(abi::CallKind::pool_max, std::move(call), window, 2, 1);
}

Status CallProbe::attention(int64_t heads, int64_t rows, int64_t columns,
                            int64_t depth) {
  // Heads lie side by side in a row, as the projections before write them.
  auto side = [&](int64_t length) {
    Operand operand = dense({1, length, heads, depth});
    operand.dims = {1, heads, length, depth};
    operand.strides = {operand.strides[0], depth, heads * depth, 1};
    return operand;
  };
  ResolvedCall call;
  call.operands = {side(rows), side(columns), side(columns), side(rows)};
  return prepare(abi::CallKind::attention, std::move(call), 1, 1, 1);
}

} // namespace partita::runtime
