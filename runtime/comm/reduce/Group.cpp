//===- Group.cpp - What a device has to do in its group -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/reduce/Group.h"

#include "runtime/base/BestLevel.h"
#include "runtime/base/Elements.h"

#include <algorithm>
#include <cstring>

namespace partita::runtime {
namespace {

/// What cores exchange.
constexpr int64_t kLine = 64;

/// None for types whose elements are not combined.
CombineFunctions functionsOf(abi::DType dtype) {
  const auto functions = atBestLevel(combineFunctionsBaseline,
                                     combineFunctionsV3, combineFunctionsV4);
  switch (dtype) {
#define PARTITA_CASE(name, ...)                                                \
  case abi::DType::name:                                                       \
    return functions(ElementFormat::name);
    PARTITA_ELEMENT_FORMATS(PARTITA_CASE)
#undef PARTITA_CASE
  default:
    return {};
  }
}

} // namespace

CombineFunction combineFunction(abi::DType dtype, Reduction reduction) {
  const CombineFunctions functions = functionsOf(dtype);
  switch (reduction) {
  case Reduction::sum:
    return functions.sum;
  case Reduction::prod:
    return functions.prod;
  case Reduction::max:
    return functions.max;
  case Reduction::min:
    return functions.min;
  }
  return nullptr;
}

bool combines(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce ||
         kind == CollectiveKind::reduce_scatter;
}

Status checkCollective(const CollectiveInfo &info) {
  if (info.kind > CollectiveKind::broadcast)
    return Status::error("it is of no kind that there is");
  std::vector<int> devices;
  size_t largest = 1;
  for (const std::vector<int> &group : info.groups) {
    devices.insert(devices.end(), group.begin(), group.end());
    largest = std::max(largest, group.size());
  }
  int64_t bytes = elementBytes(info.dtype);
  if (info.rows < 0 || info.part < 0 || bytes == 0 ||
      !checkedMul(bytes, info.rows, bytes) ||
      !checkedMul(bytes, info.part, bytes) ||
      !checkedMul(bytes, int64_t(largest), bytes))
    return Status::error("it has no size that there is");
  if (combines(info.kind) && !combineFunction(info.dtype, info.reduction))
    return Status::error("elements of its type cannot be combined so");
  std::sort(devices.begin(), devices.end());
  if (!devices.empty() && devices.front() < 0)
    return Status::error("a device of its groups is below 0");
  if (std::adjacent_find(devices.begin(), devices.end()) != devices.end())
    return Status::error("a device is twice in its groups");
  return Status();
}

Membership membership(const CollectiveInfo &info, int device) {
  for (const std::vector<int> &group : info.groups)
    for (size_t rank = 0; rank < group.size(); ++rank)
      if (group[rank] == device)
        return {&group, int(rank)};
  return {};
}

int64_t partBytes(const CollectiveInfo &info) {
  return info.part * elementBytes(info.dtype);
}

int64_t rowBytes(const CollectiveInfo &info) {
  return info.rows * partBytes(info);
}

int64_t sourceBytes(const CollectiveInfo &info, int size) {
  const bool has_all = info.kind == CollectiveKind::reduce_scatter ||
                       info.kind == CollectiveKind::all_to_all;
  return has_all ? size * rowBytes(info) : rowBytes(info);
}

std::pair<int64_t, int64_t> shareOf(const CollectiveInfo &info, int rank,
                                    int size) {
  const int64_t bytes = rowBytes(info);
  const int64_t lines = (bytes + kLine - 1) / kLine;
  auto end = [&](int before) {
    // Without a product, which might overflow.
    const int64_t each = lines / size, more = lines % size;
    return std::min(bytes,
                    (each * before + std::min<int64_t>(before, more)) * kLine);
  };
  return {end(rank), end(rank + 1)};
}

void copyRows(int64_t rows, size_t bytes, const uint8_t *from,
              int64_t from_stride, uint8_t *to, int64_t to_stride) {
  if (from_stride == int64_t(bytes) && to_stride == int64_t(bytes)) {
    bytes *= size_t(rows);
    rows = 1;
  }
  if (bytes == 0 || from == to)
    return;
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(to + row * to_stride, from + row * from_stride, bytes);
}

std::string listDevices(const std::vector<int> &devices) {
  std::string text = devices.size() == 1 ? "device" : "devices";
  for (size_t i = 0; i < devices.size(); ++i)
    text += (i ? ", " : " ") + std::to_string(devices[i]);
  return text;
}

} // namespace partita::runtime
