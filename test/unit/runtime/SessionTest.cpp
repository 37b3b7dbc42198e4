//===- SessionTest.cpp - Plans run on devices -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/Session.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/comm/local/Staged.h"
#include "test/unit/runtime/Pipelines.h"
#include "test/unit/runtime/TestedDevices.h"

#include <atomic>
#include <cfloat>
#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>
#include <tuple>

namespace partita::test {
namespace {

using namespace partita::runtime;
using Values = std::vector<float>;

std::shared_ptr<const Artifact> openPlan(const PlanSpec &plan) {
  std::string path = temporary("session.partita");
  writeArtifact(path, plan, testObjects());
  auto artifact = Artifact::open(path);
  ::unlink(path.c_str());
  EXPECT_TRUE(artifact.ok()) << artifact.status().message();
  return artifact ? *artifact : nullptr;
}

std::unique_ptr<Session> makeSession(const PlanSpec &plan,
                                     const SessionOptions &options = {}) {
  auto artifact = openPlan(plan);
  if (!artifact)
    return nullptr;
  auto session = createSession(artifact, options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session ? std::move(*session) : nullptr;
}

std::string fileName(const std::string &name) {
  std::string path = temporary(name);
  return path.substr(path.rfind('/') + 1);
}

Values counting(size_t count, float first) {
  Values values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = first + static_cast<float>(i);
  return values;
}

Status runOnce(Session &session, int micro_batches, const Values &x,
               Values &y) {
  StepBinding binding;
  binding.micro_batches = micro_batches;
  binding.inputs = {reinterpret_cast<const uint8_t *>(x.data())};
  binding.outputs = {reinterpret_cast<uint8_t *>(y.data())};
  return session.run(binding);
}

/// Runs steps of `fed` of a doubling pipeline's micro-batches.
void expectDoubling(Session &session, int devices, int fed, int64_t count,
                    int steps) {
  for (int step = 0; step < steps; ++step) {
    Values x = counting(static_cast<size_t>(fed * count), 1.0f + step);
    Values y(x.size());
    Status status = runOnce(session, fed, x, y);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(y[i], x[i] * float(1 << devices)) << "step " << step;
  }
}

TEST(Session, OneDevice) {
  auto session = makeSession(doublingPipeline(1, 3));
  ASSERT_TRUE(session);
  expectDoubling(*session, 1, 3, 16, 3);
}

TEST(Session, TwoDevicesWithPartialSteps) {
  for (int threads : {1, 2}) {
    SessionOptions options;
    options.threads_per_device = threads;
    auto session = makeSession(doublingPipeline(2, 3, 5000), options);
    ASSERT_TRUE(session);
    for (int fed : {3, 1, 2, 3})
      expectDoubling(*session, 2, fed, 5000, 3);
  }
}

TEST(Session, MicroBatchesInFlightHaveCopiesOfTheirOwn) {
  for (int devices : {1, 2, 4})
    for (bool release : {false, true})
      for (int ahead : {0, 1, 2}) {
        auto session =
            makeSession(doublingPipeline({devices, 7, 40, release, 3, ahead}));
        ASSERT_TRUE(session);
        for (int fed : {7, 1, 4, 7})
          expectDoubling(*session, devices, fed, 40, 10);
      }
}

/// y = x . w on each micro-batch, in frames of so many copies.
PlanSpec manyProducts(int micro_batches, int copies, const Values &w,
                      int64_t n) {
  PlanSpec plan = doublingPipeline({1, micro_batches, n * n, false, copies});
  InstructionSpec dot;
  dot.views = {{0, {n, n}, {n, 1}},
               plan.view(0, plan.addWeight(0, {n, n}, w)),
               {1, {n, n}, {n, 1}}};
  plan.programs[0].units[0].instructions = {dot};
  return plan;
}

// Packed weights and scratch are those of one call, whatever the number of
// copies and micro-batches.
TEST(Session, CallsArePreparedOnce) {
  const int64_t n = 48;
  const Values w = counting(n * n, -1000);
  auto one = makeSession(manyProducts(1, 1, w, n));
  ASSERT_TRUE(one);
  for (int copies : {1, 3}) {
    auto many = makeSession(manyProducts(7, copies, w, n));
    ASSERT_TRUE(many);
    EXPECT_EQ(many->memory()[0].packed, one->memory()[0].packed);
    EXPECT_EQ(many->memory()[0].parameters, one->memory()[0].parameters);
    EXPECT_EQ(many->memory()[0].workspace, one->memory()[0].workspace);
    Values x = counting(7 * n * n, 0), y(x.size()), expected(n * n);
    ASSERT_TRUE(runOnce(*many, 7, x, y).ok());
    for (int m = 0; m < 7; ++m) {
      Values sample(x.begin() + m * n * n, x.begin() + (m + 1) * n * n);
      ASSERT_TRUE(runOnce(*one, 1, sample, expected).ok());
      for (int64_t i = 0; i < n * n; ++i)
        ASSERT_EQ(y[m * n * n + i], expected[i]) << "micro-batch " << m;
    }
  }
}

TEST(Session, DevicesMayComeInAnyOrder) {
  PlanSpec plan = doublingPipeline({3, 4, 16, true});
  std::rotate(plan.devices.begin(), plan.devices.begin() + 1,
              plan.devices.end());
  auto session = makeSession(plan);
  ASSERT_TRUE(session);
  expectDoubling(*session, 3, 4, 16, 5);
}

// Each device has a weight of its own. A flipped bit of either is found, on any
// number of threads; a session of one device reads only its own.
TEST(Session, ChecksItsWeights) {
  PlanSpec plan = doublingPipeline(2, 1);
  plan.addWeight(0, {4}, {1, 2, 3, 4});
  plan.addWeight(1, {3}, {5, 6, 7});
  const size_t ends[] = {16, 64 + 12};
  auto create = [&](const PlanSpec &plan, const SessionOptions &options) {
    auto session = createSession(openPlan(plan), options);
    return session ? std::string() : session.status().message();
  };
  for (int weight : {0, 1})
    for (size_t at = weight * 64; at < ends[weight]; ++at)
      for (int bit = 0; bit < 8; ++bit) {
        PlanSpec flipped = plan;
        flipped.weight_bytes[at] ^= uint8_t(1 << bit);
        SessionOptions options;
        options.threads_per_device = 1 + bit % 2;
        std::string message = create(flipped, options);
        ASSERT_NE(message.find("the bytes of weight 'w" +
                               std::to_string(weight) + "'"),
                  std::string::npos)
            << message;
        ASSERT_NE(message.find("not those the model was compiled with"),
                  std::string::npos);
        options.trust_weights = true;
        ASSERT_EQ(create(flipped, options), "");
        options.trust_weights = false;
        options.devices = {weight};
        ASSERT_NE(create(flipped, options), "");
      }
  // The other device's weight is not read; alone it has nobody to talk to.
  PlanSpec flipped = plan;
  flipped.weight_bytes[0] ^= 1;
  SessionOptions options;
  options.devices = {1};
  ASSERT_EQ(create(flipped, options), "");
}

TEST(Session, EightDevicesOnFewCores) {
  auto session = makeSession(doublingPipeline(8, 5));
  ASSERT_TRUE(session);
  expectDoubling(*session, 8, 5, 16, 200);
}

// Two sessions share the devices of a plan, as processes do.
TEST(Session, SomeOfTheDevices) {
  constexpr int kDevices = 4, kMicroBatches = 3;
  auto artifact = openPlan(doublingPipeline(kDevices, kMicroBatches));
  std::vector<ChannelInfo> links;
  for (int from = 0; from + 1 < kDevices; ++from)
    links.push_back({from, from + 1, 64});
  auto comm =
      std::make_shared<LocalCommunicator>(links, kMicroBatches, 60, false);
  const std::vector<std::vector<int>> parts = {{0, 2}, {1, 3}};
  const Values x = counting(16 * kMicroBatches, 1);
  Values y(x.size()), nothing(x.size());
  std::vector<std::thread> threads;
  for (const std::vector<int> &part : parts)
    threads.emplace_back([&, part] {
      SessionOptions options;
      options.devices = part;
      options.first_core = part.front() * 2;
      auto session = createSession(artifact, options, comm);
      ASSERT_TRUE(session.ok()) << session.status().message();
      EXPECT_EQ((*session)->memory().size(), part.size());
      EXPECT_TRUE(runOnce(**session, kMicroBatches, x,
                          part.back() + 1 == kDevices ? y : nothing)
                      .ok());
    });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(y[i], x[i] * 16);
  EXPECT_EQ(nothing, Values(x.size()));

  auto message = [&](std::vector<int> devices) {
    SessionOptions options;
    options.devices = std::move(devices);
    return createSession(artifact, options, comm).status().message();
  };
  EXPECT_NE(message({0, 4}).find("is for 4 devices and has no device 4"),
            std::string::npos);
  EXPECT_NE(message({1, 1}).find("not in increasing order"), std::string::npos);
}

// Instructions read and write the caller's bytes themselves where these are
// aligned; other bytes are copied. Either way callers may change their mind.
// What a session has sent, others may take when its last step is over.
TEST(Session, EndsWhenOthersHaveTakenWhatItSent) {
  constexpr int kMicroBatches = 2;
  auto artifact = openPlan(doublingPipeline(4, kMicroBatches));
  const std::vector<ChannelInfo> links = {{0, 1, 64}, {1, 2, 64}, {2, 3, 64}};
  auto comm =
      std::make_shared<LocalCommunicator>(links, kMicroBatches, 60, false);
  const Values x = counting(16 * kMicroBatches, 1);
  Values y(x.size());
  auto runSome = [&](std::vector<int> devices, Values &out) {
    SessionOptions options;
    options.devices = std::move(devices);
    auto session = createSession(artifact, options, comm);
    ASSERT_TRUE(session.ok()) << session.status().message();
    const Status status = runOnce(**session, kMicroBatches, x, out);
    EXPECT_TRUE(status.ok()) << status.message();
  };
  Values nothing(x.size());
  std::thread senders([&] { runSome({0, 1}, nothing); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  runSome({2, 3}, y);
  senders.join();
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(y[i], x[i] * 16);
}

TEST(Session, BuffersOfTheCallerMayMoveAndNeedNoAlignment) {
  constexpr int64_t kCount = 16, kMicroBatches = 3;
  for (int devices : {1, 2}) {
    auto session = makeSession(doublingPipeline(devices, kMicroBatches));
    ASSERT_TRUE(session);
    const size_t bytes = kCount * kMicroBatches * sizeof(float);
    std::vector<uint8_t> in(bytes + 64), out(bytes + 64);
    for (size_t shift : {0, 4, 1, 32, 3, 0}) {
      Values x = counting(kCount * kMicroBatches, float(shift)), y(x.size());
      std::memcpy(in.data() + shift, x.data(), bytes);
      StepBinding binding;
      binding.micro_batches = kMicroBatches;
      binding.inputs = {in.data() + shift};
      binding.outputs = {out.data() + 2 * (shift % 8)};
      ASSERT_TRUE(session->run(binding).ok());
      std::memcpy(y.data(), binding.outputs[0], bytes);
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(y[i], x[i] * float(1 << devices)) << "shift " << shift;
      ASSERT_EQ(std::memcmp(in.data() + shift, x.data(), bytes), 0);
    }
  }
}

TEST(Session, BorrowsWhatIsReleased) {
  for (int devices : {2, 8}) {
    auto session = makeSession(doublingPipeline(devices, 5, 3000, true));
    ASSERT_TRUE(session);
    for (int fed : {5, 1, 3, 5})
      expectDoubling(*session, devices, fed, 3000, 20);
  }
}

/// Counts what receivers copy and what they borrow.
class CountingCommunicator final : public Communicator {
public:
  CountingCommunicator(const std::vector<ChannelInfo> &channels,
                       int micro_batches)
      : inner(channels, micro_batches, 60, false) {}
  std::unique_ptr<Sender> sender(int channel,
                                 const EndMemory &memory) override {
    return staged(inner.sender(channel, {}), memory);
  }
  std::unique_ptr<Receiver> receiver(int channel,
                                     const EndMemory &memory) override {
    return staged(std::make_unique<End>(*this, inner.receiver(channel, {})),
                  memory);
  }
  std::unique_ptr<Participant> participant(int, int,
                                           const EndMemory &) override {
    return nullptr;
  }
  void abort() override { inner.abort(); }

  std::atomic<int> copied = 0, borrowed = 0, released = 0;

private:
  struct End final : Receiver {
    End(CountingCommunicator &counts, std::unique_ptr<Receiver> end)
        : counts(counts), end(std::move(end)) {}
    Status receive(int micro_batch, uint8_t *data, int64_t bytes) override {
      ++counts.copied;
      return end->receive(micro_batch, data, bytes);
    }
    Expected<const uint8_t *> borrow(int micro_batch, uint8_t *data,
                                     int64_t bytes) override {
      ++counts.borrowed;
      return end->borrow(micro_batch, data, bytes);
    }
    void release(int micro_batch) override {
      ++counts.released;
      end->release(micro_batch);
    }
    CountingCommunicator &counts;
    const std::unique_ptr<Receiver> end;
  };

  LocalCommunicator inner;
};

// Through a communicator that carries only bytes of the host, and takes them
// from the sender when they are received.
TEST(Session, SentBytesOfEachMicroBatchAreKeptUntilTheyAreReceived) {
  for (bool release : {false, true})
    for (int ahead : {0, 2}) {
      const PlanSpec plan = doublingPipeline({3, 7, 40, release, 3, ahead});
      auto comm = std::make_shared<CountingCommunicator>(
          std::vector<ChannelInfo>{{0, 1, 160}, {1, 2, 160}}, 7);
      auto session = createSession(openPlan(plan), {}, comm);
      ASSERT_TRUE(session.ok()) << session.status().message();
      for (int fed : {7, 2, 7})
        expectDoubling(**session, 3, fed, 40, 10);
    }
}

TEST(HostSession, CopiesOnlyWhatIsNotReleasedOrNotOnlyRead) {
  // What is received leaves as it stands too, or is never released.
  PlanSpec stored = doublingPipeline(2, 1, 16, true),
           kept = doublingPipeline(2, 1, 16, false);
  stored.outputs.push_back({"z", abi::DType::f32, {16}});
  auto &actions = stored.programs[1].actions;
  actions.insert(actions.begin() + 1,
                 {abi::ActionKind::store_output, 0, 1, actions.front().slot});
  // What is received is not read at all.
  PlanSpec unread = doublingPipeline(2, 1, 16, true);
  ProgramSpec &second = unread.programs[1];
  const int other = unread.addSlot(1, {16});
  second.units[0].instructions[0].operands[0] = other;
  second.actions.insert(second.actions.begin(),
                        {abi::ActionKind::load_input, 0, 0, other});
  for (auto [plan, copied, borrowed, factor] :
       {std::tuple(doublingPipeline(2, 1, 16, true), 0, 1, 4),
        std::tuple(stored, 1, 0, 4), std::tuple(kept, 1, 0, 4),
        std::tuple(unread, 0, 1, 2)}) {
    auto comm = std::make_shared<CountingCommunicator>(
        std::vector<ChannelInfo>{{0, 1, 64}}, 1);
    auto session = createSession(openPlan(plan), {}, comm);
    ASSERT_TRUE(session.ok()) << session.status().message();
    Values x = counting(16, 1), y(16), z(16);
    StepBinding binding;
    binding.inputs = {reinterpret_cast<const uint8_t *>(x.data())};
    binding.outputs = {reinterpret_cast<uint8_t *>(y.data())};
    if (plan.outputs.size() > 1)
      binding.outputs.push_back(reinterpret_cast<uint8_t *>(z.data()));
    for (int step = 1; step <= 3; ++step) {
      ASSERT_TRUE((*session)->run(binding).ok());
      EXPECT_EQ(y[3], factor * x[3]);
      EXPECT_EQ(comm->copied, step * copied);
      EXPECT_EQ(comm->borrowed, step * borrowed);
      EXPECT_EQ(comm->released, step * borrowed);
    }
  }
}

TEST(Session, RefusesWrongBindings) {
  auto session = makeSession(doublingPipeline(2, 3));
  ASSERT_TRUE(session);
  Values x(48), y(48);
  EXPECT_NE(runOnce(*session, 4, x, y).message().find("micro-batches"),
            std::string::npos);
  EXPECT_FALSE(runOnce(*session, 0, x, y).ok());
  StepBinding binding;
  EXPECT_FALSE(session->run(binding).ok());
  binding.inputs = {nullptr};
  binding.outputs = {reinterpret_cast<uint8_t *>(y.data())};
  EXPECT_EQ(session->run(binding).message(), "input 'x' is not given");
  // None of these spoils the session.
  EXPECT_TRUE(runOnce(*session, 3, x, y).ok());
}

/// Runs one device of a plan whose others never come.
void loseTheOthers(int device, std::string &message) {
  auto artifact = openPlan(doublingPipeline(2, 3));
  SessionOptions options;
  options.devices = {device};
  auto comm = std::make_shared<LocalCommunicator>(
      std::vector<ChannelInfo>{{0, 1, 64}}, 3, 0.2, false);
  auto session = createSession(artifact, options, comm);
  ASSERT_TRUE(session.ok()) << session.status().message();
  Values x(48), y(48);
  auto begin = std::chrono::steady_clock::now();
  message = runOnce(**session, 3, x, y).message();
  std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - begin;
  EXPECT_GE(passed.count(), 0.19);
  EXPECT_LT(passed.count(), 5);
  // Afterwards the session is of no more use, and says so.
  EXPECT_NE(runOnce(**session, 3, x, y).message().find("failed before"),
            std::string::npos);
}

std::string messageOfLonelyDevice(int device) {
  std::string message;
  loseTheOthers(device, message);
  return message;
}

TEST(Session, ReceiverSaysForWhomItWaited) {
  EXPECT_EQ(messageOfLonelyDevice(1),
            "cpu:1: receiving micro-batch 0 of 'x1' (channel 0) from cpu:0: "
            "waited 0.2 s");
}

TEST(Session, SenderSaysForWhomItWaited) {
  EXPECT_EQ(messageOfLonelyDevice(0),
            "cpu:0: waiting for cpu:1 to take micro-batch 0 of 'x1' (channel "
            "0): waited 0.2 s");
}

TEST(LocalCommunicator, AbortWakesReceiver) {
  LocalCommunicator comm({{0, 1, 4}}, 1, 60, false);
  std::string message;
  std::thread receiver([&] {
    int value;
    message = comm.recv(0, 0, &value, 4).message();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  comm.abort();
  receiver.join();
  EXPECT_EQ(message, "stopped, because another device failed");
}

TEST(LocalCommunicator, BorrowsUntilReleased) {
  LocalCommunicator comm({{0, 1, 8}}, 1, 60, true);
  int64_t value = 0;
  std::thread receiver([&] {
    int64_t own = -1;
    auto end = comm.receiver(0, {});
    for (int64_t i = 0; i < 2000; ++i) {
      auto at = end->borrow(0, reinterpret_cast<uint8_t *>(&own), 8);
      ASSERT_TRUE(at.ok()) << at.status().message();
      EXPECT_EQ(*at, reinterpret_cast<const uint8_t *>(&value));
      EXPECT_EQ(*reinterpret_cast<const int64_t *>(*at), i);
      end->release(0);
    }
    EXPECT_EQ(own, -1);
  });
  for (int64_t i = 0; i < 2000; ++i) {
    value = i;
    EXPECT_TRUE(comm.send(0, 0, &value, 8).ok());
    EXPECT_TRUE(comm.waitSent(0, 0).ok());
  }
  receiver.join();
}

/// A queue that counts who waits for its events, or for those of others.
class CountingQueue final : public Queue {
public:
  Status copyIn(uint8_t *, const void *, size_t) override { return no(); }
  Status copyOut(void *, const uint8_t *, size_t) override { return no(); }
  Status copyFrom(Device &, uint8_t *, const uint8_t *, size_t) override {
    return no();
  }
  Status run(Instance &, int, TaskObserver *) override { return no(); }
  Event record() override { return {this, ++recorded}; }
  Status wait(const Event &event) override {
    waited.push_back(event.number);
    return Status();
  }
  Status synchronize(const Event &event) override {
    synchronized.push_back(event.number);
    return Status();
  }
  uint64_t recorded = 0;
  std::vector<uint64_t> waited, synchronized;

private:
  static Status no() { return Status::error("it only counts"); }
};

TEST(LocalCommunicator, TheSendersQueueWaitsForTheReceivers) {
  LocalCommunicator comm({{0, 1, 8}, {2, 3, 8}}, 1, 60, true);
  const int64_t value = 7;
  CountingQueue sender;
  auto receiver = std::make_unique<CountingQueue>();
  auto exchange = [&](int channel) {
    EXPECT_TRUE(comm.send(channel, 0, &value, 8).ok());
    EXPECT_TRUE(comm.take(channel, 0, 8).ok());
    EXPECT_TRUE(comm.releaseAfter(channel, 0, receiver->record()).ok());
  };
  exchange(0);
  EXPECT_TRUE(comm.waitSentOn(0, 0, sender).ok());
  EXPECT_EQ(sender.waited, std::vector<uint64_t>{1});
  exchange(0);
  EXPECT_TRUE(comm.waitSent(0, 0).ok()); // the host itself
  EXPECT_EQ(receiver->synchronized, std::vector<uint64_t>{2});
  // A receiver that goes has done everything.
  exchange(0);
  exchange(1);
  EXPECT_TRUE(comm.detach(3));
  EXPECT_EQ(receiver->synchronized, (std::vector<uint64_t>{2, 4}));
  EXPECT_TRUE(comm.detach(1));
  EXPECT_EQ(receiver->synchronized, (std::vector<uint64_t>{2, 4, 3}));
  receiver.reset();
  EXPECT_TRUE(comm.waitSentOn(0, 0, sender).ok());
  EXPECT_TRUE(comm.waitSent(1, 0).ok());
  EXPECT_EQ(sender.waited, std::vector<uint64_t>{1});
}

TEST(LocalCommunicator, TokensAndManyRounds) {
  LocalCommunicator comm({{0, 1, 0}, {1, 0, 8}}, 2, 60, true);
  int64_t sum = 0;
  std::thread other([&] {
    for (int64_t i = 0; i < 2000; ++i) {
      EXPECT_TRUE(comm.recv(0, i % 2, nullptr, 0).ok());
      EXPECT_TRUE(comm.send(1, i % 2, &i, 8).ok());
      EXPECT_TRUE(comm.waitSent(1, i % 2).ok());
    }
  });
  for (int64_t i = 0; i < 2000; ++i) {
    int64_t value = -1;
    EXPECT_TRUE(comm.send(0, i % 2, nullptr, 0).ok());
    EXPECT_TRUE(comm.waitSent(0, i % 2).ok());
    EXPECT_TRUE(comm.recv(1, i % 2, &value, 8).ok());
    sum += value - i;
  }
  other.join();
  EXPECT_EQ(sum, 0);
}

/// y = x . (2 w), where the load program computes 2 w.
PlanSpec planWithLoadProgram(const Values &w, int64_t n) {
  PlanSpec plan;
  int d = plan.addDevice();
  plan.kernels = {"twice"};
  plan.inputs = {{"x", abi::DType::f32, {2, n}}};
  plan.outputs = {{"y", abi::DType::f32, {2, n}}};
  int weight = plan.addWeight(d, {n, n}, w);
  int constant = plan.addSlot(d, {n, n}, abi::Space::constant);
  int x = plan.addSlot(d, {2, n}), y = plan.addSlot(d, {2, n});
  InstructionSpec twice, dot;
  twice.type = abi::Work::Dispatch;
  twice.operands = {weight, constant};
  twice.extent = n * n;
  plan.programs[d].load = {twice};
  dot.views = {plan.view(d, x), plan.view(d, constant), plan.view(d, y)};
  plan.programs[d].units.push_back({"F0", 0, {dot}});
  plan.programs[d].actions = {{abi::ActionKind::load_input, 0, 0, x},
                              {abi::ActionKind::run, 0, 0},
                              {abi::ActionKind::store_output, 0, 0, y}};
  return plan;
}

TEST(Session, LoadProgram) {
  const int64_t n = 48;
  Values w = counting(n * n, -1000), x = counting(2 * n, 0), y(2 * n);
  auto session = makeSession(planWithLoadProgram(w, n));
  ASSERT_TRUE(session);
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(runOnce(*session, 1, x, y).ok());
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t c = 0; c < n; ++c) {
        double sum = 0;
        for (int64_t k = 0; k < n; ++k)
          sum += 2.0 * x[r * n + k] * w[k * n + c];
        ASSERT_NEAR(y[r * n + c], sum, 1e-5 * std::abs(sum) + 1);
      }
  }
  // The product is of 48 columns and packs them into a block of 64 at most; the
  // weight itself is read by the load program only.
  DeviceMemory memory = session->memory()[0];
  EXPECT_EQ(memory.packed + memory.parameters,
            memory.packed ? memory.packed : n * n * 4);
}

TEST(Session, PacksOnlyWhatThePlanHasRoomFor) {
  const int64_t n = 48;
  Values w = counting(n * n, -1000), x = counting(2 * n, 0), y(2 * n), z(2 * n);
  PlanSpec plan = planWithLoadProgram(w, n);
  auto roomy = makeSession(plan);
  ASSERT_TRUE(roomy);
  plan.programs[0].packed_bytes = 0;
  auto tight = makeSession(plan);
  ASSERT_TRUE(tight);
  EXPECT_EQ(tight->memory()[0].packed, 0);
  EXPECT_EQ(tight->memory()[0].parameters, n * n * 4);
  ASSERT_TRUE(runOnce(*roomy, 1, x, y).ok());
  ASSERT_TRUE(runOnce(*tight, 1, x, z).ok());
  for (int64_t i = 0; i < 2 * n; ++i)
    ASSERT_NEAR(y[i], z[i], 1e-5 * std::abs(y[i]) + 1);
}

TEST(Session, WeightsOfAnotherFileNeedNoAlignment) {
  const int64_t n = 24;
  Values w = counting(n * n, -100), x = counting(2 * n, 0), y(2 * n);
  PlanSpec plan = planWithLoadProgram(w, n);
  // y += x . w, where the library packs w from the file as well.
  InstructionSpec dot = plan.programs[0].units[0].instructions[0];
  dot.views[1] = plan.view(0, 0);
  PostOpSpec sum;
  sum.kind = abi::PostOpKind::sum;
  dot.post_ops = {sum};
  plan.programs[0].units[0].instructions.push_back(dot);
  std::string name = fileName("unaligned.bin");
  std::vector<uint8_t> bytes(3 + w.size() * 4);
  std::memcpy(bytes.data() + 3, w.data(), w.size() * 4);
  writeFile(temporary("unaligned.bin"), bytes);
  plan.weights[0].file = name;
  plan.weights[0].offset = 3;
  plan.weight_bytes.clear(); // they are in the other file now
  auto session = makeSession(plan);
  ::unlink(temporary("unaligned.bin").c_str());
  ASSERT_TRUE(session);
  ASSERT_TRUE(runOnce(*session, 1, x, y).ok());
  for (int64_t r = 0; r < 2; ++r)
    for (int64_t c = 0; c < n; ++c) {
      double expected = 0;
      for (int64_t k = 0; k < n; ++k)
        expected += 3.0 * x[r * n + k] * w[k * n + c];
      ASSERT_NEAR(y[r * n + c], expected, 1e-5 * std::abs(expected) + 0.1);
    }
}

TEST(Session, EveryThreadFlushesDenormals) {
  PlanSpec plan = doublingPipeline(1, 1, 4096);
  plan.kernels = {"half"};
  SessionOptions options;
  options.threads_per_device = 4;
  auto session = makeSession(plan, options);
  ASSERT_TRUE(session);
  Values x(4096, FLT_MIN), y(4096, 1);
  ASSERT_TRUE(runOnce(*session, 1, x, y).ok());
  EXPECT_EQ(std::count(y.begin(), y.end(), 0.0f), 4096);
  // The caller's own mode is as it was.
  volatile float tiny = FLT_MIN;
  EXPECT_NE(tiny / 2, 0.0f);
}

TEST(Session, ArenaIsUsedAsPlanned) {
  SessionOptions options;
  options.measure_arena = true;
  auto session = makeSession(doublingPipeline(2, 3), options);
  ASSERT_TRUE(session);
  expectDoubling(*session, 2, 3, 16, 2);
  for (const DeviceMemory &memory : session->memory()) {
    EXPECT_EQ(memory.arena, 4 * 64);
    EXPECT_EQ(memory.arena_touched, memory.arena);
  }
}

TEST(Session, ProfileHasEveryEntry) {
  SessionOptions options;
  options.profile = true;
  PlanSpec plan = doublingPipeline(2, 3);
  auto session = makeSession(plan, options);
  ASSERT_TRUE(session);
  expectDoubling(*session, 2, 3, 16, 2);
  size_t entries = 0, instructions = 0;
  for (const ProfileEvent &event : session->profile()) {
    EXPECT_LE(event.begin_ns, event.end_ns);
    (event.instruction < 0 ? entries : instructions) += 1;
  }
  EXPECT_EQ(entries,
            plan.programs[0].actions.size() + plan.programs[1].actions.size());
  EXPECT_EQ(instructions, 6u);
  ASSERT_EQ(session->busyNs().size(), 2u);
  EXPECT_GT(session->busyNs()[1], 0);
}

TEST(Session, SaysWhichLevelsThereAre) {
  auto artifact = openPlan(doublingPipeline(1, 1));
  SessionOptions options;
  options.max_cpu_level = 2;
  auto session = createSession(artifact, options);
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.status().message().find(
                "holds code for x86-64-v3 and v4; level 2 is the highest"),
            std::string::npos)
      << session.status().message();
}

TEST(Session, SaysWhichKernelIsMissing) {
  PlanSpec plan = doublingPipeline(1, 1);
  plan.kernels = {"thrice"};
  auto session = createSession(openPlan(plan), {});
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.status().message().find("no kernel 'thrice'"),
            std::string::npos);
}

TEST(Session, SeveralSessionsAtOnce) {
  auto one = makeSession(doublingPipeline(2, 2));
  PlanSpec halving = doublingPipeline(2, 2);
  halving.kernels = {"half"};
  auto two = makeSession(halving);
  ASSERT_TRUE(one && two);
  Values x = counting(32, 4), y(32);
  ASSERT_TRUE(runOnce(*one, 2, x, y).ok());
  EXPECT_EQ(y[0], 16);
  ASSERT_TRUE(runOnce(*two, 2, x, y).ok());
  EXPECT_EQ(y[0], 1);
}

} // namespace
} // namespace partita::test
