//===- Stream.h - Queues of operations that run late ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Nothing runs before the host waits or asks. What runs then is drawn from the
// seed, so that an order which nobody asked for does not come about by itself.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_DRIVER_STREAM_H
#define PARTITA_TEST_GPUEMULATOR_DRIVER_STREAM_H

#include "driver/Cuda.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace gpuemu {

struct State;

struct Operation {
  std::string name;
  /// Whether it can run; asked with the lock held. Empty: always.
  std::function<bool()> ready;
  /// Runs without the lock. False: there is more of it to run later.
  std::function<bool()> run;
  /// Runs with the lock held instead, also where the context is broken.
  std::function<void()> note;
  /// Its place among all operations.
  uint64_t number = 0;
};

/// A node of a graph is an operation that can run again and again.
struct Node {
  Operation operation;
  std::vector<size_t> after;
};
struct Graph {
  std::vector<Node> nodes;
};
/// Launches of one executable graph follow one another, in the order in which
/// they were asked for.
struct GraphTurns {
  uint64_t launched = 0;
  std::atomic<uint64_t> done = 0; ///< counted without the lock
};

struct Capture {
  Graph graph;
  CUstream_st *origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  uint64_t thread = 0;
  bool isInvalid = false, isOver = false;
};

} // namespace gpuemu

struct CUstream_st {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  /// The stream that waits for all blocking ones, and they for it.
  bool isNull = false;
  bool running = false;
  std::deque<gpuemu::Operation> queue;
  std::shared_ptr<gpuemu::Capture> capture;
  /// Nodes of the capture that the next one comes after.
  std::vector<size_t> tails;
};

namespace gpuemu {

struct EventState {
  int device = 0;
  bool hasTime = true;
  /// How often it was recorded, and which record was reached last.
  uint64_t recorded = 0, reached = 0;
  double milliseconds = 0;
  std::shared_ptr<Capture> capture;
  std::vector<size_t> tails;
};

} // namespace gpuemu

struct CUevent_st {
  std::shared_ptr<gpuemu::EventState> state;
};

namespace gpuemu {

class Scheduler {
public:
  explicit Scheduler(State &state);

  std::set<CUstream_st *> streams;
  std::set<CUevent_st *> events;

  /// Adds an operation to a stream, or to the graph that captures it.
  void enqueue(CUstream_st &stream, Operation operation);

  using Lock = std::unique_lock<std::mutex>;
  /// Runs operations until `done`, or until the context of `device` breaks.
  /// Throws a Fault for the latter, and where nothing happens for too long.
  void runUntil(Lock &lock, int device, const std::function<bool()> &done);
  /// Runs the few operations that a query lets run.
  void runSome(Lock &lock);
  /// Runs the oldest operation that can run; false if there is none.
  bool runOldest(Lock &lock) { return runOne(lock, Policy::Oldest); }
  /// Runs what one stream can run.
  void runStream(Lock &lock, CUstream_st *stream);
  bool isIdle(const CUstream_st &stream) const {
    return stream.queue.empty() && !stream.running;
  }
  bool isIdle(int device) const;
  /// Draws in another way from now on.
  void reseed(uint64_t seed) { random.seed(seed); }
  /// A number below `bound`, from the seed.
  size_t draw(size_t bound);

private:
  enum class Policy : uint8_t { Oldest, Random, Newest, Stubborn };

  void checkNotImplicit(const CUstream_st &stream);
  bool canRun(CUstream_st &stream);
  CUstream_st *choose(Policy policy);
  /// Runs one operation; false if none can run.
  bool runOne(Lock &lock, Policy policy);
  /// Runs the operation at the front.
  void runFront(Lock &lock, CUstream_st *stream);
  bool waitsForNullStream(const CUstream_st &stream, uint64_t number) const;

  State &state;
  std::condition_variable changed;
  std::mt19937_64 random;
  uint64_t operations = 0;
  uint64_t completed = 0;
  CUstream_st *favourite = nullptr;
};

/// The operation that runs a graph, a node at a time, in an order drawn from
/// the seed. It waits for the launches of the graph before it.
Operation graphOperation(Scheduler &scheduler,
                         std::shared_ptr<const Graph> graph,
                         std::shared_ptr<GraphTurns> turns);

/// Takes all streams out of a capture.
void endCapture(Scheduler &scheduler, Capture &capture);

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_DRIVER_STREAM_H
