//===- Job.h - The processes of an MPI run ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The MPI functions that partita-run needs besides the transfers of a plan.
// They tell which process this is, agree whether all processes can go on, and
// gather times and outputs on process 0. All use plain messages through process
// 0 rather than MPI's collectives, so that an error can say which process did
// not come. Every call that waits has a deadline. They are made by one thread
// at a time, while threads of devices may call MPI, too.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_MPI_JOB_H
#define PARTITA_RUNTIME_COMM_MPI_JOB_H

#include "runtime/base/Status.h"
#include "runtime/comm/mpi/LivenessCheck.h"

#include <array>
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

/// The library and its version, e.g. "Open MPI v4.1.4".
std::string describeMpi();

class Job {
public:
  /// Initialises MPI. A launcher sends SIGTERM if another process of the job
  /// died. From here on that signal does not kill the process: waits return an
  /// error, so that the process can say what it was waiting for. (A program may
  /// set a handler of its own for it, and call `interrupt` there.) Fails if
  /// this MPI library does not allow calls from several threads at once:
  /// devices of one process are threads. MPI waits without a deadline for all
  /// processes to join the job. If that takes longer than `timeout_s`, this
  /// process says so and ends with exit status 1, and with it the job.
  static Expected<std::unique_ptr<Job>> start(double timeout_s = 60);
  /// Finalises MPI. All processes must have taken part in the run to its end;
  /// otherwise call `abort`.
  ~Job();

  int rank() const { return myRank; }
  int size() const { return mySize; }
  /// For the messages of a plan. Each of three plans that take turns has its
  /// own; `plan` is below kPlans.
  MPI_Comm transfers(size_t plan = 0) const { return transferComms[plan]; }
  static constexpr size_t kPlans = 3;
  LivenessCheck &liveness() { return *livenessCheck; }

  Status barrier();
  /// Tells all processes whether one has failed. Returns the lowest rank that
  /// called with false, or -1.
  Expected<int> firstFailed(bool ok);
  /// The lowest rank that passed another number than process 0, or -1.
  Expected<int> firstOther(uint64_t number);
  /// What the processes on this machine passed, in the order of their ranks.
  /// `place`: where this process is among them.
  std::vector<uint64_t> onThisMachine(uint64_t number, int &place);
  /// Reduce element by element over all processes. Every process gets the
  /// result.
  Status max(std::span<double> values);
  Status sum(std::span<double> values);

  /// Gives all processes the bytes that one of them passes, where the others
  /// pass 0. Allocates nothing, from the second call with as many bytes on.
  Status join(std::span<uint8_t> bytes);

  /// Sends bytes to process `to`, which calls `receive` with the same size.
  /// Several threads may send.
  Status send(int to, std::span<const uint8_t> bytes);
  Status receive(int from, std::span<uint8_t> bytes);

  /// Gives every process what each has passed, in the order of their ranks. All
  /// pass equally many bytes.
  Expected<std::vector<uint8_t>> gatherAll(std::span<const uint8_t> bytes);

  /// Gathers bytes on process 0. The length may differ between processes. On
  /// process 0 the result has an entry per process; elsewhere it is empty.
  Expected<std::vector<std::vector<uint8_t>>>
  gather(std::span<const uint8_t> bytes);

  /// Ends all processes of the job with exit status 1. What this process wrote
  /// to stdout and stderr is flushed before.
  [[noreturn]] void abort();

private:
  Job() = default;
  Status reduce(std::span<double> values, double (*combine)(double, double));
  /// Process 0 passes the bytes that the others sent to `combine`, in the order
  /// of their ranks. Then all processes get process 0's bytes.
  Status exchange(std::span<uint8_t> bytes,
                  const std::function<void(std::span<const uint8_t>)> &combine);
  Status waitFor(int peer, MPI_Request &request) const;

  int myRank = 0;
  int mySize = 1;
  double timeout = 60;
  std::array<MPI_Comm, kPlans> transferComms = {MPI_COMM_NULL, MPI_COMM_NULL,
                                                MPI_COMM_NULL};
  MPI_Comm control = MPI_COMM_NULL;
  MPI_Comm livenessComm = MPI_COMM_NULL;
  std::unique_ptr<LivenessCheck> livenessCheck;
  std::vector<uint8_t> theirs; ///< in an exchange
};

} // namespace partita::runtime::mpi

#endif // PARTITA_RUNTIME_COMM_MPI_JOB_H
