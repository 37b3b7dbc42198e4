//===- CudaInstance.h - A unit that is ready for launch ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDAINSTANCE_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDAINSTANCE_H

#include "runtime/device/Device.h"
#include "runtime/device/cuda/Gpu.h"
#include "runtime/device/cuda/LibraryCall.h"

#include <array>
#include <variant>

namespace partita::runtime::cuda {

/// What a kernel of the plan needs to be launched.
struct KernelLaunch {
  FunctionHandle function = nullptr;
  std::array<unsigned, 3> blocks = {1, 1, 1};
  unsigned threads = 1, shared_bytes = 0;
};

/// A device's part of rows: see abi::Slice.
struct RowPart {
  int64_t rows = 0;
  int64_t bytes = 0; ///< of a row of the destination
  int64_t pitch = 0; ///< bytes of a row of the source
  int64_t first = 0; ///< where the part begins in a row of the source
  int64_t there = 0; ///< bytes that the source has; what is missing is 0
};

/// The work of a unit, as calls of the driver whose arguments are ready. Only
/// addresses in frames change from one micro-batch to another.
class CudaInstance final : public Instance {
public:
  void move(size_t, uint8_t *) override {} // nothing is movable

  /// The copies of a frame that the unit uses.
  using Copies = std::vector<DeviceAddress>;

  /// An address: of a frame, if `copies` is given, else fixed.
  struct Operand {
    DeviceAddress address = 0;      ///< in the frame, or the whole address
    const Copies *copies = nullptr; ///< of the frame; null: it is fixed
  };

  /// Copies of bytes and of rows have two operands: to, from.
  struct Copy {
    int64_t bytes = 0;
  };
  using Task = std::unique_ptr<LibraryTask>;
  using Work = std::variant<KernelLaunch, Copy, RowPart, Task>;

  void add(Work work, const std::vector<Operand> &operands, const char *label);
  /// Call once, after the last `add`. Prepares what depends on addresses,
  /// for all copies of frames.
  Status finish();

  size_t size() const { return pieces.size(); }
  /// Whether a piece is a call of a library.
  bool isCall(size_t piece) const {
    return std::holds_alternative<Task>(pieces[piece].work);
  }
  const char *label(size_t piece) const { return pieces[piece].label; }

  /// Moves addresses in frames to the copies of a micro-batch. What was
  /// enqueued before keeps its own.
  void useMicroBatch(int micro_batch);
  /// Enqueues a piece of work. An error names it.
  Status enqueue(const Gpu &gpu, size_t piece, StreamHandle stream);

  /// How many places its frames have: micro-batches 0 and `places()` share one.
  size_t places() const { return place_count; }
  /// Gives the unit graphs that do what all pieces do, by place.
  void setGraphs(std::vector<GraphExec> made) { graphs = std::move(made); }
  /// The graph for a micro-batch; null: its pieces are enqueued one by one.
  GraphExecHandle graph(int micro_batch) const {
    const size_t place = static_cast<size_t>(micro_batch) % place_count;
    return place < graphs.size() ? graphs[place].get() : nullptr;
  }
  /// Does not give its graphs back: they may still be at work.
  void abandonGraphs() {
    for (GraphExec &graph : graphs)
      graph.abandon();
  }

  std::string name; ///< of the unit, for messages

private:
  struct Piece {
    Work work;
    const char *label;
    size_t first; ///< of its operands
  };
  struct FrameOperand {
    size_t operand;
    DeviceAddress offset;
    const Copies *copies;
  };

  Status atPiece(const Piece &piece, const Status &status) const;
  Result launch(const Gpu &gpu, const Piece &piece, StreamHandle stream);

  std::vector<Piece> pieces;
  std::vector<DeviceAddress> addresses;
  std::vector<void *> parameters; ///< of kernels: pointers to `addresses`
  std::vector<FrameOperand> in_frames;
  size_t place_count = 1;
  std::vector<GraphExec> graphs; ///< by place; empty: there are none
};

} // namespace partita::runtime::cuda

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDAINSTANCE_H
