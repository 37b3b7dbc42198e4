//===- DeviceApi.cpp - Devices, contexts and errors -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/State.h"

#include <bit>
#include <cstring>
#include <dlfcn.h>

using namespace gpuemu;

namespace {

/// Properties of the GPUs whose architectures the emulator plays: A100, H100,
/// B200 and GeForce RTX 5090.
struct Model {
  unsigned architecture;
  const char *name;
  int processors, clock, memoryClock, busWidth, l2Bytes, sharedPerProcessor,
      sharedOptIn, threadsPerProcessor, blocksPerProcessor;
};
constexpr Model models[] = {
    {80, "A100", 108, 1410000, 1215000, 5120, 40 << 20, 167936, 166912, 2048,
     32},
    {90, "H100", 132, 1980000, 2619000, 5120, 50 << 20, 233472, 232448, 2048,
     32},
    {100, "B200", 148, 1965000, 3996000, 8192, 126 << 20, 233472, 232448, 2048,
     32},
    {120, "RTX 5090", 170, 2407000, 14001000, 512, 96 << 20, 102400, 101376,
     1536, 24},
};

const Model &model(unsigned architecture) {
  const Model *best = &models[0];
  for (const Model &each : models)
    if (each.architecture <= architecture)
      best = &each;
  return *best;
}

int attributeOf(const Config &config, CUdevice_attribute attribute,
                CUdevice device) {
  const Model &m = model(config.architecture);
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    return 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
    return 64;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
  case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
    return INT32_MAX;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
    return 65535;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    return 49152;
  case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
    return 65536;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    return 32;
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
  case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
    return 65536;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    return m.clock;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    return m.processors;
  case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
  case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
  case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    return 1;
  case CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT:
  case CU_DEVICE_ATTRIBUTE_INTEGRATED:
  case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
  case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
  case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
  case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
  case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
  case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    return 0;
  case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
    return device + 1;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
    return m.memoryClock;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    return m.busWidth;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
    return m.l2Bytes;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
    return m.threadsPerProcessor;
  case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
    return 3;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return int(config.architecture / 10);
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    return int(config.architecture % 10);
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
    return m.sharedPerProcessor;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    return m.sharedOptIn;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
    return m.blocksPerProcessor;
  case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
    return 1024;
  }
  throw Fault(CUDA_ERROR_INVALID_VALUE, "the emulator does not know device "
                                        "attribute " +
                                            std::to_string(attribute));
}

void checkDevice(State &state, CUdevice device) {
  if (device < 0 || device >= state.config.devices)
    throw Fault(CUDA_ERROR_INVALID_DEVICE,
                "there is no device " + std::to_string(device));
}

struct ErrorWords {
  CUresult error;
  const char *name, *words;
};
#define GPUEMU_ERROR(NAME, WORDS) {CUDA_##NAME, "CUDA_" #NAME, WORDS}
constexpr ErrorWords errors[] = {
    GPUEMU_ERROR(SUCCESS, "no error"),
    GPUEMU_ERROR(ERROR_INVALID_VALUE, "invalid argument"),
    GPUEMU_ERROR(ERROR_OUT_OF_MEMORY, "out of memory"),
    GPUEMU_ERROR(ERROR_NOT_INITIALIZED, "initialization error"),
    GPUEMU_ERROR(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    GPUEMU_ERROR(ERROR_INVALID_DEVICE, "invalid device ordinal"),
    GPUEMU_ERROR(ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    GPUEMU_ERROR(ERROR_INVALID_CONTEXT, "invalid device context"),
    GPUEMU_ERROR(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for "
                                          "execution on the device"),
    GPUEMU_ERROR(ERROR_PEER_ACCESS_UNSUPPORTED,
                 "peer access is not supported between these two devices"),
    GPUEMU_ERROR(ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    GPUEMU_ERROR(ERROR_UNSUPPORTED_PTX_VERSION,
                 "the provided PTX was compiled with an unsupported toolchain"),
    GPUEMU_ERROR(ERROR_INVALID_HANDLE, "invalid resource handle"),
    GPUEMU_ERROR(ERROR_NOT_FOUND, "named symbol not found"),
    GPUEMU_ERROR(ERROR_NOT_READY, "device not ready"),
    GPUEMU_ERROR(ERROR_ILLEGAL_ADDRESS,
                 "an illegal memory access was encountered"),
    GPUEMU_ERROR(ERROR_LAUNCH_OUT_OF_RESOURCES,
                 "too many resources requested for launch"),
    GPUEMU_ERROR(ERROR_LAUNCH_TIMEOUT,
                 "the launch timed out and was terminated"),
    GPUEMU_ERROR(ERROR_PEER_ACCESS_ALREADY_ENABLED,
                 "peer access is already enabled"),
    GPUEMU_ERROR(ERROR_PEER_ACCESS_NOT_ENABLED,
                 "peer access has not been enabled"),
    GPUEMU_ERROR(ERROR_TOO_MANY_PEERS,
                 "resources for peer access are exhausted"),
    GPUEMU_ERROR(ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                 "part or all of the requested memory range is already mapped"),
    GPUEMU_ERROR(ERROR_HOST_MEMORY_NOT_REGISTERED,
                 "pointer does not correspond to a registered memory region"),
    GPUEMU_ERROR(ERROR_ILLEGAL_INSTRUCTION,
                 "an illegal instruction was encountered"),
    GPUEMU_ERROR(ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    GPUEMU_ERROR(ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    GPUEMU_ERROR(ERROR_NOT_SUPPORTED, "operation not supported"),
    GPUEMU_ERROR(ERROR_STREAM_CAPTURE_UNSUPPORTED,
                 "operation not permitted when stream is capturing"),
    GPUEMU_ERROR(ERROR_STREAM_CAPTURE_INVALIDATED,
                 "operation failed due to a previous error during capture"),
    GPUEMU_ERROR(ERROR_STREAM_CAPTURE_MERGE,
                 "operation would result in a merge of separate capture "
                 "sequences"),
    GPUEMU_ERROR(ERROR_STREAM_CAPTURE_UNMATCHED,
                 "capture was not ended in the same stream as it began"),
    GPUEMU_ERROR(ERROR_STREAM_CAPTURE_UNJOINED,
                 "capturing stream has unjoined work"),
    GPUEMU_ERROR(ERROR_STREAM_CAPTURE_ISOLATION,
                 "dependency created on uncaptured work in another stream"),
    GPUEMU_ERROR(ERROR_STREAM_CAPTURE_IMPLICIT,
                 "operation would make the legacy stream depend on a capturing "
                 "blocking stream"),
    GPUEMU_ERROR(ERROR_CAPTURED_EVENT,
                 "operation not permitted on an event last recorded in a "
                 "capturing stream"),
    GPUEMU_ERROR(ERROR_STREAM_CAPTURE_WRONG_THREAD,
                 "attempt to terminate a thread-local capture sequence from "
                 "another thread"),
    GPUEMU_ERROR(ERROR_UNKNOWN, "unknown error"),
};

const ErrorWords *wordsOf(CUresult error) {
  for (const ErrorWords &each : errors)
    if (each.error == error)
      return &each;
  return nullptr;
}

std::vector<CUcontext> &contextStack() {
  static thread_local std::vector<CUcontext> stack;
  return stack;
}

} // namespace

CUresult cuInit(unsigned flags) {
  return call("cuInit", Needs::Nothing, Kind::Other,
              [&](State &state, auto &) -> CUresult {
                if (flags)
                  return CUDA_ERROR_INVALID_VALUE;
                if (!state.config.devices)
                  return CUDA_ERROR_NO_DEVICE;
                state.isInitialised = true;
                return CUDA_SUCCESS;
              });
}

CUresult cuDriverGetVersion(int *version) {
  return call("cuDriverGetVersion", Needs::Nothing, Kind::Other,
              [&](State &state, auto &) {
                *version = state.config.driverVersion;
                return CUDA_SUCCESS;
              });
}

// Neither counts as a call: they are how one learns about calls.
CUresult cuGetErrorName(CUresult error, const char **name) {
  const ErrorWords *words = wordsOf(error);
  *name = words ? words->name : nullptr;
  return words ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  const ErrorWords *words = wordsOf(error);
  *text = words ? words->words : nullptr;
  return words ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int, uint64_t,
                             CUdriverProcAddressQueryResult *status) {
  Dl_info self;
  dladdr(reinterpret_cast<void *>(&cuInit), &self);
  static void *library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *function = nullptr;
  std::string name = symbol;
  for (const char *version : {"_v2", ""})
    if (!*function)
      *function = dlsym(library, (name + version).c_str());
  if (name == "cuGraphInstantiate")
    *function = reinterpret_cast<void *>(&cuGraphInstantiateWithFlags);
  if (status)
    *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
                        : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuDeviceGetCount(int *count) {
  return call("cuDeviceGetCount", Needs::Driver, Kind::Other,
              [&](State &state, auto &) {
                *count = state.config.devices;
                return CUDA_SUCCESS;
              });
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  return call("cuDeviceGet", Needs::Driver, Kind::Other,
              [&](State &state, auto &) {
                checkDevice(state, ordinal);
                *device = ordinal;
                return CUDA_SUCCESS;
              });
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  return call("cuDeviceGetName", Needs::Driver, Kind::Other,
              [&](State &state, auto &) {
                checkDevice(state, device);
                snprintf(name, size_t(length), "Emulated %s, sm_%u",
                         model(state.config.architecture).name,
                         state.config.architecture);
                return CUDA_SUCCESS;
              });
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  return call(
      "cuDeviceGetUuid", Needs::Driver, Kind::Other, [&](State &state, auto &) {
        checkDevice(state, device);
        memset(uuid, state.config.gpus[size_t(device)] + 1, sizeof *uuid);
        return CUDA_SUCCESS;
      });
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  return call("cuDeviceTotalMem", Needs::Driver, Kind::Other,
              [&](State &state, auto &) {
                checkDevice(state, device);
                *bytes = state.memory.totalBytes();
                return CUDA_SUCCESS;
              });
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                              CUdevice device) {
  return call("cuDeviceGetAttribute", Needs::Driver, Kind::Other,
              [&](State &state, auto &) {
                checkDevice(state, device);
                *value = attributeOf(state.config, attribute, device);
                return CUDA_SUCCESS;
              });
}

CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device) {
  return call("cuDeviceGetPCIBusId", Needs::Driver, Kind::Other,
              [&](State &state, auto &) {
                checkDevice(state, device);
                snprintf(text, size_t(length), "0000:%02x:00.0",
                         unsigned(state.config.gpus[size_t(device)] + 1));
                return CUDA_SUCCESS;
              });
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  return call("cuDeviceCanAccessPeer", Needs::Driver, Kind::Other,
              [&](State &state, auto &) {
                checkDevice(state, device);
                checkDevice(state, peer);
                *can = device != peer && state.config.mostPeers > 0;
                return CUDA_SUCCESS;
              });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  return call("cuDevicePrimaryCtxRetain", Needs::Driver, Kind::Creates,
              [&](State &state, auto &) {
                checkDevice(state, device);
                *context = state.contexts[size_t(device)].get();
                ++(*context)->retained;
                return CUDA_SUCCESS;
              });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return call("cuDevicePrimaryCtxRelease", Needs::Driver, Kind::Releases,
              [&](State &state, auto &) -> CUresult {
                checkDevice(state, device);
                CUctx_st &context = *state.contexts[size_t(device)];
                if (!context.retained)
                  return CUDA_ERROR_INVALID_CONTEXT;
                if (--context.retained == 0) // its end
                  context.reachable = uint64_t(1) << device;
                return CUDA_SUCCESS;
              });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return call("cuDevicePrimaryCtxReset", Needs::Driver, Kind::Releases,
              [&](State &state, auto &) {
                checkDevice(state, device);
                CUctx_st &context = *state.contexts[size_t(device)];
                for (CUstream_st *stream : state.scheduler->streams)
                  if (stream->device == device && !stream->running)
                    stream->queue.clear();
                context.broken = 0;
                context.brokenText.clear();
                return CUDA_SUCCESS;
              });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags,
                                    int *active) {
  return call("cuDevicePrimaryCtxGetState", Needs::Driver, Kind::Other,
              [&](State &state, auto &) {
                checkDevice(state, device);
                *flags = 0;
                *active = state.contexts[size_t(device)]->retained != 0;
                return CUDA_SUCCESS;
              });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return call("cuCtxSetCurrent", Needs::Driver, Kind::Other,
              [&](State &, auto &) {
                currentContext() = context;
                return CUDA_SUCCESS;
              });
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  return call("cuCtxGetCurrent", Needs::Driver, Kind::Other,
              [&](State &, auto &) {
                *context = currentContext();
                return CUDA_SUCCESS;
              });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return call("cuCtxPushCurrent", Needs::Driver, Kind::Other,
              [&](State &, auto &) {
                contextStack().push_back(currentContext());
                currentContext() = context;
                return CUDA_SUCCESS;
              });
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  return call("cuCtxPopCurrent", Needs::Driver, Kind::Other,
              [&](State &, auto &) -> CUresult {
                if (context)
                  *context = currentContext();
                if (contextStack().empty())
                  return CUDA_ERROR_INVALID_CONTEXT;
                currentContext() = contextStack().back();
                contextStack().pop_back();
                return CUDA_SUCCESS;
              });
}

CUresult cuCtxGetDevice(CUdevice *device) {
  return call("cuCtxGetDevice", [&](State &, auto &) {
    *device = currentContext()->device;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return call("cuCtxSynchronize", [&](State &state, auto &lock) {
    checkNotCapturing(state);
    ++state.counts.synchronisations;
    int device = currentContext()->device;
    state.scheduler->runUntil(
        lock, device, [&, device] { return state.scheduler->isIdle(device); });
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return call("cuCtxEnablePeerAccess", [&](State &state, auto &) -> CUresult {
    if (!peer || flags || peer == currentContext())
      return CUDA_ERROR_INVALID_VALUE;
    uint64_t bit = uint64_t(1) << peer->device;
    const uint64_t reachable = currentContext()->reachable;
    if (reachable & bit)
      return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    if (state.config.mostPeers == 0)
      return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (unsigned(std::popcount(reachable)) > state.config.mostPeers)
      return CUDA_ERROR_TOO_MANY_PEERS;
    currentContext()->reachable |= bit;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  return call("cuCtxDisablePeerAccess", [&](State &, auto &) -> CUresult {
    uint64_t bit = peer ? uint64_t(1) << peer->device : 0;
    if (peer == currentContext() || !(currentContext()->reachable & bit))
      return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    currentContext()->reachable &= ~bit;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  return call("cuCtxGetStreamPriorityRange", [&](State &, auto &) {
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
  });
}
