//===- MemoryApi.cpp - Allocations ------------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/State.h"

using namespace gpuemu;

namespace {

CUresult allocateHost(const char *name, void **pointer, size_t bytes) {
  return call(name, Needs::Context, Kind::Creates,
              [&](State &state, auto &) -> CUresult {
                checkNotCapturing(state);
                if (!pointer || !bytes)
                  return CUDA_ERROR_INVALID_VALUE;
                *pointer = state.memory.allocateHost(bytes);
                ++state.counts.allocations;
                return CUDA_SUCCESS;
              });
}

/// Memory goes only when nothing queued can use it any more.
void waitForAll(State &state, std::unique_lock<std::mutex> &lock) {
  ++state.counts.synchronisations;
  int device = currentContext()->device;
  if (currentContext()->broken)
    return;
  state.scheduler->runUntil(
      lock, device, [&, device] { return state.scheduler->isIdle(device); });
}

} // namespace

CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  return call("cuMemGetInfo", [&](State &state, auto &) {
    if (free)
      *free = state.memory.freeBytes(currentContext()->device);
    if (total)
      *total = state.memory.totalBytes();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  return call("cuMemAlloc", Needs::Context, Kind::Creates,
              [&](State &state, auto &) -> CUresult {
                checkNotCapturing(state);
                if (!address || !bytes)
                  return CUDA_ERROR_INVALID_VALUE;
                *address =
                    state.memory.allocate(currentContext()->device, bytes);
                ++state.counts.allocations;
                return CUDA_SUCCESS;
              });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return call("cuMemFree", Needs::Context, Kind::Releases,
              [&](State &state, auto &lock) -> CUresult {
                if (!address)
                  return CUDA_SUCCESS;
                checkNotCapturing(state);
                CUresult result = CUDA_SUCCESS;
                try {
                  waitForAll(state, lock);
                } catch (const Fault &fault) {
                  result = CUresult(fault.code);
                }
                state.memory.free(address, false);
                return result;
              });
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream handle) {
  return call("cuMemAllocAsync", Needs::Context, Kind::Creates,
              [&](State &state, auto &) -> CUresult {
                CUstream_st &stream = streamOf(state, handle);
                if (stream.capture)
                  throw Fault(CUDA_ERROR_NOT_SUPPORTED,
                              "the emulator's graphs do not allocate memory");
                if (!address || !bytes)
                  return CUDA_ERROR_INVALID_VALUE;
                *address = state.memory.allocate(stream.device, bytes);
                ++state.counts.allocations;
                return CUDA_SUCCESS;
              });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  return call("cuMemFreeAsync", [&](State &state, auto &) -> CUresult {
    if (!address)
      return CUDA_SUCCESS;
    Operation operation;
    operation.name = "memory is freed";
    operation.run = [&state, address] {
      state.memory.free(address, false);
      return true;
    };
    CUstream_st &stream = streamOf(state, handle);
    if (stream.capture)
      throw Fault(CUDA_ERROR_NOT_SUPPORTED,
                  "the emulator's graphs do not free memory");
    state.scheduler->enqueue(stream, std::move(operation));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) {
  return allocateHost("cuMemAllocHost", pointer, bytes);
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  if (flags > 7)
    return CUDA_ERROR_INVALID_VALUE;
  return allocateHost("cuMemHostAlloc", pointer, bytes);
}

CUresult cuMemFreeHost(void *pointer) {
  return call("cuMemFreeHost", Needs::Context, Kind::Releases,
              [&](State &state, auto &lock) {
                CUresult result = CUDA_SUCCESS;
                try {
                  waitForAll(state, lock);
                } catch (const Fault &fault) {
                  result = CUresult(fault.code);
                }
                state.memory.free(reinterpret_cast<uint64_t>(pointer), true);
                return result;
              });
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned) {
  return call("cuMemHostRegister", Needs::Context, Kind::Creates,
              [&](State &state, auto &) -> CUresult {
                if (!pointer || !bytes)
                  return CUDA_ERROR_INVALID_VALUE;
                auto address = reinterpret_cast<uint64_t>(pointer);
                if (state.memory.find(address, 1) ||
                    state.memory.find(address + bytes - 1, 1))
                  return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
                state.memory.registerHost(pointer, bytes);
                ++state.counts.allocations;
                return CUDA_SUCCESS;
              });
}

CUresult cuMemHostUnregister(void *pointer) {
  return call("cuMemHostUnregister", Needs::Context, Kind::Releases,
              [&](State &state, auto &) -> CUresult {
                auto address = reinterpret_cast<uint64_t>(pointer);
                const Allocation *found = state.memory.find(address, 1);
                if (!found || !found->isForeign || found->address != address)
                  return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
                state.memory.free(address, true, true);
                return CUDA_SUCCESS;
              });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *pointer,
                                      unsigned) {
  return call("cuMemHostGetDevicePointer",
              [&](State &state, auto &) -> CUresult {
                auto value = reinterpret_cast<uint64_t>(pointer);
                const Allocation *found = state.memory.find(value, 1);
                if (!found || !found->isHost)
                  return CUDA_ERROR_INVALID_VALUE;
                *address = value;
                return CUDA_SUCCESS;
              });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes,
                                 CUdeviceptr address) {
  return call("cuMemGetAddressRange", [&](State &state, auto &) -> CUresult {
    const Allocation *found = state.memory.find(address, 1);
    if (!found)
      return CUDA_ERROR_NOT_FOUND;
    if (start)
      *start = found->address;
    if (bytes)
      *bytes = found->bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  return call("cuPointerGetAttribute", [&](State &state, auto &) -> CUresult {
    const Allocation *found = state.memory.find(address, 1);
    if (!found)
      return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext *>(data) =
          found->isHost ? currentContext()
                        : state.contexts[size_t(found->device)].get();
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned *>(data) =
          found->isHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr *>(data) = address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!found->isHost)
        return CUDA_ERROR_INVALID_VALUE;
      *static_cast<void **>(data) = reinterpret_cast<void *>(address);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned *>(data) = 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int *>(data) =
          found->isHost ? currentContext()->device : found->device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr *>(data) = found->address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t *>(data) = found->bytes;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned *>(data) = 1;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}
