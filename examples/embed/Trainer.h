//===- Trainer.h - Training with partita.h in C++ ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef EXAMPLES_EMBED_TRAINER_H
#define EXAMPLES_EMBED_TRAINER_H

#include <partita.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

/// A model that learns. What fails is thrown, in the library's words.
class Trainer {
public:
  explicit Trainer(const std::string &path, uint64_t seed = 0) {
    partita_trainer_options options;
    partita_default_trainer_options(&options);
    options.seed = seed;
    partita_trainer *opened = nullptr;
    check(partita_trainer_open(path.c_str(), &options, &opened));
    trainer.reset(opened);
    for (size_t i = 0; i < partita_trainer_input_count(opened); ++i) {
      inputs.push_back({});
      inputs.back().size = sizeof(partita_port);
      check(partita_trainer_input(opened, i, &inputs.back()));
    }
  }

  int64_t stepSamples() const {
    return partita_trainer_step_samples(trainer.get());
  }
  int64_t evaluationSamples() const {
    return partita_trainer_evaluation_samples(trainer.get());
  }

  /// One update from `stepSamples` samples; a pointer for each input.
  partita_step_result step(const std::vector<const void *> &in) {
    partita_step_result result = {};
    result.size = sizeof result;
    check(
        partita_trainer_step(trainer.get(), in.data(), stepSamples(), &result));
    return result;
  }
  partita_evaluation evaluate(const std::vector<const void *> &in,
                              int64_t samples) {
    partita_evaluation result = {};
    result.size = sizeof result;
    check(partita_trainer_evaluate(trainer.get(), in.data(), samples, &result));
    return result;
  }

  void save(const std::string &folder, int keep) {
    check(partita_trainer_save(trainer.get(), folder.c_str(), keep, nullptr));
  }
  void loadCheckpoint(const std::string &checkpoint) {
    check(partita_trainer_load_checkpoint(trainer.get(), checkpoint.c_str(),
                                          nullptr));
  }
  void exportTo(const std::string &path) {
    check(partita_trainer_export(trainer.get(), path.c_str()));
  }

  std::vector<partita_port> inputs;

private:
  static void check(partita_status status) {
    if (status != PARTITA_OK)
      throw std::runtime_error(partita_last_error());
  }
  struct Close {
    void operator()(partita_trainer *trainer) const {
      partita_trainer_close(trainer);
    }
  };
  std::unique_ptr<partita_trainer, Close> trainer;
};

#endif // EXAMPLES_EMBED_TRAINER_H
