//===- LivenessCheck.h - Which processes do not answer ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When a process has waited too long for others together, it asks each of them
// for a sign of life. Those that wait as well answer. Those that do not are
// stopped, gone, or still at work: they are the ones that all wait for.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_MPI_LIVENESSCHECK_H
#define PARTITA_RUNTIME_COMM_MPI_LIVENESSCHECK_H

#include <mpi.h>
#include <mutex>
#include <string>
#include <vector>

namespace partita::runtime::mpi {

class LivenessCheck {
public:
  /// Nobody else may use `comm`, and it must outlive this object.
  explicit LivenessCheck(MPI_Comm comm);

  /// Answers those who have asked. Call it while waiting, from any thread.
  void answer();
  /// The ranks that do not answer within `timeout_s`.
  std::vector<int> absent(double timeout_s);

private:
  void answerAll();

  const MPI_Comm comm;
  int rank = 0, size = 1;
  std::mutex mutex;
};

/// Seconds that are enough for all who wait to answer.
inline constexpr double kLivenessSeconds = 0.5;

/// "no answer from process 1, process 3"; empty for none.
std::string nameAbsent(const std::vector<int> &processes);

} // namespace partita::runtime::mpi

#endif // PARTITA_RUNTIME_COMM_MPI_LIVENESSCHECK_H
