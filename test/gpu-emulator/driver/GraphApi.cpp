//===- GraphApi.cpp - Captures and graphs -----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/State.h"

#include <algorithm>
#include <thread>

using namespace gpuemu;

struct CUgraph_st {
  std::shared_ptr<const Graph> graph;
};
struct CUgraphExec_st {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<GraphTurns> turns = std::make_shared<GraphTurns>();
};

namespace {

uint64_t thisThread() {
  return std::hash<std::thread::id>()(std::this_thread::get_id());
}

/// Whether every node is one of `tails` or comes before one of them.
bool allJoined(const Graph &graph, const std::vector<size_t> &tails) {
  std::vector<char> reached(graph.nodes.size());
  for (size_t tail : tails)
    reached[tail] = 1;
  for (size_t i = graph.nodes.size(); i-- > 0;)
    if (reached[i])
      for (size_t before : graph.nodes[i].after)
        reached[before] = 1;
  return std::all_of(reached.begin(), reached.end(),
                     [](char each) { return each; });
}

} // namespace

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  return call("cuStreamBeginCapture", [&](State &state, auto &) -> CUresult {
    CUstream_st &stream = streamOf(state, handle);
    if (stream.isNull)
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream.capture)
      return CUDA_ERROR_INVALID_VALUE;
    stream.capture = std::make_shared<Capture>();
    stream.capture->origin = &stream;
    stream.capture->mode = mode;
    stream.capture->thread = thisThread();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  return call("cuStreamEndCapture", [&](State &state, auto &) -> CUresult {
    CUstream_st &stream = streamOf(state, handle);
    if (graph)
      *graph = nullptr;
    std::shared_ptr<Capture> capture = stream.capture;
    if (!capture || !graph)
      return CUDA_ERROR_INVALID_VALUE;
    if (capture->origin != &stream)
      return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        capture->thread != thisThread())
      return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    std::vector<size_t> tails = stream.tails;
    endCapture(*state.scheduler, *capture);
    if (capture->isInvalid)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!allJoined(capture->graph, tails))
      throw Fault(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                  "work of another stream is in the capture, and the stream "
                  "that is captured does not wait for it");
    auto result = std::make_unique<CUgraph_st>();
    result->graph = std::make_shared<Graph>(std::move(capture->graph));
    *graph = result.release();
    state.graphs.insert(*graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
  return call("cuStreamIsCapturing", [&](State &state, auto &) {
    const Capture *capture = streamOf(state, handle).capture.get();
    *status = !capture             ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->isInvalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  return call("cuThreadExchangeStreamCaptureMode", Needs::Driver, Kind::Other,
              [&](State &, auto &) {
                std::swap(*mode, threadCaptureMode());
                return CUDA_SUCCESS;
              });
}

CUresult cuGraphCreate(CUgraph *graph, unsigned flags) {
  return call("cuGraphCreate", Needs::Context, Kind::Creates,
              [&](State &state, auto &) -> CUresult {
                if (!graph || flags)
                  return CUDA_ERROR_INVALID_VALUE;
                *graph = new CUgraph_st{std::make_shared<Graph>()};
                state.graphs.insert(*graph);
                return CUDA_SUCCESS;
              });
}

CUresult cuGraphDestroy(CUgraph graph) {
  return call("cuGraphDestroy", Needs::Context, Kind::Releases,
              [&](State &state, auto &) -> CUresult {
                if (!state.graphs.erase(graph))
                  return CUDA_ERROR_INVALID_VALUE;
                delete graph;
                return CUDA_SUCCESS;
              });
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  return call("cuGraphGetNodes", [&](State &state, auto &) -> CUresult {
    if (!state.graphs.count(graph) || !count)
      return CUDA_ERROR_INVALID_VALUE;
    if (nodes)
      return CUDA_ERROR_NOT_SUPPORTED;
    *count = graph->graph->nodes.size();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                     unsigned long long) {
  return call("cuGraphInstantiate", Needs::Context, Kind::Creates,
              [&](State &state, auto &) -> CUresult {
                if (!exec || !state.graphs.count(graph))
                  return CUDA_ERROR_INVALID_VALUE;
                auto result = std::make_unique<CUgraphExec_st>();
                result->graph = graph->graph;
                *exec = result.release();
                state.graphExecs.insert(*exec);
                return CUDA_SUCCESS;
              });
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return call("cuGraphUpload", [&](State &state, auto &) -> CUresult {
    if (streamOf(state, stream).capture)
      throw Fault(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                  "a graph is not uploaded by a stream that is captured");
    return state.graphExecs.count(exec) ? CUDA_SUCCESS
                                        : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle) {
  return call("cuGraphLaunch", [&](State &state, auto &) -> CUresult {
    if (!state.graphExecs.count(exec))
      return CUDA_ERROR_INVALID_VALUE;
    CUstream_st &stream = streamOf(state, handle);
    if (stream.capture)
      throw Fault(CUDA_ERROR_NOT_SUPPORTED,
                  "the emulator does not capture launches of graphs");
    state.scheduler->enqueue(
        stream, graphOperation(*state.scheduler, exec->graph, exec->turns));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return call("cuGraphExecDestroy", Needs::Context, Kind::Releases,
              [&](State &state, auto &) -> CUresult {
                if (!state.graphExecs.erase(exec))
                  return CUDA_ERROR_INVALID_VALUE;
                delete exec;
                return CUDA_SUCCESS;
              });
}
