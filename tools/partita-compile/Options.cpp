//===- Options.cpp - The command line of partita-compile ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-compile/Options.h"

#include "compiler/driver/ReadModule.h"
#include "compiler/model/ByteSize.h"
#include "compiler/model/Decision.h"
#include "compiler/model/PartitionFile.h"
#include "compiler/pipeline/partition/ScheduleFile.h"
#include "compiler/train/TrainFile.h"
#include "runtime/abi/DeviceKinds.h"
#include "tools/cli/CommandLine.h"

#include "onnx/common/version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace partita;
using namespace partita::tools;

static const char kDescription[] =
    R"(Splits an ONNX model over devices and compiles it to an artifact for partita-run.

Examples:
  partita-compile model.onnx -o model.partita
      one device
  partita-compile model.onnx --devices 4 --micro-batches 8 -o model.partita
      four pipeline stages, balanced by the cost model
  partita-compile model.onnx --devices 8 --data-parallel 2 --tensor-parallel 2 -o model.partita
      two replicas of two stages, in each of which two devices share the tensors
  partita-compile model.onnx --partition split.yaml -o model.partita
      blocks, stages and devices as the file says; the compiler decides the rest
  partita-compile model.onnx --devices 4 --emit-partition split.yaml -o model.partita
      writes the whole decision as such a file, to edit and to load again
  partita-compile model.onnx --devices 4 --emit-onnx split.onnx -o model.partita
      writes the model with the whole decision as ONNX's own annotations; loaded
      again, without flags, it is split in the same way
  partita-compile bert.onnx --dim batch=1 --dim tokens=128 -o bert.partita
      binds the symbolic dimensions of the model
  partita-compile model.onnx --describe
      lists inputs, outputs and dimensions to bind
  partita-compile model.onnx --reference --expose -o reference.partita
      every tensor by the plainest loops; then, to find the node that differs:
      partita-run reference.partita --input in.npz --output reference.npz
      partita-compile model.onnx --expose -o inner.partita
      partita-run inner.partita --input in.npz --compare reference.npz

A partition file:
  blocks: {B1: ["/conv1/*", "/pool1"], B2: ["/conv2/*"]}   # globs over node names
  stages: [[B1], [B2]]          # what runs one after another
  devices: [0, 1]               # device of each stage
  targets: ["cuda:sm_90", cpu]  # what each device is, where they are of several kinds
  schedule: fill_drain          # see --schedule
  micro_batches: 8
  memory: 512MiB                # of each device
  mesh: {data: 2, stage: 2, tensor: 2}    # axes; or data_parallel: 2, tensor_parallel: 2
  shard: {"fc*.weight": [tensor, null]}   # by dimension; without it the compiler chooses)";

/// Splits "name=text"; names of ONNX values may hold '=' only in the text.
static bool splitPair(const std::string &pair, std::string &name,
                      std::string &text) {
  size_t at = pair.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == pair.size())
    return false;
  name = pair.substr(0, at);
  text = pair.substr(at + 1);
  return true;
}

static bool parseSize(llvm::StringRef text, int64_t &size) {
  return cli::parseNumber<int64_t>(text, 0, size);
}

/// Parses "8", "8,64,512" or "8..512"; the last is 8, 16, 32 and so on.
static bool parseSizes(llvm::StringRef text, std::vector<int64_t> &sizes) {
  if (auto [from, to] = text.split(".."); !to.empty()) {
    int64_t least, most;
    if (!parseSize(from, least) || !parseSize(to, most) || least < 1 ||
        most < least)
      return false;
    for (int64_t size = least; size < most && size <= most / 2; size *= 2)
      sizes.push_back(size);
    if (sizes.empty() || sizes.back() * 2 <= most)
      sizes.push_back(sizes.empty() ? least : sizes.back() * 2);
    if (sizes.back() < most)
      sizes.push_back(most);
    return true;
  }
  for (llvm::StringRef part : llvm::split(text, ',')) {
    int64_t size;
    if (!parseSize(part, size))
      return false;
    sizes.push_back(size);
  }
  llvm::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return true;
}

/// Parses "8x3x224x224"; a scalar's shape is "scalar".
static bool parseShape(llvm::StringRef text,
                       llvm::SmallVectorImpl<int64_t> &shape) {
  if (text == "scalar")
    return true;
  for (llvm::StringRef part : llvm::split(text, 'x')) {
    int64_t size;
    if (!parseSize(part, size))
      return false;
    shape.push_back(size);
  }
  return true;
}

namespace {
/// The values of repeatable options, before they are parsed further.
struct RawOptions {
  std::vector<std::string> shapes, dims, samples, lengths, constants;
  std::string weights = "inside", kind = "artifact", level, strategy, memory,
              fusionBytes, devices, gradients, train, optimizer, schedule,
              recompute, optimizerState, onNonfinite;
  std::vector<std::string> groups, evalMode, init, recomputeNodes;
  std::optional<double> learningRate, clipNorm;

  bool trains() const { return !train.empty() || !optimizer.empty(); }
};
} // namespace

/// Parses the name=value options; returns a message on a wrong one.
static std::string parsePairs(const RawOptions &raw, CommandLine &result) {
  std::string name, text;
  for (const std::string &pair : raw.shapes) {
    llvm::SmallVector<int64_t> shape;
    if (!splitPair(pair, name, text) || !parseShape(text, shape))
      return "--shape " + pair +
             ": write it as input=8x3x224x224 (sizes with x between them)";
    result.compile.import.shapes[name] = shape;
  }
  for (const std::string &pair : raw.dims) {
    driver::DimensionSizes dimension;
    if (!splitPair(pair, dimension.name, text) ||
        !parseSizes(text, dimension.sizes))
      return "--dim " + pair +
             ": write it as dimension=8; for a plan for each of several sizes, "
             "as dimension=8,64,512 or dimension=8..512 (8, 16, 32 and so on)";
    if (dimension.sizes.size() == 1)
      result.compile.import.dims[dimension.name] = dimension.sizes[0];
    else
      result.compile.dimensions.push_back(std::move(dimension));
  }
  constexpr size_t kMostPlans = 64;
  size_t plans = 1;
  for (const driver::DimensionSizes &dimension : result.compile.dimensions)
    plans *= dimension.sizes.size();
  if (plans > kMostPlans)
    return "--dim asks for " + std::to_string(plans) +
           " plans, one for each combination of sizes; an artifact has at "
           "most " +
           std::to_string(kMostPlans);
  if (!result.compile.mask.empty() && result.compile.dimensions.empty())
    return "--mask " + result.compile.mask +
           ": no dimension has several sizes; give --dim NAME=8,64,512";
  for (const std::string &pair : raw.lengths) {
    int64_t length;
    if (!splitPair(pair, name, text) || !parseSize(text, length))
      return "--length " + pair + ": write it as sequence=3";
    result.compile.import.lengths[name] = length;
  }
  for (const std::string &pair : raw.samples) {
    int64_t axis = -1;
    if (!splitPair(pair, name, text) ||
        (text != "none" && !parseSize(text, axis)))
      return "--samples " + pair +
             ": write it as input=1 (dimensions are numbered from 0), or "
             "input=none";
    result.compile.import.samples[name] = axis;
  }
  for (const std::string &pair : raw.constants) {
    if (!splitPair(pair, name, text))
      return "--constant " + pair +
             ": write it as input=8, input=FILE.pb or input=FILE.npy";
    result.compile.import.constants[name] = text;
  }
  return "";
}

/// What a file says of training, and flags that stand above it.
static std::string readTraining(const RawOptions &raw, CommandLine &command) {
  driver::CompileOptions &compile = command.compile;
  train::TrainSettings settings;
  if (!raw.train.empty()) {
    auto read = train::readTrainFile(raw.train);
    if (!read)
      return llvm::toString(read.takeError());
    settings = std::move(*read);
  }
  auto set = [](auto &setting, const auto &given) {
    if (!given.empty())
      setting = given;
  };
  set(settings.loss, compile.autodiff.loss);
  set(settings.optimizer, raw.optimizer);
  if (raw.learningRate) {
    llvm::raw_string_ostream text(
        settings.optimizer.emplace(settings.optimizer.value_or("adamw")));
    text << llvm::formatv(",learning_rate={0:e17}", *raw.learningRate);
  }
  set(settings.groups, raw.groups);
  set(settings.recompute, raw.recompute);
  set(settings.optimizerState, raw.optimizerState);
  set(settings.onNonfinite, raw.onNonfinite);
  set(settings.mixedPrecision, compile.mixedPrecision);
  llvm::append_range(settings.evalMode, raw.evalMode);
  llvm::append_range(settings.recomputeNodes, raw.recomputeNodes);
  llvm::append_range(settings.init, raw.init);
  if (!raw.schedule.empty()) {
    auto schedule = train::parseSchedule(raw.schedule);
    if (!schedule)
      return "--schedule-rate: " + llvm::toString(schedule.takeError());
    settings.schedule = *schedule;
  }
  if (raw.clipNorm)
    settings.clipNorm = raw.clipNorm;
  if (compile.partition.microBatches > 0)
    settings.microBatches = compile.partition.microBatches;
  else if (!settings.microBatches)
    settings.microBatches =
        pipeline::countMicroBatches(compile.partition.schedule);
  if (llvm::Error error =
          train::apply(settings, compile.autodiff, compile.train))
    return llvm::toString(std::move(error));
  compile.mixedPrecision = compile.train.mixedPrecision;
  return "";
}

/// The same of the options about gradients.
static std::string checkGradients(const RawOptions &raw,
                                  const CommandLine &command) {
  const autodiff::AutodiffOptions &options = command.compile.autodiff;
  const bool asks = !raw.gradients.empty() || raw.trains();
  if (asks && options.loss.empty() && !command.listParameters)
    return (raw.trains() ? "training" : "--gradients") +
           std::string(
               ": of which loss? Give --loss KIND:OUTPUT, for example ") +
           "--loss cross_entropy:logits";
  if (raw.trains() && !raw.gradients.empty())
    return "--gradients and --train: an artifact has gradients as outputs, or "
           "learns by them; leave out one of the two";
  if (!raw.trains() &&
      (!raw.groups.empty() || !raw.schedule.empty() || raw.learningRate ||
       raw.clipNorm || !raw.evalMode.empty() || !raw.init.empty() ||
       !raw.recompute.empty() || !raw.recomputeNodes.empty() ||
       !raw.optimizerState.empty() || !raw.onNonfinite.empty()))
    return "--group, --schedule-rate, --learning-rate, --clip-norm, --init, "
           "--recompute, --recompute-nodes, --optimizer-state, "
           "--on-nonfinite and --eval-mode are for training: give --train FILE "
           "or --optimizer, too";
  if (!asks && !options.loss.empty() && !command.listParameters)
    return "--loss " + options.loss +
           " is for --gradients and for training: give --gradients, --train "
           "or --optimizer, too";
  if (!asks && !command.listParameters &&
      (!options.freeze.empty() || !options.trainOnly.empty()))
    return "--freeze and --train-only are for --gradients and for training: "
           "give --gradients, --train or --optimizer, too";
  if (command.listParameters && !asks && !command.compile.emit.output.empty())
    return "--list-parameters with -o: add --gradients to compile them as "
           "well, or leave out -o";
  if (raw.trains() && !command.compile.expose.nodes.empty())
    return "--expose shows what a model computes and, with --gradients, its "
           "derivatives; a training has no outputs but its loss: give "
           "--gradients and --loss instead of --train or --optimizer";
  if (!command.compile.expose.nodes.empty() &&
      command.compile.partition.microBatches > 1 && !raw.gradients.empty())
    return "--gradients, --expose and --micro-batches: inner tensors are those "
           "of one micro-batch, and gradients are summed over all; leave out "
           "--micro-batches";
  if (raw.gradients == "inputs" && command.compile.partition.microBatches > 1)
    return "--gradients inputs and --micro-batches: the gradient of an input "
           "is that of one micro-batch, and those of parameters are summed; "
           "leave out one of the two";
  const std::string what = raw.trains() ? "a training" : "--gradients";
  if (asks && !command.compile.emitOnnx.empty())
    return what + " and --emit-onnx: the model's file has no nodes for its "
                  "derivatives; --emit-partition writes the decision";
  if (asks && !command.compile.dimensions.empty())
    return what + ": a loss mixes samples, so they cannot be padded to one "
                  "of several sizes; give --dim one size";
  return "";
}

/// What options say together; returns what is wrong with it, or "".
static std::string checkTogether(const CommandLine &command) {
  const driver::CompileOptions &compile = command.compile;
  const bool emits = compile.kind != driver::EmitKind::artifact;
  if (command.listOps)
    return "";
  if (compile.import.modelPath.empty())
    return "no model: give MODEL.onnx";
  const bool plans = compile.kind == driver::EmitKind::summary;
  if (!emits && !command.describe && compile.emit.output.empty())
    return "no output: give -o FILE.partita";
  if (plans && !compile.emit.output.empty())
    return "--plan makes no artifact: leave out one of --plan and -o (-o "
           "prints "
           "the plan, too)";
  if (compile.emit.output == "-")
    return "--output -: name a file; --emit prints to standard output if "
           "--output is left out, and an artifact is mapped from its file";
  if (command.json && emits && !plans && !command.listNodes &&
      !command.listParameters)
    return "--json prints the plan of an artifact, and --emit the IR: leave "
           "out one of the two";
  if (!compile.import.samples.empty() && compile.partition.replicas > 1)
    return "--samples and --replicas contradict each other: replicas share "
           "what lies along dimension 0";
  if (compile.sequences > 1 && compile.states.empty())
    return "--sequences: there are no states; give --state INPUT=OUTPUT";
  if (!compile.states.empty()) {
    const std::string state = "--state " + compile.states.front();
    if (!compile.autodiff.loss.empty() || !compile.train.optimizer.empty())
      return state + ": states are kept at inference; a training has its own";
    if (!compile.mask.empty())
      return state + " and --mask: a step writes what it computes of padding "
                     "into the states, too; leave out one of the two";
  }
  const std::string override =
      driver::getAnnotationsOverride(compile.partition);
  if (!compile.import.configuration.empty() && !override.empty())
    return "--configuration and " + override +
           " contradict each other: both say how the model is split";
  if (!compile.import.configuration.empty() &&
      driver::isModuleFile(compile.import.modelPath))
    return "--configuration is for ONNX models, and " +
           compile.import.modelPath + " is none";
  if (!compile.partition.emitFile.empty() && !compile.dimensions.empty())
    return "--emit-partition: a plan for each of several sizes may be split in "
           "another way; give --dim one size";
  if (!compile.emitOnnx.empty()) {
    if (driver::isModuleFile(compile.import.modelPath))
      return "--emit-onnx writes annotations into an ONNX model, and " +
             compile.import.modelPath + " is none";
    if (!compile.dimensions.empty())
      return "--emit-onnx: a plan for each of several sizes may be split in "
             "another way; give --dim one size";
    if (compile.kind == driver::EmitKind::imported ||
        compile.kind == driver::EmitKind::nn || command.describe)
      return "--emit-onnx writes the decision, and none is made: leave out "
             "--describe and --emit imported or nn";
    if (compile.emitOnnx == compile.emit.output)
      return "--emit-onnx and --output name the same file";
  }
  if (command.describe && driver::isModuleFile(compile.import.modelPath))
    return "--describe is for ONNX models; --emit imported prints a module";
  return "";
}

/// The kind of a target, e.g. "cuda" of "cuda:sm_90".
static std::string getKind(const std::string &target) {
  return target.substr(0, target.find(':'));
}

/// An error text if there is no such kind of device. The compiler checks the
/// architecture.
static std::string checkKind(const std::string &target) {
  if (abi::findDeviceKind(getKind(target)))
    return "";
  return target + " is none of " + llvm::join(abi::getDeviceKindNames(), ", ");
}

/// The schedules, for --help.
static std::string schedulesText() {
  std::string text;
  for (const schedule::ScheduleKind *kind : schedule::getScheduleKinds())
    text += (text.empty() ? "" : "; ") + std::string(kind->name) +
            (text.empty() ? " (default): " : ": ") +
            (kind->isForTraining ? "for training: " : "") +
            std::string(kind->summary);
  return text + "; auto: the one with the shortest predicted step that fits "
                "(--memory), beside what the others would take; or a file: the "
                "order of each device, as PyTorch writes it "
                "(0F0,0F1,0B0,0B1)";
}

int tools::parseCommandLine(int argc, char **argv, CommandLine &result) {
  CLI::App app(kDescription, "partita-compile");
  app.set_version_flag("--version", cli::versionText("partita-compile") +
                                        "\nLLVM " LLVM_VERSION_STRING
                                        "\nONNX " ONNX_VERSION_STRING);
  app.failure_message(cli::failureText);
  app.get_formatter()->column_width(34);
  RawOptions raw;
  driver::CompileOptions &compile = result.compile;

  app.add_option("MODEL", compile.import.modelPath,
                 "the ONNX model: .onnx, or ONNX's text form as .onnxtxt; or a "
                 "function in Partita's nn dialect: .mlir");
  app.add_option("-o,--output", compile.emit.output,
                 "the artifact to write (needed unless --emit or --describe)");
  cli::add(app, "--devices", raw.devices, "N",
           "how many devices to split the model over, in all: N, or "
           "with their kind (see --target) cpu:N; of several kinds, in "
           "the order of the stages: cuda:2,cpu:1")
      ->check(cli::checkDevices);
  cli::add(app, "--data-parallel", compile.partition.dataParallel, "N",
           "how many replicas of the model there are; the micro-batches "
           "of a step are dealt out to them")
      ->check(CLI::Range(1, static_cast<int>(dist::kMostDevices)));
  cli::add(app, "--replicas", compile.partition.replicas, "N",
           "how many replicas share each micro-batch: the model is the "
           "step of one, and says what crosses them (ops of the domain "
           "ai.partita)")
      ->check(CLI::Range(1, static_cast<int>(dist::kMostDevices)));
  cli::add(app, "--tensor-parallel", compile.partition.tensorParallel, "N",
           "over how many devices tensors are cut: the compiler chooses "
           "which, by its cost model")
      ->check(CLI::Range(1, static_cast<int>(dist::kMostDevices)));
  cli::add(app, "--zero", compile.partition.zero, "N|auto",
           "what the replicas of a training (--data-parallel) share: 0 "
           "nothing, 1 what the optimizer keeps of the parameters, 2 "
           "sums of gradients, too, 3 parameters, too; auto: the fastest "
           "that fits (--memory), with a table of all")
      ->transform(CLI::Validator(
          [](std::string &text) {
            const bool isLevel = text.size() == 1 && text[0] >= '0' &&
                                 text[0] <= '0' + kMostZero;
            if (!isLevel && text != "auto")
              return "expected 0 to 3 or auto, found '" + text + "'";
            if (!isLevel)
              text = std::to_string(kAutoZero);
            return std::string();
          },
          ""));
  app.add_flag("--reproducible", compile.partition.reproducible,
               "cut tensors only where every number stays that of one device "
               "with this flag: no sum is split over devices");
  app.add_option("--partition", compile.partition.file,
                 "a partition file (YAML, see above)");
  app.add_option("--emit-partition", compile.partition.emitFile,
                 "write the whole decision as a partition file");
  cli::add(app, "--emit-onnx", compile.emitOnnx, "FILE",
           "write the model with the whole decision as ONNX's own "
           "annotations of devices: pipeline stages and shardings");
  cli::add(app, "--configuration", compile.import.configuration, "NAME",
           "the device configuration of the model whose annotations are "
           "taken (default: the only one); --partition, --devices, "
           "--tensor-parallel and --stages come before annotations");
  cli::add(app, "--machine", compile.partition.machine, "FILE",
           "balance stages and predict times for the machine that "
           "partita-run --calibrate FILE measured, its GPUs too "
           "(default: a processor in general, or the target's usual GPU "
           "by its data sheet)");
  app.add_option("--threads", compile.partition.threads,
                 "cores a device on that machine (default: an equal share)")
      ->check(CLI::Range(1, 4096));
  cli::add(app, "--expose", compile.expose.nodes, "GLOB",
           "make the results of the nodes that the glob names outputs too, "
           "for partita-run --compare: those that exist between kernels "
           "and library calls, so that no number changes")
      ->expected(0, 1)
      ->default_str("*");
  app.add_flag("--expose-unfused", compile.expose.unfused,
               "make the results of all these nodes outputs, before anything "
               "is fused: another computation, with every tensor in sight");
  app.add_flag("--reference", compile.reference,
               "compute every op by itself, by scalar loops: nothing is "
               "rewritten or fused, no library computes what loops can; what "
               "other artifacts of the model are compared with, often a "
               "hundred times slower (a large model takes minutes)");
  cli::add(app, "--schedule", compile.partition.schedule, "NAME|FILE",
           schedulesText())
      ->check([](const std::string &name) {
        bool isKnown = name == kFormerSequential || name == kAutoSchedule ||
                       (!name.empty() && schedule::findSchedule(name)) ||
                       pipeline::isScheduleFile(name);
        return isKnown ? "" : describeUnknownSchedule(name);
      });
  app.add_option("--strategy", raw.strategy,
                 "the former way to name a schedule: pipelined is fill_drain, "
                 "sharded is sequential")
      ->check(CLI::IsMember({"pipelined", "sharded"}));
  app.add_option("--stages", compile.partition.stages,
                 "how many stages the planner cuts (default: one a device, "
                 "or two: looped, interleaved, zb_v); stage s goes to device s "
                 "modulo --devices, by zb_v there and back")
      ->check(CLI::Range(1, static_cast<int>(kMostStages)));
  cli::add(app, "--fusion-bytes", raw.fusionBytes, "SIZE",
           "of gradients that the replicas of a training add up at once, "
           "at most, e.g. 32MiB; 0: those of each parameter alone "
           "(default: by the cost model)");
  cli::add(app, "--memory", raw.memory, "SIZE",
           "what a device has room for, e.g. 512MiB or 2GB: the planner "
           "keeps the planned peak of every device within it, or says "
           "what does not fit");
  app.add_option("--micro-batches", compile.partition.microBatches,
                 "micro-batches a step, for each replica (default: fill_drain "
                 "two a stage, looped two a device, sequential one)")
      ->check(CLI::Range(1, 65536));
  app.add_flag("!--no-winograd", compile.winograd,
               "compute every convolution directly; by default large ones of "
               "3x3 windows are computed by Winograd's method, with fewer "
               "multiplications, more memory and another rounding");
  app.add_flag("!--no-library-calls", compile.libraryCalls,
               "compute everything by kernels of our own, except what only a "
               "library computes: GPUs then need no cuBLASLt");
  app.add_flag(
      "--attention-calls", compile.attentionCalls,
      "on GPUs, compute attention of f16 and bf16 by one call of cuDNN "
      "where it has engines: they are compiled by NVRTC "
      "(libnvrtc.so), when the artifact is loaded; without the flag "
      "its products are calls, and its softmax a kernel");
  app.add_option("--mixed-precision", compile.mixedPrecision,
                 "compute products of matrices of an f32 model in bf16, and "
                 "everything else in f32; on GPUs convolutions and attention, "
                 "too, and in f16 if wanted. Several times as fast on GPUs, "
                 "twice on CPUs with AVX512_BF16; a training needs bf16")
      ->check(CLI::IsMember({"bf16", "f16"}));
  cli::add(app, "--workspace", compile.partition.workspaceMiB, "MIB",
           "room for the library's scratch, MiB on each core (default: "
           "1); part of the planned peak, which a run never passes")
      ->check(CLI::Range(1, 65536));
  cli::add(app, "--shape", raw.shapes, "INPUT=SHAPE",
           "bind an input's shape: --shape x=8x3x224x224. It is that of "
           "a micro-batch: where dimension 0 counts samples, 8 of them; "
           "a run takes any number");
  cli::add(app, "--dim", raw.dims, "NAME=SIZE",
           "bind a symbolic dimension: --dim batch=8; with several sizes, "
           "--dim tokens=8,64,512 or tokens=8..512 (8, 16, 32 and so on), "
           "the artifact has a plan for each, and a run takes the "
           "smallest that fits its inputs");
  cli::add(app, "--mask", compile.mask, "INPUT",
           "the input that is 0 where a sample ends: samples of other "
           "sizes than those of --dim are padded with zeros then");
  cli::add(app, "--samples", raw.samples, "INPUT=AXIS",
           "the dimension of an input along which samples follow one another, "
           "where it is not the first: --samples x=1 for a time-major x; none: "
           "the input has no samples. A run splits them if the compiler proves "
           "that they are independent");
  cli::add(
      app, "--state", compile.states, "INPUT=OUTPUT",
      "an input that is what the step before has left in an output, or the "
      "end of a longer one: it stays on the devices, one for each "
      "micro-batch, and begins with zeros; several by a * in both: --state "
      "'past.*=present.*'")
      ->expected(1)
      ->take_all();
  cli::add(app, "--sequences", compile.sequences, "N",
           "how many sequences, of clients that know nothing of each "
           "other, have states of their own; a step is of one of them")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 16));
  cli::add(app, "--length", raw.lengths, "SEQUENCE=COUNT",
           "bind the length of an input that is a sequence: --length x=3 "
           "makes it the inputs x.0, x.1 and x.2 (--shape x=... is the "
           "shape of them all, --shape x.1=... of one)");
  cli::addList(app, "--absent", compile.import.absent, "OPTIONAL",
               "leave out an input that is an optional; without this, it has "
               "a value");
  cli::add(app, "--constant", raw.constants, "INPUT=VALUE|FILE",
           "fix an input's value at compile time: a number, several with "
           "commas between them, or a TensorProto .pb or .npy file");
  app.add_option("--weights", raw.weights,
                 "inside: copied into the artifact (default); beside: left in "
                 "the model's files, which must stay beside the artifact")
      ->check(CLI::IsMember({"inside", "beside"}));
  CLI::Option *target =
      app.add_option(
             "--target", compile.target,
             "what the devices are: cpu (default); cuda:sm_80, cuda:sm_90, "
             "cuda:sm_100 or cuda:sm_120, GPUs of that architecture or later "
             "ones; where --devices names several kinds, the architecture of "
             "one")
          ->check(checkKind);
  app.add_option("--cpu-level", raw.level,
                 "compile for this x86-64 level only (default: for v3 and v4, "
                 "and the run takes the best that its processor has)")
      ->check(CLI::IsMember({"v3", "v4"}));
  app.add_flag("!--no-optimize", compile.codegen.optimize,
               "leave the machine code of kernels as it comes: it is compiled "
               "several times faster and runs several times slower, with the "
               "same results");
  app.add_option("--emit", raw.kind,
                 "print the IR after a phase instead, to --output if given: "
                 "imported, nn, stages, clusters, plan")
      ->check(CLI::IsMember(
          {"imported", "nn", "stages", "clusters", "plan", "artifact"}));
  cli::add(app, "--dump-phases", compile.dumpPhases, "DIR",
           "write the IR behind each phase into this folder; the first "
           "line of a file is the partita-opt command that makes it of "
           "the file before");
  app.add_flag("--describe", result.describe,
               "list the model's inputs, outputs and dimensions, and stop");
  app.add_flag(
      "--list-ops", result.listOps,
      "list the ops of ONNX, with the versions that are supported, and "
      "stop");
  app.add_flag("--list-nodes", result.listNodes,
               "list the model's nodes: op, module (as the exporter has noted "
               "it), shape, block, operations and predicted time; with -o, "
               "compile as well");
  cli::add(app, "--gradients", raw.gradients, "[inputs]",
           "compute a loss and the gradient of each trained parameter "
           "(NAME.grad) instead of the model's outputs, of all "
           "--micro-batches of a step; with inputs, also those of "
           "inputs; needs --loss")
      ->expected(0, 1)
      ->default_str("parameters")
      ->check(CLI::IsMember({"parameters", "inputs"}));
  cli::add(app, "--loss", compile.autodiff.loss, "LOSS",
           "KIND:OUTPUT, which adds the input 'target', or "
           "KIND:OUTPUT:INPUT. cross_entropy and nll compare with labels "
           "(i64), mse, l1, huber, bce and bce_logits with values; "
           "output takes a loss that the model computes, sum is the sum "
           "of an output's elements. Options follow: "
           "cross_entropy:logits,ignore_index=0,label_smoothing=0.1");
  cli::add(app, "--train", raw.train, "FILE",
           "train the model as this file says (docs/training-file.md); "
           "`partita-run --train` runs the artifact");
  cli::add(app, "--optimizer", raw.optimizer, "KIND",
           "train the model by sgd, adam, adamw or adagrad; settings "
           "follow: adamw,learning_rate=0.001,betas=0.9:0.95; needs "
           "--loss");
  app.add_option("--learning-rate", raw.learningRate,
                 "the learning rate of the optimizer");
  cli::addList(app, "--group", raw.groups, "GLOBS",
               "parameters with settings of their own: "
               "'*.bias|*norm*,weight_decay=0'; the first group that "
               "matches holds; may be given several times");
  cli::add(app, "--schedule-rate", raw.schedule, "KIND",
           "how the learning rate changes: constant, step, linear, "
           "cosine or wsd; settings follow: "
           "cosine,warmup=100,steps=2000,final=3e-5");
  app.add_option("--clip-norm", raw.clipNorm,
                 "the largest norm of all gradients together");
  cli::addList(app, "--freeze", compile.autodiff.freeze, "GLOB",
               "parameters that are not trained, by a glob over their names; "
               "may be given several times");
  cli::addList(app, "--train-only", compile.autodiff.trainOnly, "GLOB",
               "the only parameters that are trained, by a glob; may be "
               "given several times");
  cli::addList(app, "--init", raw.init, "GLOB=KIND",
               "parameters that begin with random values, by a glob over "
               "their names, and the values: default, zeros, ones, "
               "'*=normal,std=0.02', uniform, xavier_uniform, "
               "kaiming_normal, ...; may be given several times, and the "
               "last that matches holds");
  cli::addList(app, "--eval-mode", raw.evalMode, "GLOB",
               "batch normalizations and dropouts that compute as at "
               "inference where the model is trained, by a glob over names "
               "of nodes; may be given several times");
  app.add_option("--recompute", raw.recompute,
                 "what gradients need of forward is computed again instead of "
                 "kept, which takes less memory and more time: none, standard "
                 "(what is cheap) or full")
      ->check(CLI::IsMember({"none", "standard", "full"}));
  cli::addList(app, "--recompute-nodes", raw.recomputeNodes, "GLOB",
               "nodes that may be computed again, by a glob; may be given "
               "several times");
  app.add_option("--optimizer-state", raw.optimizerState,
                 "where the optimizer keeps what it remembers of parameters: "
                 "in the memory of the device, or of the host, where updates "
                 "on GPUs read and write it; the same on CPUs")
      ->check(CLI::IsMember({"device", "host"}));
  app.add_option("--on-nonfinite", raw.onNonfinite,
                 "what a step of training does whose loss or gradients are not "
                 "finite: change no state, and stop the training, or skip the "
                 "step; by default such a step loses the parameters")
      ->check(CLI::IsMember({"stop", "skip"}));
  app.add_flag("--list-parameters", result.listParameters,
               "list the model's tensors: shape, and whether they are trained "
               "or why not; with --loss, only those on which it depends are");
  app.add_flag("--explain", compile.explain,
               "list everything that devices send, with bytes, predicted time "
               "and the reason; say of each collective which other cut of a "
               "weight or input would spare it");
  app.add_flag("--json", result.json,
               "print the plan, or what --list-nodes lists, as JSON; and, on "
               "standard error, each remark as an object on a line");
  app.add_flag("--plan", result.plan,
               "make and print the plan, and no artifact: what devices do, "
               "need and send, of a model whose files of weights need not be "
               "there");
  app.add_flag("--quiet", result.quiet, "print nothing but errors");
  app.add_flag("--verbose", result.verbose,
               "say what is done, on standard error: each part of the "
               "compilation, and each phase of passes as partita-opt calls it, "
               "with the number of ops before and after it, and its time");
  app.add_flag("--timing", result.timing,
               "say where compile time goes, on standard error: the parts of "
               "the compilation, and the passes that take longest");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  std::string message = parsePairs(raw, result);
  if (std::string &name = compile.partition.schedule; name.empty())
    name = raw.strategy == "pipelined" ? "fill_drain" : raw.strategy;
  compile.emit.weights = raw.weights == "inside"
                             ? emit::WeightPlacement::inside
                             : emit::WeightPlacement::beside;
  if (!raw.level.empty())
    compile.codegen.levels = {raw.level == "v3" ? abi::CpuLevel::x86_64_v3
                                                : abi::CpuLevel::x86_64_v4};
  compile.kind = llvm::StringSwitch<driver::EmitKind>(raw.kind)
                     .Case("imported", driver::EmitKind::imported)
                     .Case("nn", driver::EmitKind::nn)
                     .Case("stages", driver::EmitKind::stages)
                     .Case("clusters", driver::EmitKind::clusters)
                     .Case("plan", driver::EmitKind::plan)
                     .Default(driver::EmitKind::artifact);
  if (result.plan && raw.kind != "artifact")
    message = "--plan and --emit " + raw.kind +
              ": one prints the plan's tables, the other the IR; leave out one "
              "of the two";
  if (result.plan)
    compile.kind = driver::EmitKind::summary;
  compile.import.filesMayBeAbsent = result.plan;
  if (cli::Devices devices; !raw.devices.empty()) {
    (void)cli::parseDevices(raw.devices, devices); // which was checked
    compile.partition.devices = devices.count();
    const std::string kind = getKind(compile.target),
                      &first = devices.groups.front().kind;
    if (target->count() > 0 && !first.empty() && devices.count(kind) == 0)
      message = "--devices " + raw.devices + " and --target " + compile.target +
                " contradict each other";
    else if (devices.areMixed())
      for (const cli::DeviceGroup &group : devices.groups)
        compile.partition.targets.insert(
            compile.partition.targets.end(), group.count,
            group.kind == kind ? compile.target : group.kind);
    else if (target->count() == 0)
      compile.target = first;
    if (devices.areMixed())
      compile.target = compile.partition.targets.empty()
                           ? ""
                           : compile.partition.targets.front();
  }
  compile.partition.target = getKind(compile.target);
  compile.autodiff.inputs = raw.gradients == "inputs";
  if (message.empty() && raw.trains())
    message = readTraining(raw, result);
  if (message.empty())
    message = checkGradients(raw, result);
  if (result.listParameters && compile.emit.output.empty())
    compile.kind = driver::EmitKind::parameters;
  if (result.listNodes && compile.kind == driver::EmitKind::artifact &&
      compile.emit.output.empty())
    compile.kind = driver::EmitKind::decision;
  if (compile.expose.unfused && compile.expose.nodes.empty())
    compile.expose.nodes = "*";
  if (!raw.memory.empty()) {
    compile.partition.memory = parseByteSize(raw.memory).value_or(0);
    if (!compile.partition.memory)
      message = "--memory " + raw.memory + ": write it as 512MiB or 2GB";
  }
  if (raw.fusionBytes == "0") {
    compile.partition.fusionBytes = 0;
  } else if (!raw.fusionBytes.empty()) {
    compile.partition.fusionBytes = parseByteSize(raw.fusionBytes).value_or(-1);
    if (compile.partition.fusionBytes < 0)
      message =
          "--fusion-bytes " + raw.fusionBytes + ": write it as 32MiB, or 0";
  }
  if (message.empty())
    message = checkTogether(result);
  if (!message.empty()) {
    llvm::errs() << "partita-compile: error: " << message << "\n";
    return 1;
  }
  return -1;
}
