//===- LivenessCheck.cpp - Which processes do not answer ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/LivenessCheck.h"

#include <chrono>
#include <thread>

namespace partita::runtime::mpi {
namespace {

constexpr int kQuestion = 1, kAnswer = 2; // tags

/// Messages without bytes need no buffer, and nobody waits for them.
void say(MPI_Comm comm, int to, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Isend(nullptr, 0, MPI_BYTE, to, tag, comm, &request) == MPI_SUCCESS &&
      request != MPI_REQUEST_NULL)
    MPI_Request_free(&request);
}

/// The rank of somebody who has sent a message; -1: nobody has.
int hear(MPI_Comm comm, int tag) {
  int is_there = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &is_there, &status) !=
          MPI_SUCCESS ||
      !is_there)
    return -1;
  if (MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, tag, comm,
               MPI_STATUS_IGNORE) != MPI_SUCCESS)
    return -1;
  return status.MPI_SOURCE;
}

} // namespace

LivenessCheck::LivenessCheck(MPI_Comm comm) : comm(comm) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
}

void LivenessCheck::answerAll() {
  for (int from = hear(comm, kQuestion); from >= 0;
       from = hear(comm, kQuestion))
    say(comm, from, kAnswer);
}

void LivenessCheck::answer() {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (lock)
    answerAll();
}

std::vector<int> LivenessCheck::absent(double timeout_s) {
  using Clock = std::chrono::steady_clock;
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<bool> is_there(static_cast<size_t>(size));
  is_there[static_cast<size_t>(rank)] = true;
  int missing = size - 1;
  for (int other = 0; other < size; ++other)
    if (other != rank)
      say(comm, other, kQuestion);
  const auto begin = Clock::now();
  while (missing > 0 &&
         Clock::now() - begin < std::chrono::duration<double>(timeout_s)) {
    answerAll();
    const int from = hear(comm, kAnswer);
    if (from < 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    missing -= !is_there[static_cast<size_t>(from)];
    is_there[static_cast<size_t>(from)] = true;
  }
  std::vector<int> absent;
  for (int other = 0; other < size; ++other)
    if (!is_there[static_cast<size_t>(other)])
      absent.push_back(other);
  return absent;
}

std::string nameAbsent(const std::vector<int> &processes) {
  std::string text;
  for (int process : processes)
    text += (text.empty() ? "no answer from process " : ", process ") +
            std::to_string(process);
  return text;
}

} // namespace partita::runtime::mpi
