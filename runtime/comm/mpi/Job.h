//===- Job.h - The processes of an MPI run ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What partita-run needs of MPI besides the transfers of a plan: which device
// this process is, agreement whether all can go on, and bringing times and
// outputs to process 0. Everything goes through process 0 with plain messages
// rather than MPI's collectives, so that an error can say which process did not
// come. Every call that waits has a deadline. MPI is called by one thread at a
// time.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_MPI_JOB_H
#define PARTITA_RUNTIME_COMM_MPI_JOB_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mpi.h>
#include <span>
#include <vector>

namespace partita::runtime::mpi {

/// Whether this process was started by mpirun, srun or the like. Without that,
/// MPI is never initialised.
bool launched();

class Job {
public:
  /// Initialises MPI. From here on a SIGTERM (which is how the launcher ends a
  /// job whose other process died) makes waits return an error instead of
  /// killing the process, so that it can say what it was waiting for.
  static Expected<std::unique_ptr<Job>> start();
  /// Finalises MPI. Only after a run in which all processes took part to the
  /// end; otherwise `abort`.
  ~Job();

  int rank() const { return myRank; }
  int size() const { return mySize; }
  MPI_Comm transfers() const { return transferComm; }
  void setTimeout(double seconds) { timeout = seconds; }

  Status barrier();
  /// Tells all processes whether all are well: -1, or the lowest rank that said
  /// it is not.
  Expected<int> firstFailed(bool ok);
  /// Whether all processes gave the same number.
  Expected<bool> allEqual(uint64_t number);
  /// Element by element over all processes, the result on every one.
  Status max(std::span<double> values);
  Status sum(std::span<double> values);

  /// Sends bytes to process `to`, which calls `receive` with the same size.
  Status send(int to, std::span<const uint8_t> bytes);
  Status receive(int from, std::span<uint8_t> bytes);

  /// Brings bytes of any length, different on each process, to process 0: the
  /// result there has one entry a process; elsewhere it is empty.
  Expected<std::vector<std::vector<uint8_t>>>
  gather(std::span<const uint8_t> bytes);

  /// Ends all processes of the job with exit status 1. What this process wrote
  /// to stdout and stderr is flushed before.
  [[noreturn]] void abort();

private:
  Job() = default;
  Status reduce(std::span<double> values, double (*combine)(double, double));
  /// Process 0 passes what the others sent to `combine`, in the order of their
  /// ranks; then all have process 0's bytes.
  Status exchange(std::span<uint8_t> bytes,
                  const std::function<void(std::span<const uint8_t>)> &combine);
  Status waitFor(int peer, MPI_Request &request) const;

  int myRank = 0;
  int mySize = 1;
  double timeout = 60;
  MPI_Comm transferComm = MPI_COMM_NULL;
  MPI_Comm control = MPI_COMM_NULL;
};

} // namespace partita::runtime::mpi

#endif // PARTITA_RUNTIME_COMM_MPI_JOB_H
