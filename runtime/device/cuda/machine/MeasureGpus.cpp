//===- MeasureGpus.cpp - What the GPUs of a machine can do ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/DeviceKinds.h"
#include "runtime/abi/machine.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

namespace partita::runtime::cuda {
namespace {

namespace key = abi::machine;
using Clock = std::chrono::steady_clock;

constexpr char kNothing[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                            ".visible .entry nothing() { ret; }\n";
constexpr size_t kLeastBytes = size_t(1) << 20;
/// More than the caches of any GPU hold.
constexpr size_t kMostBytes = size_t(256) << 20;
/// A copy that takes so long is large enough.
constexpr double kLongNs = 2e6;
constexpr int kRepeats = 7, kGraphs = 50, kFewKernels = 2, kManyKernels = 50;
constexpr std::chrono::seconds kDeadline(60);

/// One GPU, alone, but for copies to a second one.
class GpuProbe {
public:
  explicit GpuProbe(std::shared_ptr<const Gpu> gpu) : gpu(std::move(gpu)) {}

  Status prepare() {
    PARTITA_TRY(gpu->use());
    stream = PARTITA_TRY(createStream(gpu));
    return Status();
  }

  Status readAttributes(double &processors, double &clock) const {
    int count = 0, kilohertz = 0;
    for (Result result :
         {gpu->attribute(DeviceAttribute::multiprocessor_count, count),
          gpu->attribute(DeviceAttribute::clock_rate, kilohertz)})
      PARTITA_TRY(gpu->api.check(result, "cannot read the properties "
                                         "of a GPU"));
    processors = count;
    clock = kilohertz / 1e6;
    return Status();
  }

  /// Units are graphs: what a kernel takes in one, and a graph besides its
  /// kernels.
  Status measureLaunch(double &launch, double &unit) {
    ModuleHandle handle = nullptr;
    PARTITA_TRY(gpu->api.check(
        gpu->api.moduleLoadDataEx(&handle, kNothing, 0, nullptr, nullptr),
        "the driver cannot load a kernel"));
    const Module module(gpu, handle);
    FunctionHandle nothing = nullptr;
    PARTITA_TRY(
        gpu->api.check(gpu->api.moduleGetFunction(&nothing, handle, "nothing"),
                       "the driver does not find a kernel"));
    GraphExec few, many;
    PARTITA_TRY(capture(few, nothing, kFewKernels));
    PARTITA_TRY(capture(many, nothing, kManyKernels));
    const double few_ns = PARTITA_TRY(measureGraph(few.get())),
                 many_ns = PARTITA_TRY(measureGraph(many.get()));
    launch = std::max((many_ns - few_ns) / (kManyKernels - kFewKernels), 1.0);
    unit = std::max(few_ns - kFewKernels * launch, 1.0);
    return Status();
  }

  /// From the call to the end of a copy of a few bytes to the GPU.
  Expected<double> measureCopy() {
    auto there = PARTITA_TRY(allocateDevice(gpu, kSmallBytes, "a copy"));
    auto here = PARTITA_TRY(allocatePinned(gpu, kSmallBytes));
    return measure([&] {
      return gpu->api.memcpyHtoDAsync(there.get(), here.get(), kSmallBytes,
                                      stream.get());
    });
  }

  /// GB/s within its memory; a copy reads and writes.
  Expected<double> measureMemory() {
    const double rate =
        PARTITA_TRY(measureRate([&](size_t bytes) -> Expected<double> {
          auto from = PARTITA_TRY(allocateDevice(gpu, bytes, "a copy")),
               to = PARTITA_TRY(allocateDevice(gpu, bytes, "a copy"));
          PARTITA_TRY(clear(from, bytes));
          return measure([&] {
            return gpu->api.memcpyDtoDAsync(to.get(), from.get(), bytes,
                                            stream.get());
          });
        }));
    return 2 * rate;
  }

  /// GB/s to and from memory of the host that is pinned: the slower way.
  Expected<double> measureHost() {
    return measureRate([&](size_t bytes) -> Expected<double> {
      auto there = PARTITA_TRY(allocateDevice(gpu, bytes, "a copy"));
      auto here = PARTITA_TRY(allocatePinned(gpu, bytes));
      const double in = PARTITA_TRY(measure([&] {
        return gpu->api.memcpyHtoDAsync(there.get(), here.get(), bytes,
                                        stream.get());
      }));
      const double out = PARTITA_TRY(measure([&] {
        return gpu->api.memcpyDtoHAsync(here.get(), there.get(), bytes,
                                        stream.get());
      }));
      return std::max(in, out);
    });
  }

  /// GB/s to another GPU.
  Expected<double> measurePeer(const std::shared_ptr<const Gpu> &other) {
    PARTITA_TRY(other->reach(*gpu));
    PARTITA_TRY(gpu->reach(*other));
    return measureRate([&](size_t bytes) -> Expected<double> {
      PARTITA_TRY(other->use());
      auto to = allocateDevice(other, bytes, "a copy");
      // Whatever has come of it, this GPU is the current one again.
      PARTITA_TRY(gpu->use());
      auto from = PARTITA_TRY(allocateDevice(gpu, bytes, "a copy"));
      if (!to)
        return to.status();
      PARTITA_TRY(clear(from, bytes));
      return measure([&] {
        return gpu->api.memcpyPeerAsync(to->get(), other->context(), from.get(),
                                        gpu->context(), bytes, stream.get());
      });
    });
  }

private:
  static constexpr size_t kSmallBytes = 64;

  Status clear(const DeviceBuffer &buffer, size_t bytes) {
    PARTITA_TRY(gpu->api.check(
        gpu->api.memsetD8Async(buffer.get(), 0, bytes, stream.get()),
        "cannot clear memory of a GPU"));
    return await();
  }

  Status capture(GraphExec &graph, FunctionHandle kernel, int count) {
    const Api &api = gpu->api;
    const char *what = "a graph cannot be made";
    PARTITA_TRY(api.check(
        api.streamBeginCapture(stream.get(), CaptureMode::of_thread), what));
    Result result = Result::success;
    for (int i = 0; i < count && result == Result::success; ++i)
      result = api.launchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream.get(),
                                nullptr, nullptr);
    GraphHandle captured = nullptr;
    const Result ended = api.streamEndCapture(stream.get(), &captured);
    const Graph owner(gpu, captured);
    GraphExecHandle handle = nullptr;
    if (result == Result::success)
      result = ended;
    if (result == Result::success)
      result = api.graphInstantiate(&handle, captured, 0);
    if (result != Result::success)
      return api.check(result, what);
    graph = GraphExec(gpu, handle);
    return api.check(api.graphUpload(handle, stream.get()), what);
  }

  /// The time of one of several graphs, one behind another.
  Expected<double> measureGraph(GraphExecHandle graph) {
    const double ns = PARTITA_TRY(measure([&] {
      Result result = Result::success;
      for (int i = 0; i < kGraphs && result == Result::success; ++i)
        result = gpu->api.graphLaunch(graph, stream.get());
      return result;
    }));
    return ns / kGraphs;
  }

  /// Waits for all work of the stream.
  Status await() {
    const auto begin = Clock::now();
    Result result;
    while ((result = gpu->api.streamQuery(stream.get())) == Result::not_ready) {
      if (Clock::now() - begin > kDeadline)
        return Status::error(gpu->name() + " does not finish a copy");
      std::this_thread::yield();
    }
    return gpu->api.check(result, "a GPU fails while it is measured");
  }

  /// The median time from `give`, which gives work to the stream, to its end.
  Expected<double> measure(const std::function<Result()> &give) {
    std::vector<double> times;
    for (int i = 0; i <= kRepeats; ++i) {
      const auto begin = Clock::now();
      PARTITA_TRY(
          gpu->api.check(give(), "a GPU cannot be given work to measure"));
      PARTITA_TRY(await());
      if (i > 0) // what comes first prepares something
        times.push_back(
            std::chrono::duration<double, std::nano>(Clock::now() - begin)
                .count());
    }
    std::sort(times.begin(), times.end());
    return std::max(times[times.size() / 2], 1.0);
  }

  /// Bytes a nanosecond of ever larger copies, up to one that takes long.
  static Expected<double>
  measureRate(const std::function<Expected<double>(size_t bytes)> &copy) {
    double rate = 0;
    for (size_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= 2) {
      const double ns = PARTITA_TRY(copy(bytes));
      rate = double(bytes) / ns;
      if (ns > kLongNs)
        break;
    }
    return rate;
  }

  const std::shared_ptr<const Gpu> gpu;
  Stream stream;
};

Expected<DeviceFigures> measureGpu(const std::shared_ptr<const Gpu> &gpu,
                                   const std::shared_ptr<const Gpu> &other) {
  GpuProbe probe(gpu);
  double processors = 0, clock = 0, launch = 0, unit = 0;
  PARTITA_TRY(probe.prepare());
  PARTITA_TRY(probe.readAttributes(processors, clock));
  PARTITA_TRY(probe.measureLaunch(launch, unit));
  const double copy = PARTITA_TRY(probe.measureCopy()),
               memory = PARTITA_TRY(probe.measureMemory()),
               host = PARTITA_TRY(probe.measureHost());
  DeviceFigures figures{abi::getName(abi::DeviceKind::cuda),
                        "sm_" + std::to_string(gpu->architecture()),
                        gpu->modelName(),
                        {{key::kProcessors, processors},
                         {key::kClock, clock},
                         {key::kMemory, memory},
                         {key::kLaunch, launch},
                         {key::kUnit, unit},
                         {key::kCopy, copy},
                         {key::kHost, host}}};
  if (other)
    figures.speeds.emplace_back(key::kPeer,
                                PARTITA_TRY(probe.measurePeer(other)));
  return figures;
}

} // namespace

Expected<std::vector<DeviceFigures>> measureGpus(const Api &api) {
  int count = 0;
  PARTITA_TRY(api.check(api.deviceGetCount(&count), "cannot count the GPUs"));
  std::vector<std::shared_ptr<const Gpu>> gpus;
  for (int number = 0; number < count; ++number)
    gpus.push_back(PARTITA_TRY(Gpu::open(api, number)));
  std::vector<DeviceFigures> all;
  for (auto gpu = gpus.begin(); gpu != gpus.end(); ++gpu) {
    auto isAlike = [&](const std::shared_ptr<const Gpu> &other) {
      return other->architecture() == (*gpu)->architecture();
    };
    if (std::any_of(gpus.begin(), gpu, isAlike))
      continue;
    const auto other = std::find_if(gpu + 1, gpus.end(), isAlike);
    all.push_back(PARTITA_TRY(
        within((*gpu)->name() + ": ",
               measureGpu(*gpu, other == gpus.end() ? nullptr : *other))));
  }
  return all;
}

} // namespace partita::runtime::cuda

namespace partita::runtime {

Expected<std::vector<DeviceFigures>> measureCudaDevices() {
  if (!cuda::isInstalled())
    return std::vector<DeviceFigures>();
  auto api = PARTITA_TRY(cuda::loadApi());
  return cuda::measureGpus(*api);
}

} // namespace partita::runtime
