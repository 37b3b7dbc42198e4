//===- AnnotatedMesh.cpp - Axes found in lists of devices -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/shard/AnnotatedMesh.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace partita::shard {

std::optional<std::vector<Digit>> findDigits(llvm::ArrayRef<int64_t> partOf,
                                             int64_t parts) {
  const auto count = static_cast<int64_t>(partOf.size());
  std::vector<Digit> digits; // innermost first
  for (int64_t weight = 1; weight < parts; weight *= digits.back().size) {
    const int64_t stride = llvm::find(partOf, weight) - partOf.begin();
    if (stride == 0 || stride == count)
      return std::nullopt;
    int64_t size = 1;
    while (stride * size < count && partOf[stride * size] == weight * size)
      ++size;
    if (size == 1)
      return std::nullopt;
    digits.push_back({stride, size});
  }
  for (int64_t position = 0; position < count; ++position) {
    int64_t part = 0, weight = 1;
    for (const Digit &digit : digits) {
      part += position / digit.stride % digit.size * weight;
      weight *= digit.size;
    }
    if (part != partOf[position] || weight != parts)
      return std::nullopt;
  }
  std::reverse(digits.begin(), digits.end());
  return digits;
}

bool AnnotatedMesh::add(llvm::ArrayRef<Digit> digits) {
  std::set<int64_t> all = strides;
  for (const Digit &digit : digits) {
    all.insert(digit.stride);
    all.insert(digit.stride * digit.size);
  }
  for (auto it = std::next(all.begin()); it != all.end(); ++it)
    if (*it % *std::prev(it))
      return false;
  strides = std::move(all);
  return true;
}

llvm::SmallVector<int64_t> AnnotatedMesh::getSizes() const {
  llvm::SmallVector<int64_t> sizes;
  for (auto it = std::next(strides.begin()); it != strides.end(); ++it)
    sizes.push_back(*it / *std::prev(it));
  std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

llvm::SmallVector<int64_t>
AnnotatedMesh::getAxes(llvm::ArrayRef<Digit> digits) const {
  const auto numAxes = static_cast<int64_t>(strides.size()) - 1;
  auto indexOf = [&](int64_t stride) {
    return static_cast<int64_t>(
        std::distance(strides.begin(), strides.find(stride)));
  };
  llvm::SmallVector<int64_t> axes;
  for (const Digit &digit : digits)
    for (int64_t i = indexOf(digit.stride * digit.size) - 1;
         i >= indexOf(digit.stride); --i)
      axes.push_back(numAxes - 1 - i);
  return axes;
}

/// The product of the sizes of the axes after the axis of stages.
static int64_t getStride(llvm::ArrayRef<int64_t> sizes, size_t position) {
  int64_t stride = 1;
  for (int64_t size : sizes.drop_front(position))
    stride *= size;
  return stride;
}

int64_t getPlace(int64_t device, llvm::ArrayRef<int64_t> sizes, int64_t places,
                 size_t position) {
  return device / getStride(sizes, position) % places;
}

std::optional<size_t>
findStageAxis(llvm::ArrayRef<int64_t> sizes, int64_t places,
              const std::vector<std::vector<int64_t>> &stages) {
  for (size_t position = 0; position <= sizes.size(); ++position) {
    auto isAtOnePlace = [&](llvm::ArrayRef<int64_t> devices) {
      return llvm::all_equal(llvm::map_range(devices, [&](int64_t device) {
        return getPlace(device, sizes, places, position);
      }));
    };
    // As many as there are at a place: so they are all that are there.
    if (llvm::all_of(stages, isAtOnePlace))
      return position;
  }
  return std::nullopt;
}

} // namespace partita::shard
