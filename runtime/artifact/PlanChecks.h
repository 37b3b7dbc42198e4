//===- PlanChecks.h - Small checks of the plan verifier ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ARTIFACT_PLANCHECKS_H
#define PARTITA_RUNTIME_ARTIFACT_PLANCHECKS_H

#include "runtime/abi/artifact.h"
#include "runtime/base/Elements.h"

#include <algorithm>
#include <string>

namespace partita::runtime {

/// An upper bound of the bytes of a region. No machine has as many, and a sum
/// of a few such sizes cannot overflow.
inline constexpr int64_t kLargestRegion = int64_t(1) << 48;
inline constexpr int64_t kMostMicroBatches = 1 << 20;

using Longs = flatbuffers::Vector<int64_t>;

inline std::string number(int64_t value) { return std::to_string(value); }

inline std::string quoted(const flatbuffers::String *name) {
  return std::string("'") + text(name) + "'";
}

inline bool inRange(int64_t index, int64_t count) {
  return index >= 0 && index < count;
}

/// What is wrong with `index` as a place in a list.
template <typename Vector>
std::string indexError(const char *names, int64_t index, const Vector *list) {
  return inRange(index, length(list))
             ? ""
             : std::string(names) + " " + number(index) + " of " +
                   number(length(list));
}

/// What is wrong with `bytes` as the size of this shape; empty if nothing is.
inline std::string sizeError(abi::DType dtype, const Longs *shape,
                             int64_t bytes) {
  int64_t count = elementBytes(dtype);
  if (count == 0)
    return "has an unknown element type";
  if (!isAligned(shape))
    return "has a shape that is not aligned";
  bool empty = false;
  for (int64_t i = 0; i < length(shape); ++i) {
    if (shape->Get(i) < 0)
      return "has the negative extent " + number(shape->Get(i));
    empty |= shape->Get(i) == 0;
    // An extent of 0 must not hide an overflow of the others.
    if (!checkedMul(count, std::max<int64_t>(shape->Get(i), 1), count))
      return "has more elements than can be counted";
  }
  int64_t expected = empty ? 0 : count;
  if (bytes != expected)
    return "says it has " + number(bytes) + " bytes where its shape needs " +
           number(expected);
  return "";
}

/// The number of devices in a group along `axes`. 0 if an entry is not an axis
/// of the plan, or occurs twice. The plan's axes have been verified.
inline int64_t groupSize(const abi::Plan &plan,
                         const flatbuffers::Vector<int> *axes) {
  int64_t size = 1;
  for (int64_t i = 0; i < length(axes); ++i) {
    const int axis = axes->Get(static_cast<unsigned>(i));
    if (!inRange(axis, length(plan.axes())))
      return 0;
    for (int64_t other = 0; other < i; ++other)
      if (axes->Get(static_cast<unsigned>(other)) == axis)
        return 0;
    size *= at(plan.axes(), axis).size();
  }
  return size;
}

/// rows * part * devices; -1 if a factor is out of range or the product is too
/// large.
inline int64_t elementsOf(int64_t rows, int64_t part, int64_t devices) {
  int64_t elements;
  return rows >= 0 && part >= 0 && devices > 0 &&
                 checkedMul(rows, part, elements) &&
                 checkedMul(elements, devices, elements) &&
                 elements <= kLargestRegion
             ? elements
             : -1;
}

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_ARTIFACT_PLANCHECKS_H
