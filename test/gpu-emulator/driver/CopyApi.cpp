//===- CopyApi.cpp - Copies and fills ---------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Host memory that is not pinned is read at once and written before the call
// returns, as the driver does. Pinned memory is read and written when the
// stream gets there.
//
//===----------------------------------------------------------------------===//

#include "driver/State.h"
#include "machine/Error.h"

#include <cstring>

using namespace gpuemu;

namespace {

/// An end of a copy: rows of bytes, in planes.
struct End {
  /// Of the host, pinned or not, or of a device.
  bool isDevice = false;
  uint64_t address = 0;
  uint64_t pitch = 0, planePitch = 0;
  /// Bytes of pageable memory that were read when the copy was asked for.
  std::shared_ptr<std::vector<uint8_t>> snapshot;
};
struct Extent {
  uint64_t width = 0, height = 1, depth = 1;
  bool isEmpty() const { return !width || !height || !depth; }
};

uint64_t spanOf(const End &end, const Extent &extent) {
  return (extent.depth - 1) * end.planePitch + (extent.height - 1) * end.pitch +
         extent.width;
}

bool isPinned(State &state, const End &end, const Extent &extent) {
  const Allocation *found = state.memory.find(end.address, spanOf(end, extent));
  return found && found->isHost;
}

/// Whether the addresses are a device's, as of cuMemcpy, which takes both.
bool isDeviceAddress(State &state, uint64_t address) {
  const Allocation *found = state.memory.find(address, 1);
  return found && !found->isHost;
}

/// The bytes of a row, for the host.
Bytes rowOf(const Memory &memory, const End &end, const Extent &extent,
            uint64_t y, uint64_t z, const char *what) {
  uint64_t offset = z * end.planePitch + y * end.pitch;
  if (end.snapshot)
    return {end.snapshot->data() + (z * extent.height + y) * extent.width,
            nullptr};
  if (!end.isDevice)
    return {reinterpret_cast<uint8_t *>(end.address + offset), nullptr};
  return deviceBytes(memory, end.address + offset, extent.width, what);
}

void copyNow(const State &state, const End &to, const End &from,
             const Extent &extent) {
  for (uint64_t z = 0; z < extent.depth; ++z)
    for (uint64_t y = 0; y < extent.height; ++y) {
      Bytes source = rowOf(state.memory, from, extent, y, z, "a copy");
      Bytes target = rowOf(state.memory, to, extent, y, z, "a copy");
      if (!target.written && source.written && state.config.run.checkWritten) {
        uint64_t first = firstUnwritten(source.written, extent.width);
        if (first != extent.width)
          throw Fault(LaunchFailed, "a copy to the host of device memory that "
                                    "nothing wrote, at byte " +
                                        std::to_string(first) + " of " +
                                        std::to_string(extent.width));
      }
      memmove(target.data, source.data, extent.width);
      if (target.written && source.written)
        memmove(target.written, source.written, extent.width);
      else if (target.written)
        memset(target.written, 1, extent.width);
    }
}

void checkRange(State &state, const End &end, const Extent &extent,
                const char *name) {
  if (end.isDevice)
    deviceBytes(state.memory, end.address, spanOf(end, extent), name);
  else if (!end.address)
    throw Fault(InvalidValue, std::string(name) + ": a null pointer");
}

/// Between two devices that do not both reach the other, the driver takes the
/// bytes through the host.
void countPeers(State &state, const End &to, const End &from) {
  if (!to.isDevice || !from.isDevice)
    return;
  const Allocation *target = state.memory.find(to.address, 1),
                   *source = state.memory.find(from.address, 1);
  if (!target || !source || target->isHost || source->isHost ||
      target->device == source->device)
    return;
  auto reaches = [&](int device, int other) {
    return state.contexts[size_t(device)]->reachable >> other & 1;
  };
  ++state.counts.peerCopies;
  if (!reaches(target->device, source->device) ||
      !reaches(source->device, target->device))
    ++state.counts.stagedCopies;
}

CUresult copy(const char *name, State &state,
              std::unique_lock<std::mutex> &lock, CUstream handle, bool waits,
              End to, End from, const Extent &extent) {
  CUstream_st &stream = streamOf(state, handle);
  if (extent.isEmpty())
    return CUDA_SUCCESS;
  checkRange(state, from, extent, name);
  checkRange(state, to, extent, name);
  countPeers(state, to, from);
  if (waits)
    checkNotCapturing(state);
  bool isPageableSource = !from.isDevice && !isPinned(state, from, extent);
  bool isPageableTarget = !to.isDevice && !isPinned(state, to, extent);
  if (stream.capture && (isPageableSource || isPageableTarget)) {
    stream.capture->isInvalid = true;
    throw Fault(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                std::string(name) + " of pageable host memory in a capture");
  }
  if (isPageableSource) {
    auto snapshot = std::make_shared<std::vector<uint8_t>>(
        extent.width * extent.height * extent.depth);
    End read = from;
    for (uint64_t z = 0; z < extent.depth; ++z)
      for (uint64_t y = 0; y < extent.height; ++y)
        memcpy(snapshot->data() + (z * extent.height + y) * extent.width,
               rowOf(state.memory, read, extent, y, z, name).data,
               extent.width);
    from.snapshot = std::move(snapshot);
  }
  Operation operation;
  operation.name = std::string(name) + " of " +
                   std::to_string(extent.width * extent.height * extent.depth) +
                   " bytes";
  auto finished = std::make_shared<bool>(false);
  operation.run = [&state, to, from, extent, finished] {
    copyNow(state, to, from, extent);
    *finished = true;
    return true;
  };
  state.scheduler->enqueue(stream, std::move(operation));
  if (waits || isPageableTarget) {
    ++state.counts.synchronisations;
    state.scheduler->runUntil(lock, stream.device, [&] {
      return *finished && state.scheduler->isIdle(stream);
    });
  }
  return CUDA_SUCCESS;
}

CUresult copyRow(const char *name, CUstream stream, bool waits, bool toDevice,
                 uint64_t to, bool fromDevice, uint64_t from, size_t bytes) {
  return call(name, [&](State &state, auto &lock) {
    return copy(name, state, lock, stream, waits,
                {toDevice, to, bytes, bytes, {}},
                {fromDevice, from, bytes, bytes, {}}, {bytes, 1, 1});
  });
}

uint64_t addressOf(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

End endOf(State &state, CUmemorytype type, const void *host, CUdeviceptr device,
          size_t x, size_t y, size_t z, size_t pitch, size_t height) {
  if (type == CU_MEMORYTYPE_ARRAY)
    throw Fault(CUDA_ERROR_NOT_SUPPORTED, "the emulator has no CUDA arrays");
  End end;
  end.isDevice = type == CU_MEMORYTYPE_DEVICE;
  end.address = end.isDevice ? device : addressOf(host);
  if (type == CU_MEMORYTYPE_UNIFIED) {
    end.address = device;
    end.isDevice = isDeviceAddress(state, device);
  }
  end.pitch = pitch;
  end.planePitch = pitch * height;
  end.address += x + y * end.pitch + z * end.planePitch;
  return end;
}

CUresult copyPlane(const char *name, const CUDA_MEMCPY2D *c, CUstream stream,
                   bool waits) {
  return call(name, [&](State &state, auto &lock) -> CUresult {
    if (!c)
      return CUDA_ERROR_INVALID_VALUE;
    size_t toPitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;
    size_t fromPitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
    if (c->WidthInBytes + c->dstXInBytes > toPitch ||
        c->WidthInBytes + c->srcXInBytes > fromPitch)
      throw Fault(CUDA_ERROR_INVALID_VALUE,
                  std::string(name) + ": rows longer than their pitch");
    return copy(name, state, lock, stream, waits,
                endOf(state, c->dstMemoryType, c->dstHost, c->dstDevice,
                      c->dstXInBytes, c->dstY, 0, toPitch, c->Height),
                endOf(state, c->srcMemoryType, c->srcHost, c->srcDevice,
                      c->srcXInBytes, c->srcY, 0, fromPitch, c->Height),
                {c->WidthInBytes, c->Height, 1});
  });
}

CUresult copyCube(const char *name, const CUDA_MEMCPY3D *c, CUstream stream,
                  bool waits) {
  return call(name, [&](State &state, auto &lock) -> CUresult {
    if (!c)
      return CUDA_ERROR_INVALID_VALUE;
    size_t toPitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;
    size_t fromPitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
    size_t toHeight = c->dstHeight ? c->dstHeight : c->Height;
    size_t fromHeight = c->srcHeight ? c->srcHeight : c->Height;
    if (c->WidthInBytes + c->dstXInBytes > toPitch ||
        c->WidthInBytes + c->srcXInBytes > fromPitch)
      throw Fault(CUDA_ERROR_INVALID_VALUE,
                  std::string(name) + ": rows longer than their pitch");
    return copy(name, state, lock, stream, waits,
                endOf(state, c->dstMemoryType, c->dstHost, c->dstDevice,
                      c->dstXInBytes, c->dstY, c->dstZ, toPitch, toHeight),
                endOf(state, c->srcMemoryType, c->srcHost, c->srcDevice,
                      c->srcXInBytes, c->srcY, c->srcZ, fromPitch, fromHeight),
                {c->WidthInBytes, c->Height, c->Depth});
  });
}

/// Fills rows with a value of `each` bytes.
CUresult fill(const char *name, CUstream handle, bool waits, uint64_t address,
              uint64_t pitch, unsigned value, unsigned each, uint64_t width,
              uint64_t height) {
  return call(name, [&](State &state, auto &lock) -> CUresult {
    CUstream_st &stream = streamOf(state, handle);
    if (!width || !height)
      return CUDA_SUCCESS;
    if (address % each || (height > 1 && pitch < width * each))
      throw Fault(CUDA_ERROR_INVALID_VALUE,
                  std::string(name) + ": a misaligned address or a pitch that "
                                      "is too small");
    End to{true, address, pitch, 0, {}};
    Extent extent{width * each, height, 1};
    checkRange(state, to, extent, name);
    if (waits)
      checkNotCapturing(state);
    Operation operation;
    operation.name =
        std::string(name) + " of " + std::to_string(width * each) + " bytes";
    operation.run = [&state, to, extent, value, each] {
      for (uint64_t y = 0; y < extent.height; ++y) {
        Bytes row = rowOf(state.memory, to, extent, y, 0, "a fill");
        for (uint64_t i = 0; i < extent.width; i += each)
          memcpy(row.data + i, &value, each);
        if (row.written)
          memset(row.written, 1, extent.width);
      }
      return true;
    };
    state.scheduler->enqueue(stream, std::move(operation));
    if (waits) {
      ++state.counts.synchronisations;
      state.scheduler->runUntil(
          lock, stream.device, [&] { return state.scheduler->isIdle(stream); });
    }
    return CUDA_SUCCESS;
  });
}

CUresult copyAny(const char *name, CUdeviceptr to, CUdeviceptr from,
                 size_t bytes, CUstream stream, bool waits) {
  return call(name, [&](State &state, auto &lock) {
    return copy(name, state, lock, stream, waits,
                {isDeviceAddress(state, to), to, bytes, bytes, {}},
                {isDeviceAddress(state, from), from, bytes, bytes, {}},
                {bytes, 1, 1});
  });
}

} // namespace

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copyAny("cuMemcpy", to, from, bytes, nullptr, true);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                       CUstream stream) {
  return copyAny("cuMemcpyAsync", to, from, bytes, stream, false);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  return copyRow("cuMemcpyHtoD", nullptr, true, true, to, false,
                 addressOf(from), bytes);
}
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  return copyRow("cuMemcpyDtoH", nullptr, true, false, addressOf(to), true,
                 from, bytes);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copyRow("cuMemcpyDtoD", nullptr, false, true, to, true, from, bytes);
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext,
                      size_t bytes) {
  return copyRow("cuMemcpyPeer", nullptr, true, true, to, true, from, bytes);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                              CUstream stream) {
  return copyRow("cuMemcpyHtoDAsync", stream, false, true, to, false,
                 addressOf(from), bytes);
}
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  return copyRow("cuMemcpyDtoHAsync", stream, false, false, addressOf(to), true,
                 from, bytes);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream stream) {
  return copyRow("cuMemcpyDtoDAsync", stream, false, true, to, true, from,
                 bytes);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext toContext,
                           CUdeviceptr from, CUcontext fromContext,
                           size_t bytes, CUstream stream) {
  if (!toContext || !fromContext)
    return CUDA_ERROR_INVALID_CONTEXT;
  return copyRow("cuMemcpyPeerAsync", stream, false, true, to, true, from,
                 bytes);
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *what) {
  return copyPlane("cuMemcpy2D", what, nullptr, true);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *what, CUstream stream) {
  return copyPlane("cuMemcpy2DAsync", what, stream, false);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *what) {
  return copyCube("cuMemcpy3D", what, nullptr, true);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *what, CUstream stream) {
  return copyCube("cuMemcpy3DAsync", what, stream, false);
}
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return fill("cuMemsetD8", nullptr, true, to, count, value, 1, count, 1);
}
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return fill("cuMemsetD16", nullptr, true, to, 0, value, 2, count, 1);
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  return fill("cuMemsetD32", nullptr, true, to, 0, value, 4, count, 1);
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                         CUstream stream) {
  return fill("cuMemsetD8Async", stream, false, to, 0, value, 1, count, 1);
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count,
                          CUstream stream) {
  return fill("cuMemsetD16Async", stream, false, to, 0, value, 2, count, 1);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                          CUstream stream) {
  return fill("cuMemsetD32Async", stream, false, to, 0, value, 4, count, 1);
}
CUresult cuStreamWriteValue32_v2(CUstream handle, CUdeviceptr to,
                                 unsigned value, unsigned flags) {
  const char *name = "cuStreamWriteValue32";
  return call(name, [&](State &state, auto &) -> CUresult {
    CUstream_st &stream = streamOf(state, handle);
    const bool isDevice = isDeviceAddress(state, to);
    const End end{isDevice, to, sizeof(value), sizeof(value), {}};
    const Extent extent{sizeof(value), 1, 1};
    if (flags || to % sizeof(value))
      throw Fault(CUDA_ERROR_INVALID_VALUE,
                  std::string(name) + ": flags, or a misaligned address");
    if (!isDevice && !isPinned(state, end, extent))
      throw Fault(CUDA_ERROR_INVALID_VALUE,
                  std::string(name) + ": host memory that is not pinned");
    checkRange(state, end, extent, name);
    Operation operation;
    operation.name = name;
    operation.run = [&state, end, extent, value] {
      Bytes bytes = rowOf(state.memory, end, extent, 0, 0, "a write");
      memcpy(bytes.data, &value, sizeof(value));
      if (bytes.written)
        memset(bytes.written, 1, sizeof(value));
      return true;
    };
    state.scheduler->enqueue(stream, std::move(operation));
    return CUDA_SUCCESS;
  });
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value,
                           size_t width, size_t height, CUstream stream) {
  return fill("cuMemsetD2D8Async", stream, false, to, pitch, value, 1, width,
              height);
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value,
                            size_t width, size_t height, CUstream stream) {
  return fill("cuMemsetD2D32Async", stream, false, to, pitch, value, 4, width,
              height);
}
