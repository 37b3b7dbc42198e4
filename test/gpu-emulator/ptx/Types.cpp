//===- Types.cpp - Names and sizes of PTX's types ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ptx/Text.h"

#include <iterator>

using namespace gpuemu;

namespace {

struct Row {
  Type type;
  std::string_view name;
  unsigned bytes;
};
constexpr Row types[] = {
    {Type::Pred, "pred", 0},     {Type::B8, "b8", 1},
    {Type::U8, "u8", 1},         {Type::S8, "s8", 1},
    {Type::B16, "b16", 2},       {Type::U16, "u16", 2},
    {Type::S16, "s16", 2},       {Type::B32, "b32", 4},
    {Type::U32, "u32", 4},       {Type::S32, "s32", 4},
    {Type::B64, "b64", 8},       {Type::U64, "u64", 8},
    {Type::S64, "s64", 8},       {Type::B128, "b128", 16},
    {Type::F16, "f16", 2},       {Type::BF16, "bf16", 2},
    {Type::F32, "f32", 4},       {Type::TF32, "tf32", 4},
    {Type::F64, "f64", 8},       {Type::F16x2, "f16x2", 4},
    {Type::BF16x2, "bf16x2", 4}, {Type::U16x2, "u16x2", 4},
    {Type::S16x2, "s16x2", 4},
};

constexpr std::string_view specials[] = {
    "%tid.x",           "%tid.y",       "%tid.z",       "%ntid.x",
    "%ntid.y",          "%ntid.z",      "%ctaid.x",     "%ctaid.y",
    "%ctaid.z",         "%nctaid.x",    "%nctaid.y",    "%nctaid.z",
    "%laneid",          "%warpid",      "%nwarpid",     "%smid",
    "%nsmid",           "%gridid",      "%lanemask_eq", "%lanemask_lt",
    "%lanemask_le",     "%lanemask_gt", "%lanemask_ge", "%dynamic_smem_size",
    "%total_smem_size",
};
static_assert(std::size(specials) == SpecialCount);

} // namespace

std::optional<Type> gpuemu::typeNamed(std::string_view name) {
  for (const Row &row : types)
    if (row.name == name)
      return row.type;
  return std::nullopt;
}

unsigned gpuemu::bytesOf(Type type) {
  for (const Row &row : types)
    if (row.type == type)
      return row.bytes;
  return 0;
}

int gpuemu::specialRegister(std::string_view name) {
  for (size_t i = 0; i < std::size(specials); ++i)
    if (specials[i] == name)
      return int(i);
  return -1;
}

Type gpuemu::specialType(unsigned number) {
  return number == GridId ? Type::U64 : Type::U32;
}
