//===- CudaQueue.cpp - Work of a GPU, in order ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaQueue.h"

#include "runtime/abi/Text.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <thread>

namespace partita::runtime::cuda {
namespace {

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

/// Calls of the driver, of which the first that fails is remembered.
struct Calls {
  Result result = Result::success;
  bool ok(Result next) {
    result = next;
    return next == Result::success;
  }
};

} // namespace

Expected<std::unique_ptr<CudaQueue>>
CudaQueue::create(std::shared_ptr<const Gpu> gpu, double timeout_s) {
  std::unique_ptr<CudaQueue> self(new CudaQueue(std::move(gpu), timeout_s));
  if (Status status = self->make(); !status.ok()) {
    if (!self->drain())
      (void)self.release(); // the GPU may still use it
    return status;
  }
  return self;
}

Status CudaQueue::makeStage(Stage &stage) {
  auto stream = createStream(gpu);
  if (!stream)
    return stream.status();
  stage.stream = std::move(*stream);
  for (Chunk &chunk : stage.chunks) {
    auto bytes = allocatePinned(gpu, kChunkBytes);
    if (!bytes)
      return bytes.status();
    chunk.bytes = std::move(*bytes);
    for (GpuEvent *event : {&chunk.full, &chunk.empty}) {
      auto made = createEvent(gpu);
      if (!made)
        return made.status();
      *event = std::move(*made);
    }
  }
  return Status();
}

Status CudaQueue::make() {
  auto stream = createStream(gpu);
  if (!stream)
    return stream.status();
  compute = std::move(*stream);
  for (Stage *stage : {&in, &out})
    if (Status status = makeStage(*stage); !status.ok())
      return status;
  for (GpuEvent &event : events) {
    auto made = createEvent(gpu);
    if (!made)
      return made.status();
    event = std::move(*made);
  }
  auto made = createEvent(gpu);
  if (!made)
    return made.status();
  joined = std::move(*made);
  for (HostCopy &copy : host_copies)
    copy.queue = this;

  auto device =
      allocateDevice(gpu, kRuns * sizeof(uint32_t), "the numbers of units");
  if (!device)
    return device.status();
  numbers = std::move(*device);
  auto pinned = allocatePinned(gpu, sizeof(uint32_t));
  if (!pinned)
    return pinned.status();
  last_done = std::move(*pinned);
  std::memset(last_done.get(), 0, sizeof(uint32_t));
  static const auto counted = [] {
    std::array<uint32_t, kRuns> all;
    for (uint32_t i = 0; i < kRuns; ++i)
      all[i] = i;
    return all;
  }();
  if (Status status = copyIn(reinterpret_cast<uint8_t *>(numbers.get()),
                             counted.data(), sizeof(counted));
      !status.ok())
    return status;
  return synchronize(record());
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

Status CudaQueue::fail(Status status) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failed)
    first_failure = std::move(status);
  failed = true;
  return first_failure;
}

Status CudaQueue::failure() {
  std::lock_guard<std::mutex> lock(mutex);
  return first_failure;
}

Status CudaQueue::ready() { return failed ? failure() : gpu->use(); }

/// Of what the first unfinished unit is made, for an error that a GPU tells
/// later than it happens; empty if all units are done.
std::string CudaQueue::unfinished() const {
  if (!last_done.get() || run_count == 0)
    return "";
  const uint32_t number =
      *static_cast<const volatile uint32_t *>(last_done.get());
  const uint64_t behind = (run_count - number) % kRuns;
  if (behind == 0)
    return "";
  const Run &run = runs[(run_count - behind + 1) % kRuns];
  const CudaInstance &unit = *run.instance;
  if (unit.size() == 0)
    return "";
  std::string text = "unit '" + unit.name + "', micro-batch " +
                     std::to_string(run.micro_batch) + ", '" + unit.label(0) +
                     "'";
  if (unit.size() > 1)
    text += std::string(" to '") + unit.label(unit.size() - 1) +
            "' (CUDA_LAUNCH_BLOCKING=1 tells which of " +
            std::to_string(unit.size()) + ")";
  return text;
}

Status CudaQueue::broken(Result result, const std::string &what) {
  return fail(gpu->api.error(result, what));
}

/// Asks until the answer is another one than "not ready".
template <typename Query>
Status CudaQueue::poll(Query query, const char *what) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  while (true) {
    const Result result = query();
    Companion *const other = companion;
    if (result == Result::success) {
      // What is stopped comes to its end, too.
      Status status = other ? other->check() : Status();
      return status.ok() ? status : fail(status);
    }
    if (result != Result::not_ready) {
      const std::string where = unfinished();
      return broken(result, where.empty() ? what : where);
    }
    const auto waited = Clock::now() - begin;
    if (waited > std::chrono::duration<double>(timeout_s)) {
      char text[64];
      std::snprintf(text, sizeof(text), "waited %g s for ", timeout_s);
      std::string where = other ? other->giveUp() : "";
      if (where.empty())
        where = unfinished();
      return fail(
          Status::error(text + (where.empty() ? std::string(what) : where)));
    }
    if (waited < std::chrono::milliseconds(1)) {
      std::this_thread::yield();
      continue;
    }
    if (other)
      if (Status status = other->check(); !status.ok())
        return fail(status);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool CudaQueue::drain() {
  (void)gpu->use();
  (void)fail(Status::error("the device is gone"));
  const double longest = std::min(timeout_s, 5.0);
  const int64_t deadline = now() + static_cast<int64_t>(longest * 1e9);
  for (const Stream *stream : {&compute, &in.stream, &out.stream})
    while (stream->get() &&
           gpu->api.streamQuery(stream->get()) == Result::not_ready) {
      if (now() > deadline)
        return false;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Called by the driver. It must not call the driver.
void CudaQueue::carryOut(void *data) {
  auto &copy = *static_cast<HostCopy *>(data);
  CudaQueue &queue = *copy.queue;
  if (!queue.failed) {
    if (!copy.source)
      std::memcpy(copy.to, copy.from, copy.bytes);
    else if (Status status = copy.source->download(
                 copy.to, static_cast<const uint8_t *>(copy.from), copy.bytes);
             !status.ok())
      (void)queue.fail(status);
  }
  copy.pending.store(false, std::memory_order_release);
}

Expected<CudaQueue::HostCopy *>
CudaQueue::hostCopy(void *to, const void *from, size_t bytes, Device *source) {
  HostCopy &copy = host_copies[next_host_copy++ % kHostCopies];
  if (copy.pending.load(std::memory_order_acquire))
    if (Status status = poll(
            [&] {
              if (!copy.pending.load(std::memory_order_acquire))
                return Result::success;
              // The driver calls no more functions after an error. Without
              // one this stream may be done before the one of the copy.
              const Result result = gpu->api.streamQuery(compute.get());
              return result == Result::success ? Result::not_ready : result;
            },
            "copies between host and device");
        !status.ok())
      return status;
  copy.to = to;
  copy.from = from;
  copy.bytes = bytes;
  copy.source = source;
  return &copy;
}

/// Bytes that this queue copies to the host may be copied back.
Status CudaQueue::joinOutput(const uint8_t *from, size_t bytes) {
  if (from >= out_end || from + bytes <= out_begin)
    return Status();
  Calls calls;
  if (calls.ok(gpu->api.eventRecord(joined.get(), out.stream.get())) &&
      calls.ok(gpu->api.streamWaitEvent(in.stream.get(), joined.get(), 0)))
    return Status();
  return broken(calls.result, "cannot order copies");
}

Status CudaQueue::bring(uint8_t *to, const uint8_t *from, size_t bytes,
                        Device *source) {
  if (Status status = ready(); !status.ok())
    return status;
  if (!source)
    if (Status status = joinOutput(from, bytes); !status.ok())
      return status;
  const Api &api = gpu->api;
  const StreamHandle stream = in.stream.get();
  for (size_t done = 0; done < bytes; done += kChunkBytes) {
    const size_t part = std::min(bytes - done, kChunkBytes);
    Chunk &chunk = in.take();
    auto copy = hostCopy(chunk.bytes.get(), from + done, part, source);
    if (!copy)
      return copy.status();
    (*copy)->pending = true;
    Calls calls;
    if (calls.ok(api.streamWaitEvent(stream, chunk.empty.get(), 0)) &&
        calls.ok(api.launchHostFunc(stream, carryOut, *copy)) &&
        calls.ok(api.eventRecord(chunk.full.get(), stream)) &&
        calls.ok(api.streamWaitEvent(compute.get(), chunk.full.get(), 0)) &&
        calls.ok(api.memcpyHtoDAsync(addressOf(to + done), chunk.bytes.get(),
                                     part, compute.get())) &&
        calls.ok(api.eventRecord(chunk.empty.get(), compute.get())))
      continue;
    return broken(calls.result, "cannot copy " + std::to_string(bytes) +
                                    " bytes from the host to the device");
  }
  return Status();
}

Status CudaQueue::copyIn(uint8_t *to, const void *from, size_t bytes) {
  return bring(to, static_cast<const uint8_t *>(from), bytes, nullptr);
}

Status CudaQueue::copyOut(void *to, const uint8_t *from, size_t bytes) {
  if (Status status = ready(); !status.ok())
    return status;
  if (bytes == 0)
    return Status();
  const Api &api = gpu->api;
  auto *target = static_cast<uint8_t *>(to);
  out_begin = out_end ? std::min<const uint8_t *>(out_begin, target) : target;
  out_end = std::max<const uint8_t *>(out_end, target + bytes);
  const StreamHandle stream = out.stream.get();
  for (size_t done = 0; done < bytes; done += kChunkBytes) {
    const size_t part = std::min(bytes - done, kChunkBytes);
    Chunk &chunk = out.take();
    auto copy = hostCopy(target + done, chunk.bytes.get(), part, nullptr);
    if (!copy)
      return copy.status();
    (*copy)->pending = true;
    Calls calls;
    if (calls.ok(api.streamWaitEvent(compute.get(), chunk.empty.get(), 0)) &&
        calls.ok(api.memcpyDtoHAsync(chunk.bytes.get(), addressOf(from + done),
                                     part, compute.get())) &&
        calls.ok(api.eventRecord(chunk.full.get(), compute.get())) &&
        calls.ok(api.streamWaitEvent(stream, chunk.full.get(), 0)) &&
        calls.ok(api.launchHostFunc(stream, carryOut, *copy)) &&
        calls.ok(api.eventRecord(chunk.empty.get(), stream)))
      continue;
    return broken(calls.result, "cannot copy " + std::to_string(bytes) +
                                    " bytes from the device to the host");
  }
  return Status();
}

Status CudaQueue::copyFrom(Device &source, uint8_t *to, const uint8_t *from,
                           size_t bytes) {
  const auto *other = dynamic_cast<CudaDevice *>(&source);
  if (!other)
    return bring(to, from, bytes, source.isHost() ? nullptr : &source);
  if (Status status = ready(); !status.ok() || bytes == 0)
    return status;
  const Gpu &there = other->gpu();
  const Result result =
      there.number == gpu->number
          ? gpu->api.memcpyDtoDAsync(addressOf(to), addressOf(from), bytes,
                                     compute.get())
          : gpu->api.memcpyPeerAsync(addressOf(to), gpu->context(),
                                     addressOf(from), there.context(), bytes,
                                     compute.get());
  return result == Result::success
             ? Status()
             : broken(result, "cannot copy " + std::to_string(bytes) +
                                  " bytes from " + there.name());
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

Status CudaQueue::run(Instance &prepared, int micro_batch,
                      TaskObserver *observer) {
  if (Status status = ready(); !status.ok())
    return status;
  auto &instance = static_cast<CudaInstance &>(prepared);
  const bool timed = observer && observer->timed;
  if (!timed)
    busy_ns = -1;
  if (observer)
    observed.push_back({&instance, observer, used_events});
  // A graph does not tell when its tasks end.
  if (GraphExecHandle graph = timed ? nullptr : instance.graph(micro_batch)) {
    if (Result result = gpu->api.graphLaunch(graph, compute.get());
        result != Result::success) {
      // It may be the error of a unit before it.
      const std::string before = unfinished();
      return broken(result, "cannot launch the graph of unit '" +
                                instance.name + "', micro-batch " +
                                std::to_string(micro_batch) +
                                (before.empty() ? "" : ", behind " + before));
    }
  } else if (Status status = runPieces(instance, micro_batch, timed);
             !status.ok()) {
    return fail(status);
  }
  runs[++run_count % kRuns] = {&instance, micro_batch};
  const Result result = gpu->api.memcpyDtoHAsync(
      last_done.get(), numbers.get() + run_count % kRuns * sizeof(uint32_t),
      sizeof(uint32_t), compute.get());
  return result == Result::success
             ? Status()
             : broken(result, "cannot note that a unit is done");
}

Status CudaQueue::runPieces(CudaInstance &instance, int micro_batch,
                            bool timed) {
  instance.useMicroBatch(micro_batch);
  auto mark = [&]() -> Status {
    if (!timed)
      return Status();
    auto event = timedEvent();
    return event ? gpu->api.check(
                       gpu->api.eventRecord((*event)->get(), compute.get()),
                       "cannot time a task")
                 : event.status();
  };
  Status status = mark();
  for (size_t i = 0; i < instance.size() && status.ok(); ++i) {
    status = instance.enqueue(*gpu, i, compute.get());
    if (status.ok())
      status = mark();
  }
  return status;
}

/// Events are made when the first step needs them.
Expected<GpuEvent *> CudaQueue::timedEvent() {
  if (used_events == timed_events.size()) {
    auto made = createEvent(gpu, true);
    if (!made)
      return made.status();
    timed_events.push_back(std::move(*made));
  }
  return &timed_events[used_events++];
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

Event CudaQueue::record() {
  const uint64_t number = recorded + 1;
  const Event event{this, number};
  if (!ready().ok())
    return event;
  const Api &api = gpu->api;
  const EventHandle handle = events[number % kEvents].get();
  // The one that had this place has happened when `synchronize` says so.
  if (number > kEvents &&
      !poll([&] { return api.eventQuery(handle); }, "an event").ok())
    return event;
  Calls calls;
  // Copies to the host end on a stream of their own.
  if (out_end ? calls.ok(api.eventRecord(joined.get(), compute.get())) &&
                    calls.ok(api.streamWaitEvent(out.stream.get(), joined.get(),
                                                 0)) &&
                    calls.ok(api.eventRecord(handle, out.stream.get()))
              : calls.ok(api.eventRecord(handle, compute.get()))) {
    recorded = number;
    return event;
  }
  (void)broken(calls.result, "cannot record an event");
  return event;
}

Status CudaQueue::wait(const Event &event) {
  if (!event.queue || event.queue == this)
    return Status();
  if (Status status = ready(); !status.ok())
    return status;
  auto *other = dynamic_cast<CudaQueue *>(event.queue);
  if (!other) {
    // What another kind of device does, the driver does not know.
    Status status = event.queue->synchronize(event);
    return status.ok() ? status : fail(status);
  }
  if (other->failed)
    return fail(other->failure());
  if (event.number + kEvents <= other->recorded)
    return Status();
  const EventHandle handle = other->events[event.number % kEvents].get();
  Calls calls;
  for (StreamHandle stream : {compute.get(), in.stream.get()})
    if (!calls.ok(gpu->api.streamWaitEvent(stream, handle, 0)))
      return broken(calls.result, "cannot wait for another device");
  return Status();
}

Status CudaQueue::synchronize(const Event &event) {
  if (Status status = ready(); !status.ok())
    return status;
  if (event.number + kEvents > recorded) {
    const EventHandle handle = events[event.number % kEvents].get();
    if (Status status = poll([&] { return gpu->api.eventQuery(handle); },
                             "the work of the device");
        !status.ok())
      return status;
  }
  return failed ? failure() : Status();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void CudaQueue::beginStep() {
  out_begin = out_end = nullptr;
  observed.clear();
  used_events = 0;
  busy_ns = 0;
}

Status CudaQueue::endStep() {
  if (Status status = synchronize(record()); !status.ok())
    return status;
  return observed.empty() ? Status() : tell();
}

/// The GPU's clock is compared with the host's when all is done.
Status CudaQueue::tell() {
  const Api &api = gpu->api;
  GpuEvent *anchor = nullptr;
  int64_t anchor_ns = 0;
  if (used_events > 0) {
    auto made = timedEvent();
    if (!made)
      return fail(made.status());
    anchor = *made;
    if (Status status = api.check(api.eventRecord(anchor->get(), compute.get()),
                                  "cannot time a step");
        !status.ok())
      return fail(status);
    if (Status status = poll([&] { return api.eventQuery(anchor->get()); },
                             "the end of a step");
        !status.ok())
      return status;
    anchor_ns = now();
  }
  Status status;
  auto timeOf = [&](size_t event) {
    float ms = 0;
    if (Status read = api.check(
            api.eventElapsedTime(&ms, timed_events[event].get(), anchor->get()),
            "cannot read when a task ended");
        !read.ok() && status.ok())
      status = fail(read);
    return anchor_ns - static_cast<int64_t>(double(ms) * 1e6);
  };
  for (const Observed &each : observed) {
    const bool timed = each.observer->timed;
    int64_t begin = timed ? timeOf(each.first_event) : 0;
    const int64_t first = begin;
    for (size_t i = 0; i < each.instance->size(); ++i) {
      const int64_t end =
          timed ? std::max(begin, timeOf(each.first_event + i + 1)) : 0;
      each.observer->finished(i, begin, end);
      begin = end;
    }
    if (busy_ns >= 0)
      busy_ns += begin - first;
  }
  return status;
}

} // namespace partita::runtime::cuda
