//===- Stream.cpp - Queues of operations that run late ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/Stream.h"

#include "driver/State.h"
#include "machine/Error.h"

#include <algorithm>
#include <cfenv>
#include <chrono>

using namespace gpuemu;

namespace {

/// What a GPU computes neither depends on the floating-point mode of the thread
/// that asks it, nor leaves flags there.
class DefaultFloats {
public:
  DefaultFloats() {
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { fesetenv(&before); }
  DefaultFloats(const DefaultFloats &) = delete;

private:
  fenv_t before;
};

} // namespace

Scheduler::Scheduler(State &state) : state(state), random(state.config.seed) {}

size_t Scheduler::draw(size_t bound) {
  return state.config.seed ? size_t(random() % bound) : 0;
}

void Scheduler::enqueue(CUstream_st &stream, Operation operation) {
  if (stream.capture) {
    Capture &capture = *stream.capture;
    if (capture.isInvalid)
      throw Fault(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                  "the capture of the stream is invalid");
    capture.graph.nodes.push_back({std::move(operation), stream.tails});
    stream.tails.assign(1, capture.graph.nodes.size() - 1);
    return;
  }
  checkNotImplicit(stream);
  operation.number = ++operations;
  if (state.config.trace)
    fprintf(stderr, "CUDA emulator: %llu queued: %s\n",
            static_cast<unsigned long long>(operation.number),
            operation.name.c_str());
  stream.queue.push_back(std::move(operation));
  changed.notify_all();
}

/// The null stream would have to wait for what a blocking stream only notes.
void Scheduler::checkNotImplicit(const CUstream_st &stream) {
  for (CUstream_st *other : streams)
    if (stream.isNull && other->capture && other->device == stream.device &&
        !(other->flags & CU_STREAM_NON_BLOCKING)) {
      other->capture->isInvalid = true;
      throw Fault(
          CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
          "work of the null stream while a blocking stream is captured");
    }
}

bool Scheduler::isIdle(int device) const {
  return std::all_of(streams.begin(), streams.end(), [&](CUstream_st *stream) {
    return stream->device != device || isIdle(*stream);
  });
}

/// The null stream and the blocking ones keep the order of their operations.
bool Scheduler::waitsForNullStream(const CUstream_st &stream,
                                   uint64_t number) const {
  if (stream.flags & CU_STREAM_NON_BLOCKING)
    return false;
  return std::any_of(streams.begin(), streams.end(), [&](CUstream_st *other) {
    return other != &stream && other->device == stream.device &&
           (stream.isNull || other->isNull) &&
           !(other->flags & CU_STREAM_NON_BLOCKING) && !other->queue.empty() &&
           other->queue.front().number < number;
  });
}

bool Scheduler::canRun(CUstream_st &stream) {
  if (stream.running || stream.queue.empty())
    return false;
  const Operation &operation = stream.queue.front();
  bool broken = state.contexts[size_t(stream.device)]->broken;
  return !waitsForNullStream(stream, operation.number) &&
         (broken || !operation.ready || operation.ready());
}

CUstream_st *Scheduler::choose(Policy policy) {
  std::vector<CUstream_st *> able;
  for (CUstream_st *stream : streams)
    if (canRun(*stream))
      able.push_back(stream);
  if (able.empty())
    return nullptr;
  // The set orders by address: the draw must not depend on it.
  std::sort(able.begin(), able.end(), [](CUstream_st *a, CUstream_st *b) {
    return a->queue.front().number < b->queue.front().number;
  });
  switch (policy) {
  case Policy::Oldest:
    return able.front();
  case Policy::Newest:
    return able.back();
  case Policy::Stubborn:
    if (std::find(able.begin(), able.end(), favourite) == able.end())
      favourite = able[draw(able.size())];
    return favourite;
  case Policy::Random:
    break;
  }
  return able[draw(able.size())];
}

bool Scheduler::runOne(Lock &lock, Policy policy) {
  CUstream_st *stream = choose(policy);
  if (!stream)
    return false;
  runFront(lock, stream);
  return true;
}

void Scheduler::runStream(Lock &lock, CUstream_st *stream) {
  while (streams.count(stream) && canRun(*stream))
    runFront(lock, stream);
}

void Scheduler::runFront(Lock &lock, CUstream_st *stream) {
  // The front stays where it is while it runs: deques keep it in place.
  Operation &operation = stream->queue.front();
  CUctx_st &context = *state.contexts[size_t(stream->device)];
  bool finished = true;
  if (state.config.trace)
    fprintf(stderr, "CUDA emulator: %llu runs: %s\n",
            static_cast<unsigned long long>(operation.number),
            operation.name.c_str());
  if (operation.note) {
    operation.note();
  } else if (!context.broken) {
    stream->running = true;
    lock.unlock();
    std::unique_ptr<Fault> fault;
    try {
      DefaultFloats floats;
      finished = operation.run();
    } catch (const Fault &thrown) {
      fault = std::make_unique<Fault>(thrown);
    }
    lock.lock();
    stream->running = false;
    if (fault) {
      finished = true;
      state.breakContext(stream->device, *fault);
    }
  }
  if (finished)
    stream->queue.pop_front();
  ++completed;
  changed.notify_all();
}

void Scheduler::runUntil(Lock &lock, int device,
                         const std::function<bool()> &done) {
  using Clock = std::chrono::steady_clock;
  Policy policy = state.config.seed ? Policy(draw(4)) : Policy::Oldest;
  favourite = nullptr;
  auto limit = std::chrono::seconds(state.config.timeoutSeconds);
  auto lastChange = Clock::now();
  uint64_t seen = completed;
  CUctx_st &context = *state.contexts[size_t(device)];
  while (!context.broken && !done()) {
    if (runOne(lock, policy)) {
      lastChange = Clock::now();
      continue;
    }
    changed.wait_for(lock, std::chrono::milliseconds(20));
    if (seen != completed ||
        std::any_of(streams.begin(), streams.end(),
                    [](CUstream_st *stream) { return stream->running; })) {
      seen = completed;
      lastChange = Clock::now();
    }
    if (Clock::now() - lastChange > limit) {
      std::string what = "nothing can run for " +
                         std::to_string(state.config.timeoutSeconds) +
                         " seconds; what waits:";
      for (CUstream_st *stream : streams)
        if (!stream->queue.empty())
          what += " " + stream->queue.front().name + ";";
      state.breakContext(device, Fault(LaunchTimeout, what));
    }
  }
  if (context.broken)
    throw Fault(context.broken, context.brokenText);
}

void Scheduler::runSome(Lock &lock) {
  // A query may find that nothing has happened yet.
  size_t count = state.config.seed ? draw(4) : 1;
  for (size_t i = 0; i < count; ++i)
    if (!runOne(lock, state.config.seed ? Policy::Random : Policy::Oldest))
      break;
}

Operation gpuemu::graphOperation(Scheduler &scheduler,
                                 std::shared_ptr<const Graph> graph,
                                 std::shared_ptr<GraphTurns> turns) {
  struct Progress {
    std::vector<char> done;
    size_t left = 0, next = 0;
  };
  auto progress = std::make_shared<Progress>();
  progress->done.resize(graph->nodes.size());
  progress->left = graph->nodes.size();
  Operation result;
  result.name = "a graph of " + std::to_string(graph->nodes.size()) + " nodes";
  const uint64_t turn = turns->launched++;
  result.ready = [progress, graph, turns, turn, &scheduler] {
    if (turns->done != turn)
      return false;
    if (progress->left == 0)
      return true;
    std::vector<size_t> able;
    for (size_t i = 0; i < graph->nodes.size(); ++i) {
      const Node &node = graph->nodes[i];
      bool ready = !progress->done[i] &&
                   std::all_of(node.after.begin(), node.after.end(),
                               [&](size_t j) { return progress->done[j]; }) &&
                   (!node.operation.ready || node.operation.ready());
      if (ready)
        able.push_back(i);
    }
    if (able.empty())
      return false;
    progress->next = able[scheduler.draw(able.size())];
    return true;
  };
  result.run = [progress, graph, turns] {
    if (progress->left != 0) {
      graph->nodes[progress->next].operation.run();
      progress->done[progress->next] = 1;
      --progress->left;
    }
    if (progress->left != 0)
      return false;
    ++turns->done;
    return true;
  };
  return result;
}

void gpuemu::endCapture(Scheduler &scheduler, Capture &capture) {
  capture.isOver = true;
  for (CUstream_st *stream : scheduler.streams)
    if (stream->capture.get() == &capture) {
      stream->tails.clear();
      stream->capture.reset();
    }
}
