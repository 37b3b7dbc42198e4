//===- Conversion.cpp - Elements of files to those of inputs --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Conversion.h"

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

namespace partita::data {

using abi::DType;
using runtime::Expected;
using runtime::Status;

namespace {

template <typename T> T load(const uint8_t *from, int64_t i) {
  T value;
  std::memcpy(&value, from + i * int64_t(sizeof(T)), sizeof(T));
  return value;
}

template <typename T> void store(uint8_t *to, int64_t i, T value) {
  std::memcpy(to + i * int64_t(sizeof(T)), &value, sizeof(T));
}

template <typename From, typename To>
int64_t toFloats(const uint8_t *from, uint8_t *to, int64_t count,
                 const Scale &scale) {
  const To divide = To(scale.divide), mean = To(scale.mean),
           std = To(scale.std);
  for (int64_t i = 0; i < count; ++i)
    store<To>(to, i, (To(load<From>(from, i)) / divide - mean) / std);
  return -1;
}

template <typename From, typename To>
int64_t toIntegers(const uint8_t *from, uint8_t *to, int64_t count,
                   const Scale &) {
  for (int64_t i = 0; i < count; ++i) {
    const From value = load<From>(from, i);
    if (!std::in_range<To>(value))
      return i;
    store<To>(to, i, To(value));
  }
  return -1;
}

} // namespace

/// The kernel for a type of the file and one of the input; null if there is
/// none.
struct Kernels {
  template <typename From> static Conversion::Kernel of(DType to) {
    if (to == DType::f32 && !std::is_same_v<From, double>)
      return toFloats<From, float>;
    if (to == DType::f64 && !std::is_same_v<From, float>)
      return toFloats<From, double>;
    if constexpr (std::is_integral_v<From>) {
      if (to == DType::i32)
        return toIntegers<From, int32_t>;
      if (to == DType::i64)
        return toIntegers<From, int64_t>;
    }
    return nullptr;
  }

  static Conversion::Kernel find(DType from, DType to) {
    if (from == DType::f32)
      return of<float>(to);
    if (from == DType::f64)
      return of<double>(to);
    const runtime::ElementType &type = runtime::elementType(from);
    const bool isSigned = type.isSigned();
    switch (type.isFloat() ? 0 : type.bytes) {
    case 1:
      return isSigned ? of<int8_t>(to) : of<uint8_t>(to);
    case 2:
      return isSigned ? of<int16_t>(to) : of<uint16_t>(to);
    case 4:
      return isSigned ? of<int32_t>(to) : of<uint32_t>(to);
    case 8:
      return isSigned ? of<int64_t>(to) : of<uint64_t>(to);
    default:
      return nullptr;
    }
  }
};

Expected<Conversion> Conversion::create(DType from, DType to,
                                        const Scale &scale) {
  auto isUsable = [&](double number) {
    // In the type that computes: 1e-50 is 0 in f32.
    return std::isfinite(number) &&
           (to != DType::f32 || std::isfinite(float(number)));
  };
  auto isDivisor = [&](double number) {
    return isUsable(number) && (to == DType::f32 ? float(number) : number) != 0;
  };
  Conversion conversion;
  conversion.scale = scale;
  const bool scales = scale != Scale();
  if (from == to && !scales)
    return conversion;
  if (scales && to != DType::f32 && to != DType::f64)
    return Status::error("only inputs of float32 and float64 can be scaled, "
                         "not " +
                         std::string(runtime::dtypeName(to)) +
                         "; leave out divide, mean and std");
  if (!isUsable(scale.mean))
    return Status::error("the mean of a scale must be a finite number");
  if (!isDivisor(scale.divide) || !isDivisor(scale.std))
    return Status::error("divide and std of a scale must be finite numbers "
                         "other than 0");
  conversion.kernel = Kernels::find(from, to);
  if (!conversion.kernel)
    return Status::error(std::string(runtime::dtypeName(from)) +
                         " cannot become " + runtime::dtypeName(to) +
                         "; save the data as " + runtime::dtypeName(to));
  return conversion;
}

} // namespace partita::data
