//===- CudaQueue.h - Work of a GPU, in order --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One stream computes, and carries everything that touches the arena. Others
// bring bytes of the host to the GPU before they are needed, and take them from
// it (Staging.h). Host memory is read and written by functions that the driver
// calls in the order of these streams. So no call waits for the GPU but
// `synchronize`, and it asks the GPU until a deadline.
//
// A step begins behind those before it in the stream that computes. The host
// gives it to the GPU while they are at work.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDAQUEUE_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDAQUEUE_H

#include "runtime/device/cuda/CudaInstance.h"
#include "runtime/device/cuda/PollBackoff.h"
#include "runtime/device/cuda/Staging.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

namespace partita::runtime::cuda {

/// Watches work of others that a queue may come to wait for: messages between
/// GPUs. It is asked while the host waits for the queue, by any thread.
class Watchdog {
public:
  virtual ~Watchdog() = default;
  /// An error if the work will not come to an end.
  virtual Status check() = 0;
  /// The wait has lasted past the deadline: ends the work. Returns what was not
  /// done, and who was waited for; empty: all was done.
  virtual std::string giveUp() = 0;
};

/// What a step gives a queue at most. The queue has room for it, so that it
/// neither allocates nor waits in a step.
struct StepTraffic {
  std::vector<size_t> in, out; ///< bytes of each input and output
  size_t largest = 0;          ///< bytes of a copy between device and host
  size_t events = 1;           ///< that are recorded
};

class CudaQueue final : public Queue {
public:
  /// The calling thread must use the GPU. `timeout_s`: deadline of every wait.
  static Expected<std::unique_ptr<CudaQueue>>
  create(std::shared_ptr<const Gpu> gpu, double timeout_s,
         const StepTraffic &traffic = {});

  Status copyIn(uint8_t *to, const void *from, size_t bytes) override;
  Status copyOut(void *to, const uint8_t *from, size_t bytes) override;
  Status tell(void *to, const uint8_t *from, size_t bytes) override;
  Status copyFrom(Device &source, uint8_t *to, const uint8_t *from,
                  size_t bytes) override;
  Status run(Instance &instance, int micro_batch,
             TaskObserver *observer) override;
  Event record() override;
  Status wait(const Event &event) override;
  Status synchronize(const Event &event) override;

  /// See Device.
  void beginStep();
  /// Tells observers of the step.
  Status awaitStep(const Event &end);
  /// Nanoseconds that the units of the step that was last awaited took; 0 if
  /// there were none, and negative unless they were observed with times.
  int64_t busyNs() const { return busy_ns; }

  /// The stream that uses the arena.
  StreamHandle stream() const { return compute.get(); }
  /// The bytes of the GPU's memory for copies on their way.
  size_t stagingBytes() const { return in.bytes() + out.bytes(); }
  /// Sets whom to ask while the host waits; null: nobody.
  void setWatchdog(Watchdog *with) { watchdog = with; }

  /// Waits until nothing is at work any more. False if that takes too long:
  /// then nothing that it uses may be given back.
  bool drain();

private:
  static constexpr size_t kLeastEvents = 256, kMostEvents = 4096;
  static constexpr size_t kLeastHostCopies = 1024, kMostHostCopies = 16384;
  static constexpr size_t kRuns = 1024;

  /// A copy between addresses of the host, which the driver calls.
  struct HostCopy {
    std::atomic<bool> pending = false;
    CudaQueue *queue = nullptr;
    void *to = nullptr;
    const void *from = nullptr;
    size_t bytes = 0;
    Device *source = nullptr; ///< the owner of `from`; null: the host
  };
  /// A point in the queue's work.
  struct Mark {
    GpuEvent computed; ///< what the device's memory holds is there
    GpuEvent copied;   ///< on the host, too
    bool copies = false;
    EventHandle last() const { return (copies ? copied : computed).get(); }
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
  /// What must be told of a step when it is done.
  struct Step {
    std::vector<Observed> observed;
    std::vector<GpuEvent> timed_events;
    size_t used_events = 0;
    bool is_timed = true; ///< all of its units
  };

  CudaQueue(std::shared_ptr<const Gpu> gpu, double timeout_s)
      : gpu(std::move(gpu)), timeout_s(timeout_s) {}
  Status make(const StepTraffic &traffic);
  Status makeNumbers();
  static size_t forAllSteps(size_t of_one);
  Status ready();
  Status fail(Status status);
  Status failure();
  Status broken(Result result, const std::string &what);
  std::string unfinished();
  template <typename Query>
  Status poll(Query query, const char *what, int64_t expected_ns = 0);
  Status awaitEvent(const Event &event, int64_t expected_ns);
  Expected<HostCopy *> hostCopy(void *to, const void *from, size_t bytes,
                                Device *source);
  static void carryOut(void *copy);
  Status bring(uint8_t *to, const uint8_t *from, size_t bytes, Device *source);
  Status joinOutput(const uint8_t *from, size_t bytes);
  Status runPieces(CudaInstance &instance, int micro_batch, bool timed);
  Status noteDone(CudaInstance &instance, int micro_batch);
  Expected<GpuEvent *> timedEvent(Step &of);
  Status tell(Step &done);

  const std::shared_ptr<const Gpu> gpu;
  const double timeout_s;
  std::atomic<Watchdog *> watchdog = nullptr;
  Stream compute;
  Staging in, out;
  size_t host_copy_count = 0;
  std::unique_ptr<HostCopy[]> host_copies;
  size_t next_host_copy = 0;

  std::vector<Mark> marks; ///< by the event's number
  GpuEvent joined;
  std::atomic<uint64_t> recorded = 0;
  std::atomic<uint64_t> happened = 0; ///< at least, and all before it
  /// Where copies to the host of this step end; empty: there are none.
  const uint8_t *out_begin = nullptr, *out_end = nullptr;
  bool told = false; ///< whether something of this step is copied to the host

  // Which unit is at work: its number comes to the host behind it.
  std::array<Run, kRuns> runs;
  uint32_t run_count = 0;
  bool writes_numbers = false; ///< by the stream; else copies
  DeviceBuffer numbers;        ///< to be copied: 0 to kRuns - 1
  PinnedBuffer last_done;

  std::array<Step, Device::kMostSteps> steps; ///< by number
  uint64_t begun = 0, awaited = 0;            ///< counted by different threads
  Step *current = steps.data();               ///< that was begun last
  int64_t step_ns = 0; ///< how long the last step was waited for
  int64_t busy_ns = 0;
  Stream clock; ///< in which nothing waits; since the first step with times

  std::mutex mutex; ///< of the failure, and of runs
  Status first_failure;
  std::atomic<bool> failed = false;
};

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDAQUEUE_H
