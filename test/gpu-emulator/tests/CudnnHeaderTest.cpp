//===- CudnnHeaderTest.cpp - Our declarations against NVIDIA's ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>

#define GPUEMU_CUDNN_API
namespace ours {
#include "cudnn/Cudnn.h"
} // namespace ours

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn_graph.h>

#include <gtest/gtest.h>

#include <type_traits>

namespace {

template <typename T>
constexpr int kindOf = std::is_pointer_v<T> ? -1 : int(sizeof(T));
template <typename... A, typename... B>
constexpr bool functionsAgree(ours::cudnnStatus_t (*)(A...),
                              ::cudnnStatus_t (*)(B...)) {
  if constexpr (sizeof...(A) == sizeof...(B))
    return ((kindOf<A> == kindOf<B>) && ...);
  else
    return false;
}

#define GPUEMU_CUDNN(NAME, ...)                                                \
  static_assert(functionsAgree(&ours::NAME, &::NAME), #NAME);
#include "cudnn/Functions.def"
#undef GPUEMU_CUDNN

#define SAME_VALUE(NAME) static_assert(int(ours::NAME) == int(::NAME), #NAME)
SAME_VALUE(CUDNN_STATUS_NOT_INITIALIZED);
SAME_VALUE(CUDNN_STATUS_BAD_PARAM);
SAME_VALUE(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
SAME_VALUE(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
SAME_VALUE(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
SAME_VALUE(CUDNN_STATUS_NOT_SUPPORTED);
SAME_VALUE(CUDNN_STATUS_EXECUTION_FAILED);
SAME_VALUE(CUDNN_DATA_FLOAT);
SAME_VALUE(CUDNN_DATA_HALF);
SAME_VALUE(CUDNN_DATA_BFLOAT16);
SAME_VALUE(CUDNN_POINTWISE_ADD);
SAME_VALUE(CUDNN_POINTWISE_RELU_FWD);
SAME_VALUE(CUDNN_HEUR_MODE_A);
SAME_VALUE(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP);
SAME_VALUE(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME_VALUE(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
SAME_VALUE(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
SAME_VALUE(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME_VALUE(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME_VALUE(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME_VALUE(CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME_VALUE(CUDNN_TYPE_POINTWISE_MODE);
SAME_VALUE(CUDNN_TYPE_NUMERICAL_NOTE);
SAME_VALUE(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
SAME_VALUE(CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME_VALUE(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME_VALUE(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
SAME_VALUE(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
SAME_VALUE(CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME_VALUE(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
SAME_VALUE(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME_VALUE(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);

TEST(CudnnHeaderTest, AgreesWithCudnn) { SUCCEED(); }

} // namespace
