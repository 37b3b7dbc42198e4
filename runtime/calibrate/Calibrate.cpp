//===- Calibrate.cpp - Measures a machine ---------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/Calibrate.h"
#include "runtime/base/BestLevel.h"
#include "runtime/base/Cores.h"

#include "runtime/abi/machine.h"
#include "runtime/calibrate/CallProbe.h"
#include "runtime/calibrate/Loops.h"
#include "runtime/calibrate/Timing.h"
#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/device/Driver.h"
#include "runtime/device/cpu/simd/ScoreRows.h"

#include <atomic>
#include <barrier>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

namespace partita::runtime {
namespace {

namespace key = abi::machine;

constexpr int kPasses = 3;
constexpr double kMostFlops = 1.6e8;   ///< of one call
constexpr int64_t kMostElements = 6e6; ///< of one call's operands
constexpr int64_t kSpace = 16 << 20;   ///< elements for operands
constexpr int64_t kColdSide = 512;     ///< of a matrix of weights: 1 MiB
constexpr int64_t kColdMatrices = 128; ///< at most
constexpr int64_t kEvictedRows = 128, kEvictedDepth = 16; ///< result: 1 MiB
constexpr size_t kMostTeams = 4;

/// The measurement of one value of a table.
struct Experiment {
  size_t table, value;
  /// Runs the work and returns the value. Fails where the library refuses.
  std::function<Expected<double>(double budget)> measure;
  std::vector<double> samples = {};
};

/// All that is measured with one team.
class TeamCalibration {
public:
  TeamCalibration(int threads, const std::vector<int> &cores)
      : team(threads, cores) {
    speeds.threads = threads;
  }

  Status prepare() {
    memory = PARTITA_TRY(Arena::map(
        (kSpace + (kColdMatrices * kColdSide * kColdSide)) * sizeof(float),
        "the operands of the calibration"));
    float *data = reinterpret_cast<float *>(memory.data());
    space = {data, size_t(kSpace)};
    weights = data + kSpace;
    for (size_t i = 0; i < memory.size() / sizeof(float); ++i)
      data[i] = 0.001f * float(i * 2654435761u % 1000);
    addDots();
    addConvs();
    addOthers();
    addLoops();
    addMemory();
    return Status();
  }

  int count() const { return int(experiments.size()); }

  Status pass(double budget, const std::function<void()> &step) {
    for (Experiment &each : experiments) {
      each.samples.push_back(PARTITA_TRY(each.measure(budget)));
      step();
    }
    return Status();
  }

  TeamSpeeds finish() {
    for (auto &[table, value, measure, samples] : experiments) {
      std::sort(samples.begin(), samples.end());
      speeds.tables[table].values[value] = samples[samples.size() / 2];
    }
    for (RateTable &table : speeds.tables)
      if (table.name != key::kCold && table.name != key::kEviction)
        table.fill();
    return std::move(speeds);
  }

  /// A product that keeps all threads computing, bytes that keep them reading
  /// from memory, and bytes that a large cache holds, for the time with several
  /// teams at work.
  double compute(double budget) {
    CallProbe probe(space, team);
    if (!probe.dot(1, 256, 512, 512, true).ok())
      return 0;
    return leastTime([&] { probe.run(); }, budget, clock());
  }
  double read(double budget) { return readTime(kMostRead, budget); }
  double readCached(double budget) { return readTime(kCached, budget); }
  static constexpr int64_t kMostRead = int64_t(128) << 20;
  static constexpr int64_t kCached = int64_t(32) << 20;

private:
  /// A team of one is timed by what it computes, whatever else the machine
  /// does; several threads wait for each other.
  clockid_t clock() const {
    return team.size() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  }

  using At = std::vector<int64_t>; ///< a point of a table

  size_t addTable(RateTable table) {
    speeds.tables.push_back(std::move(table));
    return speeds.tables.size() - 1;
  }
  /// An experiment for every point of a table that `isWanted`.
  void
  addTable(RateTable table, const std::function<bool(const At &)> &wanted,
           const std::function<Expected<double>(const At &, double)> &measure) {
    size_t index = addTable(std::move(table));
    const RateTable &added = speeds.tables[index];
    for (size_t value = 0; value < added.values.size(); ++value) {
      At at;
      for (size_t axis = 0; axis < added.axes.size(); ++axis)
        at.push_back(int64_t(added.coordinate(value, axis)));
      if (wanted(at))
        experiments.push_back({index, value, [at, measure](double budget) {
                                 return measure(at, budget);
                               }});
    }
  }
  void addNumber(const char *name, const char *unit,
                 const std::function<Expected<double>(double)> &measure) {
    size_t index = addTable(RateTable(name, unit));
    experiments.push_back({index, 0, measure});
  }

  /// Work a nanosecond of the calls that `make` prepares.
  template <typename Work, typename Make>
  void addCalls(RateTable table, const std::function<bool(const At &)> &wanted,
                Work work, Make make) {
    addTable(std::move(table), wanted,
             [=, this](const At &at, double budget) -> Expected<double> {
               CallProbe probe(space, team);
               PARTITA_TRY(make(probe, at));
               return work(at) /
                      leastTime([&] { probe.run(); }, budget, clock());
             });
  }

  void addDots() {
    auto flops = [](const At &at) { return 2 * at[0] * at[1] * at[2]; };
    auto fits = [flops](const At &at) {
      return flops(at) <= kMostFlops &&
             at[0] * at[1] + at[0] * at[2] + at[1] * at[2] <= kMostElements;
    };
    addCalls(RateTable(key::kDot, "GFLOP/s",
                       {{"rows", {1, 4, 16, 64, 128, 256, 1024}},
                        {"columns", {16, 64, 256, 768, 3072, 24576}},
                        {"depth", {16, 64, 256, 768, 3072}}}),
             fits, flops, [](CallProbe &probe, const At &at) {
               return probe.dot(1, at[0], at[1], at[2], true);
             });
    addCalls(
        RateTable(key::kDotPlain, "GFLOP/s",
                  {{"rows", {1, 16, 64, 256}},
                   {"columns", {16, 64, 256}},
                   {"depth", {16, 64, 256}}}),
        fits, [flops](const At &at) { return 8 * flops(at); },
        [](CallProbe &probe, const At &at) {
          return probe.dot(8, at[0], at[1], at[2], false);
        });
  }

  void addConvs() {
    auto flops = [](const At &at) {
      return 2 * at[0] * at[2] * at[3] * at[4] * at[4];
    };
    addCalls(
        RateTable(key::kConv, "GFLOP/s",
                  {{"taps", {1, 9, 49}},
                   {"stride", {1, 2}},
                   {"in", {3, 16, 64, 256}},
                   {"out", {16, 64, 256}},
                   {"side", {7, 14, 28, 56, 112, 320}}}),
        [=](const At &at) {
          const int64_t elements =
              (at[2] * at[1] * at[1] + at[3]) * at[4] * at[4] +
              at[0] * at[2] * at[3];
          return flops(at) <= kMostFlops && elements <= kMostElements &&
                 (at[0] < 49 || at[2] <= 16);
        },
        flops,
        [](CallProbe &probe, const At &at) {
          return probe.conv(at[4], at[2], at[3], int64_t(std::sqrt(at[0])),
                            at[1], false);
        });
    auto winogradFlops = [](const At &at) {
      return 18 * at[0] * at[1] * at[2] * at[2];
    };
    addCalls(
        RateTable(key::kWinograd, "GFLOP/s",
                  {{"in", {32, 64, 128, 256, 512}},
                   {"out", {32, 64, 128, 256, 512}},
                   {"side", {7, 14, 28, 56, 112}}}),
        [=](const At &at) { return winogradFlops(at) <= 3 * kMostFlops; },
        winogradFlops,
        [](CallProbe &probe, const At &at) {
          return probe.winograd(at[2], at[0], at[1]);
        });
    addCalls(
        RateTable(key::kDepthwise, "GFLOP/s",
                  {{"taps", {9, 25}},
                   {"stride", {1, 2}},
                   {"channels", {16, 64, 256, 1024}},
                   {"side", {7, 14, 28, 56, 112, 320}}}),
        [](const At &at) {
          return at[2] * at[3] * at[3] * (1 + at[1] * at[1]) <= kMostElements;
        },
        [](const At &at) { return 2 * at[0] * at[2] * at[3] * at[3]; },
        [](CallProbe &probe, const At &at) {
          return probe.conv(at[3], at[2], at[2], int64_t(std::sqrt(at[0])),
                            at[1], true);
        });
  }

  void addOthers() {
    addCalls(
        RateTable(key::kPool, "taps/ns",
                  {{"taps", {4, 9, 25}},
                   {"channels", {16, 64, 256}},
                   {"side", {7, 14, 28, 56, 112}}}),
        [](const At &at) { return 5 * at[1] * at[2] * at[2] <= kMostElements; },
        [](const At &at) { return at[0] * at[1] * at[2] * at[2]; },
        [](CallProbe &probe, const At &at) {
          return probe.pool(at[2], at[1], int64_t(std::sqrt(at[0])));
        });
    const int64_t heads = 2 * team.size();
    addCalls(
        RateTable(key::kAttention, "GFLOP/s",
                  {{"rows", {1, 16, 64, 128, 512}},
                   {"columns", {1, 16, 64, 128, 512}},
                   {"depth", {8, 32, 64, 128}}}),
        [](const At &) { return true; },
        [heads](const At &at) {
          return heads * at[0] * at[1] * (4 * at[2] + 25);
        },
        [heads](CallProbe &probe, const At &at) {
          return probe.attention(heads, at[0], at[1], at[2]);
        });
    addNumber(key::kInteger, "times as fast",
              [this](double budget) -> Expected<double> {
                constexpr int64_t kRows = 256, kColumns = 256, kDepth = 256;
                CallProbe integers(space, team), floats(space, team);
                Status status = integers.integerDot(kRows, kColumns, kDepth);
                if (status.ok())
                  status = floats.dot(1, kRows, kColumns, kDepth, true);
                if (!status.ok())
                  return status;
                return leastTime([&] { floats.run(); }, 2 * budget, clock()) /
                       leastTime([&] { integers.run(); }, 2 * budget, clock());
              });
    addEpilogue(key::kEpilogueGelu, abi::PostOpKind::gelu_erf);
    addEpilogue(key::kEpilogueExp, abi::PostOpKind::tanh);
    addEpilogue(key::kEpilogueBinary, abi::PostOpKind::add);
  }

  /// What a post-op adds, ns an element of the result.
  void addEpilogue(const char *name, abi::PostOpKind kind) {
    constexpr int64_t kRows = 128, kColumns = 768, kDepth = 64;
    addNumber(
        name, "ns an element", [this, kind](double budget) -> Expected<double> {
          double ns[2];
          for (int with = 0; with < 2; ++with) {
            CallProbe probe(space, team);
            PARTITA_TRY(probe.dot(1, kRows, kColumns, kDepth, true,
                                  with ? &kind : nullptr));
            ns[with] = leastTime([&] { probe.run(); }, 4 * budget, clock());
          }
          return std::max(ns[1] - ns[0], 0.0) / (kRows * kColumns);
        });
  }

  /// Elements a nanosecond of a loop over `count` elements, by all threads.
  template <typename Loop>
  double loopRate(int64_t count, double budget, const Loop &loop) {
    double ns = leastTime([&] { team.split(count, 1, loop); }, budget, clock());
    return double(count) / ns;
  }

  void addLoops() {
    // Few enough elements for the second level of cache.
    const int64_t count = int64_t(32768) * team.size();
    float *x = space.data(), *y = x + count;
    addNumber(key::kSimple, "elements/ns", [=, this](double budget) {
      return loopRate(count, budget,
                      [=, this](int, int64_t begin, int64_t end) {
                        loops.scale(x + begin, y + begin, end - begin);
                      });
    });
    addNumber(key::kDivide, "elements/ns", [=, this](double budget) {
      return loopRate(count, budget,
                      [=, this](int, int64_t begin, int64_t end) {
                        loops.divide(x + begin, y + begin, end - begin);
                      });
    });
    ScoreFunction softmax = softmaxRows();
    addNumber(key::kExponential, "elements/ns", [=, this](double budget) {
      constexpr int64_t kColumns = 512;
      const double rows = loopRate(count / kColumns, budget,
                                   [=](int, int64_t begin, int64_t end) {
                                     ScoreRows part;
                                     part.scores = x + begin * kColumns;
                                     part.rows = end - begin;
                                     part.columns = kColumns;
                                     softmax(part);
                                   });
      return rows * kColumns;
    });
    addNumber(key::kReordered, "elements/ns", [=, this](double budget) {
      constexpr int64_t kSide = 128;
      const double squares =
          loopRate(count / (kSide * kSide), budget,
                   [=, this](int, int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i)
                       loops.transpose(x + i * kSide * kSide,
                                       y + i * kSide * kSide, kSide, kSide);
                   });
      return squares * kSide * kSide;
    });
    addNumber(key::kDispatch, "ns", [this](double budget) {
      return team.size() /
             loopRate(team.size(), budget, [](int, int64_t, int64_t) {});
    });
  }

  /// Bytes may reach beyond `space`, up to those of the weights.
  double readTime(int64_t bytes, double budget) {
    const float *data = space.data();
    std::vector<float> sums(size_t(team.size()) * 16);
    auto loop = [&](int thread, int64_t begin, int64_t end) {
      sums[size_t(thread) * 16] += loops.sum(data + begin, end - begin);
    };
    return double(bytes / 4) / loopRate(bytes / 4, budget, loop);
  }

  void addMemory() {
    std::vector<double> sizes;
    for (int kib : {32, 128, 512, 2048, 4096, 8192, 16384, 32768, 65536})
      sizes.push_back(kib * 1024.0);
    sizes.push_back(double(kMostRead));
    const std::vector<double> rotated = {double(1 << 20),  double(4 << 20),
                                         double(16 << 20), double(32 << 20),
                                         double(64 << 20), double(128 << 20)};
    auto all = [](const At &) { return true; };
    addTable(RateTable(key::kRead, "GB/s", {{"bytes", sizes}}), all,
             [this](const At &at, double budget) {
               return double(at[0]) / readTime(at[0], 2 * budget);
             });
    addTable(RateTable(key::kEviction, "ns/KiB", {{"bytes", rotated}}), all,
             [this](const At &at, double budget) {
               return evictionTime(at[0] >> 20, budget);
             });
    addTable(RateTable(key::kCold, "ns/KiB",
                       {{"rows", {1, 16, 64, 256}}, {"bytes", rotated}}),
             all, [this](const At &at, double budget) {
               return coldTime(at[0], at[1] >> 20, budget);
             });
  }

  /// How much longer a product takes if its result was last written before
  /// those of `count` others, ns a KiB.
  Expected<double> evictionTime(int64_t count, double budget) {
    if (count == 1)
      return 0.0;
    if (evicting.empty()) {
      for (int64_t i = 0; i < kColdMatrices; ++i) {
        evicting.push_back(std::make_unique<CallProbe>(space, team));
        evicting.back()->keepResultAt(weights + i * kColdSide * kColdSide);
        PARTITA_TRY(evicting.back()->dot(1, kEvictedRows,
                                         kColdSide * kColdSide / kEvictedRows,
                                         kEvictedDepth, true));
      }
    }
    return rotate(evicting, count, budget,
                  leastTime([&] { evicting[0]->run(); }, budget, clock()));
  }

  /// How much longer a product takes if its weights were last read before
  /// `matrices` others, ns a KiB.
  Expected<double> coldTime(int64_t rows, int64_t matrices, double budget) {
    if (matrices == 1)
      return 0.0;
    if (packed.empty() || packedRows != rows) {
      packed.clear();
      for (int64_t i = 0; i < kColdMatrices; ++i) {
        packed.push_back(std::make_unique<CallProbe>(space, team));
        packed.back()->keepWeightsAt(weights + i * kColdSide * kColdSide);
        PARTITA_TRY(packed.back()->dot(1, rows, kColdSide, kColdSide, true));
      }
      packedRows = rows;
      warm = leastTime([&] { packed[0]->run(); }, 4 * budget, clock());
    }
    return rotate(packed, matrices, budget, warm);
  }

  /// How much longer than `warm` one of `count` calls in turn takes, ns a KiB
  /// of a matrix.
  double rotate(const std::vector<std::unique_ptr<CallProbe>> &calls,
                int64_t count, double budget, double warm) {
    for (int64_t i = 0; i < count; ++i)
      calls[size_t(i)]->run();
    // A quarter of the runs are at least as quick as what counts.
    std::vector<double> times;
    double end = nowNs() + 2 * budget;
    while (int64_t(times.size()) < count || nowNs() < end) {
      double begin = readClock(clock());
      calls[times.size() % size_t(count)]->run();
      times.push_back(readClock(clock()) - begin);
    }
    std::sort(times.begin(), times.end());
    return std::max(times[times.size() / 4] - warm, 0.0) /
           (kColdSide * kColdSide * 4 / 1024);
  }

  ThreadTeam team;
  const Loops &loops = getLoops();
  TeamSpeeds speeds;
  Arena memory;
  std::span<float> space;
  float *weights = nullptr;
  std::vector<Experiment> experiments;
  std::vector<std::unique_ptr<CallProbe>> packed, evicting;
  int64_t packedRows = 0;
  double warm = 0;
};

double lowerQuartile(std::vector<double> &times) {
  std::sort(times.begin(), times.end());
  return times.empty() ? 0 : times[times.size() / 4];
}

/// From a device's `send` to the end of the other's `recv`, which waits for
/// it; the sender has just written the bytes.
double transferTime(const std::vector<int> &cores, int64_t bytes) {
  constexpr int kRounds = 24;
  LocalCommunicator comm({{0, 1, bytes}, {1, 0, 0}}, 1, 10, true);
  std::vector<char> from(size_t(bytes), 1), to(size_t(bytes), 2);
  std::atomic<double> sent = 0;
  std::vector<double> times;
  std::thread receiver([&] {
    ThreadTeam team(1, {cores[1 % cores.size()]});
    for (int round = 0; round < kRounds; ++round) {
      if (!comm.recv(0, 0, to.data(), bytes).ok())
        return;
      times.push_back(nowNs() - sent.load());
      if (!comm.send(1, 0, nullptr, 0).ok() || !comm.waitSent(1, 0).ok())
        return;
    }
  });
  std::thread sender([&] {
    ThreadTeam team(1, {cores[0]});
    for (int round = 0; round < kRounds; ++round) {
      std::memset(from.data(), round, size_t(bytes));
      sent = nowNs();
      if (!comm.send(0, 0, from.data(), bytes).ok() ||
          !comm.recv(1, 0, nullptr, 0).ok() || !comm.waitSent(0, 0).ok())
        return;
    }
  });
  receiver.join();
  sender.join();
  return lowerQuartile(times);
}

/// From the `start` of an all_reduce to the end of its `finish`, on devices
/// that come to it together. Each of the two sends as many bytes as a tensor
/// has.
double collectiveTime(const std::vector<int> &cores, int64_t bytes) {
  constexpr int kRounds = 48;
  LocalCommunicator comm({}, 1, 10, true,
                         {{CollectiveKind::all_reduce,
                           Reduction::sum,
                           abi::DType::f32,
                           1,
                           bytes / int64_t(sizeof(float)),
                           {{0, 1}}}});
  std::vector<double> times;
  auto work = [&](int device) {
    ThreadTeam team(1, {cores[size_t(device) % cores.size()]});
    std::vector<float> tensor(size_t(bytes) / sizeof(float));
    for (int round = 0; round < kRounds; ++round) {
      const double begin = nowNs();
      if (!comm.start(0, device, 0, tensor.data(), tensor.data()).ok() ||
          !comm.finish(0, device, 0).ok())
        return;
      if (device == 0)
        times.push_back(nowNs() - begin);
    }
  };
  std::thread other(work, 1), one(work, 0);
  other.join();
  one.join();
  return lowerQuartile(times);
}

/// How long values take from one device to another, and how long devices take
/// to add up theirs.
void measureTransfers(const std::vector<int> &cores, TeamSpeeds &speeds) {
  std::vector<double> sizes;
  for (int64_t bytes = 64; bytes <= (int64_t(16) << 20); bytes *= 16)
    sizes.push_back(double(bytes));
  RateTable transfer(key::kTransfer, "ns", {{"bytes", sizes}}),
      collective(key::kCollective, "ns", {{"bytes", sizes}});
  for (size_t i = 0; i < sizes.size(); ++i) {
    transfer.values[i] = transferTime(cores, int64_t(sizes[i]));
    collective.values[i] = collectiveTime(cores, int64_t(sizes[i]));
  }
  speeds.tables.push_back(std::move(transfer));
  speeds.tables.push_back(std::move(collective));
}

/// What teams that work at the same time do to each other.
struct Contention {
  double compute = 1, memory = 1, cache = 1;
};

/// Several teams at work, each on its own thread and cores. Alone and together
/// take turns over seconds: a machine that is itself a guest may have its cores
/// near each other at one time and apart at another.
class ConcurrentTeams {
public:
  ConcurrentTeams(int count, int threads, const std::vector<int> &cores)
      : count(count), threads(threads), cores(cores), barrier(count),
        times(static_cast<size_t>(count)) {}

  /// `reads`: the speeds of a team alone.
  Contention measure(const TeamSpeeds &reads) {
    std::vector<std::thread> running;
    for (int i = 0; i < count; ++i)
      running.emplace_back([&, i] { run(i, reads); });
    for (std::thread &thread : running)
      thread.join();
    Contention mean;
    if (compute.empty())
      return mean;
    // One ratio for turbo clocks and shared cores, whatever else ran now and
    // then; but the memory is near and far in turns.
    std::sort(compute.begin(), compute.end());
    mean.compute = compute[compute.size() / 2];
    mean.memory = average(memory);
    mean.cache = average(cache);
    return mean;
  }

private:
  static constexpr int kRounds = 12;
  static constexpr double kBudget = 5e7; ///< ns a measurement

  void run(int index, const TeamSpeeds &reads) {
    std::vector<int> own(cores.begin() + index * threads,
                         cores.begin() + (index + 1) * threads);
    TeamCalibration team(threads, own);
    if (!team.prepare().ok())
      failed = true;
    barrier.arrive_and_wait();
    for (int round = 0; round < kRounds && !failed; ++round) {
      const double computing = getRatio(index, team, &TeamCalibration::compute),
                   reading = getRatio(index, team, &TeamCalibration::read),
                   ns = getTime(index, team, &TeamCalibration::readCached);
      if (index > 0)
        continue;
      compute.push_back(std::max(computing, 1.0));
      memory.push_back(std::max(reading, 1.0));
      cache.push_back(
          std::clamp(reads.bytesReadAt(TeamCalibration::kCached / ns) /
                         TeamCalibration::kCached,
                     1.0, double(count)));
    }
  }

  using Work = double (TeamCalibration::*)(double);

  /// The median time of all teams at work.
  double getTime(int index, TeamCalibration &team, Work work) {
    barrier.arrive_and_wait();
    times[size_t(index)] = (team.*work)(kBudget);
    barrier.arrive_and_wait();
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    return std::max(sorted[sorted.size() / 2], 1.0);
  }

  /// That to the time of the first team alone.
  double getRatio(int index, TeamCalibration &team, Work work) {
    barrier.arrive_and_wait();
    double alone = index == 0 ? std::max((team.*work)(kBudget), 1.0) : 1;
    return getTime(index, team, work) / alone;
  }

  static double average(const std::vector<double> &values) {
    return std::accumulate(values.begin(), values.end(), 0.0) /
           double(values.size());
  }

  const int count, threads;
  const std::vector<int> &cores;
  std::barrier<> barrier;
  std::atomic<bool> failed = false;
  std::vector<double> times;                  ///< by team
  std::vector<double> compute, memory, cache; ///< by round
};

/// One, all cores, and powers of two between, the larger ones first left out.
std::vector<int> teamSizes(int cores) {
  std::vector<int> sizes;
  for (int size = 1; size < cores && sizes.size() + 1 < kMostTeams; size *= 2)
    sizes.push_back(size);
  if (sizes.empty() || sizes.back() != cores)
    sizes.push_back(cores);
  return sizes;
}

} // namespace

const Loops &getLoops() {
  return *atBestLevel(&loopsBaseline, &loopsV3, &loopsV4);
}

std::string cpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0)
      if (size_t at = line.find(": "); at != std::string::npos)
        return line.substr(at + 2);
  return "unknown processor";
}

Expected<MachineSpeeds> calibrate(const CalibrateOptions &options) {
  MachineSpeeds machine;
  machine.cpu = cpuName();
  machine.level = atBestLevel("x86-64", "x86-64-v3", "x86-64-v4");
  std::vector<int> cores = availableCores();
  machine.cores = int(cores.size());
  const std::vector<int> sizes = teamSizes(machine.cores);
  Status failure;
  int done = 0;
  for (int size : sizes) {
    // A team belongs to the thread that made it.
    std::thread worker([&] {
      TeamCalibration team(
          size, std::vector<int>(cores.begin(), cores.begin() + size));
      failure = team.prepare();
      const double budget = options.seconds * 1e9 / double(sizes.size()) /
                            (kPasses * team.count());
      const double begin = nowNs();
      // Preparing the calls takes half of the time; a busy machine gets fewer
      // passes.
      for (int pass = 0;
           pass < kPasses && failure.ok() &&
           nowNs() - begin < pass * budget * team.count() * 1.1 + 1e9;
           ++pass)
        failure = team.pass(budget * 0.4, [&] {
          if (options.progress)
            options.progress(++done,
                             int(sizes.size()) * kPasses * team.count());
        });
      if (failure.ok())
        machine.teams.push_back(team.finish());
    });
    worker.join();
    if (!failure.ok())
      return failure;
    TeamSpeeds &speeds = machine.teams.back();
    Contention found;
    if (const int count = machine.cores / size; count > 1) {
      found = ConcurrentTeams(count, size, cores).measure(speeds);
      measureTransfers(cores, speeds);
    }
    for (auto [name, unit, value] :
         {std::tuple(key::kContentionCompute, "times as long", found.compute),
          std::tuple(key::kContentionMemory, "times as long", found.memory),
          std::tuple(key::kContentionCache, "devices", found.cache)})
      speeds.tables.emplace_back(name, unit).values[0] = value;
  }
  for (const DeviceType &type : getDeviceTypes()) {
    if (!type.measure)
      continue;
    auto measured = type.measure();
    if (measured)
      std::move(measured->begin(), measured->end(),
                std::back_inserter(machine.devices));
    else
      machine.remarks.push_back(measured.status().message());
  }
  return machine;
}

} // namespace partita::runtime
