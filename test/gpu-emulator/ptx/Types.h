//===- Types.h - Types of PTX, and faults of a program ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_PTX_TYPES_H
#define PARTITA_TEST_GPUEMULATOR_PTX_TYPES_H

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gpuemu {

/// An error of the driver API: its CUresult and what happened, in words.
struct Fault : std::runtime_error {
  Fault(int code, const std::string &text)
      : std::runtime_error(text), code(code) {}
  int code;
};

enum class Type : uint8_t {
  None,
  Pred,
  B8,
  U8,
  S8,
  B16,
  U16,
  S16,
  B32,
  U32,
  S32,
  B64,
  U64,
  S64,
  B128,
  F16,
  BF16,
  F32,
  TF32,
  F64,
  F16x2,
  BF16x2,
  U16x2,
  S16x2,
};

std::optional<Type> typeNamed(std::string_view name);
/// 0 for predicates, which are bits of a mask.
unsigned bytesOf(Type type);

enum class Space : uint8_t { Generic, Global, Shared, Local, Const, Param };

/// Generic addresses of memory that only a block, a thread or a launch sees.
constexpr uint64_t windowBits = 60;
constexpr uint64_t sharedWindow = uint64_t(1) << windowBits;
constexpr uint64_t localWindow = uint64_t(2) << windowBits;
constexpr uint64_t paramWindow = uint64_t(3) << windowBits;
constexpr uint64_t windowMask = sharedWindow - 1;

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_PTX_TYPES_H
