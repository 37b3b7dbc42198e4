//===- BlasHeaderTest.cpp - Our declarations are NVIDIA's -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cublaslt/Api.h"
#include "test/unit/cuda/SameCall.h"

#include <gtest/gtest.h>

namespace partita::test {
namespace {

// NVIDIA's own library describes products without a GPU. It refuses attributes
// that it does not know, or of another size.
TEST(CublasLtLibrary, TakesOurDescriptions) {
#ifndef PARTITA_CUBLASLT_LIBRARY
  GTEST_SKIP() << "no library of NVIDIA's is installed";
#else
  using namespace runtime::cuda::cublaslt;
  // Other tests ask for it by its name alone, and get the first that was
  // loaded.
  (void)openApi(libraryNames(13000));
  auto opened = openApi({PARTITA_CUBLASLT_LIBRARY});
  if (!opened)
    GTEST_SKIP() << opened.status().message();
  const Api &api = *opened;
  ProductHandle product = nullptr;
  LayoutHandle layout = nullptr;
  PreferenceHandle preference = nullptr;
  ASSERT_EQ(api.productCreate(&product, ComputeType::f32, DataType::f32),
            Result::success);
  ASSERT_EQ(api.layoutCreate(&layout, DataType::bf16, 8, 5, 8),
            Result::success);
  ASSERT_EQ(api.preferenceCreate(&preference), Result::success);
  auto describe = [&](ProductAttribute attribute, auto value) {
    EXPECT_EQ(
        api.productSetAttribute(product, attribute, &value, sizeof(value)),
        Result::success)
        << static_cast<int>(attribute);
  };
  describe(ProductAttribute::transpose_a, Operation::transpose);
  describe(ProductAttribute::transpose_b, Operation::none);
  for (Epilogue epilogue :
       {Epilogue::none, Epilogue::relu, Epilogue::bias, Epilogue::relu_bias,
        Epilogue::gelu, Epilogue::gelu_bias})
    describe(ProductAttribute::epilogue, epilogue);
  describe(ProductAttribute::bias_pointer, static_cast<const void *>(&api));
  const uint64_t wrong = 1;
  EXPECT_EQ(api.productSetAttribute(product, ProductAttribute::epilogue, &wrong,
                                    sizeof(wrong)),
            Result::invalid_value);
  auto lay = [&](LayoutAttribute attribute, auto value) {
    EXPECT_EQ(api.layoutSetAttribute(layout, attribute, &value, sizeof(value)),
              Result::success)
        << static_cast<int>(attribute);
  };
  lay(LayoutAttribute::batch_count, int32_t(3));
  lay(LayoutAttribute::batch_offset, int64_t(40));
  auto prefer = [&](PreferenceAttribute attribute, auto value) {
    EXPECT_EQ(api.preferenceSetAttribute(preference, attribute, &value,
                                         sizeof(value)),
              Result::success)
        << static_cast<int>(attribute);
  };
  prefer(PreferenceAttribute::max_workspace_bytes, uint64_t(1) << 25);
  prefer(PreferenceAttribute::reduction_scheme_mask, kReduceInComputeType);
  for (PreferenceAttribute attribute :
       {PreferenceAttribute::min_alignment_a_bytes,
        PreferenceAttribute::min_alignment_b_bytes,
        PreferenceAttribute::min_alignment_c_bytes,
        PreferenceAttribute::min_alignment_d_bytes})
    prefer(attribute, uint32_t(64));
  EXPECT_EQ(api.productDestroy(product), Result::success);
  EXPECT_EQ(api.layoutDestroy(layout), Result::success);
  EXPECT_EQ(api.preferenceDestroy(preference), Result::success);
#endif
}

} // namespace
} // namespace partita::test

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

#include <cstddef>
#include <type_traits>

namespace partita::test {
namespace {

namespace ours = runtime::cuda::cublaslt;

TEST(CublasLtHeader, FunctionsAreDeclaredAlike) {
#define PARTITA_CUBLASLT(MEMBER, NAME, TYPES)                                  \
  static_assert(is_same_call<decltype(ours::Api::MEMBER), decltype(&NAME)>,    \
                #NAME);
#include "runtime/device/cuda/cublaslt/Functions.def"
  static_assert(std::is_same_v<decltype(ours::Api::getVersion),
                               decltype(&cublasLtGetVersion)>);
  static_assert(
      std::is_same_v<decltype(&cublasLtGetStatusName),
                     std::remove_pointer_t<const char *(*)(cublasStatus_t)> *>);
}

TEST(CublasLtHeader, ConstantsAreTheSame) {
#define SAME(OURS, THEIRS)                                                     \
  EXPECT_EQ(static_cast<long>(ours::OURS), static_cast<long>(THEIRS)) << #THEIRS
  SAME(Result::success, CUBLAS_STATUS_SUCCESS);
  SAME(Result::not_initialized, CUBLAS_STATUS_NOT_INITIALIZED);
  SAME(Result::alloc_failed, CUBLAS_STATUS_ALLOC_FAILED);
  SAME(Result::invalid_value, CUBLAS_STATUS_INVALID_VALUE);
  SAME(Result::arch_mismatch, CUBLAS_STATUS_ARCH_MISMATCH);
  SAME(Result::execution_failed, CUBLAS_STATUS_EXECUTION_FAILED);
  SAME(Result::not_supported, CUBLAS_STATUS_NOT_SUPPORTED);
  SAME(DataType::f32, CUDA_R_32F);
  SAME(DataType::f16, CUDA_R_16F);
  SAME(DataType::bf16, CUDA_R_16BF);
  SAME(DataType::i8, CUDA_R_8I);
  SAME(DataType::i32, CUDA_R_32I);
  SAME(ComputeType::f32, CUBLAS_COMPUTE_32F);
  SAME(ComputeType::i32, CUBLAS_COMPUTE_32I);
  SAME(Operation::none, CUBLAS_OP_N);
  SAME(Operation::transpose, CUBLAS_OP_T);
  SAME(Epilogue::none, CUBLASLT_EPILOGUE_DEFAULT);
  SAME(Epilogue::relu, CUBLASLT_EPILOGUE_RELU);
  SAME(Epilogue::bias, CUBLASLT_EPILOGUE_BIAS);
  SAME(Epilogue::relu_bias, CUBLASLT_EPILOGUE_RELU_BIAS);
  SAME(Epilogue::gelu, CUBLASLT_EPILOGUE_GELU);
  SAME(Epilogue::gelu_bias, CUBLASLT_EPILOGUE_GELU_BIAS);
  SAME(ProductAttribute::transpose_a, CUBLASLT_MATMUL_DESC_TRANSA);
  SAME(ProductAttribute::transpose_b, CUBLASLT_MATMUL_DESC_TRANSB);
  SAME(ProductAttribute::epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  SAME(ProductAttribute::bias_pointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  SAME(LayoutAttribute::batch_count, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  SAME(LayoutAttribute::batch_offset,
       CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  SAME(PreferenceAttribute::max_workspace_bytes,
       CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  SAME(PreferenceAttribute::reduction_scheme_mask,
       CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  SAME(PreferenceAttribute::min_alignment_a_bytes,
       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  SAME(PreferenceAttribute::min_alignment_b_bytes,
       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  SAME(PreferenceAttribute::min_alignment_c_bytes,
       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  SAME(PreferenceAttribute::min_alignment_d_bytes,
       CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  SAME(kReduceInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
#undef SAME
}

TEST(CublasLtHeader, StructuresAreTheSame) {
  static_assert(sizeof(ours::Algorithm) == sizeof(cublasLtMatmulAlgo_t));
  static_assert(sizeof(ours::Choice) ==
                sizeof(cublasLtMatmulHeuristicResult_t));
#define SAME(OURS, THEIRS)                                                     \
  EXPECT_EQ(offsetof(ours::Choice, OURS),                                      \
            offsetof(cublasLtMatmulHeuristicResult_t, THEIRS))
  SAME(algorithm, algo);
  SAME(workspace, workspaceSize);
  SAME(state, state);
  SAME(waves, wavesCount);
#undef SAME
}

} // namespace
} // namespace partita::test

#else

TEST(CublasLtHeader, IsInstalled) {
  GTEST_SKIP() << "no cublasLt.h of NVIDIA's is installed";
}

#endif
