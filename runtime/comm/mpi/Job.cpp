//===- Job.cpp - The processes of an MPI run --------------------*- C++ -*-===//
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

namespace partita::runtime::mpi {

namespace {

/// MPI counts in int; larger messages go in pieces.
constexpr size_t kPiece = size_t(1) << 30;

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
  MPI_Request request;
  if (int code = MPI_Ibarrier(control, &request); code != MPI_SUCCESS)
    return failure("MPI_Ibarrier", code);
  return wait(request, timeout);
}

Expected<int> Job::firstFailed(bool ok) {
  int mine = ok ? mySize : myRank;
  int lowest = mySize;
  MPI_Request request;
  if (int code = MPI_Iallreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, control,
                                &request);
      code != MPI_SUCCESS)
    return failure("MPI_Iallreduce", code);
  if (Status status = wait(request, timeout); !status.ok())
    return status;
  return lowest == mySize ? -1 : lowest;
}

Expected<bool> Job::allEqual(uint64_t number) {
  // The largest number and the complement of the smallest, in one reduction.
  uint64_t mine[2] = {number, ~number};
  uint64_t largest[2] = {};
  MPI_Request request;
  if (int code = MPI_Iallreduce(mine, largest, 2, MPI_UINT64_T, MPI_MAX,
                                control, &request);
      code != MPI_SUCCESS)
    return failure("MPI_Iallreduce", code);
  if (Status status = wait(request, timeout); !status.ok())
    return status;
  return largest[0] == ~largest[1];
}

Status Job::reduce(std::span<double> values, MPI_Op op) {
  if (values.empty())
    return Status();
  MPI_Request request;
  if (int code = MPI_Iallreduce(MPI_IN_PLACE, values.data(), int(values.size()),
                                MPI_DOUBLE, op, control, &request);
      code != MPI_SUCCESS)
    return failure("MPI_Iallreduce", code);
  return wait(request, timeout);
}

Status Job::max(std::span<double> values) { return reduce(values, MPI_MAX); }
Status Job::sum(std::span<double> values) { return reduce(values, MPI_SUM); }

Status Job::send(int to, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    size_t count = std::min(bytes.size(), kPiece);
    MPI_Request request;
    if (int code = MPI_Isend(bytes.data(), int(count), MPI_BYTE, to, 0, control,
                             &request);
        code != MPI_SUCCESS)
      return failure("MPI_Isend", code);
    if (Status status = wait(request, timeout); !status.ok())
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
    if (Status status = wait(request, timeout); !status.ok())
      return status;
    bytes = bytes.subspan(count);
  }
  return Status();
}

Expected<std::vector<std::vector<uint8_t>>>
Job::gather(std::span<const uint8_t> bytes) {
  std::vector<std::vector<uint8_t>> parts;
  uint64_t size = bytes.size();
  auto sizeBytes = [](uint64_t &value) {
    return std::span(reinterpret_cast<uint8_t *>(&value), sizeof value);
  };
  if (myRank != 0) {
    if (Status status = send(0, sizeBytes(size)); !status.ok())
      return status;
    if (Status status = send(0, bytes); !status.ok())
      return status;
    return parts;
  }
  parts.emplace_back(bytes.begin(), bytes.end());
  for (int from = 1; from < mySize; ++from) {
    if (Status status = receive(from, sizeBytes(size)); !status.ok())
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
