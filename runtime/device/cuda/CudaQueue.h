//===- CudaQueue.h - Work of a GPU, in order --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three streams: one computes, and carries everything that touches the memory
// of the device; one brings bytes of the host into pinned memory before they
// are needed, and one takes them from there. Host memory is read and written by
// functions that the driver calls in the order of these streams. So no call
// waits for the GPU but `synchronize`, and it asks the GPU until a deadline.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDAQUEUE_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDAQUEUE_H

#include "runtime/device/cuda/CudaInstance.h"

#include <array>
#include <atomic>
#include <mutex>

namespace partita::runtime::cuda {

/// Work of others that a queue may come to wait for: messages between GPUs. It
/// is asked while the host waits for the queue, by any thread.
class Companion {
public:
  virtual ~Companion() = default;
  /// An error if its work will not come to an end.
  virtual Status check() = 0;
  /// The wait has lasted past the deadline: ends the work. Returns what was not
  /// done, and who was waited for; empty: all was done.
  virtual std::string giveUp() = 0;
};

class CudaQueue final : public Queue {
public:
  /// The calling thread must use the GPU. `timeout_s`: deadline of every wait.
  static Expected<std::unique_ptr<CudaQueue>>
  create(std::shared_ptr<const Gpu> gpu, double timeout_s);

  Status copyIn(uint8_t *to, const void *from, size_t bytes) override;
  Status copyOut(void *to, const uint8_t *from, size_t bytes) override;
  Status copyFrom(Device &source, uint8_t *to, const uint8_t *from,
                  size_t bytes) override;
  Status run(Instance &instance, int micro_batch,
             TaskObserver *observer) override;
  Event record() override;
  Status wait(const Event &event) override;
  Status synchronize(const Event &event) override;

  /// Call when a step begins, while nothing is enqueued.
  void beginStep();
  /// Waits for all work of the step, and tells observers of it.
  Status endStep();
  /// Nanoseconds that the units of the last step took; 0 unless they were
  /// observed with times.
  int64_t busyNs() const { return busy_ns; }

  /// The stream that uses the device's memory.
  StreamHandle stream() const { return compute.get(); }
  /// Sets whom to ask while the host waits; null: nobody.
  void accompany(Companion *with) { companion = with; }

  /// Waits until nothing is at work any more. False if that takes too long:
  /// then nothing that it uses may be given back.
  bool drain();

private:
  static constexpr size_t kChunks = 2, kChunkBytes = 1 << 20;
  static constexpr size_t kEvents = 256, kHostCopies = 1024, kRuns = 1024;

  /// Pinned memory on the way from or to the host.
  struct Chunk {
    PinnedBuffer bytes;
    GpuEvent full, empty;
  };
  struct Stage {
    Stream stream;
    std::array<Chunk, kChunks> chunks;
    size_t next = 0;
    Chunk &take() { return chunks[next++ % kChunks]; }
  };
  /// A copy between addresses of the host, which the driver calls.
  struct HostCopy {
    std::atomic<bool> pending = false;
    CudaQueue *queue = nullptr;
    void *to = nullptr;
    const void *from = nullptr;
    size_t bytes = 0;
    Device *source = nullptr; ///< the owner of `from`; null: the host
  };
  /// A unit that was enqueued.
  struct Run {
    const CudaInstance *instance = nullptr;
    int micro_batch = 0;
  };
  /// A unit of the step whose tasks are to be told, and the first of their
  /// events.
  struct Observed {
    const CudaInstance *instance;
    TaskObserver *observer;
    size_t first_event;
  };

  CudaQueue(std::shared_ptr<const Gpu> gpu, double timeout_s)
      : gpu(std::move(gpu)), timeout_s(timeout_s) {}
  Status make();
  Status makeStage(Stage &stage);
  Status ready();
  Status fail(Status status);
  Status failure();
  Status broken(Result result, const std::string &what);
  std::string unfinished() const;
  template <typename Query> Status poll(Query query, const char *what);
  Expected<HostCopy *> hostCopy(void *to, const void *from, size_t bytes,
                                Device *source);
  static void carryOut(void *copy);
  Status bring(uint8_t *to, const uint8_t *from, size_t bytes, Device *source);
  Status joinOutput(const uint8_t *from, size_t bytes);
  Status runPieces(CudaInstance &instance, int micro_batch, bool timed);
  Expected<GpuEvent *> timedEvent();
  Status tell();

  const std::shared_ptr<const Gpu> gpu;
  const double timeout_s;
  std::atomic<Companion *> companion = nullptr;
  Stream compute;
  Stage in, out;
  std::array<HostCopy, kHostCopies> host_copies;
  size_t next_host_copy = 0;

  std::array<GpuEvent, kEvents> events; ///< by number
  GpuEvent joined;
  std::atomic<uint64_t> recorded = 0;
  /// Where copies to the host of this step end; empty: there are none.
  const uint8_t *out_begin = nullptr, *out_end = nullptr;

  // Which unit is at work: its number is copied to the host behind it.
  std::array<Run, kRuns> runs;
  uint64_t run_count = 0;
  DeviceBuffer numbers;
  PinnedBuffer last_done;

  std::vector<Observed> observed;
  std::vector<GpuEvent> timed_events;
  size_t used_events = 0;
  int64_t busy_ns = 0; ///< negative: a unit was not timed

  std::mutex mutex; ///< of the failure
  Status first_failure;
  std::atomic<bool> failed = false;
};

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDAQUEUE_H
