//===- Gpu.cpp - A GPU's context, and what must be given back -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/Gpu.h"

#include "runtime/abi/Text.h"

#include <mutex>
#include <set>

namespace partita::runtime::cuda {

/// The driver takes long to make a context and to destroy one, and libraries
/// load their kernels into it again. So the first device of a GPU holds the
/// context until the process ends, as NVIDIA's own runtime does.
static void keepContext(Ordinal ordinal) {
  static std::mutex mutex;
  static std::set<Ordinal> kept;
  std::scoped_lock lock(mutex);
  if (kept.contains(ordinal))
    return;
  ContextHandle handle = nullptr;
  if (auto api = loadApi();
      api && (*api)->primaryCtxRetain(&handle, ordinal) == Result::success)
    kept.insert(ordinal);
}

Expected<std::shared_ptr<const Gpu>> Gpu::open(const Api &api, int number) {
  std::shared_ptr<Gpu> gpu(new Gpu(api, number));
  PARTITA_TRY(gpu->retain());
  return std::shared_ptr<const Gpu>(std::move(gpu));
}

Status Gpu::retain() {
  int count = 0;
  PARTITA_TRY(api.check(api.deviceGetCount(&count),
                        "cannot count the GPUs of this machine"));
  if (number < 0 || number >= count)
    return Status::error(
        "there is no GPU " + std::to_string(number) + ": this machine has " +
        abi::countOf(count, "GPU") +
        " that it may use; --devices cuda:0*4 puts four devices on GPU 0");
  facts = PARTITA_TRY(readFacts(api, number));
  const std::string what =
      "cannot read the properties of GPU " + std::to_string(number);
  for (Result result :
       {api.deviceGet(&ordinal, number),
        api.deviceGetAttribute(
            &most_shared, DeviceAttribute::max_shared_memory_per_block_optin,
            ordinal),
        api.deviceGetAttribute(&most_pitch, DeviceAttribute::max_pitch,
                               ordinal)})
    PARTITA_TRY(api.check(result, what.c_str()));
  if (Status status = api.check(api.primaryCtxRetain(&handle, ordinal),
                                ("cannot make a context on " + name()).c_str());
      !status.ok()) {
    handle = nullptr;
    return status;
  }
  keepContext(ordinal);
  return use();
}

Gpu::~Gpu() {
  if (handle)
    (void)api.primaryCtxRelease(ordinal);
}

Status Gpu::use() const {
  return api.check(api.ctxSetCurrent(handle),
                   "a thread cannot use the context of a GPU");
}

Status Gpu::reach(const Gpu &other) const {
  if (Status status = use(); !status.ok() || number == other.number)
    return status;
  int can = 0;
  Result result = api.deviceCanAccessPeer(&can, ordinal, other.ordinal);
  if (result == Result::success && can)
    result = api.ctxEnablePeerAccess(other.handle, 0);
  switch (result) {
  case Result::success:
  case Result::peer_access_already_enabled:
  case Result::peer_access_unsupported:
  case Result::too_many_peers:
    return Status();
  default:
    return api.error(result, name() + " cannot reach " + other.name());
  }
}

std::string Gpu::name() const {
  return "GPU " + std::to_string(number) + " (" + kind() + ")";
}

std::string Gpu::kind() const {
  return modelName() + ", sm_" + std::to_string(architecture());
}

Result Gpu::attribute(DeviceAttribute which, int &value) const {
  return api.deviceGetAttribute(&value, which, ordinal);
}

Expected<DeviceBuffer> allocateDevice(const std::shared_ptr<const Gpu> &gpu,
                                      size_t bytes, const std::string &what) {
  if (bytes == 0)
    return DeviceBuffer();
  DeviceAddress address = 0;
  const Result result = gpu->api.memAlloc(&address, bytes);
  if (result == Result::success)
    return DeviceBuffer(gpu, address);
  const std::string wanted = gpu->name() + " has no " +
                             abi::bytesText(static_cast<int64_t>(bytes)) +
                             " for " + what;
  size_t free = 0, total = 0;
  if (result != Result::out_of_memory ||
      gpu->api.memGetInfo(&free, &total) != Result::success)
    return gpu->api.error(result, wanted);
  return Status::error(
      wanted + ": " + abi::bytesText(static_cast<int64_t>(free)) + " of its " +
      abi::bytesText(static_cast<int64_t>(total)) + " are free");
}

Expected<PinnedBuffer> allocatePinned(const std::shared_ptr<const Gpu> &gpu,
                                      size_t bytes) {
  void *address = nullptr;
  PARTITA_TRY(
      gpu->api.check(gpu->api.memHostAlloc(&address, bytes, kHostAllocPortable),
                     "cannot allocate memory of the host that a GPU can read"));
  return PinnedBuffer(gpu, address);
}

Expected<Stream> createStream(const std::shared_ptr<const Gpu> &gpu) {
  StreamHandle stream = nullptr;
  PARTITA_TRY(gpu->api.check(gpu->api.streamCreate(&stream, kStreamNonBlocking),
                             "cannot make a stream of a GPU"));
  return Stream(gpu, stream);
}

Expected<GpuEvent> createEvent(const std::shared_ptr<const Gpu> &gpu,
                               bool timed) {
  EventHandle event = nullptr;
  PARTITA_TRY(gpu->api.check(
      gpu->api.eventCreate(&event, timed ? 0 : kEventDisableTiming),
      "cannot make an event of a GPU"));
  return GpuEvent(gpu, event);
}

} // namespace partita::runtime::cuda
