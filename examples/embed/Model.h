//===- Model.h - partita.h for C++ ------------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef EXAMPLES_EMBED_MODEL_H
#define EXAMPLES_EMBED_MODEL_H

#include <partita.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// A value in an input that the model does not allow. The model is as good as
/// before.
struct WrongInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A loaded model. What fails is thrown, in the library's words. Any thread may
/// submit and wait.
class Model {
public:
  explicit Model(const std::string &path, double batch_delay_s = 0) {
    partita_options options;
    partita_default_options(&options);
    options.batch_delay_s = batch_delay_s;
    partita_model *opened = nullptr;
    check(partita_open(path.c_str(), &options, &opened));
    model.reset(opened);
    for (size_t i = 0; i < partita_input_count(opened); ++i) {
      inputs.push_back({});
      inputs.back().size = sizeof(partita_port);
      check(partita_input(opened, i, &inputs.back()));
    }
    for (size_t i = 0; i < partita_output_count(opened); ++i) {
      outputs.push_back({});
      outputs.back().size = sizeof(partita_port);
      check(partita_output(opened, i, &outputs.back()));
    }
    for (size_t i = 0; i < partita_dimension_count(opened); ++i) {
      dimensions.push_back({});
      dimensions.back().size = sizeof(partita_dimension);
      check(partita_get_dimension(opened, i, &dimensions.back()));
    }
  }

  /// A pointer for each input and output; see partita_submit_sequence. `sizes`:
  /// one for each dimension; none: the largest.
  uint64_t submit(const std::vector<const void *> &in, int64_t samples,
                  const std::vector<void *> &out,
                  const std::vector<int64_t> &sizes = {}, int sequence = 0) {
    uint64_t ticket = 0;
    check(partita_submit_sequence(model.get(), sequence,
                                  sizes.empty() ? nullptr : sizes.data(),
                                  in.data(), samples, out.data(), &ticket));
    return ticket;
  }
  void wait(uint64_t ticket) { check(partita_wait(model.get(), ticket)); }

  bool hasStates() const { return partita_state_count(model.get()) > 0; }
  int sequences() const { return partita_sequence_count(model.get()); }
  void reset(int sequence) {
    check(partita_reset_sequence(model.get(), sequence));
  }
  int64_t stepSamples() const { return partita_step_samples(model.get()); }

  /// What was computed.
  partita_profile profile() const {
    partita_profile profile = {};
    profile.size = sizeof profile;
    check(partita_get_profile(model.get(), &profile));
    return profile;
  }

  std::vector<partita_port> inputs, outputs;
  std::vector<partita_dimension> dimensions; ///< those with several sizes

private:
  static void check(partita_status status) {
    if (status != PARTITA_OK && partita_last_error_in_input())
      throw WrongInput(partita_last_error());
    if (status != PARTITA_OK)
      throw std::runtime_error(partita_last_error());
  }
  struct Close {
    void operator()(partita_model *model) const { partita_close(model); }
  };
  std::unique_ptr<partita_model, Close> model;
};

#endif // EXAMPLES_EMBED_MODEL_H
