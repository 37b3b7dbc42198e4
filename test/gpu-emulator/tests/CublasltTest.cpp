//===- CublasltTest.cpp - Products by the stand-in of cuBLASLt ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cublaslt/Cublaslt.h"
#include "tests/Harness.h"

#include <cmath>

using namespace gpuemu::test;

namespace {

/// D[4, 2] = A[4, 4] * B[4, 2], columns one after another; A is the identity.
class CublasltTest : public EmulatorTest {
protected:
  void SetUp() override {
    EmulatorTest::SetUp();
    check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
    describe(CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F);
  }
  void TearDown() override {
    forget();
    cublasLtDestroy(handle);
    cuStreamDestroy_v2(stream);
    EmulatorTest::TearDown();
  }
  void describe(cublasComputeType_t compute, cudaDataType_t scale,
                cudaDataType_t factor, cudaDataType_t result) {
    forget();
    cublasLtMatmulDescCreate(&product, compute, scale);
    cublasLtMatrixLayoutCreate(&a, factor, 4, 4, 4);
    cublasLtMatrixLayoutCreate(&b, factor, 4, 2, 4);
    cublasLtMatrixLayoutCreate(&d, result, 4, 2, 4);
    cublasLtMatmulPreferenceCreate(&preference);
  }
  void forget() {
    cublasLtMatmulDescDestroy(product);
    for (cublasLtMatrixLayout_t layout : {a, b, d})
      cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulPreferenceDestroy(preference);
  }
  template <typename T>
  cublasStatus_t set(cublasLtMatmulDescAttributes_t attribute, T value) {
    return cublasLtMatmulDescSetAttribute(product, attribute, &value,
                                          sizeof value);
  }
  cublasStatus_t choose() {
    int count = 0;
    return cublasLtMatmulAlgoGetHeuristic(handle, product, a, b, d, d,
                                          preference, 1, &choice, &count);
  }
  cublasStatus_t multiply(CUdeviceptr dataA, CUdeviceptr dataB,
                          CUdeviceptr dataD) {
    const float one = 1, zero = 0;
    auto pointer = [](CUdeviceptr address) {
      return reinterpret_cast<void *>(address);
    };
    return cublasLtMatmul(handle, product, &one, pointer(dataA), a,
                          pointer(dataB), b, &zero, pointer(dataD), d,
                          pointer(dataD), d, &choice.algo, nullptr, 0, stream);
  }

  CUstream stream = nullptr;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t choice = {};
  const std::vector<float> identity = {1, 0, 0, 0, 0, 1, 0, 0,
                                       0, 0, 1, 0, 0, 0, 0, 1};
};

TEST_F(CublasltTest, MultipliesInTheOrderOfItsStream) {
  Buffer dataA(identity), dataB(std::vector<float>{1, -2, 3, -4, 5, 6, 7, 8}),
      dataD(32);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(CUBLASLT_EPILOGUE_RELU));
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(multiply(dataA.address, dataB.address, dataD.address),
            CUBLAS_STATUS_SUCCESS);
  check(cuMemcpyDtoDAsync_v2(dataB.address, dataD.address, 32, stream));
  check(cuStreamSynchronize(stream));
  EXPECT_EQ(dataB.read<float>(), (std::vector<float>{1, 0, 3, 0, 5, 6, 7, 8}));
}

TEST_F(CublasltTest, IsCaptured) {
  Buffer dataA(identity), dataB(std::vector<float>(8)), dataD(32);
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  ASSERT_EQ(multiply(dataA.address, dataB.address, dataD.address),
            CUBLAS_STATUS_SUCCESS);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  check(cuStreamEndCapture(stream, &graph));
  check(cuGraphInstantiateWithFlags(&exec, graph, 0));
  check(cuGraphDestroy(graph));
  for (float value : {1.0f, 2.0f}) {
    const std::vector<float> values(8, value);
    check(cuMemcpyHtoD_v2(dataB.address, values.data(), 32));
    check(cuGraphLaunch(exec, stream));
    check(cuStreamSynchronize(stream));
    EXPECT_EQ(dataD.read<float>(), values);
  }
  check(cuGraphExecDestroy(exec));
  // A capture that is invalid takes no product.
  check(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(multiply(dataA.address, dataB.address, dataD.address),
            CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CublasltTest, RefusesWhatTheRealOneRefuses) {
  // Another description than the one that was chosen for.
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  Buffer data(256);
  set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t(CUBLAS_OP_T));
  EXPECT_EQ(multiply(data.address, data.address + 64, data.address + 128),
            CUBLAS_STATUS_INVALID_VALUE);
  set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t(CUBLAS_OP_N));
  // Addresses that are less aligned than was said.
  EXPECT_EQ(multiply(data.address + 4, data.address + 64, data.address + 128),
            CUBLAS_STATUS_INVALID_VALUE);
  // An attribute of another size.
  EXPECT_EQ(set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint64_t(1)),
            CUBLAS_STATUS_INVALID_VALUE);
  // A bias that nobody gave, or that is not aligned.
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(CUBLASLT_EPILOGUE_BIAS));
  EXPECT_EQ(choose(), CUBLAS_STATUS_INVALID_VALUE);
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
      reinterpret_cast<void *>(data.address + 8));
  EXPECT_EQ(choose(), CUBLAS_STATUS_INVALID_VALUE);
  // Integers with an epilogue, or not along the sum on both sides.
  describe(CUBLAS_COMPUTE_32I, CUDA_R_32I, CUDA_R_8I, CUDA_R_32I);
  EXPECT_EQ(choose(), CUBLAS_STATUS_NOT_SUPPORTED);
  set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t(CUBLAS_OP_T));
  EXPECT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t(CUBLASLT_EPILOGUE_RELU));
  EXPECT_EQ(choose(), CUBLAS_STATUS_NOT_SUPPORTED);
  // Types that do not belong together.
  describe(CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF);
  EXPECT_EQ(choose(), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_F(CublasltTest, FindsWhatAGpuHides) {
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  Buffer dataA(identity), dataB(std::vector<float>(8)), unwritten(256);
  ASSERT_EQ(multiply(dataA.address, dataB.address, dataB.address),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_NE(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_NE(std::string(cuEmuLastError()).find("overlaps a factor"),
            std::string::npos)
      << cuEmuLastError();
}

TEST_F(CublasltTest, FindsFactorsThatNothingWrote) {
  ASSERT_EQ(choose(), CUBLAS_STATUS_SUCCESS);
  Buffer dataA(identity), unwritten(512);
  ASSERT_EQ(multiply(dataA.address, unwritten.address, unwritten.address + 256),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_NE(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_NE(std::string(cuEmuLastError()).find("nothing wrote"),
            std::string::npos)
      << cuEmuLastError();
}

} // namespace
