//===- Cublaslt.cpp - cuBLASLt on emulated devices ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the real library refuses is refused, as its documentation and its
// header say it; and so is everything that is not known here.
//
//===----------------------------------------------------------------------===//

#include "cublaslt/Cublaslt.h"

#include "Emulator.h"
#include "cublaslt/Multiply.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>

using namespace gpuemu::cublaslt;

struct cublasLtContext {
  int device = 0;
};
struct MatmulDescription {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  int32_t transposeA = CUBLAS_OP_N, transposeB = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr;
};
struct LayoutDescription {
  Layout layout;
};
struct PreferenceDescription {
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

namespace {

constexpr cublasStatus_t kWell = CUBLAS_STATUS_SUCCESS,
                         kWrong = CUBLAS_STATUS_INVALID_VALUE,
                         kUnknown = CUBLAS_STATUS_NOT_SUPPORTED;
constexpr uint64_t kMagic = 0x31746c73616c6275;
/// Long sums are cut into parts, where there is workspace for them.
constexpr uint64_t kLongSum = 256, kParts = 4;

template <typename T>
cublasStatus_t set(T &to, const void *from, size_t bytes) {
  if (!from || bytes != sizeof(T))
    return kWrong;
  memcpy(&to, from, bytes);
  return kWell;
}

struct Problem {
  const MatmulDescription &product;
  const Layout &a, &b, &c, &d;

  uint64_t rows() const { return product.transposeA ? a.columns : a.rows; }
  uint64_t depth() const { return product.transposeA ? a.rows : a.columns; }
  uint64_t columns() const { return product.transposeB ? b.rows : b.columns; }

  cublasStatus_t check() const {
    for (const Layout *layout : {&a, &b, &c, &d})
      if (layout->rows == 0 || layout->columns == 0 ||
          layout->step < int64_t(layout->rows) || layout->batch != d.batch)
        return kWrong;
    if (depth() != (product.transposeB ? b.columns : b.rows))
      return kWrong;
    for (const Layout *layout : {&c, &d})
      if (layout->rows != rows() || layout->columns != columns())
        return kWrong;
    if (d.batch > 1 && d.offset == 0)
      return kWrong;
    return product.compute == CUBLAS_COMPUTE_32I ? checkIntegers()
                                                 : checkFloats();
  }

  cublasStatus_t checkFloats() const {
    if (product.compute != CUBLAS_COMPUTE_32F || product.scale != CUDA_R_32F)
      return kUnknown;
    bool known =
        a.type == CUDA_R_32F || a.type == CUDA_R_16F || a.type == CUDA_R_16BF;
    for (const Layout *layout : {&b, &c, &d})
      known &= layout->type == a.type;
    switch (product.epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_GELU:
      break;
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
      // Vectors are read by accesses of 16 bytes.
      if (!product.bias || uintptr_t(product.bias) % 16)
        return kWrong;
      break;
    default:
      known = false;
    }
    return known ? kWell : kUnknown;
  }

  /// "To use IMMA kernels": only A transposed and B not, multiples of 4.
  cublasStatus_t checkIntegers() const {
    bool known =
        product.scale == CUDA_R_32I && a.type == CUDA_R_8I &&
        b.type == CUDA_R_8I && c.type == CUDA_R_32I && d.type == CUDA_R_32I &&
        product.epilogue == CUBLASLT_EPILOGUE_DEFAULT && product.transposeA &&
        !product.transposeB && rows() % 4 == 0 && depth() % 4 == 0;
    for (const Layout *layout : {&a, &b, &c, &d})
      known &= layout->step % 4 == 0;
    return known ? kWell : kUnknown;
  }

  /// Two problems of one number are one.
  uint64_t number() const {
    uint64_t hash = 1469598103934665603u;
    auto add = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
    for (const Layout *layout : {&a, &b, &c, &d})
      for (uint64_t value : {uint64_t(layout->type), layout->rows,
                             layout->columns, uint64_t(layout->step),
                             uint64_t(layout->batch), uint64_t(layout->offset)})
        add(value);
    for (uint64_t value :
         {uint64_t(product.compute), uint64_t(product.scale),
          uint64_t(product.transposeA), uint64_t(product.transposeB),
          uint64_t(product.epilogue)})
      add(value);
    return hash;
  }
};

/// An algorithm: magic, problem, bytes of workspace, alignments.
cublasStatus_t checkAlgorithm(const Problem &problem,
                              const cublasLtMatmulAlgo_t *algorithm) {
  if (!algorithm || algorithm->data[0] != kMagic ||
      algorithm->data[1] != problem.number())
    return kWrong;
  return kWell;
}

bool isAligned(const void *address, uint64_t bytes) {
  return bytes && uintptr_t(address) % bytes == 0;
}

} // namespace

size_t cublasLtGetVersion(void) {
  const char *version = getenv("CUBLASLT_EMU_VERSION");
  return version ? size_t(atoll(version)) : 130100;
}

const char *cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  if (!handle)
    return kWrong;
  const int device = cuEmuDevice(nullptr);
  if (device < 0)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new cublasLtContext{device};
  return kWell;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return kWell;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *product,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (!product)
    return kWrong;
  *product = new MatmulDescription{compute, scale};
  return kWell;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete product;
  return kWell;
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                               cublasLtMatmulDescAttributes_t attribute,
                               const void *value, size_t bytes) {
  if (!product)
    return kWrong;
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return set(product->transposeA, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return set(product->transposeB, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return set(product->epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return set(product->bias, value, bytes);
  }
  return kWrong;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                                          cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t step) {
  if (!layout)
    return kWrong;
  *layout = new LayoutDescription{{type, rows, columns, step}};
  return kWell;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return kWell;
}

cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t attribute,
                                 const void *value, size_t bytes) {
  if (!layout)
    return kWrong;
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return set(layout->layout.batch, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return set(layout->layout.offset, value, bytes);
  }
  return kWrong;
}

cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  if (!preference)
    return kWrong;
  *preference = new PreferenceDescription;
  return kWell;
}

cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return kWell;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference,
    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
    size_t bytes) {
  if (!preference)
    return kWrong;
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return set(preference->workspace, value, bytes);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    return set(preference->reductions, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: {
    uint32_t &alignment =
        preference->alignments[attribute -
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES];
    const cublasStatus_t status = set(alignment, value, bytes);
    return status == kWell && !std::has_single_bit(alignment) ? kWrong : status;
  }
  }
  return kWrong;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int wanted,
    cublasLtMatmulHeuristicResult_t *results, int *count) {
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!product || !a || !b || !c || !d || !preference || wanted < 1 ||
      !results || !count)
    return kWrong;
  *count = 0;
  const Problem problem{*product, a->layout, b->layout, c->layout, d->layout};
  if (const cublasStatus_t status = problem.check(); status != kWell)
    return status;
  const Layout *layouts[] = {&a->layout, &b->layout, &c->layout, &d->layout};
  for (int i = 0; i < 4; ++i) {
    const size_t least =
        product->compute == CUBLAS_COMPUTE_32I ? 4 : bytesOf(layouts[i]->type);
    if (preference->alignments[i] < least)
      return kUnknown;
  }
  cublasLtMatmulHeuristicResult_t result = {};
  result.algo.data[0] = kMagic;
  result.algo.data[1] = problem.number();
  const uint64_t parts = kParts * problem.rows() * problem.columns() * 4;
  if (problem.depth() >= kLongSum && parts <= preference->workspace &&
      (preference->reductions & 2))
    result.algo.data[2] = result.workspaceSize = parts;
  for (int i = 0; i < 4; ++i)
    result.algo.data[3 + i] = preference->alignments[i];
  results[0] = result;
  *count = 1;
  return kWell;
}

cublasStatus_t
cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                        cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                        cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                        const cublasLtMatmulAlgo_t *algorithm,
                        cublasLtMatmulHeuristicResult_t *result) {
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!product || !a || !b || !c || !d || !result)
    return kWrong;
  const Problem problem{*product, a->layout, b->layout, c->layout, d->layout};
  if (const cublasStatus_t status = problem.check(); status != kWell)
    return status;
  if (const cublasStatus_t status = checkAlgorithm(problem, algorithm);
      status != kWell)
    return status;
  result->workspaceSize = algorithm->data[2];
  result->state = kWell;
  return kWell;
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
               const void *alpha, const void *dataA, cublasLtMatrixLayout_t a,
               const void *dataB, cublasLtMatrixLayout_t b, const void *beta,
               const void *dataC, cublasLtMatrixLayout_t c, void *dataD,
               cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algorithm,
               void *workspace, size_t workspaceBytes, cudaStream_t stream) {
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!product || !a || !b || !c || !d || !alpha || !beta)
    return kWrong;
  const Problem problem{*product, a->layout, b->layout, c->layout, d->layout};
  if (const cublasStatus_t status = problem.check(); status != kWell)
    return status;
  if (const cublasStatus_t status = checkAlgorithm(problem, algorithm);
      status != kWell)
    return status;
  const void *data[] = {dataA, dataB, dataC, dataD};
  for (int i = 0; i < 4; ++i)
    if (!data[i] || !isAligned(data[i], algorithm->data[3 + i]))
      return kWrong;
  const uint64_t needed = algorithm->data[2];
  if (needed > workspaceBytes || (needed && !isAligned(workspace, 16)))
    return kWrong;
  if (cuEmuDevice(stream) != handle->device)
    return kWrong;
  auto scalar = [&](const void *value) -> double {
    int32_t integer;
    float number;
    memcpy(&integer, value, 4);
    memcpy(&number, value, 4);
    return product->scale == CUDA_R_32I ? integer : number;
  };
  if (product->scale == CUDA_R_32I && (scalar(alpha) != 1 || scalar(beta) != 0))
    return kUnknown;
  auto job = std::make_unique<Job>();
  job->a = a->layout;
  job->b = b->layout;
  job->c = c->layout;
  job->d = d->layout;
  job->transposeA = product->transposeA;
  job->transposeB = product->transposeB;
  job->epilogue = product->epilogue;
  job->alpha = scalar(alpha);
  job->beta = scalar(beta);
  job->addressA = uint64_t(dataA);
  job->addressB = uint64_t(dataB);
  job->addressC = uint64_t(dataC);
  job->addressD = uint64_t(dataD);
  job->bias = uint64_t(product->bias);
  job->workspace = uint64_t(workspace);
  job->workspaceBytes = needed;
  CuEmuOperation operation = {};
  operation.name = "a product of cuBLASLt";
  operation.run = [](void *given) -> const char * {
    static thread_local std::string wrong;
    wrong = multiply(*static_cast<Job *>(given));
    return wrong.empty() ? nullptr : wrong.c_str();
  };
  operation.drop = [](void *given) { delete static_cast<Job *>(given); };
  operation.data = job.release();
  return cuEmuEnqueue(stream, &operation) ? CUBLAS_STATUS_EXECUTION_FAILED
                                          : kWell;
}
