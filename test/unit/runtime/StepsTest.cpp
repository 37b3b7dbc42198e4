//===- StepsTest.cpp - Steps that follow one another without a pause ------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/Artifact.h"
#include "runtime/base/StepScope.h"
#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/session/Session.h"
#include "test/unit/runtime/Pipelines.h"
#include "test/unit/runtime/TestedDevices.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <gtest/gtest.h>
#include <random>
#include <thread>

namespace partita::test {
namespace {

using namespace partita::runtime;
using Values = std::vector<float>;

std::unique_ptr<Session>
openSession(const PlanSpec &plan,
            const std::shared_ptr<Communicator> &comm = nullptr) {
  std::string path = temporary("steps.partita");
  writeArtifact(path, plan, testObjects());
  auto artifact = Artifact::open(path);
  ::unlink(path.c_str());
  EXPECT_TRUE(artifact.ok()) << artifact.status().message();
  SessionOptions options;
  options.pin = false;
  options.timeout_s = 20;
  auto session = createSession(*artifact, options, comm);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session ? std::move(*session) : nullptr;
}

/// A step of `fed` micro-batches, and what should come of it.
struct Step {
  Step(int fed, int64_t count, float first)
      : x(static_cast<size_t>(fed * count)), y(x.size(), -1) {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = first + float(i);
    binding.micro_batches = fed;
    binding.inputs = {reinterpret_cast<const uint8_t *>(x.data())};
    binding.outputs = {reinterpret_cast<uint8_t *>(y.data())};
  }

  void expectTimes(float factor) const {
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(y[i], x[i] * factor) << "element " << i;
  }

  Values x, y;
  StepBinding binding;
  uint64_t ticket = 0;
};

/// Steps of all sizes, up to four at a time, waited for in any order.
void expectStream(const PipelineSpec &spec, unsigned seed) {
  std::deque<std::unique_ptr<Step>> underWay;
  auto session = openSession(doublingPipeline(spec));
  ASSERT_TRUE(session);
  std::mt19937 random(seed);
  auto finishOne = [&] {
    auto one =
        underWay.begin() + static_cast<int64_t>(random() % underWay.size());
    Status status = session->wait((*one)->ticket);
    ASSERT_TRUE(status.ok()) << status.message();
    (*one)->expectTimes(float(1 << spec.devices));
    underWay.erase(one);
  };
  for (int i = 0; i < 40; ++i) {
    while (underWay.size() == Session::kMostSteps || random() % 3 == 0) {
      if (underWay.empty())
        break;
      finishOne();
      if (testing::Test::HasFatalFailure())
        return;
    }
    const int most = spec.micro_batches * spec.replicas;
    int fed = random() % 2 ? most : 1 + static_cast<int>(random() % most);
    underWay.push_back(std::make_unique<Step>(fed, spec.count, float(i * 100)));
    auto ticket = session->submit(underWay.back()->binding);
    ASSERT_TRUE(ticket.ok()) << ticket.status().message();
    underWay.back()->ticket = *ticket;
  }
  while (!underWay.empty() && !testing::Test::HasFatalFailure())
    finishOne();
}

TEST(Steps, OfReplicasAndShards) {
  // GPUs, which take NCCL long to join, get a third: any two numbers meet once.
  const bool all = testedKind() != abi::DeviceKind::cuda;
  unsigned seed = 0;
  for (int devices : {1, 2, 3})
    for (int replicas : {1, 2, 3})
      for (int shards : {1, 2, 3})
        for (bool release : {false, true}) {
          if (!all && (devices + replicas + shards) % 3 != 0)
            continue;
          PipelineSpec spec;
          spec.devices = devices;
          spec.micro_batches = 3;
          spec.count = 48;
          spec.release = release;
          spec.replicas = replicas;
          spec.shards = shards;
          SCOPED_TRACE(testing::Message()
                       << devices << " stages, " << replicas << " replicas, "
                       << shards << " shards, release " << release);
          expectStream(spec, seed++);
          if (testing::Test::HasFatalFailure())
            return;
        }
}

/// Sees whether a collective begins while what it writes is still being sent.
class StartObserver final : public Communicator {
public:
  /// Of two stages of two shards.
  explicit StartObserver(int64_t count)
      : local({{0, 2, count * 4}, {1, 3, count * 4}}, 1, 20, false,
              {gather(count, 0), gather(count, 2)}) {}

  std::unique_ptr<Sender> sender(int link, const EndMemory &memory) override {
    return std::make_unique<CountedSender>(underWay[link],
                                           local.sender(link, memory));
  }
  std::unique_ptr<Receiver> receiver(int link,
                                     const EndMemory &memory) override {
    return local.receiver(link, memory);
  }
  std::unique_ptr<Participant> participant(int collective, int device,
                                           const EndMemory &memory) override {
    return std::make_unique<Observed>(
        *this, collective == 0 ? &underWay[device] : nullptr,
        local.participant(collective, device, memory));
  }
  void abort() override { local.abort(); }

  std::atomic<bool> overtook = false;

private:
  struct CountedSender final : Sender {
    CountedSender(std::atomic<int> &underWay, std::unique_ptr<Sender> end)
        : underWay(underWay), end(std::move(end)) {}
    Status send(int m, const uint8_t *data, int64_t bytes) override {
      ++underWay;
      return end->send(m, data, bytes);
    }
    Status wait(int m) override {
      --underWay;
      return end->wait(m);
    }
    std::atomic<int> &underWay;
    const std::unique_ptr<Sender> end;
  };
  struct Observed final : Participant {
    Observed(StartObserver &by, std::atomic<int> *underWay,
             std::unique_ptr<Participant> part)
        : by(by), underWay(underWay), part(std::move(part)) {}
    Status start(int m, const uint8_t *source, uint8_t *target) override {
      if (underWay && *underWay != 0)
        by.overtook = true;
      return part->start(m, source, target);
    }
    Status finish(int m) override { return part->finish(m); }
    StartObserver &by;
    std::atomic<int> *const underWay;
    const std::unique_ptr<Participant> part;
  };

  static CollectiveInfo gather(int64_t count, int device) {
    return {CollectiveKind::all_gather,
            Reduction::sum,
            abi::DType::f32,
            count / 8,
            4,
            {{device, device + 1}}};
  }
  std::atomic<int> underWay[2] = {}; ///< by link, whose sender has its number
  LocalCommunicator local;
};

TEST(Steps, ACollectiveBeginsWhenWhatItWritesIsSentNoMore) {
  PipelineSpec spec;
  spec.devices = 2;
  spec.shards = 2;
  spec.count = 16;
  auto comm = std::make_shared<StartObserver>(spec.count);
  auto session = openSession(doublingPipeline(spec), comm);
  ASSERT_TRUE(session);
  Step first(1, spec.count, 1), second(1, spec.count, 100);
  for (Step *step : {&first, &second}) {
    auto ticket = session->submit(step->binding);
    ASSERT_TRUE(ticket.ok()) << ticket.status().message();
    step->ticket = *ticket;
  }
  for (Step *step : {&first, &second}) {
    Status status = session->wait(step->ticket);
    ASSERT_TRUE(status.ok()) << status.message();
    step->expectTimes(4);
  }
  EXPECT_FALSE(comm->overtook);
}

TEST(Steps, ManyOfAllSizesInAnyOrder) {
  unsigned seed = 0;
  for (int devices : {1, 2, 4})
    for (int copies : {1, 2, 3})
      for (bool release : {false, true})
        for (int ahead = 0; ahead < copies; ++ahead) {
          PipelineSpec spec;
          spec.devices = devices;
          spec.micro_batches = 4;
          spec.copies = copies;
          spec.release = release;
          spec.ahead = ahead;
          SCOPED_TRACE(testing::Message()
                       << devices << " devices, " << copies << " copies, "
                       << (release ? "with" : "without") << " release, "
                       << ahead << " ahead");
          expectStream(spec, ++seed);
        }
}

TEST(Steps, DirectlyIntoTheCallersBytes) {
  PipelineSpec spec;
  spec.devices = 3;
  spec.micro_batches = 5;
  spec.count = 5000;
  spec.release = true;
  expectStream(spec, 7);
}

/// Lets the second device have the last micro-batch of the first step only when
/// the first device has sent one of the second step.
class LateCommunicator final : public Communicator {
public:
  explicit LateCommunicator(int64_t bytes)
      : local({{0, 1, bytes}}, 2, 20, false) {}

  std::unique_ptr<Sender> sender(int channel,
                                 const EndMemory &memory) override {
    return std::make_unique<CountedSender>(*this,
                                           local.sender(channel, memory));
  }
  std::unique_ptr<Receiver> receiver(int channel,
                                     const EndMemory &memory) override {
    return std::make_unique<HeldReceiver>(*this,
                                          local.receiver(channel, memory));
  }
  std::unique_ptr<Participant> participant(int, int,
                                           const EndMemory &) override {
    return nullptr;
  }
  void abort() override { local.abort(); }

  std::atomic<bool> came_late = false, in_step = false, outside = true;

private:
  struct CountedSender final : Sender {
    CountedSender(LateCommunicator &by, std::unique_ptr<Sender> end)
        : by(by), end(std::move(end)) {}
    Status send(int m, const uint8_t *data, int64_t bytes) override {
      const Status status = end->send(m, data, bytes);
      by.in_step = StepScope::active();
      by.outside = StepScope::isOutside();
      ++by.sent;
      return status;
    }
    Status wait(int m) override { return end->wait(m); }
    LateCommunicator &by;
    const std::unique_ptr<Sender> end;
  };
  struct HeldReceiver final : Receiver {
    HeldReceiver(LateCommunicator &by, std::unique_ptr<Receiver> end)
        : by(by), end(std::move(end)) {}
    Status receive(int m, uint8_t *data, int64_t bytes) override {
      by.hold();
      return end->receive(m, data, bytes);
    }
    Expected<const uint8_t *> borrow(int m, uint8_t *data,
                                     int64_t bytes) override {
      by.hold();
      return end->borrow(m, data, bytes);
    }
    void release(int m) override { end->release(m); }
    LateCommunicator &by;
    const std::unique_ptr<Receiver> end;
  };

  void hold() {
    if (++received != 2)
      return;
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (sent < 3 && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    came_late = sent >= 3;
  }

  LocalCommunicator local;
  std::atomic<int> sent = 0;
  int received = 0; ///< by the only receiver
};

TEST(Steps, TheNextBeginsBeforeTheLastHasEnded) {
  PipelineSpec spec;
  spec.devices = 2;
  spec.micro_batches = 2;
  spec.release = true;
  auto comm = std::make_shared<LateCommunicator>(spec.count * 4);
  auto session = openSession(doublingPipeline(spec), comm);
  ASSERT_TRUE(session);
  Step first(2, spec.count, 1), second(2, spec.count, 100);
  auto one = session->submit(first.binding),
       two = session->submit(second.binding);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_TRUE(session->wait(*one).ok());
  EXPECT_TRUE(session->wait(*two).ok());
  first.expectTimes(4);
  second.expectTimes(4);
  EXPECT_TRUE(comm->came_late);
  // What devices allocate is of the step; what this thread does, is not.
  EXPECT_TRUE(comm->in_step);
  EXPECT_FALSE(comm->outside);
  EXPECT_TRUE(StepScope::isOutside());
  EXPECT_FALSE(StepScope::active());
}

TEST(Steps, MoreThanThereMayBeAreRefused) {
  Step step(3, 16, 1);
  auto session = openSession(doublingPipeline(2, 3));
  ASSERT_TRUE(session);
  std::vector<uint64_t> tickets;
  for (int i = 0; i < Session::kMostSteps; ++i) {
    auto ticket = session->submit(step.binding);
    ASSERT_TRUE(ticket.ok());
    tickets.push_back(*ticket);
  }
  EXPECT_EQ(session->submit(step.binding).status().message(),
            "4 steps are under way: wait for one of them first");
  EXPECT_TRUE(session->wait(tickets[2]).ok());
  EXPECT_EQ(session->wait(tickets[2]).message(),
            "no step of ticket 2 is under way");
  EXPECT_TRUE(session->submit(step.binding).ok());
  // The others are under way when the session goes.
}

TEST(Steps, FromSeveralThreads) {
  auto session = openSession(doublingPipeline(3, 4));
  ASSERT_TRUE(session);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < Session::kMostSteps; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        Step step(1 + (i + t) % 4, 16, float(1000 * t + i));
        if (!session->run(step.binding).ok())
          return;
        bool same = true;
        for (size_t k = 0; k < step.x.size(); ++k)
          same &= step.y[k] == step.x[k] * 8;
        right += same;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, 50 * Session::kMostSteps);
}

TEST(Steps, AllUnderWayFailWithOne) {
  // The second device is nobody's.
  std::string path = temporary("lonely.partita");
  writeArtifact(path, doublingPipeline(2, 3), testObjects());
  auto artifact = Artifact::open(path);
  ::unlink(path.c_str());
  ASSERT_TRUE(artifact.ok());
  SessionOptions options;
  options.devices = {1};
  auto session =
      createSession(*artifact, options,
                    std::make_shared<LocalCommunicator>(
                        std::vector<ChannelInfo>{{0, 1, 64}}, 3, 0.1, false));
  ASSERT_TRUE(session.ok());
  Step step(3, 16, 1);
  auto ticket = (*session)->submit(step.binding);
  ASSERT_TRUE(ticket.ok());
  EXPECT_NE((*session)->wait(*ticket).message().find("waited 0.1 s"),
            std::string::npos);
  EXPECT_NE(
      (*session)->submit(step.binding).status().message().find("failed before"),
      std::string::npos);
}

} // namespace
} // namespace partita::test
