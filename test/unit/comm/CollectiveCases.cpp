//===- CollectiveCases.cpp - Collectives, and what they must give ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/unit/comm/CollectiveCases.h"

#include "runtime/io/DType.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <tuple>

namespace partita::test {

using namespace partita::runtime;
using abi::DType;

namespace {

constexpr DType kCombined[] = {
    DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,     DType::i16,
    DType::i32, DType::i64, DType::u8,  DType::u16,  DType::u32,    DType::u64,
    DType::i4,  DType::u4,  DType::i2,  DType::u2,   DType::boolean};

template <typename T> void put(Bytes &bytes, int64_t at, T value) {
  std::memcpy(bytes.data() + at * sizeof(T), &value, sizeof(T));
}

uint16_t brainOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (std::isnan(value))
    return uint16_t(bits >> 16 | 0x40);
  // The nearer of the neighbours, or the even one.
  const uint32_t rest = bits & 0xffff, below = bits >> 16;
  return uint16_t(below + (rest > 0x8000 || (rest == 0x8000 && below % 2)));
}
uint16_t halfOf(float value) {
  const auto half = static_cast<_Float16>(value);
  uint16_t bits;
  std::memcpy(&bits, &half, 2);
  return bits;
}

double combined(Reduction reduction, double a, double b) {
  // -0 is less than 0.
  const bool less = a < b || (a == b && std::signbit(a) > std::signbit(b));
  switch (reduction) {
  case Reduction::sum:
    return a + b;
  case Reduction::prod:
    return a * b;
  case Reduction::max:
    return std::isnan(a) || std::isnan(b) ? NAN : less ? b : a;
  case Reduction::min:
    return std::isnan(a) || std::isnan(b) ? NAN : less ? a : b;
  }
  return 0;
}

/// Modulo 2^64; the comparison is that of the type.
uint64_t combined(Reduction reduction, bool is_signed, uint64_t a, uint64_t b) {
  const bool less = is_signed ? int64_t(a) < int64_t(b) : a < b;
  switch (reduction) {
  case Reduction::sum:
    return a + b;
  case Reduction::prod:
    return a * b;
  case Reduction::max:
    return less ? b : a;
  case Reduction::min:
    return less ? a : b;
  }
  return 0;
}

uint64_t integerAt(DType dtype, const uint8_t *element) {
  uint64_t value;
  if (dtype != DType::u64)
    return uint64_t(toInteger(dtype, element));
  std::memcpy(&value, element, 8);
  return value;
}

void putInteger(DType dtype, Bytes &bytes, int64_t at, uint64_t value) {
  const int bits = dtype == DType::i4 || dtype == DType::u4   ? 4
                   : dtype == DType::i2 || dtype == DType::u2 ? 2
                                                              : 8;
  if (bits < 8) {
    value &= (1u << bits) - 1;
    if (isSigned(dtype) && value >> (bits - 1))
      value |= ~uint64_t(0) << bits;
  }
  const int64_t size = elementBytes(dtype);
  std::memcpy(bytes.data() + at * size, &value, size_t(size));
}

/// All values, one after another; of a power of two of them each with the one
/// of the other half, and so on. Other values are left.
template <typename T, typename Combine>
T combineAll(std::vector<T> &values, Combine combine) {
  const bool is_tree = (values.size() & (values.size() - 1)) == 0;
  while (is_tree && values.size() > 1) {
    const size_t half = values.size() / 2;
    for (size_t i = 0; i < half; ++i)
      values[i] = combine(values[i], values[half + i]);
    values.resize(half);
  }
  return std::accumulate(values.begin() + 1, values.end(), values[0], combine);
}

/// Element `at` of the results.
void combineAt(const CollectiveInfo &info,
               const std::vector<const uint8_t *> &from, Bytes &to,
               int64_t at) {
  if (!isFloat(info.dtype)) {
    thread_local std::vector<uint64_t> values;
    values.clear();
    for (const uint8_t *element : from)
      values.push_back(integerAt(info.dtype, element));
    return putInteger(
        info.dtype, to, at, combineAll(values, [&](uint64_t a, uint64_t b) {
          return combined(info.reduction, isSigned(info.dtype), a, b);
        }));
  }
  // Sums and products of two floats in double round as those in float.
  thread_local std::vector<double> values;
  values.clear();
  for (const uint8_t *element : from)
    values.push_back(toDouble(info.dtype, element));
  const double value = combineAll(values, [&](double a, double b) {
    const double both = combined(info.reduction, a, b);
    return info.dtype == DType::f64 ? both : float(both);
  });
  if (info.dtype == DType::f64)
    put(to, at, value);
  else if (info.dtype == DType::f32)
    put(to, at, float(value));
  else
    put(to, at,
        info.dtype == DType::f16 ? halfOf(float(value))
                                 : brainOf(float(value)));
}

const char *nameOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::all_reduce:
    return "all_reduce";
  case CollectiveKind::all_gather:
    return "all_gather";
  case CollectiveKind::reduce_scatter:
    return "reduce_scatter";
  case CollectiveKind::all_to_all:
    return "all_to_all";
  case CollectiveKind::broadcast:
    return "broadcast";
  }
  return "?";
}

size_t targetBytes(const CollectiveInfo &info, int64_t size) {
  const bool gets_all = info.kind == CollectiveKind::all_gather ||
                        info.kind == CollectiveKind::all_to_all;
  return size_t(info.rows * info.part * elementBytes(info.dtype) *
                (gets_all ? size : 1));
}

Bytes makeSource(DType dtype, int64_t count, int device, int round) {
  Bytes bytes(size_t(count * elementBytes(dtype)));
  std::mt19937 random(unsigned(device * 7919 + round * 31 + int(dtype)));
  if (dtype == DType::f32 || dtype == DType::f64) {
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < count; ++i) {
      double value = std::ldexp(normal(random), int(random() % 40) - 20);
      if (random() % 100 == 0)
        value = random() % 2 ? NAN : INFINITY;
      if (dtype == DType::f32)
        put(bytes, i, float(value));
      else
        put(bytes, i, value);
    }
    return bytes;
  }
  // Any bits: all values of small floats, NaN and denormals among them.
  for (int64_t i = 0; i < count; ++i)
    putInteger(dtype, bytes, i,
               dtype == DType::boolean ? random() % 2
                                       : uint64_t(random()) << 32 | random());
  return bytes;
}

/// Made once: many cases have the same.
const Bytes &sourceOf(const CollectiveInfo &info, int64_t size, int device,
                      int round) {
  const bool has_all = info.kind == CollectiveKind::reduce_scatter ||
                       info.kind == CollectiveKind::all_to_all;
  const int64_t count = info.rows * info.part * (has_all ? size : 1);
  static std::mutex mutex;
  static std::map<std::tuple<DType, int64_t, int, int>, Bytes> known;
  std::lock_guard lock(mutex);
  auto [it, isNew] = known.try_emplace({info.dtype, count, device, round});
  if (isNew)
    it->second = makeSource(info.dtype, count, device, round);
  return it->second;
}

} // namespace

std::vector<CollectiveCase> allCases(int devices) {
  std::vector<int> group(static_cast<size_t>(devices));
  std::iota(group.begin(), group.end(), 0);
  const std::pair<int64_t, int64_t> sizes[] = {
      {1, 0}, {3, 0}, {0, 5}, {1, 1}, {3, 1}, {1, 13}, {5, 131}, {1, 4999}};
  std::vector<CollectiveCase> cases;
  auto add = [&](CollectiveKind kind, DType dtype, Reduction reduction,
                 bool in_place) {
    for (auto [rows, part] : sizes)
      cases.push_back(
          {{kind, reduction, dtype, rows, part, {group}}, in_place});
  };
  for (DType dtype : kCombined)
    for (Reduction reduction :
         {Reduction::sum, Reduction::prod, Reduction::max, Reduction::min}) {
      if (dtype == DType::boolean && reduction < Reduction::max)
        continue;
      add(CollectiveKind::all_reduce, dtype, reduction, false);
      add(CollectiveKind::all_reduce, dtype, reduction, true);
      add(CollectiveKind::reduce_scatter, dtype, reduction, false);
    }
  for (DType dtype : {DType::f8e4m3fn, DType::f16, DType::f32, DType::i64}) {
    add(CollectiveKind::all_gather, dtype, {}, false);
    add(CollectiveKind::all_to_all, dtype, {}, false);
    add(CollectiveKind::broadcast, dtype, {}, false);
    add(CollectiveKind::broadcast, dtype, {}, true);
  }
  return cases;
}

std::vector<CollectiveInfo> infosOf(const std::vector<CollectiveCase> &cases) {
  std::vector<CollectiveInfo> infos;
  for (const CollectiveCase &of : cases)
    infos.push_back(of.info);
  return infos;
}

std::string nameOf(const CollectiveCase &of) {
  const char *reductions[] = {"sum", "prod", "max", "min"};
  return std::string(nameOf(of.info.kind)) + " " +
         reductions[size_t(of.info.reduction)] + " of " +
         dtypeName(of.info.dtype) + "[" + std::to_string(of.info.rows) + ", " +
         std::to_string(of.info.part) + "]" + (of.in_place ? " in place" : "");
}

std::vector<Bytes> sourcesOf(const CollectiveCase &of, int group, int round) {
  std::vector<Bytes> sources;
  for (int device : of.info.groups[size_t(group)])
    sources.push_back(sourceOf(
        of.info, int64_t(of.info.groups[size_t(group)].size()), device, round));
  return sources;
}

Bytes expectedOf(const CollectiveCase &of, const std::vector<Bytes> &sources,
                 int rank) {
  const CollectiveInfo &info = of.info;
  const int64_t size = int64_t(sources.size()), self = rank;
  const int64_t element = elementBytes(info.dtype), rows = info.rows,
                part = info.part;
  Bytes result(targetBytes(info, size));
  auto copy = [&](int64_t to, int64_t other, int64_t from) {
    std::copy_n(sources[size_t(other)].begin() + from * element, element,
                result.begin() + to * element);
  };
  std::vector<const uint8_t *> from;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < part; ++i) {
      const int64_t at = row * part + i;
      from.clear();
      for (int64_t other = 0; other < size; ++other)
        switch (info.kind) {
        case CollectiveKind::all_reduce:
          from.push_back(sources[size_t(other)].data() + at * element);
          break;
        case CollectiveKind::reduce_scatter:
          from.push_back(sources[size_t(other)].data() +
                         ((row * size + self) * part + i) * element);
          break;
        case CollectiveKind::all_gather:
          copy((row * size + other) * part + i, other, at);
          break;
        case CollectiveKind::all_to_all:
          copy(other * rows * part + at, other, (row * size + self) * part + i);
          break;
        case CollectiveKind::broadcast:
          copy(at, 0, at);
          break;
        }
      if (!from.empty())
        combineAt(info, from, result, at);
    }
  return result;
}

bool agree(DType dtype, const Bytes &a, const Bytes &b) {
  if (a.size() != b.size() || !isFloat(dtype))
    return a == b;
  const size_t size = size_t(elementBytes(dtype));
  for (size_t at = 0; at < a.size(); at += size)
    if (std::memcmp(&a[at], &b[at], size) != 0 &&
        !(std::isnan(toDouble(dtype, &a[at])) &&
          std::isnan(toDouble(dtype, &b[at]))))
      return false;
  return true;
}

Buffers::Buffers(const CollectiveCase &of, const std::vector<Bytes> &sources,
                 int rank)
    : in_place(of.in_place), bytes(sources[size_t(rank)]), before(bytes) {
  if (!in_place)
    result.assign(targetBytes(of.info, int64_t(sources.size())), 0xa5);
}

} // namespace partita::test
