//===- CollectiveBench.cpp - How long an all_reduce takes -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   mpirun --bind-to none -n 2 partita_collective_bench [LARGEST]
//
// Adds up tensors of f32, from 4 bytes to LARGEST (128 MiB), between two
// devices: threads of one process, then MPI's own all-reduce between two
// processes, then the communicator of processes; into another tensor and in
// place. The three take turns, size by size, so that they meet the same
// machine. Times are microseconds for one: the median and, in brackets, the
// quartiles.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/comm/mpi/Job.h"
#include "runtime/comm/mpi/MpiCommunicator.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

namespace {

using namespace partita::runtime;
using Clock = std::chrono::steady_clock;

constexpr int kSamples = 41;

/// How often one is done for a sample: for some 2 ms, as far as one can guess.
int repetitions(int64_t bytes) {
  return int(std::clamp<int64_t>(4'000'000 / (bytes + 400), 1, 5000));
}

int64_t next(int64_t bytes) {
  return bytes * (bytes < 1024 ? 16 : bytes < 64 << 20 ? 4 : 2);
}

CollectiveInfo sumOf(int64_t bytes) {
  return {CollectiveKind::all_reduce,
          Reduction::sum,
          partita::abi::DType::f32,
          1,
          bytes / 4,
          {{0, 1}}};
}

struct Tensors {
  Tensors(int64_t bytes, bool in_place)
      : source(static_cast<float *>(std::aligned_alloc(4096, room(bytes)))),
        target(in_place ? source
                        : static_cast<float *>(
                              std::aligned_alloc(4096, room(bytes)))) {
    std::fill_n(source, bytes / 4, 0.f);
    std::fill_n(target, bytes / 4, 0.f);
  }
  Tensors(const Tensors &) = delete;
  ~Tensors() {
    if (target != source)
      std::free(target);
    std::free(source);
  }
  static size_t room(int64_t bytes) {
    return size_t(bytes + 4095) / 4096 * 4096;
  }

  float *source, *target;
};

/// Microseconds of one `body`, for each sample, after one that does not count.
std::vector<double> measure(int64_t bytes, const std::function<void()> &body) {
  std::vector<double> times;
  const int many = repetitions(bytes);
  for (int sample = -1; sample < kSamples; ++sample) {
    const auto begin = Clock::now();
    for (int i = 0; i < many; ++i)
      body();
    const std::chrono::duration<double, std::micro> passed =
        Clock::now() - begin;
    if (sample >= 0)
      times.push_back(passed.count() / many);
  }
  return times;
}

void require(const Status &status) {
  if (status.ok())
    return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

void once(Participant &part, Tensors &tensors) {
  require(part.start(0, reinterpret_cast<const uint8_t *>(tensors.source),
                     reinterpret_cast<uint8_t *>(tensors.target)));
  require(part.finish(0));
}

std::vector<double> betweenThreads(int64_t bytes, bool in_place) {
  LocalCommunicator comm({}, 1, 60, true, {sumOf(bytes)});
  std::thread other([&] {
    Tensors tensors(bytes, in_place);
    auto part = comm.participant(0, 1, {});
    measure(bytes, [&] { once(*part, tensors); });
  });
  Tensors tensors(bytes, in_place);
  auto part = comm.participant(0, 0, {});
  std::vector<double> times = measure(bytes, [&] { once(*part, tensors); });
  other.join();
  return times;
}

std::vector<double> byMpi(int64_t bytes, bool in_place) {
  Tensors tensors(bytes, in_place);
  const void *source = in_place ? MPI_IN_PLACE : tensors.source;
  return measure(bytes, [&] {
    MPI_Allreduce(source, tensors.target, int(bytes / 4), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  });
}

std::vector<double> betweenProcesses(int64_t bytes, bool in_place, int rank) {
  auto comm = MpiCommunicator::create(
      MPI_COMM_WORLD, *mpi::Placement::even(2, 2), {}, 1, 60, {sumOf(bytes)});
  require(comm.status());
  Tensors tensors(bytes, in_place);
  auto part = (*comm)->participant(0, rank, {});
  return measure(bytes, [&] { once(*part, tensors); });
}

void print(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  auto at = [&](int quarter) { return times[size_t(quarter * kSamples / 4)]; };
  std::printf("  %11.2f [%10.2f %10.2f]", at(2), at(1), at(3));
}

} // namespace

int main(int argc, char **argv) {
  auto job = mpi::Job::start();
  require(job.status());
  if ((*job)->size() != 2) {
    std::fprintf(stderr, "run it as: mpirun --bind-to none -n 2 %s\n", argv[0]);
    return 1;
  }
  const int64_t largest = argc > 1 ? std::atoll(argv[1]) : int64_t(128) << 20;
  const bool first = (*job)->rank() == 0;
  for (bool in_place : {false, true}) {
    if (first)
      std::printf("%-13s  %35s  %35s  %35s\n", in_place ? "in place" : "bytes",
                  "threads", "MPI_Allreduce", "processes");
    for (int64_t bytes = 4; bytes <= largest; bytes = next(bytes)) {
      if (first)
        std::printf("%-13lld", static_cast<long long>(bytes));
      require((*job)->barrier());
      if (first)
        print(betweenThreads(bytes, in_place));
      require((*job)->barrier()); // which sleeps
      for (auto times :
           {byMpi(bytes, in_place), betweenProcesses(bytes, in_place, !first)})
        if (first)
          print(times);
      if (first)
        std::printf("\n");
      std::fflush(stdout);
    }
  }
  return 0;
}
