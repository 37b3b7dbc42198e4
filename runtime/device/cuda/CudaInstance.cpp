//===- CudaInstance.cpp - A unit that is ready for launch -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaInstance.h"

#include <algorithm>
#include <numeric>

namespace partita::runtime::cuda {

void CudaInstance::add(const std::vector<Operand> &operands) {
  for (const Operand &operand : operands) {
    if (operand.copies)
      in_frames.push_back({addresses.size(), operand.address, operand.copies});
    addresses.push_back(operand.address);
  }
}

void CudaInstance::addKernel(const KernelLaunch &launch,
                             const std::vector<Operand> &operands,
                             const char *label) {
  pieces.push_back(
      {Kind::kernel, label, addresses.size(), launch, {}, nullptr});
  add(operands);
}

void CudaInstance::addCopy(Operand to, Operand from, int64_t bytes,
                           const char *label) {
  RowPart part;
  part.bytes = bytes;
  pieces.push_back({Kind::copy, label, addresses.size(), {}, part, nullptr});
  add({to, from});
}

void CudaInstance::addSlice(Operand to, Operand from, const RowPart &part,
                            const char *label) {
  pieces.push_back({Kind::slice, label, addresses.size(), {}, part, nullptr});
  add({to, from});
}

void CudaInstance::addCall(std::unique_ptr<LibraryTask> task,
                           const std::vector<Operand> &operands,
                           const char *label) {
  pieces.push_back(
      {Kind::call, label, addresses.size(), {}, {}, std::move(task)});
  add(operands);
}

Status CudaInstance::finish() {
  for (DeviceAddress &address : addresses)
    parameters.push_back(&address);
  for (const FrameOperand &each : in_frames)
    place_count = std::lcm(place_count, each.copies->size());
  for (size_t place = place_count; place-- > 0;) {
    useMicroBatch(static_cast<int>(place));
    for (const Piece &piece : pieces)
      if (piece.task)
        if (Status status = piece.task->bind(&addresses[piece.first]);
            !status.ok())
          return atPiece(piece, status);
  }
  return Status();
}

Status CudaInstance::atPiece(const Piece &piece, const Status &status) const {
  return status.ok() ? status
                     : Status::error(std::string("'") + piece.label +
                                     "': " + status.message());
}

void CudaInstance::useMicroBatch(int micro_batch) {
  for (const FrameOperand &each : in_frames)
    addresses[each.operand] =
        each.offset +
        (*each.copies)[static_cast<size_t>(micro_batch) % each.copies->size()];
}

Status CudaInstance::enqueue(const Gpu &gpu, size_t number,
                             StreamHandle stream) {
  const Piece &piece = pieces[number];
  if (piece.kind == Kind::call)
    return atPiece(piece, piece.task->enqueue(&addresses[piece.first], stream));
  const Result result = launch(gpu, piece, stream);
  return result == Result::success
             ? Status()
             : gpu.api.error(result, std::string("'") + piece.label + "'");
}

Result CudaInstance::launch(const Gpu &gpu, const Piece &piece,
                            StreamHandle stream) {
  switch (piece.kind) {
  case Kind::kernel: {
    const KernelLaunch &launch = piece.launch;
    return gpu.api.launchKernel(
        launch.function, launch.blocks[0], launch.blocks[1], launch.blocks[2],
        launch.threads, 1, 1, launch.shared_bytes, stream,
        parameters.data() + piece.first, nullptr);
  }
  case Kind::copy: {
    const DeviceAddress to = addresses[piece.first],
                        from = addresses[piece.first + 1];
    if (to == from || piece.part.bytes == 0)
      return Result::success;
    return gpu.api.memcpyDtoDAsync(
        to, from, static_cast<size_t>(piece.part.bytes), stream);
  }
  case Kind::slice:
    return enqueueSlice(gpu, piece, stream);
  case Kind::call:
    break;
  }
  return Result::success;
}

Result CudaInstance::enqueueSlice(const Gpu &gpu, const Piece &piece,
                                  StreamHandle stream) {
  const RowPart &part = piece.part;
  const DeviceAddress to = addresses[piece.first],
                      from = addresses[piece.first + 1];
  const auto rows = static_cast<size_t>(part.rows),
             bytes = static_cast<size_t>(part.bytes),
             there = static_cast<size_t>(part.there);
  if (rows == 0 || bytes == 0)
    return Result::success;
  if (there > 0) {
    // Rows of such a length are few.
    if (std::max(part.pitch, part.bytes) > gpu.mostPitch()) {
      for (size_t row = 0; row < rows; ++row)
        if (Result result = gpu.api.memcpyDtoDAsync(
                to + row * bytes,
                from + row * static_cast<size_t>(part.pitch) +
                    static_cast<size_t>(part.first),
                there, stream);
            result != Result::success)
          return result;
    } else {
      Copy2D copy;
      copy.source_device = from + static_cast<size_t>(part.first);
      copy.source_pitch = static_cast<size_t>(part.pitch);
      copy.target_device = to;
      copy.target_pitch = bytes;
      copy.width = there;
      copy.height = rows;
      if (Result result = gpu.api.memcpy2DAsync(&copy, stream);
          result != Result::success)
        return result;
    }
  }
  if (there == bytes)
    return Result::success;
  if (there == 0)
    return gpu.api.memsetD8Async(to, 0, rows * bytes, stream);
  if (part.bytes <= gpu.mostPitch())
    return gpu.api.memsetD2D8Async(to + there, bytes, 0, bytes - there, rows,
                                   stream);
  for (size_t row = 0; row < rows; ++row)
    if (Result result = gpu.api.memsetD8Async(to + row * bytes + there, 0,
                                              bytes - there, stream);
        result != Result::success)
      return result;
  return Result::success;
}

} // namespace partita::runtime::cuda
