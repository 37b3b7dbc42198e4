//===- State.cpp - What the emulated driver knows ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/State.h"

#include "Emulator.h"
#include "machine/Error.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace gpuemu;

namespace {

/// A switch of the environment; what is no number is an error at once.
uint64_t environment(const char *name, uint64_t otherwise, uint64_t most) {
  const char *text = getenv(name);
  if (!text || !*text)
    return otherwise;
  char *end = nullptr;
  unsigned long long value = strtoull(text, &end, 10);
  if (*end || *text == '-' || value > most) {
    fprintf(stderr, "CUDA emulator: %s=%s is no number from 0 to %llu\n", name,
            text, static_cast<unsigned long long>(most));
    abort();
  }
  return value;
}

/// "2,0": the GPUs of a machine that this process sees, in its order.
std::vector<int> gpusOf(const char *text, int &devices) {
  std::vector<int> gpus;
  while (text && *text) {
    char *end = nullptr;
    const long gpu = strtol(text, &end, 10);
    if (end == text || gpu < 0 || gpu > 63 || (*end && *end != ',')) {
      fprintf(stderr, "CUDA emulator: CUDA_EMU_GPUS is no list of numbers "
                      "from 0 to 63\n");
      abort();
    }
    gpus.push_back(int(gpu));
    text = *end ? end + 1 : end;
  }
  if (!gpus.empty())
    devices = int(gpus.size());
  for (int gpu = int(gpus.size()); gpu < devices; ++gpu)
    gpus.push_back(gpu);
  return gpus;
}

void writeCounts() {
  const char *path = getenv("CUDA_EMU_COUNTS");
  if (!path)
    return;
  FILE *file = fopen(path, "w");
  if (!file)
    return;
  for (const char *name :
       {"calls", "launches", "allocations", "synchronisations",
        "live-allocations", "live-streams", "live-events", "live-modules",
        "live-graphs", "lane-instructions", "peer-copies", "staged-copies"})
    fprintf(file, "%s %llu\n", name,
            static_cast<unsigned long long>(cuEmuCount(name)));
  for (int device = 0; device < State::get().config.devices; ++device) {
    const std::string name = "waits-" + std::to_string(device);
    fprintf(file, "%s %llu\n", name.c_str(),
            static_cast<unsigned long long>(cuEmuCount(name.c_str())));
  }
  fclose(file);
}

} // namespace

Config::Config() {
  seed = environment("CUDA_EMU_SEED", 0, UINT32_MAX);
  devices = int(environment("CUDA_EMU_DEVICES", 1, 64));
  gpus = gpusOf(getenv("CUDA_EMU_GPUS"), devices);
  mostPeers = unsigned(environment("CUDA_EMU_PEERS", 63, 63));
  architecture = unsigned(environment("CUDA_EMU_SM", 90, 129));
  memoryBytes = environment("CUDA_EMU_MEMORY_MB", 4096, 1 << 20) << 20;
  driverVersion = int(environment("CUDA_EMU_DRIVER", 13000, 99999));
  timeoutSeconds = unsigned(environment("CUDA_EMU_TIMEOUT", 60, 86400));
  trace = environment("CUDA_EMU_TRACE", 0, 1);
  if (const char *text = getenv("CUDA_EMU_DROP_WAITS");
      text && *text &&
      (sscanf(text, "%d:%llu:%llu", &dropsWaitsOf, &droppedWait, &waitPeriod) !=
           3 ||
       waitPeriod == 0)) {
    fprintf(stderr, "CUDA emulator: CUDA_EMU_DROP_WAITS=%s is not D:N:P\n",
            text);
    abort();
  }
  isQuiet = environment("CUDA_EMU_QUIET", 0, 1);
  idleMilliseconds = unsigned(environment("CUDA_EMU_IDLE", 0, 60000));
  run.seed = seed;
  run.hostThreads = unsigned(
      environment("CUDA_EMU_THREADS",
                  std::min(2u, std::thread::hardware_concurrency()), 256));
  run.hostThreads = std::max(1u, run.hostThreads);
  run.findRaces = environment("CUDA_EMU_RACECHECK", 1, 1);
  run.checkWritten = environment("CUDA_EMU_INITCHECK", 1, 1);
  run.mostSteps = environment("CUDA_EMU_STEPS", 1000, 1 << 30) * 1000000;
}

State::State() : memory(std::max(1, config.devices), config.memoryBytes) {
  for (int i = 0; i < config.devices; ++i) {
    auto context = std::make_unique<CUctx_st>();
    context->device = i;
    context->reachable = uint64_t(1) << i;
    context->nullStream.device = i;
    context->nullStream.isNull = true;
    contexts.push_back(std::move(context));
  }
  scheduler = std::make_unique<Scheduler>(*this);
  for (const auto &context : contexts)
    scheduler->streams.insert(&context->nullStream);
  // "N" or "N:error".
  if (const char *text = getenv("CUDA_EMU_FAIL")) {
    failAtCall = strtoull(text, nullptr, 10);
    if (const char *colon = strchr(text, ':'))
      failWith = atoi(colon + 1);
  }
  atexit(writeCounts);
  // It ends with the process, as the state does.
  if (config.idleMilliseconds)
    std::thread([this] { runWhereNobodyAsks(); }).detach();
}

/// Most tests want nothing to run before it is asked for. But a process may
/// wait for another one, which waits for what this one's GPUs have to do.
void State::runWhereNobodyAsks() {
  const auto pause = std::chrono::milliseconds(config.idleMilliseconds);
  while (true) {
    const uint64_t before = counts.calls;
    std::this_thread::sleep_for(pause);
    std::unique_lock lock(mutex);
    while (counts.calls == before && scheduler->runOldest(lock)) {
    }
  }
}

State &State::get() {
  // Never destroyed: programs call the driver from destructors of statics.
  static State *state = new State;
  return *state;
}

void State::report(const Fault &fault) {
  std::lock_guard guard(errorMutex);
  // The error of a broken context comes back with every call.
  if (lastErrorText == fault.what())
    return;
  lastErrorText = fault.what();
  if (!config.isQuiet)
    fprintf(stderr, "CUDA emulator: error %d: %s\n", fault.code, fault.what());
}

std::string State::lastError() const {
  std::lock_guard guard(errorMutex);
  return lastErrorText;
}

void State::breakContext(int device, const Fault &fault) {
  CUctx_st &context = *contexts[size_t(device)];
  if (context.broken)
    return;
  // The driver finds a wrong address of a queued operation only when it runs.
  context.broken = fault.code == InvalidValue ? IllegalAddress : fault.code;
  context.brokenText = fault.what();
  report(fault);
}

uint64_t State::count(std::string_view name) {
  if (name.starts_with("waits-")) {
    const size_t device = size_t(atoi(name.data() + 6));
    std::lock_guard guard(mutex);
    return device < contexts.size() ? contexts[device]->waits : 0;
  }
  if (name == "calls")
    return counts.calls;
  if (name == "launches")
    return counts.launches;
  if (name == "allocations")
    return counts.allocations;
  if (name == "synchronisations")
    return counts.synchronisations;
  if (name == "lane-instructions")
    return counts.laneInstructions;
  if (name == "peer-copies")
    return counts.peerCopies;
  if (name == "staged-copies")
    return counts.stagedCopies;
  if (name == "live-allocations")
    return memory.liveAllocations();
  std::lock_guard guard(mutex);
  if (name == "live-streams")
    return scheduler->streams.size() - contexts.size();
  if (name == "live-events")
    return scheduler->events.size();
  if (name == "live-modules")
    return modules.size();
  if (name == "live-graphs")
    return graphs.size() + graphExecs.size();
  return ~uint64_t(0);
}

CUcontext &gpuemu::currentContext() {
  static thread_local CUcontext context = nullptr;
  return context;
}

CUstreamCaptureMode &gpuemu::threadCaptureMode() {
  static thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

CUresult gpuemu::beginCall(State &state, const char *name, Needs needs,
                           Kind kind, bool &runs) {
  uint64_t number = ++state.counts.calls;
  if (state.config.trace)
    fprintf(stderr, "CUDA emulator: call %llu: %s\n",
            static_cast<unsigned long long>(number), name);
  auto end = [&](CUresult result) {
    runs = runs && kind == Kind::Releases;
    return result;
  };
  if (needs != Needs::Nothing && !state.isInitialised) {
    runs = false;
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  if (needs == Needs::Context && !currentContext()) {
    runs = false;
    state.report(Fault(CUDA_ERROR_INVALID_CONTEXT,
                       std::string(name) + ": the thread has no context"));
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (state.failAtCall && number == state.failAtCall) {
    int error = state.failWith          ? state.failWith
                : kind == Kind::Creates ? int(CUDA_ERROR_OUT_OF_MEMORY)
                                        : int(CUDA_ERROR_LAUNCH_FAILED);
    Fault fault(error, std::string("call ") + std::to_string(number) + ", of " +
                           name + ", was made to fail");
    if (error == CUDA_ERROR_LAUNCH_FAILED && needs == Needs::Context)
      state.breakContext(currentContext()->device, fault);
    else
      state.report(fault);
    return end(CUresult(error));
  }
  if (needs == Needs::Context && currentContext()->broken)
    return end(CUresult(currentContext()->broken));
  return CUDA_SUCCESS;
}

CUstream_st &gpuemu::streamOf(State &state, CUstream stream) {
  // CU_STREAM_LEGACY is the null stream by another name.
  if (!stream || stream == reinterpret_cast<CUstream>(1))
    return currentContext()->nullStream;
  if (stream == reinterpret_cast<CUstream>(2))
    throw Fault(CUDA_ERROR_NOT_SUPPORTED,
                "the emulator has no default stream for each thread");
  if (!state.scheduler->streams.count(stream))
    throw Fault(CUDA_ERROR_INVALID_HANDLE, "there is no such stream");
  return *stream;
}

void gpuemu::checkNotCapturing(State &state) {
  if (threadCaptureMode() == CU_STREAM_CAPTURE_MODE_RELAXED)
    return;
  uint64_t thread = std::hash<std::thread::id>()(std::this_thread::get_id());
  for (CUstream_st *stream : state.scheduler->streams) {
    Capture *capture = stream->capture.get();
    bool forbids = capture && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
                   (capture->thread == thread ||
                    (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                     threadCaptureMode() == CU_STREAM_CAPTURE_MODE_GLOBAL));
    if (!forbids)
      continue;
    capture->isInvalid = true;
    throw Fault(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "a call that may not be made while a stream is captured");
  }
}

uint64_t cuEmuCount(const char *name) { return State::get().count(name); }

void cuEmuFail(uint64_t calls, int error) {
  State &state = State::get();
  std::lock_guard guard(state.mutex);
  state.failAtCall = calls ? state.counts.calls + calls : 0;
  state.failWith = error;
}

void cuEmuSeed(uint64_t seed) {
  State &state = State::get();
  std::lock_guard guard(state.mutex);
  state.config.seed = state.config.run.seed = seed;
  state.scheduler->reseed(seed);
}

const char *cuEmuLastError() {
  static thread_local std::string text;
  text = State::get().lastError();
  return text.c_str();
}

void cuEmuAdvance(CUstream stream) {
  State &state = State::get();
  std::unique_lock lock(state.mutex);
  state.scheduler->runStream(lock, stream);
}

int cuEmuDevice(CUstream stream) {
  State &state = State::get();
  std::lock_guard guard(state.mutex);
  try {
    return streamOf(state, stream).device;
  } catch (const Fault &) {
    return -1;
  }
}

void *cuEmuBytes(uint64_t address, size_t bytes, int access) {
  State &state = State::get();
  try {
    Bytes found =
        deviceBytes(state.memory, address, bytes, "a stand-in's access");
    if ((access & 1) && state.config.run.checkWritten &&
        firstUnwritten(found.written, bytes) != bytes) {
      state.report(Fault(LaunchFailed, "a stand-in reads device memory that "
                                       "nothing wrote"));
      return nullptr;
    }
    if ((access & 2) && found.written)
      memset(found.written, 1, bytes);
    return found.data;
  } catch (const Fault &fault) {
    state.report(fault);
    return nullptr;
  }
}

int cuEmuEnqueue(CUstream stream, const CuEmuOperation *given) {
  return call("cuEmuEnqueue", [&](State &state, auto &) {
    // `drop` runs when the last copy of the operation goes.
    std::shared_ptr<const CuEmuOperation> kept(
        new CuEmuOperation(*given), [](const CuEmuOperation *operation) {
          if (operation->drop)
            operation->drop(operation->data);
          delete operation;
        });
    Operation operation;
    operation.name = given->name;
    if (given->ready)
      operation.ready = [kept] { return kept->ready(kept->data) != 0; };
    operation.run = [kept] {
      if (const char *wrong = kept->run(kept->data))
        throw Fault(LaunchFailed, std::string(kept->name) + ": " + wrong);
      return true;
    };
    state.scheduler->enqueue(streamOf(state, stream), std::move(operation));
    return CUDA_SUCCESS;
  });
}
