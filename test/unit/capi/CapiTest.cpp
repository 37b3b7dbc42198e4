//===- CapiTest.cpp - The runtime as a C program sees it ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/partita.h"
#include "test/unit/runtime/Pipelines.h"

#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

namespace partita::test {
namespace {

/// y = 4 * x on two devices, steps of 3 micro-batches of 4 samples.
class Capi : public ::testing::Test {
protected:
  void SetUp() override {
    path = temporary("capi.partita");
    PipelineSpec spec;
    spec.devices = 2;
    spec.micro_batches = 3;
    spec.count = 4;
    writeArtifact(path, doublingPipeline(spec), testObjects());
    partita_options options;
    partita_default_options(&options);
    options.threads = 1;
    options.pin = 0;
    ASSERT_EQ(partita_open(path.c_str(), &options, &model), PARTITA_OK)
        << partita_last_error();
  }
  void TearDown() override {
    partita_close(model);
    ::unlink(path.c_str());
  }

  bool runs(int64_t samples, float first) {
    std::vector<float> x(static_cast<size_t>(samples)), y(x.size(), -1);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = first + float(i);
    const void *in[] = {x.data()};
    void *out[] = {y.data()};
    if (partita_run(model, in, samples, out) != PARTITA_OK)
      return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (y[i] != 4 * x[i])
        return false;
    return true;
  }

  std::string path;
  partita_model *model = nullptr;
};

TEST_F(Capi, Describes) {
  EXPECT_EQ(partita_api_version(), PARTITA_API_VERSION);
  ASSERT_EQ(partita_input_count(model), 1u);
  ASSERT_EQ(partita_output_count(model), 1u);
  partita_port port = {};
  port.size = sizeof port;
  ASSERT_EQ(partita_input(model, 0, &port), PARTITA_OK);
  EXPECT_STREQ(port.name, "x");
  EXPECT_EQ(port.type, PARTITA_F32);
  EXPECT_EQ(port.rank, 1);
  EXPECT_EQ(port.shape[0], 1);
  EXPECT_EQ(port.batch_axis, 0);
  EXPECT_EQ(port.bytes, 4);
  EXPECT_EQ(partita_step_samples(model), 12);
  size_t index = 7;
  EXPECT_EQ(partita_find_output(model, "y", &index), PARTITA_OK);
  EXPECT_EQ(index, 0u);
}

TEST_F(Capi, RunsAnyNumberOfSamples) {
  for (int64_t samples : {1, 4, 5, 12, 100})
    EXPECT_TRUE(runs(samples, float(samples))) << partita_last_error();
}

TEST_F(Capi, CountsWhatWasComputed) {
  partita_profile profile = {};
  profile.size = sizeof profile;
  ASSERT_EQ(partita_get_profile(model, &profile), PARTITA_OK);
  EXPECT_EQ(profile.steps, 0);
  EXPECT_EQ(profile.samples, 0);
  EXPECT_EQ(profile.devices, 2);
  partita_device_profile device = {};
  device.size = sizeof device;
  ASSERT_EQ(partita_get_device_profile(model, 1, &device), PARTITA_OK);
  EXPECT_STREQ(device.name, "cpu:1");
  EXPECT_EQ(device.busy_s, 0);
  EXPECT_TRUE(runs(30, 1));
  EXPECT_TRUE(runs(5, 1));
  ASSERT_EQ(partita_get_profile(model, &profile), PARTITA_OK);
  EXPECT_GE(profile.steps, 4); // of 12 samples
  EXPECT_EQ(profile.samples, 35);
  for (int i = 0; i < profile.devices; ++i) {
    ASSERT_EQ(partita_get_device_profile(model, i, &device), PARTITA_OK);
    EXPECT_GT(device.busy_s, 0);
    EXPECT_LT(device.busy_s, 20);
  }
  EXPECT_EQ(partita_get_device_profile(model, 2, &device), PARTITA_ERROR);
  EXPECT_STREQ(partita_last_error(),
               "the model has 2 devices: there is none of index 2");
  EXPECT_EQ(partita_last_error_in_input(), 0); // of the caller, no value
  EXPECT_EQ(partita_get_profile(model, nullptr), PARTITA_ERROR);
}

TEST_F(Capi, SubmitsFromSeveralThreads) {
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        right += runs(1 + (i + t) % 20, float(t * 1000 + i));
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, 200);

  std::vector<float> x(30, 2.5f), y(30);
  std::vector<uint64_t> tickets;
  for (int i = 0; i < 3; ++i) {
    const void *in[] = {&x[i * 10]};
    void *out[] = {&y[i * 10]};
    tickets.emplace_back();
    ASSERT_EQ(partita_submit(model, in, 10, out, &tickets.back()), PARTITA_OK);
  }
  for (uint64_t ticket : tickets)
    EXPECT_EQ(partita_wait(model, ticket), PARTITA_OK);
  EXPECT_EQ(y, std::vector<float>(30, 10.0f));
}

TEST_F(Capi, SaysWhatIsWrongAndLivesOn) {
  std::vector<float> x(4), y(4);
  const void *in[] = {x.data()}, *none[] = {nullptr};
  void *out[] = {y.data()};
  auto error = [&](partita_status status) {
    EXPECT_EQ(status, PARTITA_ERROR);
    return std::string(partita_last_error());
  };
  EXPECT_EQ(error(partita_run(model, none, 4, out)),
            "the input 'x' is not given");
  EXPECT_EQ(error(partita_run(model, in, 0, out)),
            "there are 0 samples: give at least 1");
  EXPECT_NE(error(partita_run(model, nullptr, 4, out)).find("no list"),
            std::string::npos);
  void *nowhere[] = {nullptr};
  EXPECT_EQ(error(partita_run(model, in, 4, nowhere)),
            "the output 'y' has no place to go to");
  EXPECT_EQ(error(partita_wait(model, 12345)),
            "no samples of ticket 12345 are under way");
  size_t index;
  EXPECT_EQ(error(partita_find_input(model, "z", &index)),
            "the model has no input 'z'; it has 'x'");
  partita_port port = {};
  EXPECT_NE(error(partita_input(model, 0, &port)).find("sizeof(partita_port)"),
            std::string::npos);
  port.size = sizeof port;
  EXPECT_EQ(error(partita_output(model, 3, &port)),
            "the model has 1 outputs: there is none of index 3");
  partita_model *other = model;
  EXPECT_NE(
      error(partita_open("none.partita", nullptr, &other)).find("none.partita"),
      std::string::npos);
  EXPECT_EQ(other, nullptr);
  EXPECT_NE(error(partita_input(model, 0, nullptr)).find("no place"),
            std::string::npos);
  EXPECT_NE(error(partita_find_input(model, "x", nullptr)).find("no place"),
            std::string::npos);
  EXPECT_NE(error(partita_submit(model, in, 4, out, nullptr)).find("no place"),
            std::string::npos);
  EXPECT_NE(error(partita_run(model, in, INT64_MAX, out)).find("too many"),
            std::string::npos);
  partita_options wrong;
  partita_default_options(&wrong);
  wrong.batch_delay_s = -1;
  EXPECT_NE(error(partita_open(path.c_str(), &wrong, &other))
                .find("batch_delay_s is -1"),
            std::string::npos);
  partita_options options = {};
  EXPECT_NE(error(partita_open(path.c_str(), &options, &other))
                .find("sizeof(partita_options)"),
            std::string::npos);
  EXPECT_TRUE(runs(4, 1)) << partita_last_error();
  EXPECT_STREQ(partita_last_error(), "");
}

TEST_F(Capi, NoModelIsAnErrorInWords) {
  const std::string words =
      "there is no model: give one that partita_open made";
  auto forget = [&] { EXPECT_TRUE(runs(4, 1)) << partita_last_error(); };
  auto counts = [&](auto answer) {
    EXPECT_EQ(answer, 0);
    EXPECT_EQ(partita_last_error(), words);
    forget();
  };
  forget();
  counts(int64_t(partita_input_count(nullptr)));
  counts(int64_t(partita_output_count(nullptr)));
  counts(int64_t(partita_dimension_count(nullptr)));
  counts(int64_t(partita_state_count(nullptr)));
  counts(partita_step_samples(nullptr));
  counts(partita_keeps_nan(nullptr));
  counts(int64_t(std::strlen(partita_remark(nullptr))));
  auto fails = [&](partita_status status) {
    EXPECT_EQ(status, PARTITA_ERROR);
    EXPECT_EQ(partita_last_error(), words);
    forget();
  };
  std::vector<float> x(4), y(4);
  const void *in[] = {x.data()};
  void *out[] = {y.data()};
  size_t index;
  uint64_t ticket;
  partita_port port = {};
  port.size = sizeof port;
  partita_dimension dimension = {};
  dimension.size = sizeof dimension;
  partita_profile profile = {};
  profile.size = sizeof profile;
  partita_device_profile device = {};
  device.size = sizeof device;
  fails(partita_input(nullptr, 0, &port));
  fails(partita_output(nullptr, 0, &port));
  fails(partita_find_input(nullptr, "x", &index));
  fails(partita_find_output(nullptr, "y", &index));
  fails(partita_get_dimension(nullptr, 0, &dimension));
  partita_state state{};
  fails(partita_describe_state(nullptr, 0, &state));
  fails(partita_find_state(nullptr, "past", &index));
  fails(partita_get_state(nullptr, 0, &state, sizeof state));
  fails(partita_set_state(nullptr, 0, &state, sizeof state));
  fails(partita_reset_states(nullptr));
  EXPECT_EQ(partita_sequence_count(nullptr), 0);
  fails(partita_submit_sequence(nullptr, 0, nullptr, in, 4, out, &ticket));
  fails(partita_get_sequence_state(nullptr, 0, 0, &state, sizeof state));
  fails(partita_set_sequence_state(nullptr, 0, 0, &state, sizeof state));
  fails(partita_reset_sequence(nullptr, 0));
  fails(partita_run(nullptr, in, 4, out));
  fails(partita_submit(nullptr, in, 4, out, &ticket));
  fails(partita_run_sized(nullptr, nullptr, in, 4, out));
  fails(partita_submit_sized(nullptr, nullptr, in, 4, out, &ticket));
  fails(partita_wait(nullptr, 1));
  fails(partita_get_profile(nullptr, &profile));
  fails(partita_get_device_profile(nullptr, 0, &device));
  partita_default_options(nullptr);
  EXPECT_STREQ(partita_last_error(), "there is no place for partita_options");
}

TEST_F(Capi, AModelHasOneSequence) {
  partita_model *model = nullptr;
  ASSERT_EQ(partita_open(path.c_str(), nullptr, &model), PARTITA_OK);
  EXPECT_EQ(partita_sequence_count(model), 1);
  for (int sequence : {-1, 1}) {
    EXPECT_EQ(partita_reset_sequence(model, sequence), PARTITA_ERROR);
    EXPECT_EQ(partita_last_error(),
              "there is no sequence " + std::to_string(sequence) +
                  ": the model was compiled for 1 sequence (partita-compile "
                  "--sequences)");
  }
  partita_close(model);
}

TEST_F(Capi, NegativeOptionsAreErrors) {
  partita_options options;
  partita_default_options(&options);
  options.threads = -1;
  partita_model *other;
  EXPECT_EQ(partita_open(path.c_str(), &options, &other), PARTITA_ERROR);
  EXPECT_STREQ(partita_last_error(),
               "partita_options.threads is -1: give cores per device, or 0 for "
               "the machine's, divided by the devices");
  options.threads = 1;
  options.queued_samples = -1;
  EXPECT_EQ(partita_open(path.c_str(), &options, &other), PARTITA_ERROR);
  EXPECT_NE(std::string(partita_last_error()).find("queued_samples is -1"),
            std::string::npos);
}

TEST_F(Capi, OptionsOfOlderProgramsAreSmaller) {
  // What the first version knew, and something behind it.
  struct {
    unsigned char options[offsetof(partita_options, cpu_level)];
    unsigned char behind[64];
  } old;
  std::memset(&old, 7, sizeof old);
  auto *options = reinterpret_cast<partita_options *>(&old);
  (partita_default_options)(options); // the function that those programs call
  EXPECT_EQ(options->size, sizeof old.options);
  EXPECT_EQ(options->timeout_s, 60);
  for (unsigned char byte : old.behind)
    EXPECT_EQ(byte, 7);
  partita_model *other;
  ASSERT_EQ(partita_open(path.c_str(), options, &other), PARTITA_OK)
      << partita_last_error();
  partita_close(other);
}

TEST_F(Capi, LevelAndNan) {
  EXPECT_EQ(partita_keeps_nan(model), 0);
  EXPECT_STREQ(partita_remark(model), "");
  partita_options options;
  partita_default_options(&options);
  options.cpu_level = 5;
  partita_model *other;
  EXPECT_EQ(partita_open(path.c_str(), &options, &other), PARTITA_ERROR);
  EXPECT_STREQ(partita_last_error(), "partita_options.cpu_level is 5: give 3, "
                                     "4, or 0 for the best there is");
  options.cpu_level = 4;
  options.strict_nan = 1;
  ASSERT_EQ(partita_open(path.c_str(), &options, &other), PARTITA_OK)
      << partita_last_error();
  std::swap(model, other);
  EXPECT_TRUE(runs(4, 1)) << partita_last_error();
  EXPECT_EQ(partita_keeps_nan(model), 1);
  std::swap(model, other);
  partita_close(other);
}

TEST_F(Capi, ClosesWithSamplesUnderWay) {
  std::vector<float> x(100), y(100);
  const void *in[] = {x.data()};
  void *out[] = {y.data()};
  uint64_t ticket;
  ASSERT_EQ(partita_submit(model, in, 100, out, &ticket), PARTITA_OK);
  // TearDown closes the model before the buffers of the fixture go; here they
  // must live as long as the model.
  partita_close(model);
  model = nullptr;
}

} // namespace
} // namespace partita::test
