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
    if (Status status = gpu->use(); !status.ok())
      return status;
    auto made = createStream(gpu);
    if (!made)
      return made.status();
    stream = std::move(*made);
    return Status();
  }

  Status readAttributes(double &processors, double &clock) const {
    int count = 0, kilohertz = 0;
    for (Result result :
         {gpu->attribute(DeviceAttribute::multiprocessor_count, count),
          gpu->attribute(DeviceAttribute::clock_rate, kilohertz)})
      if (Status status = gpu->api.check(result, "cannot read the properties "
                                                 "of a GPU");
          !status.ok())
        return status;
    processors = count;
    clock = kilohertz / 1e6;
    return Status();
  }

  /// Units are graphs: what a kernel takes in one, and a graph besides its
  /// kernels.
  Status measureLaunch(double &launch, double &unit) {
    ModuleHandle handle = nullptr;
    if (Status status = gpu->api.check(
            gpu->api.moduleLoadDataEx(&handle, kNothing, 0, nullptr, nullptr),
            "the driver cannot load a kernel");
        !status.ok())
      return status;
    const Module module(gpu, handle);
    FunctionHandle nothing = nullptr;
    if (Status status = gpu->api.check(
            gpu->api.moduleGetFunction(&nothing, handle, "nothing"),
            "the driver does not find a kernel");
        !status.ok())
      return status;
    GraphExec few, many;
    if (Status status = capture(few, nothing, kFewKernels); !status.ok())
      return status;
    if (Status status = capture(many, nothing, kManyKernels); !status.ok())
      return status;
    double few_ns = 0, many_ns = 0;
    if (Status status = measureGraph(few_ns, few.get()); !status.ok())
      return status;
    if (Status status = measureGraph(many_ns, many.get()); !status.ok())
      return status;
    launch = std::max((many_ns - few_ns) / (kManyKernels - kFewKernels), 1.0);
    unit = std::max(few_ns - kFewKernels * launch, 1.0);
    return Status();
  }

  /// From the call to the end of a copy of a few bytes to the GPU.
  Status measureCopy(double &ns) {
    auto there = allocateDevice(gpu, kSmallBytes, "a copy");
    if (!there)
      return there.status();
    auto here = allocatePinned(gpu, kSmallBytes);
    if (!here)
      return here.status();
    return measure(ns, [&] {
      return gpu->api.memcpyHtoDAsync(there->get(), here->get(), kSmallBytes,
                                      stream.get());
    });
  }

  /// GB/s within its memory; a copy reads and writes.
  Status measureMemory(double &rate) {
    Status status = measureRate(rate, [&](size_t bytes, double &ns) {
      auto from = allocateDevice(gpu, bytes, "a copy"),
           to = allocateDevice(gpu, bytes, "a copy");
      if (!from || !to)
        return (from ? to : from).status();
      if (Status cleared = clear(*from, bytes); !cleared.ok())
        return cleared;
      return measure(ns, [&] {
        return gpu->api.memcpyDtoDAsync(to->get(), from->get(), bytes,
                                        stream.get());
      });
    });
    rate *= 2;
    return status;
  }

  /// GB/s to and from memory of the host that is pinned: the slower way.
  Status measureHost(double &rate) {
    return measureRate(rate, [&](size_t bytes, double &ns) {
      auto there = allocateDevice(gpu, bytes, "a copy");
      if (!there)
        return there.status();
      auto here = allocatePinned(gpu, bytes);
      if (!here)
        return here.status();
      double in = 0, out = 0;
      if (Status status = measure(in,
                                  [&] {
                                    return gpu->api.memcpyHtoDAsync(
                                        there->get(), here->get(), bytes,
                                        stream.get());
                                  });
          !status.ok())
        return status;
      Status status = measure(out, [&] {
        return gpu->api.memcpyDtoHAsync(here->get(), there->get(), bytes,
                                        stream.get());
      });
      ns = std::max(in, out);
      return status;
    });
  }

  /// GB/s to another GPU.
  Status measurePeer(const std::shared_ptr<const Gpu> &other, double &rate) {
    if (Status status = other->reach(*gpu); !status.ok())
      return status;
    if (Status status = gpu->reach(*other); !status.ok())
      return status;
    return measureRate(rate, [&](size_t bytes, double &ns) {
      if (Status status = other->use(); !status.ok())
        return status;
      auto to = allocateDevice(other, bytes, "a copy");
      if (Status status = gpu->use(); !status.ok())
        return status;
      auto from = allocateDevice(gpu, bytes, "a copy");
      if (!from || !to)
        return (from ? to : from).status();
      if (Status cleared = clear(*from, bytes); !cleared.ok())
        return cleared;
      return measure(ns, [&] {
        return gpu->api.memcpyPeerAsync(to->get(), other->context(),
                                        from->get(), gpu->context(), bytes,
                                        stream.get());
      });
    });
  }

private:
  static constexpr size_t kSmallBytes = 64;

  Status clear(const DeviceBuffer &buffer, size_t bytes) {
    if (Status status = gpu->api.check(
            gpu->api.memsetD8Async(buffer.get(), 0, bytes, stream.get()),
            "cannot clear memory of a GPU");
        !status.ok())
      return status;
    return await();
  }

  Status capture(GraphExec &graph, FunctionHandle kernel, int count) {
    const Api &api = gpu->api;
    const char *what = "a graph cannot be made";
    if (Status status = api.check(
            api.streamBeginCapture(stream.get(), CaptureMode::of_thread), what);
        !status.ok())
      return status;
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
  Status measureGraph(double &ns, GraphExecHandle graph) {
    Status status = measure(ns, [&] {
      Result result = Result::success;
      for (int i = 0; i < kGraphs && result == Result::success; ++i)
        result = gpu->api.graphLaunch(graph, stream.get());
      return result;
    });
    ns /= kGraphs;
    return status;
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
  Status measure(double &ns, const std::function<Result()> &give) {
    std::vector<double> times;
    for (int i = 0; i <= kRepeats; ++i) {
      const auto begin = Clock::now();
      if (Status status =
              gpu->api.check(give(), "a GPU cannot be given work to measure");
          !status.ok())
        return status;
      if (Status status = await(); !status.ok())
        return status;
      if (i > 0) // what comes first prepares something
        times.push_back(
            std::chrono::duration<double, std::nano>(Clock::now() - begin)
                .count());
    }
    std::sort(times.begin(), times.end());
    ns = std::max(times[times.size() / 2], 1.0);
    return Status();
  }

  /// Bytes a nanosecond of ever larger copies, up to one that takes long.
  static Status
  measureRate(double &rate,
              const std::function<Status(size_t bytes, double &ns)> &copy) {
    for (size_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= 2) {
      double ns = 0;
      if (Status status = copy(bytes, ns); !status.ok())
        return status;
      rate = double(bytes) / ns;
      if (ns > kLongNs)
        break;
    }
    return Status();
  }

  const std::shared_ptr<const Gpu> gpu;
  Stream stream;
};

Expected<DeviceFigures> measureGpu(const std::shared_ptr<const Gpu> &gpu,
                                   const std::shared_ptr<const Gpu> &other) {
  GpuProbe probe(gpu);
  double processors = 0, clock = 0, memory = 0, launch = 0, unit = 0, copy = 0,
         host = 0, peer = 0;
  Status status = probe.prepare();
  for (const std::function<Status()> &step :
       std::vector<std::function<Status()>>{
           [&] { return probe.readAttributes(processors, clock); },
           [&] { return probe.measureLaunch(launch, unit); },
           [&] { return probe.measureCopy(copy); },
           [&] { return probe.measureMemory(memory); },
           [&] { return probe.measureHost(host); },
           [&] { return other ? probe.measurePeer(other, peer) : Status(); }})
    if (status.ok())
      status = step();
  if (!status.ok())
    return Status::error(gpu->name() + ": " + status.message());
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
    figures.speeds.emplace_back(key::kPeer, peer);
  return figures;
}

} // namespace

Expected<std::vector<DeviceFigures>> measureGpus(const Api &api) {
  int count = 0;
  if (Status status =
          api.check(api.deviceGetCount(&count), "cannot count the GPUs");
      !status.ok())
    return status;
  std::vector<std::shared_ptr<const Gpu>> gpus;
  for (int number = 0; number < count; ++number) {
    auto gpu = Gpu::open(api, number);
    if (!gpu)
      return gpu.status();
    gpus.push_back(std::move(*gpu));
  }
  std::vector<DeviceFigures> all;
  for (auto gpu = gpus.begin(); gpu != gpus.end(); ++gpu) {
    auto isAlike = [&](const std::shared_ptr<const Gpu> &other) {
      return other->architecture() == (*gpu)->architecture();
    };
    if (std::any_of(gpus.begin(), gpu, isAlike))
      continue;
    const auto other = std::find_if(gpu + 1, gpus.end(), isAlike);
    auto figures = measureGpu(*gpu, other == gpus.end() ? nullptr : *other);
    if (!figures)
      return figures.status();
    all.push_back(std::move(*figures));
  }
  return all;
}

} // namespace partita::runtime::cuda

namespace partita::runtime {

Expected<std::vector<DeviceFigures>> measureCudaDevices() {
  if (!cuda::isInstalled())
    return std::vector<DeviceFigures>();
  auto api = cuda::loadApi();
  if (!api)
    return api.status();
  return cuda::measureGpus(**api);
}

} // namespace partita::runtime
