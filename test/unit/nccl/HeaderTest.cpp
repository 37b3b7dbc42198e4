//===- HeaderTest.cpp - Our declarations are NVIDIA's ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/nccl/library/Api.h"
#include "test/unit/cuda/SameCall.h"

#include <gtest/gtest.h>

namespace partita::test {
namespace {

// NVIDIA's, where it is installed and no stand-in comes before it.
TEST(NcclLibrary, HasWhatIsUsed) {
  const runtime::nccl::Library &library = runtime::nccl::loadLibrary();
  if (library.is_missing)
    GTEST_SKIP() << library.status.message();
  ASSERT_TRUE(library.api) << library.status.message();
  EXPECT_GE(library.api->version, runtime::nccl::kOldestVersion);
}

} // namespace
} // namespace partita::test

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>

#include <type_traits>

namespace partita::test {
namespace {

using namespace runtime::nccl;

TEST(NcclHeader, FunctionsAreDeclaredAlike) {
#define PARTITA_NCCL(MEMBER, NAME, TYPES)                                      \
  static_assert(is_same_call<decltype(Api::MEMBER), decltype(&NAME)>, #NAME);
#include "runtime/comm/nccl/library/Functions.def"
  static_assert(std::is_same_v<decltype(&ncclGetErrorString),
                               const char *(*)(ncclResult_t)>);
  static_assert(
      std::is_same_v<decltype(&ncclGetLastError), const char *(*)(ncclComm_t)>);
}

TEST(NcclHeader, ConstantsAreTheSame) {
#define SAME(OURS, THEIRS)                                                     \
  EXPECT_EQ(static_cast<long>(OURS), static_cast<long>(THEIRS)) << #THEIRS
  SAME(Result::success, ncclSuccess);
  SAME(Result::unhandled_cuda_error, ncclUnhandledCudaError);
  SAME(Result::system_error, ncclSystemError);
  SAME(Result::internal_error, ncclInternalError);
  SAME(Result::invalid_argument, ncclInvalidArgument);
  SAME(Result::invalid_usage, ncclInvalidUsage);
  SAME(Result::remote_error, ncclRemoteError);
  SAME(Result::in_progress, ncclInProgress);
  SAME(DataType::int8, ncclInt8);
  SAME(DataType::uint8, ncclUint8);
  SAME(DataType::int32, ncclInt32);
  SAME(DataType::uint32, ncclUint32);
  SAME(DataType::int64, ncclInt64);
  SAME(DataType::uint64, ncclUint64);
  SAME(DataType::float16, ncclFloat16);
  SAME(DataType::float32, ncclFloat32);
  SAME(DataType::float64, ncclFloat64);
  SAME(DataType::bfloat16, ncclBfloat16);
  SAME(ReduceOp::sum, ncclSum);
  SAME(ReduceOp::prod, ncclProd);
  SAME(ReduceOp::max, ncclMax);
  SAME(ReduceOp::min, ncclMin);
  SAME(kUndefined, NCCL_CONFIG_UNDEF_INT);
  SAME(kNoColor, NCCL_SPLIT_NOCOLOR);
  SAME(versionCode(2, 18, 3), NCCL_VERSION(2, 18, 3));
#undef SAME
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(Config().magic, theirs.magic);
}

TEST(NcclHeader, StructuresBeginTheSame) {
  EXPECT_EQ(sizeof(UniqueId), sizeof(ncclUniqueId));
  EXPECT_LE(sizeof(Config), sizeof(ncclConfig_t));
#define SAME(OURS, THEIRS)                                                     \
  EXPECT_EQ(offsetof(Config, OURS), offsetof(ncclConfig_t, THEIRS)) << #THEIRS
  SAME(size, size);
  SAME(magic, magic);
  SAME(version, version);
  SAME(blocking, blocking);
  SAME(cga_cluster_size, cgaClusterSize);
  SAME(min_ctas, minCTAs);
  SAME(max_ctas, maxCTAs);
  SAME(net_name, netName);
  SAME(split_share, splitShare);
#undef SAME
}

} // namespace
} // namespace partita::test

#else

TEST(NcclHeader, IsInstalled) {
  GTEST_SKIP() << "no nccl.h of NVIDIA's is installed, or no toolkit for it";
}

#endif
