//===- Nccl.h - The functions of NCCL that the stand-in has -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declarations as in nccl.h of NCCL 2.28, for what libnccl.so.2 exports here.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_NCCL_NCCL_H
#define PARTITA_TEST_GPUEMULATOR_NCCL_NCCL_H

#include <cstddef>

#ifndef GPUEMU_NCCL_API
#define GPUEMU_NCCL_API extern "C" __attribute__((visibility("default")))
#endif

typedef struct ncclComm *ncclComm_t;
typedef struct CUstream_st *ncclStream_t;
typedef struct {
  char internal[128];
} ncclUniqueId;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
} ncclResult_t;
typedef enum {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
} ncclDataType_t;
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
} ncclRedOp_t;
/// Only the beginning of NCCL's structure, which has its size in it.
typedef struct {
  size_t size;
  unsigned int magic, version;
  int blocking;
} ncclConfig_t;

#define GPUEMU_NCCL(NAME, ...) GPUEMU_NCCL_API ncclResult_t NAME(__VA_ARGS__);
#include "nccl/Functions.def"
#undef GPUEMU_NCCL
GPUEMU_NCCL_API const char *ncclGetErrorString(ncclResult_t);
GPUEMU_NCCL_API const char *ncclGetLastError(ncclComm_t);

#endif // PARTITA_TEST_GPUEMULATOR_NCCL_NCCL_H
