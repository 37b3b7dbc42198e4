//===- batch-job.cpp - A file of samples through a compiled model ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   batch-job MODEL.partita <images.f32 >classes.f32
//
// Reads the samples of the model's input from standard input, as they would lie
// in memory, and writes those of its output to standard output. Steps are under
// way while others are read and written; no more than a few are in memory.
//
//===----------------------------------------------------------------------===//

#include "Model.h"

#include <cstdio>
#include <deque>

namespace {

struct UnderWay {
  uint64_t ticket;
  std::vector<char> input, output;
};

/// As many samples as there are, up to those of a step.
std::vector<char> readSamples(int64_t most, int64_t bytes) {
  std::vector<char> samples(static_cast<size_t>(most * bytes));
  samples.resize(std::fread(samples.data(), 1, samples.size(), stdin));
  if (samples.size() % static_cast<size_t>(bytes) != 0)
    throw std::runtime_error("the input ends within a sample, which has " +
                             std::to_string(bytes) + " bytes");
  return samples;
}

void run(const char *path) {
  // The model is closed first, which waits for the steps under way: they write
  // into this memory.
  std::deque<UnderWay> under_way;
  Model model(path);
  if (model.inputs.size() != 1 || model.outputs.size() != 1 ||
      model.inputs[0].batch_axis != 0 || model.outputs[0].batch_axis != 0)
    throw std::runtime_error(
        "the model must have one input and one output, and samples along the "
        "first axis of both");
  constexpr size_t kMostSteps = 4;
  int64_t written = 0;
  auto finishFirst = [&] {
    UnderWay &first = under_way.front();
    model.wait(first.ticket);
    if (std::fwrite(first.output.data(), 1, first.output.size(), stdout) !=
        first.output.size())
      throw std::runtime_error("standard output cannot be written");
    written += static_cast<int64_t>(first.input.size()) / model.inputs[0].bytes;
    under_way.pop_front();
  };
  while (true) {
    std::vector<char> input =
        readSamples(model.stepSamples(), model.inputs[0].bytes);
    if (input.empty())
      break;
    if (under_way.size() == kMostSteps)
      finishFirst();
    const int64_t samples =
        static_cast<int64_t>(input.size()) / model.inputs[0].bytes;
    // Both must stay where they are until the ticket is given back.
    UnderWay &next = under_way.emplace_back();
    next.input = std::move(input);
    next.output.resize(static_cast<size_t>(samples * model.outputs[0].bytes));
    next.ticket =
        model.submit({next.input.data()}, samples, {next.output.data()});
  }
  while (!under_way.empty())
    finishFirst();
  std::fprintf(stderr, "%lld samples computed\n",
               static_cast<long long>(written));
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: batch-job MODEL.partita <INPUT >OUTPUT\n");
    return 1;
  }
  try {
    run(argv[1]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "batch-job: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
