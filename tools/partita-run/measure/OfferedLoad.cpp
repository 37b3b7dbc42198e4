//===- OfferedLoad.cpp - How long samples take at a given rate ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/Run.h"
#include "tools/partita-run/measure/Benchmark.h"
#include "tools/partita-run/measure/Sample.h"
#include "tools/partita-run/show/Format.h"
#include "tools/partita-run/show/Progress.h"

#include "runtime/feed/Layout.h"
#include "runtime/feed/Stream.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

namespace partita::run {

using runtime::Expected;
using runtime::Status;
using runtime::Tensor;

namespace {

using Clock = Stream::Clock;
using Seconds = std::chrono::duration<double>;

/// The load is given up when it takes so many times as long as it should.
constexpr double kLongest = 2;
constexpr double kSeconds = 5; ///< if nobody says
/// Different samples that are offered in turn.
constexpr int64_t kMostSamples = 32;

/// Samples by themselves: one tensor for each input.
std::vector<std::vector<Tensor>> cutSamples(const Model &model,
                                            const InputTensors &inputs) {
  int64_t count = kMostSamples;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port &port = model.inputs[i];
    const int64_t perSample =
        std::max<int64_t>(1, port.samples() / model.samples());
    count = port.batchAxis < 0
                ? 1
                : std::min(count, inputs[i]->shape()[size_t(port.batchAxis)] /
                                      perSample);
  }
  std::vector<std::vector<Tensor>> samples(
      static_cast<size_t>(std::max<int64_t>(1, count)));
  for (size_t s = 0; s < samples.size(); ++s)
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Port &port = model.inputs[i];
      if (port.batchAxis < 0) {
        samples[s].push_back(*inputs[i]);
        continue;
      }
      const int64_t entries = port.samples() / model.samples();
      std::vector<int64_t> shape = port.shape;
      shape[size_t(port.batchAxis)] = entries;
      Expected<Tensor> one = Tensor::allocate(port.dtype, shape);
      if (!one)
        return {};
      copyEntries(layoutOf(port), one->mutableData(), entries, 0,
                  inputs[i]->data(), inputs[i]->shape()[size_t(port.batchAxis)],
                  int64_t(s) * entries, entries);
      samples[s].push_back(*one);
    }
  return samples;
}

struct Load {
  std::vector<double> latencies; ///< seconds, of a sample of the samples
  double longest = 0;            ///< of all of them
  int64_t samples = 0;
  double seconds = 0; ///< from the first sample to the last result
  Stream::Counts counts;
  bool gaveUp = false;
};

/// Offers samples at random times and notes when their results are there.
class Offer {
public:
  Offer(const Options &options, Stream &stream,
        const std::vector<std::vector<Tensor>> &samples)
      : options(options), stream(stream), samples(samples) {}

  Expected<Load> run(double seconds) {
    // Everything has been used once before something is measured.
    uint64_t first = PARTITA_TRY(stream.submit(samples[0]));
    PARTITA_TRY(stream.wait(first));
    const Stream::Counts before = stream.counts();
    std::thread taker([this] { take(); });
    const Clock::time_point begin = Clock::now();
    Status status = offer(seconds, begin);
    {
      std::lock_guard<std::mutex> lock(mutex);
      ended = true;
    }
    changed.notify_all();
    taker.join();
    if (!status.ok())
      return status;
    if (!failure.ok())
      return failure;
    load.seconds = Seconds(last - begin).count();
    load.samples = kept.count();
    load.counts = stream.counts();
    load.counts.steps -= before.steps;
    load.counts.samples -= before.samples;
    return std::move(load);
  }

private:
  struct Expectation {
    uint64_t ticket;
    Clock::time_point due;
  };

  Status offer(double seconds, Clock::time_point begin) {
    Progress progress("measuring", 1000, !options.json);
    std::mt19937_64 random(1);
    std::exponential_distribution<double> pause(options.rate);
    double at = 0;
    for (size_t i = 0; at < seconds; ++i, at += pause(random)) {
      const Clock::time_point due =
          begin + std::chrono::duration_cast<Clock::duration>(Seconds(at));
      std::this_thread::sleep_until(due);
      if (Seconds(Clock::now() - begin).count() > kLongest * seconds) {
        load.gaveUp = true;
        break;
      }
      uint64_t ticket = PARTITA_TRY(stream.submit(samples[i % samples.size()]));
      {
        std::lock_guard<std::mutex> lock(mutex);
        expected.push_back({ticket, due});
      }
      changed.notify_all();
      progress.update(int64_t(1000 * at / seconds));
    }
    return Status();
  }

  void take() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return ended || !expected.empty(); });
      if (expected.empty())
        return;
      const Expectation next = expected.front();
      expected.pop_front();
      lock.unlock();
      Expected<Stream::Answer> answer = stream.wait(next.ticket);
      lock.lock();
      if (!answer) {
        failure = answer.status();
        return;
      }
      const double latency = Seconds(answer->finished - next.due).count();
      load.longest = std::max(load.longest, latency);
      if (const std::optional<size_t> place = kept.next()) {
        if (*place == load.latencies.size())
          load.latencies.emplace_back();
        load.latencies[*place] = latency;
      }
      last = std::max(last, answer->finished);
    }
  }

  const Options &options;
  Stream &stream;
  const std::vector<std::vector<Tensor>> &samples;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Expectation> expected;
  bool ended = false;
  Status failure;
  Sample kept;
  Clock::time_point last;
  Load load;
};

constexpr double kShares[] = {0.5, 0.9, 0.99, 0.999};
constexpr const char *kNames[] = {"p50", "p90", "p99", "p99.9"};

void printLoadAsJson(const Options &options, const Model &model,
                     const Load &load, double seconds) {
  nlohmann::ordered_json json = {
      {"artifact", model.file},
      {"devices", model.devices},
      {"micro_batches", model.microBatches},
      {"samples_per_step", model.samples() * model.microBatches},
      {"batch_delay_ms", options.batchDelay},
      {"offered_samples_per_s", options.rate},
      {"seconds", seconds},
      {"samples", load.samples},
      {"steps", load.counts.steps},
      {"served_samples_per_s", double(load.samples) / load.seconds},
      {"kept_up", !load.gaveUp},
      {"latency_ms", nlohmann::ordered_json::object()}};
  for (size_t i = 0; i < std::size(kShares); ++i)
    json["latency_ms"][kNames[i]] =
        percentile(load.latencies, kShares[i]) * 1e3;
  json["latency_ms"]["max"] = load.longest * 1e3;
  std::printf("%s\n", dump(json).c_str());
}

void printLoadAsText(const Options &options, const Model &model,
                     const Load &load, double seconds) {
  std::printf("%s: %s, steps of up to %s, which wait at most %g ms for "
              "others\n",
              model.file.c_str(), countOf(model.devices, "device").c_str(),
              countOf(model.samples() * model.microBatches, "sample").c_str(),
              options.batchDelay);
  std::printf("offered  %g samples a second at random times, for %g s%s\n",
              options.rate, seconds,
              load.gaveUp ? "; given up, because the devices did not keep up"
                          : "");
  std::printf("served   %s a second: %lld samples in %lld steps\n",
              numberText(double(load.samples) / load.seconds).c_str(),
              static_cast<long long>(load.samples),
              static_cast<long long>(load.counts.steps));
  std::printf("latency ");
  for (size_t i = 0; i < std::size(kShares); ++i)
    std::printf(" %s %s  ", kNames[i],
                timeText(percentile(load.latencies, kShares[i]) * 1e9).c_str());
  std::printf(" max %s\n", timeText(load.longest * 1e9).c_str());
}

} // namespace

int runOfferedLoad(const Options &options, const Model &model, Job &job,
                   const InputTensors &inputs) {
  if (job.distributed())
    job.fail(Status::error("--rate needs all devices in one process: start "
                           "partita-run without mpirun"));
  const double seconds = options.seconds > 0 ? options.seconds : kSeconds;
  const std::vector<std::vector<Tensor>> samples = cutSamples(model, inputs);
  if (samples.empty())
    job.fail(Status::error("there is no memory for samples"));
  const auto stream =
      job.require(Stream::create(model, sessionOptions(options, model, job),
                                 {.delay_s = options.batchDelay / 1e3}));
  Load load = job.require(Offer(options, *stream, samples).run(seconds));
  std::sort(load.latencies.begin(), load.latencies.end());
  (options.json ? printLoadAsJson : printLoadAsText)(options, model, load,
                                                     seconds);
  return 0;
}

} // namespace partita::run
