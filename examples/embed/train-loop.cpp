//===- train-loop.cpp - A training that knows when to stop ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   train-loop LEARNING.partita RUN TRAINED.onnx image=image.raw
//   label=label.raw
//
// Each file has the samples of an input, as they would lie in memory. The last
// tenth of them is held out. An epoch learns from all others in their order,
// and ends with an evaluation and a checkpoint in the folder RUN. When two
// epochs have made nothing better, or after the tenth, what was best is
// written.
//
//===----------------------------------------------------------------------===//

#include "Trainer.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace {

constexpr int kMostEpochs = 10, kPatience = 2;

struct Samples {
  std::vector<std::vector<char>> inputs; ///< of the trainer
  int64_t count = 0;

  /// Pointers to the samples from `first` on.
  std::vector<const void *> from(int64_t first) const {
    std::vector<const void *> pointers;
    for (const std::vector<char> &input : inputs)
      pointers.push_back(input.data() +
                         static_cast<int64_t>(input.size()) / count * first);
    return pointers;
  }
};

std::vector<char> readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw std::runtime_error("cannot read '" + path + "'");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// NAME=FILE for each input.
Samples readSamples(const Trainer &trainer, int count, char **arguments) {
  Samples samples;
  for (const partita_port &port : trainer.inputs) {
    const std::string begin = std::string(port.name) + "=";
    std::string path;
    for (int i = 0; i < count; ++i)
      if (std::string(arguments[i]).starts_with(begin))
        path = std::string(arguments[i]).substr(begin.size());
    if (path.empty())
      throw std::runtime_error("give the samples of '" +
                               std::string(port.name) + "': " + begin + "FILE");
    samples.inputs.push_back(readFile(path));
    const auto bytes = static_cast<int64_t>(samples.inputs.back().size());
    const int64_t mine = bytes / port.bytes;
    if (bytes % port.bytes != 0)
      throw std::runtime_error("'" + path +
                               "' ends within a sample, which has " +
                               std::to_string(port.bytes) + " bytes");
    if (&port != &trainer.inputs.front() && mine != samples.count)
      throw std::runtime_error("'" + path + "' has " + std::to_string(mine) +
                               " samples, and there are " +
                               std::to_string(samples.count) + " of '" +
                               trainer.inputs.front().name + "'");
    samples.count = mine;
  }
  return samples;
}

void run(const std::string &artifact, const std::string &folder,
         const std::string &output, int count, char **arguments) {
  Trainer trainer(artifact);
  const Samples samples = readSamples(trainer, count, arguments);
  const int64_t each = trainer.evaluationSamples();
  const int64_t held = (samples.count / 10 + each - 1) / each * each,
                steps = (samples.count - held) / trainer.stepSamples();
  if (held == 0 || steps < 1)
    throw std::runtime_error(std::to_string(samples.count) +
                             " samples are too few for a step and an "
                             "evaluation");
  double best = INFINITY;
  int64_t bestStep = 0;
  for (int epoch = 1, worse = 0; epoch <= kMostEpochs && worse < kPatience;
       ++epoch) {
    partita_step_result result = {};
    for (int64_t i = 0; i < steps; ++i)
      result = trainer.step(samples.from(i * trainer.stepSamples()));
    const partita_evaluation found =
        trainer.evaluate(samples.from(samples.count - held), held);
    std::printf("epoch %d  step %lld  loss %.4f  held out %.4f", epoch,
                static_cast<long long>(result.step), result.loss, found.loss);
    if (found.labels > 0)
      std::printf("  right %lld of %lld", static_cast<long long>(found.right),
                  static_cast<long long>(found.labels));
    std::printf("\n");
    // As many as may be worse than the best, and the best.
    trainer.save(folder, kPatience + 1);
    worse = found.loss < best ? 0 : worse + 1;
    if (worse == 0) {
      best = found.loss;
      bestStep = result.step;
    }
  }
  char name[32];
  std::snprintf(name, sizeof name, "/step-%08lld",
                static_cast<long long>(bestStep));
  trainer.loadCheckpoint(folder + name);
  trainer.exportTo(output);
  std::printf("%s is the model after step %lld\n", output.c_str(),
              static_cast<long long>(bestStep));
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: train-loop LEARNING.partita RUN TRAINED.onnx "
                         "INPUT=FILE...\n");
    return 1;
  }
  try {
    run(argv[1], argv[2], argv[3], argc - 4, argv + 4);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "train-loop: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
