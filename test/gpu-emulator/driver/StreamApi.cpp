//===- StreamApi.cpp - Streams and events -----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/State.h"

#include <chrono>

using namespace gpuemu;

namespace {

EventState &stateOf(State &state, CUevent event) {
  if (!state.scheduler->events.count(event))
    throw Fault(CUDA_ERROR_INVALID_HANDLE, "there is no such event");
  return *event->state;
}

double now() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch())
      .count();
}

void checkNotCaptured(const EventState &event) {
  if (event.capture && !event.capture->isOver) {
    event.capture->isInvalid = true;
    throw Fault(CUDA_ERROR_CAPTURED_EVENT,
                "the event was recorded in a stream that is being captured");
  }
}

void checkNotCaptured(const CUstream_st &stream) {
  if (stream.capture) {
    stream.capture->isInvalid = true;
    throw Fault(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "the stream is being captured");
  }
}

CUresult createStream(const char *name, CUstream *stream, unsigned flags,
                      int priority) {
  return call(name, Needs::Context, Kind::Creates,
              [&](State &state, auto &) -> CUresult {
                if (!stream || flags > CU_STREAM_NON_BLOCKING)
                  return CUDA_ERROR_INVALID_VALUE;
                auto result = std::make_unique<CUstream_st>();
                result->device = currentContext()->device;
                result->flags = flags;
                result->priority = priority;
                *stream = result.release();
                state.scheduler->streams.insert(*stream);
                return CUDA_SUCCESS;
              });
}

CUresult record(const char *name, CUevent event, CUstream handle) {
  return call(name, [&](State &state, auto &) -> CUresult {
    EventState &recorded = stateOf(state, event);
    CUstream_st &stream = streamOf(state, handle);
    if (recorded.device != stream.device)
      return CUDA_ERROR_INVALID_HANDLE;
    recorded.capture = stream.capture;
    if (stream.capture) {
      recorded.tails = stream.tails;
      return CUDA_SUCCESS;
    }
    uint64_t number = ++recorded.recorded;
    Operation operation;
    operation.name = "an event is recorded";
    operation.note = [kept = event->state, number] {
      kept->reached = number;
      kept->milliseconds = now();
    };
    state.scheduler->enqueue(stream, std::move(operation));
    return CUDA_SUCCESS;
  });
}

CUresult elapsed(const char *name, float *milliseconds, CUevent start,
                 CUevent end) {
  return call(name, [&](State &state, auto &) -> CUresult {
    EventState &first = stateOf(state, start), &last = stateOf(state, end);
    if (!first.hasTime || !last.hasTime || !first.recorded || !last.recorded)
      return CUDA_ERROR_INVALID_HANDLE;
    if (first.reached != first.recorded || last.reached != last.recorded)
      return CUDA_ERROR_NOT_READY;
    *milliseconds = float(last.milliseconds - first.milliseconds);
    return CUDA_SUCCESS;
  });
}

} // namespace

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  return createStream("cuStreamCreate", stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags,
                                    int priority) {
  return createStream("cuStreamCreateWithPriority", stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  return call("cuStreamDestroy", Needs::Context, Kind::Releases,
              [&](State &state, auto &lock) -> CUresult {
                CUstream_st &stream = streamOf(state, handle);
                if (stream.isNull)
                  return CUDA_ERROR_INVALID_HANDLE;
                if (std::shared_ptr<Capture> capture = stream.capture) {
                  capture->isInvalid = true;
                  if (capture->origin == &stream)
                    endCapture(*state.scheduler, *capture);
                }
                CUresult result = CUDA_SUCCESS;
                try {
                  // What is queued still runs.
                  state.scheduler->runUntil(lock, stream.device, [&] {
                    return state.scheduler->isIdle(stream);
                  });
                } catch (const Fault &fault) {
                  result = CUresult(fault.code);
                }
                while (stream.running) {
                  lock.unlock();
                  std::this_thread::yield();
                  lock.lock();
                }
                state.scheduler->streams.erase(&stream);
                delete &stream;
                return result;
              });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return call("cuStreamSynchronize", [&](State &state, auto &lock) {
    CUstream_st &stream = streamOf(state, handle);
    checkNotCaptured(stream);
    ++state.counts.synchronisations;
    state.scheduler->runUntil(lock, stream.device,
                              [&] { return state.scheduler->isIdle(stream); });
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return call("cuStreamQuery", [&](State &state, auto &lock) -> CUresult {
    CUstream_st &stream = streamOf(state, handle);
    checkNotCaptured(stream);
    if (!state.scheduler->isIdle(stream))
      state.scheduler->runSome(lock);
    const CUctx_st &context = *state.contexts[size_t(stream.device)];
    if (context.broken)
      return CUresult(context.broken);
    return state.scheduler->isIdle(stream) ? CUDA_SUCCESS
                                           : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  return call("cuStreamWaitEvent", [&](State &state, auto &) -> CUresult {
    CUstream_st &stream = streamOf(state, handle);
    EventState &awaited = stateOf(state, event);
    bool isCaptured = awaited.capture && !awaited.capture->isOver;
    if (isCaptured) {
      if (stream.capture && stream.capture != awaited.capture) {
        stream.capture->isInvalid = awaited.capture->isInvalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
      }
      // The stream becomes a part of the capture.
      if (!stream.capture) {
        stream.capture = awaited.capture;
        stream.tails.clear();
      }
      stream.tails.insert(stream.tails.end(), awaited.tails.begin(),
                          awaited.tails.end());
      return CUDA_SUCCESS;
    }
    if (awaited.recorded == 0)
      return CUDA_SUCCESS;
    if (stream.capture) {
      stream.capture->isInvalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    const uint64_t number = state.contexts[size_t(stream.device)]->waits++;
    if (stream.device == state.config.dropsWaitsOf &&
        number % state.config.waitPeriod == state.config.droppedWait)
      return CUDA_SUCCESS;
    Operation operation;
    operation.name = "a wait for an event";
    operation.ready = [kept = event->state, number = awaited.recorded] {
      return kept->reached >= number;
    };
    operation.note = [] {};
    state.scheduler->enqueue(stream, std::move(operation));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
  return call("cuStreamGetCtx", [&](State &state, auto &) {
    *context = state.contexts[size_t(streamOf(state, handle).device)].get();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags) {
  return call("cuStreamGetFlags", [&](State &state, auto &) {
    *flags = streamOf(state, handle).flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetPriority(CUstream handle, int *priority) {
  return call("cuStreamGetPriority", [&](State &state, auto &) {
    *priority = streamOf(state, handle).priority;
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *data) {
  return call("cuLaunchHostFunc", [&](State &state, auto &) -> CUresult {
    if (!function)
      return CUDA_ERROR_INVALID_VALUE;
    Operation operation;
    operation.name = "a function of the host";
    operation.run = [function, data] {
      function(data);
      return true;
    };
    state.scheduler->enqueue(streamOf(state, handle), std::move(operation));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  return call("cuEventCreate", Needs::Context, Kind::Creates,
              [&](State &state, auto &) -> CUresult {
                if (!event || flags > 3)
                  return CUDA_ERROR_INVALID_VALUE;
                auto result = std::make_unique<CUevent_st>();
                result->state = std::make_shared<EventState>();
                result->state->device = currentContext()->device;
                result->state->hasTime = !(flags & CU_EVENT_DISABLE_TIMING);
                *event = result.release();
                state.scheduler->events.insert(*event);
                return CUDA_SUCCESS;
              });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return call("cuEventDestroy", Needs::Context, Kind::Releases,
              [&](State &state, auto &) {
                stateOf(state, event);
                state.scheduler->events.erase(event);
                delete event;
                return CUDA_SUCCESS;
              });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return record("cuEventRecord", event, stream);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream,
                                unsigned flags) {
  if (flags)
    return CUDA_ERROR_NOT_SUPPORTED;
  return record("cuEventRecordWithFlags", event, stream);
}

CUresult cuEventQuery(CUevent event) {
  return call("cuEventQuery", [&](State &state, auto &lock) -> CUresult {
    // The event may be destroyed by another thread while operations run.
    stateOf(state, event);
    std::shared_ptr<EventState> kept = event->state;
    checkNotCaptured(*kept);
    uint64_t number = kept->recorded;
    if (kept->reached < number)
      state.scheduler->runSome(lock);
    const CUctx_st &context = *state.contexts[size_t(kept->device)];
    if (context.broken)
      return CUresult(context.broken);
    return kept->reached >= number ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuEventSynchronize(CUevent event) {
  return call("cuEventSynchronize", [&](State &state, auto &lock) {
    stateOf(state, event);
    std::shared_ptr<EventState> kept = event->state;
    checkNotCaptured(*kept);
    ++state.counts.synchronisations;
    uint64_t number = kept->recorded;
    state.scheduler->runUntil(lock, kept->device,
                              [&] { return kept->reached >= number; });
    return CUDA_SUCCESS;
  });
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  return elapsed("cuEventElapsedTime", milliseconds, start, end);
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start,
                               CUevent end) {
  return elapsed("cuEventElapsedTime", milliseconds, start, end);
}
