//===- Job.cpp - The processes of an MPI run ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/Job.h"

#include "runtime/comm/mpi/Wait.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace partita::runtime::mpi {

namespace {

/// MPI counts in int; larger messages go in pieces.
constexpr size_t kPiece = size_t(1) << 30;

template <typename T> std::span<uint8_t> bytesOf(T &value) {
  return {reinterpret_cast<uint8_t *>(&value), sizeof value};
}

void onTerminate(int) { interrupt(); }

/// Ends the process if it lives longer than a deadline.
class Watchdog {
public:
  explicit Watchdog(double timeout_s)
      : thread([this, timeout_s] {
          std::unique_lock<std::mutex> lock(mutex);
          if (changed.wait_for(lock, std::chrono::duration<double>(timeout_s),
                               [this] { return over; }))
            return;
          std::fprintf(stderr,
                       "partita-run: error: not all processes of the job came "
                       "within %g s: one has not started, or stands still\n",
                       timeout_s);
          std::_Exit(1);
        }) {}
  ~Watchdog() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      over = true;
    }
    changed.notify_one();
    thread.join();
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::thread thread; ///< the last: it uses the others
};

} // namespace

std::string describeMpi() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS)
    return "MPI";
  const std::string all(text, size_t(length));
  return all.substr(0, all.find_first_of(",\n"));
}

bool launched() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK"})
    if (std::getenv(name))
      return true;
  // A shell inside a Slurm allocation has SLURM_PROCID too, with one task.
  const char *tasks = std::getenv("SLURM_NTASKS");
  return std::getenv("SLURM_PROCID") && tasks && std::atoi(tasks) > 1;
}

Expected<std::unique_ptr<Job>> Job::start(double timeout_s) {
  const Watchdog watchdog(timeout_s);
  int provided = 0;
  if (int code =
          MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
      code != MPI_SUCCESS)
    return failure("MPI_Init_thread", code);
  if (provided < MPI_THREAD_MULTIPLE) {
    MPI_Finalize();
    return Status::error("this MPI library does not support calls from several "
                         "threads at once (MPI_THREAD_MULTIPLE): use one that "
                         "was built with it");
  }
  std::unique_ptr<Job> job(new Job);
  job->timeout = timeout_s;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &job->myRank);
  MPI_Comm_size(MPI_COMM_WORLD, &job->mySize);
  for (MPI_Comm *comm :
       {&job->transferComms[0], &job->transferComms[1], &job->transferComms[2],
        &job->control, &job->livenessComm})
    if (int code = MPI_Comm_dup(MPI_COMM_WORLD, comm); code != MPI_SUCCESS)
      return failure("MPI_Comm_dup", code);
  job->livenessCheck = std::make_unique<LivenessCheck>(job->livenessComm);
  struct sigaction action = {};
  action.sa_handler = onTerminate;
  // A second SIGTERM ends a process that does not come to a wait.
  action.sa_flags = int(SA_RESETHAND | SA_RESTART);
  sigaction(SIGTERM, &action, nullptr);
  return job;
}

Job::~Job() {
  for (MPI_Comm &comm : transferComms)
    MPI_Comm_free(&comm);
  MPI_Comm_free(&control);
  MPI_Comm_free(&livenessComm);
  MPI_Finalize();
}

Status Job::barrier() {
  uint8_t token = 0;
  return exchange({&token, 1}, [](std::span<const uint8_t>) {});
}

Expected<int> Job::firstFailed(bool ok) {
  int lowest = ok ? mySize : myRank;
  PARTITA_TRY(exchange(bytesOf(lowest), [&](std::span<const uint8_t> from) {
    int other;
    std::memcpy(&other, from.data(), sizeof other);
    lowest = std::min(lowest, other);
  }));
  return lowest == mySize ? -1 : lowest;
}

Expected<int> Job::firstOther(uint64_t number) {
  struct {
    uint64_t number;
    int64_t other;
  } value = {number, -1};
  int64_t from = 0; // the ranks come in their order
  PARTITA_TRY(exchange(bytesOf(value), [&](std::span<const uint8_t> bytes) {
    uint64_t theirs;
    std::memcpy(&theirs, bytes.data(), sizeof theirs);
    ++from;
    if (theirs != number && value.other < 0)
      value.other = from;
  }));
  return int(value.other);
}

std::vector<uint64_t> Job::onThisMachine(uint64_t number, int &place) {
  MPI_Comm here;
  int count = 1;
  MPI_Comm_split_type(control, MPI_COMM_TYPE_SHARED, myRank, MPI_INFO_NULL,
                      &here);
  MPI_Comm_size(here, &count);
  MPI_Comm_rank(here, &place);
  std::vector<uint64_t> numbers(static_cast<size_t>(count));
  MPI_Allgather(&number, 1, MPI_UINT64_T, numbers.data(), 1, MPI_UINT64_T,
                here);
  MPI_Comm_free(&here);
  return numbers;
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

Status Job::join(std::span<uint8_t> bytes) {
  return exchange(bytes, [bytes](std::span<const uint8_t> from) {
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] |= from[i];
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
    PARTITA_TRY(send(0, bytes));
    return receive(0, bytes);
  }
  theirs.resize(bytes.size());
  for (int from = 1; from < mySize; ++from) {
    PARTITA_TRY(receive(from, theirs));
    combine(theirs);
  }
  for (int to = 1; to < mySize; ++to)
    PARTITA_TRY(send(to, bytes));
  return Status();
}

Status Job::waitFor(int peer, MPI_Request &request) const {
  Status status = wait(request, {timeout, livenessCheck.get()});
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
    PARTITA_TRY(waitFor(to, request));
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
    PARTITA_TRY(waitFor(from, request));
    bytes = bytes.subspan(count);
  }
  return Status();
}

Expected<std::vector<uint8_t>> Job::gatherAll(std::span<const uint8_t> bytes) {
  std::vector<uint8_t> all(bytes.size() * static_cast<size_t>(mySize));
  std::copy(bytes.begin(), bytes.end(),
            all.begin() + static_cast<ptrdiff_t>(bytes.size()) * myRank);
  // The places of others are 0.
  PARTITA_TRY(join(all));
  return all;
}

Expected<std::vector<std::vector<uint8_t>>>
Job::gather(std::span<const uint8_t> bytes) {
  std::vector<std::vector<uint8_t>> parts;
  uint64_t size = bytes.size();
  if (myRank != 0) {
    PARTITA_TRY(send(0, bytesOf(size)));
    PARTITA_TRY(send(0, bytes));
    return parts;
  }
  parts.emplace_back(bytes.begin(), bytes.end());
  for (int from = 1; from < mySize; ++from) {
    PARTITA_TRY(receive(from, bytesOf(size)));
    std::vector<uint8_t> &part = parts.emplace_back(size);
    PARTITA_TRY(receive(from, part));
  }
  return parts;
}

void Job::abort() {
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

} // namespace partita::runtime::mpi
