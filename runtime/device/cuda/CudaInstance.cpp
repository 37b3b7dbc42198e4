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

void CudaInstance::add(Work work, const std::vector<Operand> &operands,
                       const char *label) {
  pieces.push_back({std::move(work), label, addresses.size()});
  for (const Operand &operand : operands) {
    if (operand.copies)
      in_frames.push_back({addresses.size(), operand.address, operand.copies});
    addresses.push_back(operand.address);
  }
}

Status CudaInstance::finish() {
  for (DeviceAddress &address : addresses)
    parameters.push_back(&address);
  for (const FrameOperand &each : in_frames)
    place_count = std::lcm(place_count, each.copies->size());
  for (size_t place = place_count; place-- > 0;) {
    useMicroBatch(static_cast<int>(place));
    for (const Piece &piece : pieces)
      if (const Task *task = std::get_if<Task>(&piece.work))
        PARTITA_TRY(atPiece(piece, (*task)->bind(&addresses[piece.first])));
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
  if (const Task *task = std::get_if<Task>(&piece.work))
    return atPiece(piece, (*task)->enqueue(&addresses[piece.first], stream));
  const Result result = launch(gpu, piece, stream);
  return result == Result::success
             ? Status()
             : gpu.api.error(result, std::string("'") + piece.label + "'");
}

static Result copyRows(const Gpu &gpu, const RowPart &part, DeviceAddress to,
                       DeviceAddress from, StreamHandle stream) {
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

Result CudaInstance::launch(const Gpu &gpu, const Piece &piece,
                            StreamHandle stream) {
  if (const auto *kernel = std::get_if<KernelLaunch>(&piece.work))
    return gpu.api.launchKernel(
        kernel->function, kernel->blocks[0], kernel->blocks[1],
        kernel->blocks[2], kernel->threads, 1, 1, kernel->shared_bytes, stream,
        parameters.data() + piece.first, nullptr);
  const DeviceAddress to = addresses[piece.first],
                      from = addresses[piece.first + 1];
  if (const auto *part = std::get_if<RowPart>(&piece.work))
    return copyRows(gpu, *part, to, from, stream);
  const auto bytes = static_cast<size_t>(std::get<Copy>(piece.work).bytes);
  return to == from || bytes == 0
             ? Result::success
             : gpu.api.memcpyDtoDAsync(to, from, bytes, stream);
}

} // namespace partita::runtime::cuda
