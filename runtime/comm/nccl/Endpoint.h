//===- Endpoint.h - A GPU's part in what NCCL does --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device has a stream for its collectives, and one for each edge. Work there
// begins after what its queue was given before, and the queue waits for it by
// events. All communicators are non-blocking: after each call of NCCL the state
// of the communicator is asked until the call has put its work into the stream.
//
// Behind each operation its number is copied to the host. So an error can list
// the last operations of each stream, and which of them are not done.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_NCCL_ENDPOINT_H
#define PARTITA_RUNTIME_COMM_NCCL_ENDPOINT_H

#include "runtime/comm/nccl/ElementTypes.h"
#include "runtime/comm/nccl/Routes.h"
#include "runtime/comm/nccl/library/Api.h"
#include "runtime/device/cuda/CudaDevice.h"

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>

namespace partita::runtime::nccl {

/// Whether NCCL wants the devices' parts one after another, where the plan has
/// them in rows.
bool isScattered(const CollectiveInfo &info);

/// What all endpoints of a process share.
struct Network {
  const Api *api = nullptr;
  Traffic traffic;
  Routes routes;
  double timeout_s = 60;
  /// Whether somebody ends this process; null: nobody can.
  std::function<Status()> interrupted;
  /// The processes that do not answer; null: nobody knows.
  std::function<std::vector<int>()> absent;
  std::vector<int> process_of; ///< by device; empty: there is one process
  std::atomic<bool> aborted = false;
  /// Begins to abort all endpoints of the process, and returns at once: an
  /// abort may wait until the other GPUs of the machine are aborted, too.
  std::function<void()> abort_all;

  /// Notes a failure. Returns it if it is the first of this process, and
  /// nobody has aborted. Others come of that: the error says so.
  Status note(const Status &status);
  /// Why a device stops that has not failed itself.
  Status reason();
  /// "device 1 of process 1, device 2 of process 2"
  std::string text(const std::vector<int> &devices) const;
  /// "; no answer from process 2", or nothing.
  std::string absentText() const;

private:
  std::mutex mutex;
  Status first;
};

class Endpoint final : public cuda::Watchdog {
public:
  Endpoint(Network &network, int device);
  ~Endpoint() override;

  int device() const { return index; }
  void attach(cuda::CudaDevice &with);
  /// See Communicator::detach.
  bool detach();

  //===--- Connections ----------------------------------------------------===//

  /// Makes streams and buffers.
  Status open();
  /// Joins the communicator of all devices that take part. The steps below
  /// begin something that `settle` waits for.
  Status join(const UniqueId &id);
  Status split(int number);
  /// Calls each collective of a split once, with an element of each device, so
  /// that the first step finds connections.
  Status warmUp(int collective);
  /// Sends or receives a byte on an edge, likewise.
  Status warmUpEdge(int edge);
  /// Waits until everything that was begun is done, on the GPU too.
  Status settle();
  /// Leave the communicator of a split, or of all devices (-1).
  Status finalize(int split);
  void destroy(int split);
  /// Ends everything, at once.
  void abort();
  bool isOpen() const { return world != nullptr; }

  //===--- A step ---------------------------------------------------------===//

  // Calls of the device's ends, with its addresses. They only enqueue: what
  // they wait for, the device's queue waits for, and what fails later, the
  // queue tells. An endpoint has one device, and knows what messages hold:
  // `device` and `bytes` are for ends that are made for all communicators.

  Status start(int collective, int device, int micro_batch, const void *source,
               void *target);
  Status finish(int collective, int device, int micro_batch);
  /// `data`: null for a token.
  Status send(int channel, int micro_batch, const void *data, int64_t bytes);
  Status recv(int channel, int micro_batch, void *data, int64_t bytes);
  Status waitSent(int channel, int micro_batch);

  Status check() override;
  std::string giveUp() override;

private:
  static constexpr uint32_t kNumbers = 1024, kRecords = 8;
  static constexpr size_t kTokenBytes = 256;

  /// A collective or a message, for errors.
  struct Record {
    int collective = -1, channel = -1; ///< one of them; none: a connection
    int micro_batch = 0;
    bool is_send = false;
  };
  /// A stream with operations in order.
  struct WorkStream {
    cuda::Stream stream;
    cuda::GpuEvent ready, done;
    cuda::PinnedBuffer last_done; ///< a number
    uint32_t count = 0;
    std::array<Record, kRecords> records;
    int edge = -1; ///< -1: collectives
  };
  /// A message of a group that is not complete yet.
  struct Part {
    int channel, micro_batch;
    void *data;
  };

  WorkStream &streamOf(int edge) {
    return streams[size_t(stream_of[size_t(edge)])];
  }
  Status makeStream(int edge);
  Status ready();
  Status stopped();
  Status fail(const Status &status);
  /// Waits until NCCL has done what a call of it asked for. `result`: the
  /// call's.
  Status accept(CommHandle comm, Result result, const Record &record);
  Status poll(CommHandle comm, const Record &record);
  Status driver(cuda::Result result);
  Status begin(WorkStream &work);
  Status end(WorkStream &work, const Record &record, cuda::EventHandle done);
  Status perform(const CollectiveInfo &info, int split,
                 const std::vector<int> &group, const Record &record,
                 cuda::DeviceAddress source, cuda::DeviceAddress target);
  Status allToAll(CommHandle comm, const CollectiveInfo &info, int size,
                  int rank, const Record &record, cuda::DeviceAddress source,
                  cuda::DeviceAddress target);
  Status copyRows(int64_t rows, int64_t bytes, cuda::DeviceAddress to,
                  int64_t to_pitch, cuda::DeviceAddress from,
                  int64_t from_pitch);
  Status copy(cuda::DeviceAddress to, cuda::DeviceAddress from, int64_t bytes);
  Status exchange(int edge, bool is_send, const Part *parts, size_t count);
  Status awaitIdle(double longest_s);
  int64_t mostScratch() const;
  std::string text(const Record &record) const;
  std::string whoIsMissing(const Record &record) const;
  uint32_t undone(const WorkStream &work) const;
  std::string history() const;
  std::string unfinished() const;
  void abortAll();
  void abortTogether(const std::vector<CommHandle> &handles);

  Network &network;
  const int index;
  mutable std::mutex mutex;
  std::shared_ptr<const cuda::Gpu> gpu;
  cuda::CudaDevice *attached = nullptr;
  CommHandle world = nullptr;
  std::vector<CommHandle> comms; ///< by split; NCCL writes them later
  std::vector<WorkStream> streams;
  std::vector<int> stream_of; ///< by edge
  cuda::DeviceBuffer scratch, tokens, numbers;
  std::vector<cuda::GpuEvent> collective_done; ///< by collective
  std::vector<cuda::GpuEvent> sent;            ///< by channel and micro-batch
  std::vector<std::vector<Part>> parts;        ///< by edge
  Status failure;                              ///< the first one
};

} // namespace partita::runtime::nccl

#endif // PARTITA_RUNTIME_COMM_NCCL_ENDPOINT_H
