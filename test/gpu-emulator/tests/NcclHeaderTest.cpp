//===- NcclHeaderTest.cpp - Our declarations against nccl.h -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cstddef>

#define GPUEMU_NCCL_API
namespace ours {
#include "nccl/Nccl.h"
} // namespace ours

#include <nccl.h>

#include "test/unit/cuda/SameCall.h"

#include <gtest/gtest.h>

namespace {

#define GPUEMU_NCCL(NAME, ...)                                                 \
  static_assert(                                                               \
      partita::test::is_same_call<decltype(&ours::NAME), decltype(&::NAME)>,   \
      #NAME);
#include "nccl/Functions.def"
#undef GPUEMU_NCCL

#define SAME_VALUE(NAME) static_assert(int(ours::NAME) == int(::NAME), #NAME)
SAME_VALUE(ncclInvalidUsage);
SAME_VALUE(ncclInProgress);
SAME_VALUE(ncclInt8);
SAME_VALUE(ncclUint64);
SAME_VALUE(ncclFloat16);
SAME_VALUE(ncclFloat64);
SAME_VALUE(ncclBfloat16);
SAME_VALUE(ncclSum);
SAME_VALUE(ncclMin);
SAME_VALUE(ncclAvg);
static_assert(offsetof(ours::ncclConfig_t, blocking) ==
              offsetof(::ncclConfig_t, blocking));
static_assert(sizeof(ours::ncclUniqueId) == sizeof(::ncclUniqueId));

TEST(NcclHeaderTest, AgreesWithNccl) { SUCCEED(); }

} // namespace
