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
CudaQueue::create(std::shared_ptr<const Gpu> gpu, double timeout_s,
                  const StepTraffic &traffic) {
  std::unique_ptr<CudaQueue> self(new CudaQueue(std::move(gpu), timeout_s));
  if (Status status = self->make(traffic); !status.ok()) {
    if (!self->drain())
      (void)self.release(); // the GPU may still use it
    return status;
  }
  return self;
}

/// Places in a ring for all steps that may be under way.
size_t CudaQueue::forAllSteps(size_t of_one) {
  return static_cast<size_t>(Device::kMostSteps) * of_one;
}

Status CudaQueue::make(const StepTraffic &traffic) {
  compute = PARTITA_TRY(createStream(gpu));
  size_t pieces = 0;
  for (auto [stage, copies] :
       {std::pair(&in, &traffic.in), std::pair(&out, &traffic.out)}) {
    PARTITA_TRY(stage->make(gpu, *copies, traffic.largest));
    for (size_t bytes : *copies)
      pieces += bytes / stage->chunkBytes() + 1;
  }
  host_copy_count =
      std::clamp(forAllSteps(pieces), kLeastHostCopies, kMostHostCopies);
  host_copies = std::make_unique<HostCopy[]>(host_copy_count);
  for (size_t i = 0; i < host_copy_count; ++i)
    host_copies[i].queue = this;
  marks.resize(
      std::clamp(forAllSteps(traffic.events), kLeastEvents, kMostEvents));
  for (Mark &mark : marks)
    for (GpuEvent *event : {&mark.computed, &mark.copied})
      *event = PARTITA_TRY(createEvent(gpu));
  joined = PARTITA_TRY(createEvent(gpu));
  return makeNumbers();
}

/// A copy of 4 bytes would keep a copy engine between the graphs of two units.
Status CudaQueue::makeNumbers() {
  last_done = PARTITA_TRY(allocatePinned(gpu, sizeof(uint32_t)));
  std::memset(last_done.get(), 0, sizeof(uint32_t));
  int writes = 0;
  PARTITA_TRY(gpu->api.check(
      gpu->attribute(DeviceAttribute::can_use_64_bit_stream_mem_ops, writes),
      "cannot read the properties of a GPU"));
  writes_numbers = writes != 0;
  if (writes_numbers)
    return Status();
  numbers = PARTITA_TRY(
      allocateDevice(gpu, kRuns * sizeof(uint32_t), "the numbers of units"));
  static const auto counted = [] {
    std::array<uint32_t, kRuns> all;
    for (uint32_t i = 0; i < kRuns; ++i)
      all[i] = i;
    return all;
  }();
  PARTITA_TRY(copyIn(reinterpret_cast<uint8_t *>(numbers.get()), counted.data(),
                     sizeof(counted)));
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

Status CudaQueue::ready() {
  if (failed)
    return failure();
  Status status = gpu->use();
  return status.ok() ? status : fail(status);
}

/// Of what the first unfinished unit is made, for an error that a GPU tells
/// later than it happens; empty if all units are done.
std::string CudaQueue::unfinished() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!last_done.get() || run_count == 0)
    return "";
  const uint32_t number =
      *static_cast<const volatile uint32_t *>(last_done.get());
  const uint32_t behind = (run_count - number) % kRuns;
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
Status CudaQueue::poll(Query query, const char *what, int64_t expected_ns) {
  PollBackoff backoff(expected_ns);
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  while (true) {
    const Result result = query();
    Watchdog *const other = watchdog;
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
    if (other && waited > std::chrono::milliseconds(1))
      if (Status status = other->check(); !status.ok())
        return fail(status);
    backoff.pause(
        std::chrono::duration_cast<std::chrono::nanoseconds>(waited).count());
  }
}

bool CudaQueue::drain() {
  (void)gpu->use();
  (void)fail(Status::error("the device is gone"));
  const double longest = std::min(timeout_s, 5.0);
  const int64_t deadline = now() + static_cast<int64_t>(longest * 1e9);
  for (const Stream *stream :
       {&compute, &in.host, &in.wire, &out.wire, &out.host, &clock})
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
  HostCopy &copy = host_copies[next_host_copy++ % host_copy_count];
  if (copy.pending.load(std::memory_order_acquire))
    PARTITA_TRY(poll(
        [&] {
          if (!copy.pending.load(std::memory_order_acquire))
            return Result::success;
          // The driver calls no more functions after an error. Without one
          // this stream may be done before the one of the copy.
          const Result result = gpu->api.streamQuery(compute.get());
          return result == Result::success ? Result::not_ready : result;
        },
        "copies between host and device"));
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
  if (calls.ok(gpu->api.eventRecord(joined.get(), out.host.get())) &&
      calls.ok(gpu->api.streamWaitEvent(in.host.get(), joined.get(), 0)))
    return Status();
  return broken(calls.result, "cannot order copies");
}

Status CudaQueue::bring(uint8_t *to, const uint8_t *from, size_t bytes,
                        Device *source) {
  PARTITA_TRY(ready());
  if (!source)
    PARTITA_TRY(joinOutput(from, bytes));
  const Api &api = gpu->api;
  const StreamHandle host = in.host.get(), wire = in.wire.get();
  for (size_t done = 0; done < bytes; done += in.chunkBytes()) {
    const size_t part = std::min(bytes - done, in.chunkBytes());
    Staging::Chunk &chunk = in.take();
    auto copy = PARTITA_TRY(hostCopy(chunk.pinned, from + done, part, source));
    copy->pending = true;
    Calls calls;
    if (calls.ok(api.streamWaitEvent(host, chunk.empty.get(), 0)) &&
        calls.ok(api.launchHostFunc(host, carryOut, copy)) &&
        calls.ok(api.eventRecord(chunk.filled.get(), host)) &&
        calls.ok(api.streamWaitEvent(wire, chunk.filled.get(), 0)) &&
        calls.ok(api.memcpyHtoDAsync(chunk.there, chunk.pinned, part, wire)) &&
        calls.ok(api.eventRecord(chunk.sent.get(), wire)) &&
        calls.ok(api.streamWaitEvent(compute.get(), chunk.sent.get(), 0)) &&
        calls.ok(api.memcpyDtoDAsync(addressOf(to + done), chunk.there, part,
                                     compute.get())) &&
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
  if (bytes > 0) {
    auto *target = static_cast<uint8_t *>(to);
    out_begin = out_end ? std::min<const uint8_t *>(out_begin, target) : target;
    out_end = std::max<const uint8_t *>(out_end, target + bytes);
  }
  return tell(to, from, bytes);
}

Status CudaQueue::tell(void *to, const uint8_t *from, size_t bytes) {
  PARTITA_TRY(ready());
  if (bytes == 0)
    return Status();
  told = true;
  const Api &api = gpu->api;
  auto *target = static_cast<uint8_t *>(to);
  const StreamHandle wire = out.wire.get(), host = out.host.get();
  for (size_t done = 0; done < bytes; done += out.chunkBytes()) {
    const size_t part = std::min(bytes - done, out.chunkBytes());
    Staging::Chunk &chunk = out.take();
    auto copy =
        PARTITA_TRY(hostCopy(target + done, chunk.pinned, part, nullptr));
    copy->pending = true;
    Calls calls;
    if (calls.ok(api.streamWaitEvent(compute.get(), chunk.empty.get(), 0)) &&
        calls.ok(api.memcpyDtoDAsync(chunk.there, addressOf(from + done), part,
                                     compute.get())) &&
        calls.ok(api.eventRecord(chunk.filled.get(), compute.get())) &&
        calls.ok(api.streamWaitEvent(wire, chunk.filled.get(), 0)) &&
        calls.ok(api.memcpyDtoHAsync(chunk.pinned, chunk.there, part, wire)) &&
        calls.ok(api.eventRecord(chunk.sent.get(), wire)) &&
        calls.ok(api.streamWaitEvent(host, chunk.sent.get(), 0)) &&
        calls.ok(api.launchHostFunc(host, carryOut, copy)) &&
        calls.ok(api.eventRecord(chunk.empty.get(), host)))
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
  PARTITA_TRY(ready());
  auto &instance = static_cast<CudaInstance &>(prepared);
  const bool timed = observer && observer->timed;
  current->is_timed &= timed;
  if (observer)
    current->observed.push_back({&instance, observer, current->used_events});
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
  return noteDone(instance, micro_batch);
}

/// Behind a unit.
Status CudaQueue::noteDone(CudaInstance &instance, int micro_batch) {
  uint32_t number;
  {
    std::lock_guard<std::mutex> lock(mutex);
    number = ++run_count;
    runs[number % kRuns] = {&instance, micro_batch};
  }
  const Result result =
      writes_numbers
          ? gpu->api.streamWriteValue32(
                compute.get(),
                addressOf(static_cast<uint8_t *>(last_done.get())), number, 0)
          : gpu->api.memcpyDtoHAsync(last_done.get(),
                                     numbers.get() +
                                         number % kRuns * sizeof(uint32_t),
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
    auto event = PARTITA_TRY(timedEvent(*current));
    return gpu->api.check(gpu->api.eventRecord(event->get(), compute.get()),
                          "cannot time a task");
  };
  PARTITA_TRY(mark());
  for (size_t i = 0; i < instance.size(); ++i) {
    PARTITA_TRY(instance.enqueue(*gpu, i, compute.get()));
    PARTITA_TRY(mark());
  }
  return Status();
}

/// Events are made when the first step needs them.
Expected<GpuEvent *> CudaQueue::timedEvent(Step &of) {
  if (of.used_events == of.timed_events.size())
    of.timed_events.push_back(PARTITA_TRY(createEvent(gpu, true)));
  return &of.timed_events[of.used_events++];
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
  Mark &mark = marks[number % marks.size()];
  // Who asks for the one that had this place believes that it has happened.
  if (number > marks.size() + happened &&
      !poll([&] { return api.eventQuery(mark.last()); }, "an event").ok())
    return event;
  Calls calls;
  // Copies to the host end on a stream of their own.
  mark.copies = told;
  if (calls.ok(api.eventRecord(mark.computed.get(), compute.get())) &&
      (!mark.copies ||
       (calls.ok(api.streamWaitEvent(out.host.get(), mark.computed.get(), 0)) &&
        calls.ok(api.eventRecord(mark.copied.get(), out.host.get()))))) {
    recorded = number;
    return event;
  }
  (void)broken(calls.result, "cannot record an event");
  return event;
}

Status CudaQueue::wait(const Event &event) {
  if (!event.queue || event.queue == this)
    return Status();
  PARTITA_TRY(ready());
  auto *other = dynamic_cast<CudaQueue *>(event.queue);
  if (!other) {
    // What another kind of device does, the driver does not know.
    Status status = event.queue->synchronize(event);
    return status.ok() ? status : fail(status);
  }
  if (other->failed)
    return fail(other->failure());
  const size_t places = other->marks.size();
  if (event.number + places <= other->recorded)
    return Status();
  const Mark &mark = other->marks[event.number % places];
  const Result result =
      gpu->api.streamWaitEvent(compute.get(), mark.computed.get(), 0);
  return result == Result::success
             ? Status()
             : broken(result, "cannot wait for another device");
}

Status CudaQueue::synchronize(const Event &event) {
  return awaitEvent(event, 0);
}

Status CudaQueue::awaitEvent(const Event &event, int64_t expected_ns) {
  PARTITA_TRY(ready());
  if (event.number + marks.size() > recorded) {
    const EventHandle handle = marks[event.number % marks.size()].last();
    PARTITA_TRY(poll([&] { return gpu->api.eventQuery(handle); },
                     "the work of the device", expected_ns));
  }
  return failed ? failure() : Status();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void CudaQueue::beginStep() {
  out_begin = out_end = nullptr;
  told = false;
  current = &steps[begun++ % steps.size()];
  current->observed.clear();
  current->used_events = 0;
  current->is_timed = true;
}

Status CudaQueue::awaitStep(const Event &end) {
  Step &done = steps[awaited++ % steps.size()];
  const int64_t begin = now();
  PARTITA_TRY(awaitEvent(end, step_ns));
  step_ns = now() - begin;
  // Whatever came before it in the queue has happened, too.
  happened = end.number;
  busy_ns = done.is_timed ? 0 : -1;
  Status status = done.observed.empty() ? Status() : tell(done);
  return status.ok() ? status : fail(status);
}

/// The GPU's clock is compared with the host's when the step is done.
Status CudaQueue::tell(Step &done) {
  const Api &api = gpu->api;
  GpuEvent *anchor = nullptr;
  int64_t anchor_ns = 0;
  if (done.used_events > 0) {
    if (!clock.get())
      clock = PARTITA_TRY(createStream(gpu));
    anchor = PARTITA_TRY(timedEvent(done));
    PARTITA_TRY(api.check(api.eventRecord(anchor->get(), clock.get()),
                          "cannot time a step"));
    PARTITA_TRY(poll([&] { return api.eventQuery(anchor->get()); },
                     "the end of a step"));
    anchor_ns = now();
  }
  Status status;
  auto timeOf = [&](size_t event) {
    float ms = 0;
    if (Status read =
            api.check(api.eventElapsedTime(&ms, done.timed_events[event].get(),
                                           anchor->get()),
                      "cannot read when a task ended");
        !read.ok() && status.ok())
      status = read;
    return anchor_ns - static_cast<int64_t>(double(ms) * 1e6);
  };
  for (const Observed &each : done.observed) {
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
