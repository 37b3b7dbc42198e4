//===- Job.cpp - The processes of an MPI run ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/Job.h"

#include "runtime/comm/mpi/Wait.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace partita::runtime::mpi {

namespace {

/// MPI counts in int; larger messages go in pieces.
constexpr size_t kPiece = size_t(1) << 30;

template <typename T> std::span<uint8_t> bytesOf(T &value) {
  return {reinterpret_cast<uint8_t *>(&value), sizeof value};
}

void onTerminate(int) { interrupt(); }

} // namespace

bool launched() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK"})
    if (std::getenv(name))
      return true;
  // A shell inside a Slurm allocation has SLURM_PROCID too, with one task.
  const char *tasks = std::getenv("SLURM_NTASKS");
  return std::getenv("SLURM_PROCID") && tasks && std::atoi(tasks) > 1;
}

Expected<std::unique_ptr<Job>> Job::start() {
  int provided = 0;
  // The device's thread transfers, the main thread does the rest, never both at
  // once.
  if (int code =
          MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
      code != MPI_SUCCESS)
    return failure("MPI_Init_thread", code);
  if (provided < MPI_THREAD_SERIALIZED)
    return Status::error("this MPI library does not support calls from more "
                         "than one thread (MPI_THREAD_SERIALIZED)");
  std::unique_ptr<Job> job(new Job);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &job->myRank);
  MPI_Comm_size(MPI_COMM_WORLD, &job->mySize);
  for (MPI_Comm *comm : {&job->transferComm, &job->control})
    if (int code = MPI_Comm_dup(MPI_COMM_WORLD, comm); code != MPI_SUCCESS)
      return failure("MPI_Comm_dup", code);
  struct sigaction action = {};
  action.sa_handler = onTerminate;
  // A second SIGTERM ends a process that does not come to a wait.
  action.sa_flags = int(SA_RESETHAND | SA_RESTART);
  sigaction(SIGTERM, &action, nullptr);
  return job;
}

Job::~Job() {
  MPI_Comm_free(&transferComm);
  MPI_Comm_free(&control);
  MPI_Finalize();
}

Status Job::barrier() {
  uint8_t token = 0;
  return exchange({&token, 1}, [](std::span<const uint8_t>) {});
}

Expected<int> Job::firstFailed(bool ok) {
  int lowest = ok ? mySize : myRank;
  Status status = exchange(bytesOf(lowest), [&](std::span<const uint8_t> from) {
    int other;
    std::memcpy(&other, from.data(), sizeof other);
    lowest = std::min(lowest, other);
  });
  if (!status.ok())
    return status;
  return lowest == mySize ? -1 : lowest;
}

Expected<bool> Job::allEqual(uint64_t number) {
  struct {
    uint64_t number;
    uint64_t equal;
  } value = {number, 1};
  Status status = exchange(bytesOf(value), [&](std::span<const uint8_t> from) {
    uint64_t other;
    std::memcpy(&other, from.data(), sizeof other);
    value.equal &= other == number;
  });
  if (!status.ok())
    return status;
  return value.equal == 1;
}

Status Job::reduce(std::span<double> values,
                   double (*combine)(double, double)) {
  std::span<uint8_t> bytes(reinterpret_cast<uint8_t *>(values.data()),
                           values.size_bytes());
  return exchange(bytes, [&](std::span<const uint8_t> from) {
    for (size_t i = 0; i < values.size(); ++i) {
      double other;
      std::memcpy(&other, from.data() + i * sizeof other, sizeof other);
      values[i] = combine(values[i], other);
    }
  });
}

Status Job::max(std::span<double> values) {
  return reduce(values, [](double a, double b) { return std::max(a, b); });
}
Status Job::sum(std::span<double> values) {
  return reduce(values, [](double a, double b) { return a + b; });
}

Status
Job::exchange(std::span<uint8_t> bytes,
              const std::function<void(std::span<const uint8_t>)> &combine) {
  if (myRank != 0) {
    Status status = send(0, bytes);
    return status.ok() ? receive(0, bytes) : status;
  }
  std::vector<uint8_t> theirs(bytes.size());
  for (int from = 1; from < mySize; ++from) {
    if (Status status = receive(from, theirs); !status.ok())
      return status;
    combine(theirs);
  }
  for (int to = 1; to < mySize; ++to)
    if (Status status = send(to, bytes); !status.ok())
      return status;
  return Status();
}

Status Job::waitFor(int peer, MPI_Request &request) const {
  Status status = wait(request, timeout);
  return status.ok()
             ? status
             : Status::error(
                   "process " + std::to_string(myRank) + " waits for process " +
                   std::to_string(peer) +
                   " to come as far, between steps: " + status.message());
}

Status Job::send(int to, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    size_t count = std::min(bytes.size(), kPiece);
    MPI_Request request;
    if (int code = MPI_Isend(bytes.data(), int(count), MPI_BYTE, to, 0, control,
                             &request);
        code != MPI_SUCCESS)
      return failure("MPI_Isend", code);
    if (Status status = waitFor(to, request); !status.ok())
      return status;
    bytes = bytes.subspan(count);
  }
  return Status();
}

Status Job::receive(int from, std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    size_t count = std::min(bytes.size(), kPiece);
    MPI_Request request;
    if (int code = MPI_Irecv(bytes.data(), int(count), MPI_BYTE, from, 0,
                             control, &request);
        code != MPI_SUCCESS)
      return failure("MPI_Irecv", code);
    if (Status status = waitFor(from, request); !status.ok())
      return status;
    bytes = bytes.subspan(count);
  }
  return Status();
}

Expected<std::vector<std::vector<uint8_t>>>
Job::gather(std::span<const uint8_t> bytes) {
  std::vector<std::vector<uint8_t>> parts;
  uint64_t size = bytes.size();
  if (myRank != 0) {
    if (Status status = send(0, bytesOf(size)); !status.ok())
      return status;
    if (Status status = send(0, bytes); !status.ok())
      return status;
    return parts;
  }
  parts.emplace_back(bytes.begin(), bytes.end());
  for (int from = 1; from < mySize; ++from) {
    if (Status status = receive(from, bytesOf(size)); !status.ok())
      return status;
    std::vector<uint8_t> &part = parts.emplace_back(size);
    if (Status status = receive(from, part); !status.ok())
      return status;
  }
  return parts;
}

void Job::abort() {
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

} // namespace partita::runtime::mpi
