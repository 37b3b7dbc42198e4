//===- Wait.h - Waiting for MPI with a deadline -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_MPI_WAIT_H
#define PARTITA_RUNTIME_COMM_MPI_WAIT_H

#include "runtime/base/Status.h"

#include <atomic>
#include <mpi.h>

namespace partita::runtime::mpi {

class LivenessCheck;

/// How long to wait, and whom to ask when that was not enough. A number of
/// seconds alone asks nobody.
struct Patience {
  Patience(double timeout_s, LivenessCheck *liveness = nullptr)
      : timeout_s(timeout_s), liveness(liveness) {}
  double timeout_s;
  LivenessCheck *liveness; ///< may be null; of all processes; outlives the wait
};

/// Waits until `request` is complete. MPI's own wait never ends if a peer is
/// stuck, and does not leave the core to other threads. So this one polls:
/// briefly at full speed, then yielding, then sleeping for a fraction of the
/// time that has passed. Fails past the deadline, if MPI fails, if the launcher
/// ends this process (see `interrupt`), or when `stop` (which may be null)
/// becomes true. Allocates only to build an error. Past the deadline the error
/// names the processes that do not answer: the peer may wait for one of them
/// itself. Other processes' liveness checks are answered meanwhile.
Status wait(MPI_Request &request, const Patience &patience,
            const std::atomic<bool> *stop = nullptr,
            MPI_Status *status = MPI_STATUS_IGNORE);

/// Seconds that devices of one process wait longer for each other than for
/// another process. So the error of a run is that of a device that waits for
/// the other process, and names it.
inline constexpr double kNeighbourSlack = 1;

/// Makes every present and later `wait` of this process return an error, unless
/// what it waits for comes within `grace_s` seconds. Safe in a signal handler.
void interrupt(double grace_s = 0);
bool isInterrupted();
/// What a wait that was interrupted says. It names the processes that do not
/// answer `liveness`, which may be null.
Status interruptedError(LivenessCheck *liveness = nullptr);

/// An error with MPI's text for `code`.
Status failure(const char *call, int code);

} // namespace partita::runtime::mpi

#endif // PARTITA_RUNTIME_COMM_MPI_WAIT_H
