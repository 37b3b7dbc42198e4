//===- State.h - What the emulated driver knows -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_DRIVER_STATE_H
#define PARTITA_TEST_GPUEMULATOR_DRIVER_STATE_H

#include "driver/Cuda.h"
#include "driver/Stream.h"
#include "machine/Interpreter.h"
#include "machine/Memory.h"

#include <atomic>
#include <set>
#include <string>
#include <vector>

namespace gpuemu {

/// The environment's switches: see README.md.
struct Config {
  Config();
  uint64_t seed = 0;
  int devices = 1;
  /// Which GPUs of the machine they are, as a container or a batch system
  /// shows them to a process.
  std::vector<int> gpus;
  /// How many others a device may reach at the same time; 0: there is no way.
  unsigned mostPeers = 63;
  unsigned architecture = 90;
  uint64_t memoryBytes = uint64_t(4) << 30;
  int driverVersion = 13000;
  unsigned timeoutSeconds = 60;
  bool trace = false, isQuiet = false;
  /// Without a call for so long, operations run by themselves; 0: never.
  unsigned idleMilliseconds = 0;
  /// Of the waits of a device, that which is at this place of each period is
  /// left out.
  int dropsWaitsOf = -1;
  unsigned long long droppedWait = 0, waitPeriod = 1;
  RunOptions run;
};

struct Counts {
  std::atomic<uint64_t> calls = 0, launches = 0, allocations = 0,
                        synchronisations = 0, laneInstructions = 0,
                        peerCopies = 0, stagedCopies = 0;
};

} // namespace gpuemu

struct CUctx_st {
  int device = 0;
  unsigned retained = 0;
  /// The error that broke the context, as a CUresult.
  int broken = 0;
  std::string brokenText;
  /// A bit for each device whose memory kernels may reach.
  uint64_t reachable = 0;
  /// How often its streams were told to wait for an event.
  uint64_t waits = 0;
  CUstream_st nullStream;
};

namespace gpuemu {

struct State {
  static State &get();

  Config config;
  std::mutex mutex;
  Memory memory;
  Counts counts;
  std::vector<std::unique_ptr<CUctx_st>> contexts;
  std::unique_ptr<Scheduler> scheduler;
  std::set<CUmod_st *> modules;
  std::set<CUgraph_st *> graphs;
  std::set<CUgraphExec_st *> graphExecs;
  bool isInitialised = false;
  uint64_t failAtCall = 0;
  int failWith = 0;
  uint64_t launchNumber = 0;

  /// Notes a fault in the log, and as the last error.
  void report(const Fault &fault);
  std::string lastError() const;
  /// A fault of an operation breaks the device's context for good.
  void breakContext(int device, const Fault &fault);
  uint64_t count(std::string_view name);

private:
  State();
  void runWhereNobodyAsks();
  mutable std::mutex errorMutex;
  std::string lastErrorText;
};

/// The context of the calling thread.
CUcontext &currentContext();
/// For the calls that a stream's capture forbids to this thread.
CUstreamCaptureMode &threadCaptureMode();

enum class Needs : uint8_t { Nothing, Driver, Context };
/// What a failing call leaves behind: nothing; or the call still gives back
/// what it is to give back.
enum class Kind : uint8_t { Other, Creates, Releases };

/// Starts a call: trace, injected errors, whether there is a context. Returns
/// the error that the call ends with; `runs` tells whether it does its work.
CUresult beginCall(State &state, const char *name, Needs needs, Kind kind,
                   bool &runs);

/// The body of a driver function. `f(state, lock)` returns a CUresult or throws
/// a Fault.
template <typename F>
CUresult call(const char *name, Needs needs, Kind kind, F f) {
  State &state = State::get();
  std::unique_lock lock(state.mutex);
  bool runs = true;
  CUresult begun = beginCall(state, name, needs, kind, runs);
  if (!runs)
    return begun;
  try {
    CUresult result = f(state, lock);
    return begun ? begun : result;
  } catch (const Fault &fault) {
    state.report(fault);
    return begun ? begun : CUresult(fault.code);
  }
}
template <typename F> CUresult call(const char *name, F f) {
  return call(name, Needs::Context, Kind::Other, f);
}

/// The stream of a handle; the null stream of the current context for null.
CUstream_st &streamOf(State &state, CUstream stream);
/// Fails where a capture forbids the call.
void checkNotCapturing(State &state);

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_DRIVER_STATE_H
