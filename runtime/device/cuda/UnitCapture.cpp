//===- UnitCapture.cpp - Units as CUDA graphs -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/UnitCapture.h"

#include "runtime/abi/Text.h"

#include <algorithm>

namespace partita::runtime::cuda {
namespace {

/// Whether a call says that what was enqueued cannot be captured.
bool refusesCapture(Result result) {
  return result >= Result::stream_capture_unsupported &&
         result <= Result::stream_capture_wrong_thread;
}

} // namespace

/// Records what the unit enqueues. `obstacle`: why that is not possible.
Status UnitCapture::record(CudaInstance &unit, Graph &graph,
                           std::string &obstacle) {
  if (!recorder.get())
    recorder = PARTITA_TRY(createStream(gpu));
  // Other threads load devices meanwhile, and may allocate.
  PARTITA_TRY(gpu->api.check(
      gpu->api.streamBeginCapture(recorder.get(), CaptureMode::of_thread),
      "its capture cannot begin"));
  Status enqueued;
  const char *last_call = nullptr;
  bool in_library = false;
  for (size_t i = 0; i < unit.size() && enqueued.ok(); ++i) {
    in_library = unit.isCall(i);
    if (in_library)
      last_call = unit.label(i);
    enqueued = unit.enqueue(*gpu, i, recorder.get());
  }
  GraphHandle handle = nullptr;
  const Result ended = gpu->api.streamEndCapture(recorder.get(), &handle);
  if (ended == Result::success)
    graph = Graph(gpu, handle);
  // What a library cannot do in a capture it may do without one.
  if (!enqueued.ok() && in_library &&
      (ended == Result::success || refusesCapture(ended)))
    obstacle = enqueued.message();
  // The call itself may not have told.
  else if (refusesCapture(ended))
    obstacle =
        gpu->api
            .error(ended,
                   "'" + std::string(last_call ? last_call : unit.label(0)) +
                       "' cannot be captured")
            .message();
  if (!obstacle.empty())
    return Status();
  return enqueued.ok() ? gpu->api.check(ended, "its capture cannot end")
                       : enqueued;
}

/// The unit's frames are at the place that is captured. `obstacle`: why there
/// is no graph, without an error.
Status UnitCapture::make(CudaInstance &unit, StreamHandle stream,
                         GraphExec &made, std::string &obstacle) {
  const Api &api = gpu->api;
  GraphExec captured;
  Graph graph;
  PARTITA_TRY(record(unit, graph, obstacle));
  if (!obstacle.empty())
    return Status();
  GraphExecHandle handle = nullptr;
  Result result = api.graphInstantiate(&handle, graph.get(), 0);
  if (result == Result::success) {
    captured = GraphExec(gpu, handle);
    result = api.graphUpload(handle, stream);
  }
  // The graphs are beside the plan's memory.
  if (result == Result::out_of_memory)
    obstacle = gpu->name() + " has no memory left for its graphs";
  else if (result != Result::success)
    return api.error(result, "the graph cannot be brought to " + gpu->name());
  else
    made = std::move(captured);
  return Status();
}

/// The driver loads a library's kernels when they are first used. In a step
/// that could wait until the GPU is idle, while a kernel of NCCL waits for a
/// device that waits for this one. A capture uses them, and runs nothing.
Status UnitCapture::loadCalls(CudaInstance &unit) {
  bool calls = false;
  for (size_t i = 0; i < unit.size(); ++i)
    calls |= unit.isCall(i);
  if (!calls)
    return Status();
  unit.useMicroBatch(0);
  Graph graph;
  std::string obstacle;
  return within("unit '" + unit.name +
                    "' cannot be captured to load what it calls "
                    "(--no-graphs does without): ",
                record(unit, graph, obstacle));
}

/// Why a unit may not have so many graphs; empty: it may.
std::string UnitCapture::limit(size_t pieces, size_t places) const {
  if (places > kMostPlaces)
    return "its frames have " + std::to_string(places) +
           " places, and a unit has " + std::to_string(kMostPlaces) +
           " graphs at most";
  if (captured_pieces + pieces * places > kMostPieces)
    return "the graphs of a device have " + std::to_string(kMostPieces) +
           " kernels, copies and calls at most";
  return "";
}

Status UnitCapture::capture(CudaInstance &unit, int micro_batches,
                            StreamHandle stream) {
  if (unit.size() < 2)
    return loadCalls(unit);
  const size_t places =
      std::min(unit.places(), static_cast<size_t>(micro_batches));
  std::string obstacle = limit(unit.size(), places);
  if (!obstacle.empty())
    PARTITA_TRY(loadCalls(unit));
  std::vector<GraphExec> graphs;
  while (graphs.size() < places && obstacle.empty()) {
    unit.useMicroBatch(static_cast<int>(graphs.size()));
    PARTITA_TRY(within("unit '" + unit.name +
                           "' cannot become a CUDA graph "
                           "(--no-graphs does without): ",
                       make(unit, stream, graphs.emplace_back(), obstacle)));
  }
  if (obstacle.empty()) {
    captured_pieces += unit.size() * places;
    unit.setGraphs(std::move(graphs));
  } else if (left++ == 0) {
    first_left = "'" + unit.name + "', because " + obstacle;
  }
  return Status();
}

std::string UnitCapture::remark() const {
  if (left == 0)
    return "";
  return abi::countOf(static_cast<int64_t>(left), "unit") +
         " with several kernels or calls " + (left > 1 ? "are" : "is") +
         " not launched as one CUDA graph: " + first_left +
         (left > 1 ? "; and others" : "");
}

} // namespace partita::runtime::cuda
