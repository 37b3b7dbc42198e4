//===- Options.cpp - The command line of partita-run ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/Options.h"

#include "runtime/abi/artifact.h"
#include "runtime/device/Driver.h"
#include "tools/cli/CommandLine.h"

#ifdef PARTITA_WITH_MPI
#include "runtime/comm/mpi/Job.h"
#endif

#include <iostream>

namespace partita::run {

namespace {

const char *const kDescription =
    "Runs a compiled model (.partita) on the devices it was compiled for.";

const char *const kExamples = R"(Examples:
  partita-run mnist.partita --plan
      what the artifact holds: stages, devices, memory, inputs and outputs
  partita-run mnist.partita --input image.npy
      run; print what comes out
  partita-run bert.partita --input ids=ids.npy --input mask=mask.npy --output out.npz
      several inputs by name; the keys of out.npz are the outputs' names
  partita-run bert.partita --input batch.npz --output results/
      inputs from one archive; one .npy file an output
  partita-run mnist.partita --test-data test_data_set_0
      run input_0.pb, ..., compare with output_0.pb, ...; exit 1 if they differ
  partita-run mnist.partita --benchmark --rate 500 --batch-delay 2
      latencies when 500 samples a second come one by one
  partita-run mnist.partita --benchmark --runs 100 --json
      times with made-up inputs, as one JSON object
  partita-run mnist.partita --input x.npy --profile trace.json
      then open trace.json in https://ui.perfetto.dev or chrome://tracing
  partita-run --calibrate machine.json
      measure this machine for partita-compile --machine machine.json
  partita-run bert.partita --calibrate machine.json
      add what this model's work takes here, for compiling it again
  mpirun -n 2 partita-run mnist.partita --input x.npy --output y.npz
      two processes, which share the devices; process 0 prints and writes

Any number of samples may be given along the batch axis: they go through the
pipeline as micro-batches, in as many steps as needed.)";

std::string versionText() {
  std::string text = cli::versionText("partita-run") + "\nartifact format " +
                     std::to_string(abi::kVersion);
  for (const runtime::DeviceType &type : runtime::getDeviceTypes())
    if (type.library)
      text += "\n" + type.library();
#ifdef PARTITA_WITH_MPI
  return text + "\n" + runtime::mpi::describeMpi();
#else
  return text + "\nno MPI";
#endif
}

/// The steps between two lines of --outputs, 0 if only reports have one; -1 if
/// the text says nothing of it.
int64_t outputsEvery(const std::string &text) {
  if (text == "mean" || text == "final" || text == "sum")
    return 0;
  if (text == "all")
    return 1;
  constexpr std::string_view kEvery = "every:";
  int64_t steps = 0;
  return text.starts_with(kEvery) &&
                 cli::parseNumber<int64_t>(text.substr(kEvery.size()), 1, steps)
             ? steps
             : -1;
}

std::string isOutputs(const std::string &text) {
  return outputsEvery(text) >= 0
             ? std::string()
             : "'" + text + "' is none of mean, final, sum, all and every:N";
}

/// CLI11's own checks print the whole range of a double.
std::function<std::string(const std::string &)> positive(bool orZero) {
  return [orZero](const std::string &text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value < 1e9 &&
        (value > 0 || (orZero && value == 0)))
      return "";
    return "'" + text + "' is not a number " +
           (orZero ? "of at least 0" : "above 0");
  };
}

} // namespace

int parseOptions(int argc, char **argv, Options &options) {
  CLI::App app(kDescription, "partita-run");
  app.footer(kExamples);
  app.failure_message(cli::failureText);
  app.set_version_flag("--version", versionText());
  cli::add(app, "ART.partita", options.artifact, "", "The artifact");

  std::vector<std::string> dimensions;
  cli::add(app, "--dim", dimensions, "NAME=SIZE",
           "NAME=SIZE: of an artifact with plans for several sizes, the "
           "plan for this one (default: the smallest that fits --input; "
           "without that, the largest). May be repeated");

  app.option_defaults()->group("Data");
  cli::addList(app, "--input,-i", options.inputs, "NAME=FILE",
               "NAME=FILE: an input's samples, .npy or .pb (TensorProto); "
               "NAME= may be left out of one file, if the other inputs are "
               "given. The elements of "
               "a sequence x are the inputs x.0, x.1, ...; x=FILE.pb "
               "(SequenceProto, OptionalProto) gives them all. A .npz file "
               "gives the inputs its arrays are named after. May be repeated");
  cli::add(app, "--output,-o", options.output, "FILE.npz|FOLDER",
           "Write the outputs to an .npz file, or as .npy files into a "
           "folder; without it, a summary of each is printed");
  cli::add(app, "--test-data", options.testData, "FOLDER",
           "Run a folder of input_K.pb, compare with its output_K.pb; or "
           "a folder of such folders (test_data_set_*)");
  cli::add(app, "--compare", options.compare, "FILE.npz",
           "Run --input, and compare all outputs (with partita-compile "
           "--expose: inner tensors) with those of an .npz file, by name; "
           "the first in the model's order that differs is printed, and "
           "the exit status is 1");
  cli::add(app, "--rtol", options.tolerances.rtol, "X",
           "Largest relative difference for --test-data and --compare. By "
           "default 1e-3; of f16 0.015625, of bf16 0.125")
      ->check(positive(/*orZero=*/true));
  cli::add(app, "--atol", options.tolerances.atol, "X",
           "Largest absolute difference for --test-data and --compare. By "
           "default 1e-7")
      ->check(positive(/*orZero=*/true));
  cli::add(app, "--range-tol", options.tolerances.range, "X",
           "Largest difference as a share of the tensor's size, the "
           "median of its elements' absolute values, for --test-data and "
           "--compare: elements near 0 are sums of larger terms, whose "
           "rounding errors they keep. 0: element by element only. By "
           "default 1e-5; of f16 0.015625, of bf16 0.125")
      ->check(positive(/*orZero=*/true));

  app.option_defaults()->group("Training");
  TrainingOptions &train = options.training;
  app.add_flag("--train", train.isOn,
               "Train an artifact that was compiled with --train or "
               "--optimizer; with mpirun, in several processes");
  cli::addList(app, "--data", train.data, "NAME=FILE",
               "NAME=FILE: the samples of an input, or labels: IDX (.gz "
               "too), .npy, .npz:ARRAY, .csv:COLUMN, .bin of tokens. May be "
               "repeated");
  cli::addList(app, "--eval-data", train.evalData, "NAME=FILE",
               "NAME=FILE: the same of samples that are not learned, for "
               "loss and accuracy");
  app.add_option("--epochs", train.epochs, "How often each sample is learned")
      ->capture_default_str()
      ->check(CLI::Range(int64_t(1), int64_t(1) << 31));
  app.add_option("--steps", train.steps, "Instead of --epochs: updates")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40));
  app.add_option("--eval-every", train.evalEvery,
                 "Evaluate after so many steps, not after each epoch")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40));
  app.add_option("--report-every,--device-iterations", train.reportEvery,
                 "Print a line after so many steps, too")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40));
  cli::add(app, "--outputs", train.outputs, "mean|final|sum|all|every:N",
           "The loss in a line: mean or sum of the steps since the last "
           "line, or final, that of its own step. all: a line for each "
           "step; every:N: for each N-th")
      ->capture_default_str()
      ->check(isOutputs);
  app.add_option("--order", train.order,
                 "shuffled anew in each epoch, in-order, or drawn at random "
                 "from all samples")
      ->capture_default_str()
      ->check(CLI::IsMember({"shuffled", "in-order", "drawn"}));
  app.add_option("--seed", train.seed,
                 "Of the order of samples, initial values and dropouts")
      ->capture_default_str();
  cli::add(app, "--checkpoint", train.checkpoint, "FOLDER",
           "Write checkpoints and logs (log.jsonl, and events for "
           "TensorBoard) into this folder");
  app.add_option("--checkpoint-every", train.checkpointEvery,
                 "A checkpoint after so many steps, not after each epoch")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40));
  app.add_option("--keep", train.keep, "Checkpoints that stay, the newest")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--keep-best", train.keepBest,
                 "Write a checkpoint after each evaluation, and let the best "
                 "stay, too")
      ->check(CLI::IsMember({"eval_loss", "accuracy", "top5"}));
  app.add_flag("--resume", train.resume,
               "Go on from the newest checkpoint in --checkpoint");
  app.add_flag("--allow-changes", train.allowChanges,
               "With --resume: go on from a checkpoint of another set-up, such "
               "as another learning rate, schedule, order or seed; a remark "
               "says what differs");
  cli::add(app, "--load", train.load, "FILE",
           "Begin with the parameters of a .safetensors file");
  cli::add(app, "--export", train.exportTo, "FILE.onnx",
           "Write the trained model: the ONNX file that was compiled, "
           "with the new parameters");

  app.option_defaults()->group("Devices");
  cli::add(app, "--devices", options.devices, "N",
           "N or cpu:N: the devices that the artifact was compiled for, "
           "which is the default; another number is an error. "
           "cuda:0,1 says which GPUs they are, and cuda:0*4 puts four "
           "of them on GPU 0");
  cli::add(app, "--device-map", options.deviceMap, "MAP",
           "With mpirun: the devices of each process, in the order of "
           "ranks, e.g. 0,2/1,3 or 0-3/4-7; by default they are dealt "
           "out evenly, in their order");
  cli::add(app, "--threads,-t", options.threads, "T",
           "Cores a device; by default the cores there are, divided by "
           "the devices")
      ->check(CLI::Range(1, 4096));
  bool noPin = false;
  app.add_flag("--no-pin", noPin, "Do not pin devices to cores");
  std::string level;
  cli::add(app, "--cpu-level", level, "v3|v4",
           "Use no compiled kernel above this x86-64 level; by default "
           "the best that the processor has")
      ->check(CLI::IsMember({"v3", "v4"}));
  app.add_flag("--trust-weights", options.trustWeights,
               "Do not check that the weights are, bit for bit, those that the "
               "model was compiled with; loading reads them once less");
  bool noGraphs = false;
  app.add_flag("--no-graphs", noGraphs,
               "GPUs: launch kernels and library calls one by one. By default "
               "all of a unit are launched as one CUDA graph, unless a profile "
               "needs their times or CUDA_LAUNCH_BLOCKING=1 is set");
  cli::add(app, "--timeout", options.timeout, "S",
           "Seconds any device waits for another before the run is given "
           "up")
      ->capture_default_str()
      ->check(positive(/*orZero=*/false));

  app.add_flag(
      "--strict-nan", options.strictNan,
      "Compute with code that keeps NaN from the first step on. "
      "Without it, a step that meets NaN where the fast code makes a "
      "number of it (ReLU, Clip, Min, Max, MaxPool) is computed again, "
      "with the same result");

  app.option_defaults()->group("Looking inside");
  app.add_flag("--plan", options.plan, "Print the plan; run nothing");
  app.add_flag("--benchmark", options.benchmark,
               "Measure steps; inputs that are not given are made up");
  cli::add(app, "--warmup", options.warmup, "N", "Steps before measuring")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000000));
  cli::add(app, "--runs", options.runs, "N",
           "Steps to measure; with --seconds: at least")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000000));
  cli::add(app, "--seconds", options.seconds, "S",
           "Measure until steps have taken so long together; with "
           "--calibrate 5 if nobody says")
      ->check(positive(/*orZero=*/false));
  cli::add(app, "--rate", options.rate, "R",
           "With --benchmark: offer R samples a second, one by one at "
           "random times, for --seconds (5), and print how long their "
           "results take")
      ->check(positive(/*orZero=*/false));
  cli::add(app, "--batch-delay", options.batchDelay, "MS",
           "With --rate: milliseconds that a sample may wait for others "
           "to fill up a step; 0: no longer than until the devices are "
           "free")
      ->capture_default_str()
      ->check(positive(/*orZero=*/true));
  cli::add(app, "--calibrate", options.calibrate, "FILE.json",
           "Measure this machine and its GPUs, for about a minute, and write "
           "what it "
           "can do; partita-compile --machine FILE predicts times with it. "
           "With an artifact that was compiled so: measure its work, and add "
           "that to the file; compiled again, stages are balanced by it. With "
           "--train, the work of the steps after the first is measured, of "
           "200 at most");
  cli::add(app, "--calibrate-seconds", options.calibrateSeconds, "S",
           "How long --calibrate measures, about; preparing what it "
           "measures takes longer on a busy machine")
      ->capture_default_str()
      ->check(positive(/*orZero=*/false));
  cli::add(app, "--profile", options.profile, "FILE.json",
           "Write a trace for Perfetto or chrome://tracing; with --train, "
           "of the second to the eleventh step");
  app.add_flag("--profile-table", options.profileTable,
               "Print where the time of a step goes: by device, kind of work, "
               "unit, transfer, module and instruction, waiting apart from "
               "moving bytes, with GFLOP/s, GB/s and what was predicted; with "
               "--train, at its end");
  cli::add(app, "--top", options.top, "N",
           "The most modules, and the most instructions, that "
           "--profile-table lists: those that take longest")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_flag("--json", options.json,
               "Print --plan, --benchmark (with --profile-table), "
               "--calibrate, --test-data or --compare as one JSON object");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    // CLI11 has an exit status for each kind of error; we have one.
    return app.exit(error) == 0 ? 0 : 1;
  }
  auto refuse = [](const std::string &message) {
    std::cerr << "partita-run: error: " << message << "\n";
    return 1;
  };
  for (const std::string &pair : dimensions) {
    const size_t equals = pair.find('=');
    int64_t size = 0;
    if (equals == std::string::npos || equals == 0 ||
        !cli::parseNumber<int64_t>(pair.substr(equals + 1), 0, size))
      return refuse("--dim " + pair + ": write it as dimension=64");
    options.dimensions.emplace_back(pair.substr(0, equals), size);
  }
  options.pin = !noPin;
  options.graphs = !noGraphs;
  options.cpuLevel = level == "v3" ? 3 : 4;
  // With an artifact, the error says what that was compiled for.
  if (options.artifact.empty() && !options.devices.empty())
    if (std::string error = cli::checkDevices(options.devices); !error.empty())
      return refuse("--devices: " + error);
  if (options.artifact.empty())
    return options.calibrate.empty()
               ? refuse("no artifact: give ART.partita (partita-run --help "
                        "lists the options)")
               : -1;
  if (!options.calibrate.empty()) {
    if (options.benchmark || options.plan || !options.testData.empty() ||
        !options.compare.empty() || !options.output.empty())
      return refuse("--calibrate with an artifact only measures it; leave out "
                    "--benchmark, --plan, --test-data, --compare and --output");
    constexpr double kSeconds = 5;
    if (options.seconds == 0)
      options.seconds = kSeconds;
    // Not twenty steps of a model whose steps take seconds.
    if (app.count("--runs") == 0)
      options.runs = 3;
    if (app.count("--warmup") == 0)
      options.warmup = 1;
  }
  if (options.rate > 0 && (!options.benchmark || options.wantsProfile() ||
                           app.count("--runs") || app.count("--warmup")))
    return refuse("--rate belongs to --benchmark; leave out --profile, "
                  "--profile-table, --runs and --warmup");
  if (app.count("--top") && !options.profileTable)
    return refuse("--top belongs to --profile-table");
  if (app.count("--batch-delay") && options.rate == 0)
    return refuse("--batch-delay belongs to --benchmark --rate R");
  if (options.training.resume && options.training.checkpoint.empty())
    return refuse("--resume: from where? Give --checkpoint FOLDER, too");
  if (options.training.allowChanges && !options.training.resume)
    return refuse("--allow-changes: of what? Give --resume, too");
  if (app.count("--keep-best") && (options.training.checkpoint.empty() ||
                                   options.training.evalData.empty()))
    return refuse("--keep-best needs checkpoints and evaluations: give "
                  "--checkpoint FOLDER and --eval-data, too");
  options.training.outputsEvery = outputsEvery(options.training.outputs);
  if (app.count("--steps") && app.count("--epochs"))
    return refuse("--steps and --epochs exclude each other");
  for (const char *name :
       {"--data", "--eval-data", "--epochs", "--steps", "--eval-every",
        "--report-every", "--outputs", "--order", "--seed", "--checkpoint",
        "--checkpoint-every", "--keep", "--keep-best", "--resume",
        "--allow-changes", "--load", "--export"})
    if (app.count(name) && !options.training.isOn)
      return refuse(std::string(name) + " belongs to --train: give it, too");
  for (const char *name : {"--input", "--output", "--benchmark", "--test-data",
                           "--compare", "--plan"})
    if (options.training.isOn && app.count(name))
      return refuse(std::string(name) + " and --train exclude each other");
  if (options.training.isOn && options.profileTable && options.json)
    return refuse("with --train --json each line is a step; leave out "
                  "--profile-table");
  if (options.training.isOn && !options.calibrate.empty() && options.json)
    return refuse("with --train --json each line is a step; leave out --json "
                  "to --calibrate");
  if (options.training.isOn && options.training.data.empty())
    return refuse("--train needs samples: give --data NAME=FILE for each "
                  "input");
  if (options.json && !options.plan && !options.measures() &&
      !options.training.isOn && options.testData.empty() &&
      options.compare.empty())
    return refuse(
        "--json belongs to --train, --plan, --benchmark, "
        "--calibrate, --test-data or --compare; outputs are written with "
        "--output");
  if (options.benchmark && !options.testData.empty())
    return refuse("--benchmark and --test-data exclude each other");
  if (!options.testData.empty() && !options.inputs.empty())
    return refuse("--test-data brings its own inputs; leave out --input");
  if (!options.compare.empty() &&
      (options.benchmark || !options.testData.empty() ||
       !options.output.empty()))
    return refuse("--compare belongs to a plain run; leave out --benchmark, "
                  "--test-data and --output");
  if (options.output == "-")
    return refuse("--output -: name an .npz file or a folder; without "
                  "--output, a summary is printed");
  if (!options.output.empty() &&
      (options.benchmark || !options.testData.empty()))
    return refuse("--output belongs to a plain run; leave out --benchmark and "
                  "--test-data");
  return -1;
}

} // namespace partita::run
