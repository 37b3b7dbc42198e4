//===- Trainer.cpp - A model that learns, step by step --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/Trainer.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/base/Elements.h"
#include "runtime/base/Mesh.h"
#include "runtime/base/Programs.h"
#include "runtime/device/SharedDevices.h"
#include "runtime/io/DType.h"
#include "runtime/io/Tensor.h"
#include "runtime/session/NanSearch.h"
#include "runtime/trainer/InputCheck.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

namespace partita::runtime::train {
namespace {

/// The input that counts all samples of a training.
constexpr const char *kSampleNumbers = "sample_number";

/// The first device that stores an output for a replica; -1: none does.
int deviceThatStores(const abi::Plan &plan, const Mesh &mesh, int output,
                     int replica) {
  for (int device = 0; device < length(plan.devices()); ++device) {
    const abi::Program &program = programOf(plan, device);
    if (!mesh.stores(device) || mesh.replica(device) != replica)
      continue;
    for (int64_t i = 0; i < length(program.actions()); ++i) {
      const abi::ProgramAction action = actionOf(program, i);
      if (action.kind == abi::ActionKind::store_output &&
          action.subject == output)
        return device;
    }
  }
  return -1;
}

/// What an evaluation says of a micro-batch: these outputs, as far as there are
/// such.
constexpr std::array kEvaluated = {"loss.sum", "loss.count", "labels.count",
                                   "labels.right", "labels.right_of_five"};

/// What processes tell each other. Of each number, one of them knows the value,
/// and the others have 0.
using Evaluated = std::array<double, kEvaluated.size()>;
struct Learned {
  double loss = 0, norm = 0;
};

} // namespace

/// The first op of a process that made a number that is not finite.
struct Found {
  int is_there = 0;
  NanOrigin origin;
};
static_assert(sizeof(Found) == 6 * sizeof(int), "its padding would be sent");

/// A plan with its session, and where its inputs and outputs lie.
struct Runner {
  std::shared_ptr<const Artifact> artifact;
  std::unique_ptr<Session> session;
  StepBinding binding;
  std::vector<int> data;       ///< ports of the data inputs, in their order
  std::vector<Tensor> outputs; ///< all micro-batches
  /// For each output: of which replicas' micro-batches this process says what
  /// it is.
  std::vector<std::vector<bool>> tells;
  /// Inputs of a whole step, where less is computed than it must have.
  std::vector<Tensor> filled;
  const abi::Plan &plan() const { return artifact->plan(); }

  /// The number of an output; -1 if there is none of the name.
  int output(const std::string &name) const {
    for (int64_t i = 0; i < length(plan().outputs()); ++i)
      if (text(at(plan().outputs(), i).name()) == name)
        return static_cast<int>(i);
    return -1;
  }
  /// Whether `number` may be asked for it, of so many micro-batches.
  bool isNumber(int output, size_t micro_batches) const {
    const Tensor &tensor = outputs[static_cast<size_t>(output)];
    return tensor.elements() == static_cast<int64_t>(micro_batches) &&
           (tensor.dtype() == abi::DType::f32 ||
            tensor.dtype() == abi::DType::f64);
  }
  /// An output of a step, or of one of its micro-batches, as a double; 0 if
  /// there is no output, and where another process tells it.
  double number(int output, int64_t micro_batch = 0) const {
    if (output < 0)
      return 0;
    const std::vector<bool> &mine = tells[static_cast<size_t>(output)];
    if (!mine[static_cast<size_t>(micro_batch) % mine.size()])
      return 0;
    const Tensor &tensor = outputs[static_cast<size_t>(output)];
    return toDouble(tensor.dtype(),
                    tensor.data() + micro_batch * elementBytes(tensor.dtype()));
  }
};

struct Trainer::Impl {
  std::string path;
  Processes *all = nullptr; ///< null: there is one
  SessionOptions options;   ///< of both sessions
  StatePlaces places;
  Setup set;
  Runner train, eval;
  Runner *active = nullptr; ///< whose session was the last to run
  std::vector<DataInput> inputs;
  int64_t samples = 0; ///< of a micro-batch
  int64_t done = 0;    ///< updates
  std::vector<double> rates;
  double step_number = 0;
  uint64_t seed = 0;
  int sample_numbers = -1;      ///< port that counts all samples; -1: none does
  std::vector<int64_t> numbers; ///< of the samples of a step
  int loss = -1, norm = -1;
  std::array<int, kEvaluated.size()> evaluated; ///< outputs; -1: there is none
  std::vector<Evaluated> told; ///< by micro-batch of an evaluation
  std::optional<InputCheck> check;
  std::string lost; ///< why; empty: the states are right
  bool explained =
      false; ///< the source of a loss that is not finite was sought

  Status checkStates() const;
  Status findInputs();
  Status findEvalInputs();
  Status findOutputs();
  Status bindRates();
  Expected<std::unique_ptr<Session>>
  load(const std::shared_ptr<const Artifact> &artifact,
       const SessionOptions &wanted);
  Status prepare(Runner &runner);
  Status allocateOutputs(Runner &runner);
  Status allocateInputs(Runner &runner);
  /// To be called before a session runs.
  Status activate(Runner &runner);
  /// An error of a step that the other processes do not have.
  Status fail(const Status &status) const;
  template <typename Number> void join(std::span<Number> numbers) const;
  /// An error if the model allows some index of a step not.
  Status checkIndices(std::span<const uint8_t *const> data);
  /// Computes `count` micro-batches of the data, from the one of number `first`
  /// on.
  Status runEvaluation(std::span<const uint8_t *const> data, int first,
                       int count);
  Status lose(int64_t step, const std::string &why);
  /// What a step whose loss or gradients are not finite comes to.
  Expected<StepResult> judge(StepResult result,
                             std::span<const uint8_t *const> data);
  /// Where the last step has made the first number that is not finite; empty:
  /// nobody knows.
  Expected<std::string> explain(std::span<const uint8_t *const> data);
};

Status Trainer::Impl::checkStates() const {
  const int64_t missing = places.missing();
  if (missing < 0)
    return Status();
  const abi::State &state = at(train.plan().states(), missing);
  return Status::error(std::string("state '") + text(state.name()) + "' of '" +
                       path + "' is on no device: compile the model again");
}

/// The inputs of the model and of the loss, but for those of the optimizer.
Status Trainer::Impl::findInputs() {
  const abi::Plan &plan = train.plan();
  for (int64_t i = 0; i < length(plan.inputs()); ++i) {
    const abi::Port &port = at(plan.inputs(), i);
    if (port.per_step())
      continue;
    std::vector<int64_t> shape = shapeOf(port.shape());
    if (std::string(text(port.name())) == kSampleNumbers) {
      if (port.dtype() != abi::DType::i64 || shape.size() != 1)
        return Status::error("'" + path +
                             "' numbers its samples in an unknown way: compile "
                             "the model again");
      sample_numbers = static_cast<int>(i);
      numbers.resize(static_cast<size_t>(shape[0]));
      continue;
    }
    if (shape.empty())
      return Status::error(std::string("input '") + text(port.name()) +
                           "' of '" + path +
                           "' has no dimension of samples, so it cannot be fed "
                           "from data: make it a constant (--constant)");
    if (inputs.empty())
      samples = shape[0];
    if (shape[0] != samples || samples == 0)
      return Status::error(std::string("input '") + text(port.name()) +
                           "' of '" + path + "' has " +
                           std::to_string(shape[0]) + " samples, and '" +
                           (inputs.empty() ? "" : inputs.front().name) +
                           "' has " + std::to_string(samples) +
                           ": dimension 0 of all inputs counts samples");
    train.data.push_back(static_cast<int>(i));
    shape.erase(shape.begin());
    inputs.push_back({text(port.name()), port.dtype(), std::move(shape)});
  }
  int64_t all;
  if (inputs.empty())
    return Status::error("'" + path + "' has no input of samples");
  if (!checkedMul(samples, stepMicroBatches(train.plan()), all))
    return Status::error("'" + path + "' has more samples than can be counted");
  if (sample_numbers >= 0) {
    if (static_cast<int64_t>(numbers.size()) != samples)
      return Status::error("'" + path + "' numbers " +
                           std::to_string(numbers.size()) +
                           " samples of a micro-batch, and its inputs have " +
                           std::to_string(samples) +
                           ": dimension 0 of all inputs counts samples");
    numbers.resize(static_cast<size_t>(all));
  }
  return findEvalInputs();
}

/// An evaluation takes inputs of the training, of a micro-batch each.
Status Trainer::Impl::findEvalInputs() {
  auto wrong = [&](const std::string &what) {
    return Status::error("'" + path + "' evaluates " + what +
                         ": compile the model again");
  };
  const abi::Plan &plan = eval.plan();
  if (stepMicroBatches(plan) > stepMicroBatches(train.plan()))
    return wrong("more micro-batches than it is trained with");
  eval.data.assign(inputs.size(), -1);
  for (int64_t i = 0; i < length(plan.inputs()); ++i) {
    const abi::Port &port = at(plan.inputs(), i);
    const auto found =
        std::find_if(inputs.begin(), inputs.end(), [&](const DataInput &each) {
          return each.name == text(port.name());
        });
    if (found == inputs.end())
      return wrong(std::string("with the input '") + text(port.name()) +
                   "', without which it is trained");
    std::vector<int64_t> shape = found->shape;
    shape.insert(shape.begin(), samples);
    if (port.dtype() != found->dtype || shapeOf(port.shape()) != shape)
      return wrong("with another input '" + found->name +
                   "' than it is trained with");
    eval.data[static_cast<size_t>(found - inputs.begin())] =
        static_cast<int>(i);
  }
  return Status();
}

Status Trainer::Impl::findOutputs() {
  loss = train.output("loss");
  norm = train.output("gradient_norm");
  bool areNumbers = loss >= 0 && train.isNumber(loss, 1) &&
                    (norm < 0 || train.isNumber(norm, 1));
  for (size_t i = 0; i < kEvaluated.size(); ++i) {
    evaluated[i] = eval.output(kEvaluated[i]);
    areNumbers &= evaluated[i] < 0 || eval.isNumber(evaluated[i], told.size());
  }
  if (areNumbers && evaluated[0] >= 0)
    return Status();
  return Status::error("'" + path + "' has no loss: compile the model again");
}

/// What the optimizer asks for lies here.
Status Trainer::Impl::bindRates() {
  rates.resize(set.learningRates.size());
  if (sample_numbers >= 0)
    train.binding.inputs[static_cast<size_t>(sample_numbers)] =
        reinterpret_cast<const uint8_t *>(numbers.data());
  for (int64_t i = 0; i < length(train.plan().inputs()); ++i) {
    const abi::Port &port = at(train.plan().inputs(), i);
    if (!port.per_step())
      continue;
    const std::string name = text(port.name());
    const uint8_t *place = nullptr;
    size_t count = rates.size();
    if (name == "learning_rate")
      place = reinterpret_cast<const uint8_t *>(rates.data());
    else if (name == "weight_decay")
      place = reinterpret_cast<const uint8_t *>(set.weightDecays.data());
    else if (name == "step")
      place = reinterpret_cast<const uint8_t *>(&step_number), count = 1;
    else if (name == "seed")
      place = reinterpret_cast<const uint8_t *>(&seed), count = 1;
    const abi::DType dtype = name == "seed" ? abi::DType::i64 : abi::DType::f64;
    if (!place || port.dtype() != dtype ||
        elementCount(port.shape()) != static_cast<int64_t>(count))
      return Status::error("'" + path + "' asks for '" + name +
                           "', which is not known here: compile the model "
                           "again");
    train.binding.inputs[static_cast<size_t>(i)] = place;
  }
  return Status();
}

Expected<std::unique_ptr<Session>>
Trainer::Impl::load(const std::shared_ptr<const Artifact> &artifact,
                    const SessionOptions &wanted) {
  std::shared_ptr<Communicator> carrier;
  std::unique_ptr<Session> session;
  auto create = [&] {
    if (all)
      carrier = PARTITA_TRY(all->communicator(artifact));
    session = PARTITA_TRY(Session::create(artifact, wanted, carrier));
    return Status();
  };
  PARTITA_TRY(agree(all, create()));
  if (carrier)
    PARTITA_TRY(agree(all, carrier->connect()));
  return session;
}

Status Trainer::Impl::prepare(Runner &runner) {
  runner.session = PARTITA_TRY(load(runner.artifact, options));
  runner.binding.micro_batches = stepMicroBatches(runner.plan());
  runner.binding.inputs.resize(
      static_cast<size_t>(length(runner.plan().inputs())));
  PARTITA_TRY(allocateOutputs(runner));
  return &runner == &eval && runner.plan().full_steps() ? allocateInputs(runner)
                                                        : Status();
}

Status Trainer::Impl::allocateOutputs(Runner &runner) {
  const Mesh mesh(runner.plan());
  for (int64_t i = 0; i < length(runner.plan().outputs()); ++i) {
    const abi::Port &port = at(runner.plan().outputs(), i);
    std::vector<int64_t> shape = shapeOf(port.shape());
    if (!port.per_step())
      shape.insert(shape.begin(), runner.binding.micro_batches);
    runner.outputs.push_back(
        PARTITA_TRY(Tensor::allocate(port.dtype(), shape)));
    runner.binding.outputs.push_back(runner.outputs.back().mutableData());
    // All replicas know what a step has once.
    std::vector<bool> &tells = runner.tells.emplace_back();
    for (int replica = 0; replica < (port.per_step() ? 1 : mesh.replicas());
         ++replica) {
      const int device =
          deviceThatStores(runner.plan(), mesh, static_cast<int>(i), replica);
      tells.push_back(!all ||
                      (device >= 0 && all->processOf(device) == all->rank()));
    }
  }
  return Status();
}

Status Trainer::Impl::allocateInputs(Runner &runner) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<int64_t> shape = inputs[i].shape;
    shape.insert(shape.begin(), {runner.binding.micro_batches,
                                 runner.data[i] < 0 ? 0 : samples});
    runner.filled.push_back(
        PARTITA_TRY(Tensor::allocate(inputs[i].dtype, shape)));
  }
  return Status();
}

/// Both sessions write the same memory, of which devices of other processes may
/// not have taken yet what the other session has sent. Devices of one process
/// have taken all when its step is done.
Status Trainer::Impl::activate(Runner &runner) {
  Runner *before = std::exchange(active, &runner);
  return all && before && before != active ? before->session->settle()
                                           : Status();
}

Status Trainer::Impl::fail(const Status &status) const {
  if (all)
    all->abandon(status);
  return status;
}

template <typename Number>
void Trainer::Impl::join(std::span<Number> numbers) const {
  static_assert(sizeof(Number) % sizeof(double) == 0 &&
                    std::is_trivially_copyable_v<Number>,
                "its padding would be sent, too");
  if (all)
    all->join(
        {reinterpret_cast<uint8_t *>(numbers.data()), numbers.size_bytes()});
}

void Evaluation::add(const Evaluation &other) {
  lossSum += other.lossSum;
  lossCount += other.lossCount;
  labels += other.labels;
  right += other.right;
  rightOfFive += other.rightOfFive;
}

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Trainer::~Trainer() = default;

Expected<std::unique_ptr<Trainer>> Trainer::open(const std::string &path,
                                                 const SessionOptions &given,
                                                 Processes *all) {
  auto artifacts = PARTITA_TRY(Artifact::openTraining(path));
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->all = all;
  impl->train.artifact = artifacts.train;
  impl->eval.artifact = artifacts.eval;
  impl->set =
      PARTITA_TRY(parseSetup(text(impl->train.plan().training()), path));
  impl->places = StatePlaces(impl->train.plan(), all);
  PARTITA_TRY(impl->checkStates());
  PARTITA_TRY(impl->findInputs());
  impl->told.resize(static_cast<size_t>(stepMicroBatches(impl->eval.plan())));
  for (const auto &[name, scale] : impl->set.scales)
    if (std::none_of(
            impl->inputs.begin(), impl->inputs.end(),
            [&](const DataInput &input) { return input.name == name; }))
      return Status::error("'" + path + "' has a scale for '" + name +
                           "', and no such input: compile it with the name of "
                           "an input under `scale`");
  impl->options = given;
  // Several processes cannot compute an evaluation again that has dropped NaN.
  impl->options.keep_nan |= all != nullptr;
  std::vector<size_t> bytes;
  for (int64_t i = 0; i < length(impl->train.plan().devices()); ++i)
    bytes.push_back(static_cast<size_t>(std::max(
        programOf(impl->train.plan(), static_cast<int>(i)).arena_bytes(),
        programOf(impl->eval.plan(), static_cast<int>(i)).arena_bytes())));
  impl->options.shared = std::make_shared<SharedDevices>(std::move(bytes));
  for (Runner *runner : {&impl->train, &impl->eval})
    PARTITA_TRY(impl->prepare(*runner));
  impl->options.shared->releaseUnread();
  PARTITA_TRY(impl->findOutputs());
  PARTITA_TRY(impl->bindRates());
  std::vector<std::string> names;
  for (const DataInput &input : impl->inputs)
    names.push_back(input.name);
  impl->check.emplace(impl->train.plan(), names, impl->set.loss);
  return std::unique_ptr<Trainer>(new Trainer(std::move(impl)));
}

const Setup &Trainer::setup() const { return impl->set; }
const std::vector<DataInput> &Trainer::inputs() const { return impl->inputs; }
int64_t Trainer::microBatches() const {
  return stepMicroBatches(impl->train.plan());
}
int64_t Trainer::samplesPerStep() const {
  return impl->samples * microBatches();
}
int64_t Trainer::samplesPerMicroBatch() const { return impl->samples; }
int64_t Trainer::mostEvaluated() const {
  return static_cast<int64_t>(impl->told.size());
}
bool Trainer::countsLabels() const { return impl->evaluated[2] >= 0; }
int64_t Trainer::steps() const { return impl->done; }
void Trainer::setSteps(int64_t steps) { impl->done = steps; }
void Trainer::setSeed(uint64_t seed) { impl->seed = seed; }

/// What a check suspects, an evaluation decides: it has the same checks, and
/// changes no state.
Status Trainer::Impl::checkIndices(std::span<const uint8_t *const> data) {
  for (const BadIndex &bad : check->find(data)) {
    const Status status = runEvaluation(data, bad.micro_batch, 1);
    if (!status.ok() && !status.isInputError())
      return status;
    if (!status.ok()) {
      const abi::Check &checked = at(train.plan().checks(), bad.check);
      std::optional<int64_t> sample;
      if (checked.rows() == samples)
        sample = bad.micro_batch * samples + bad.row;
      return Status::inputError(describe(train.plan(), bad, sample));
    }
  }
  return Status();
}

Status Trainer::Impl::runEvaluation(std::span<const uint8_t *const> data,
                                    int first, int count) {
  const int most = static_cast<int>(told.size());
  const bool isFilled = eval.plan().full_steps() && count < most;
  for (size_t i = 0; i < data.size(); ++i) {
    if (eval.data[i] < 0)
      continue;
    const auto port = static_cast<unsigned>(eval.data[i]);
    const abi::Port &described = *eval.plan().inputs()->Get(port);
    const int64_t bytes =
        elementCount(described.shape()) * elementBytes(described.dtype());
    const uint8_t *from = data[i] ? data[i] + first * bytes : nullptr;
    eval.binding.inputs[port] = from;
    if (!isFilled || !from)
      continue;
    // Nobody looks at what is computed of the copies.
    uint8_t *to = eval.filled[i].mutableData();
    for (int m = 0; m < most; ++m)
      std::copy_n(from + std::min(m, count - 1) * bytes, bytes, to + m * bytes);
    eval.binding.inputs[port] = to;
  }
  eval.binding.micro_batches = eval.plan().full_steps() ? most : count;
  if (Status status = activate(eval); !status.ok())
    return fail(status);
  Status status = eval.session->run(eval.binding);
  if (!status.ok() && eval.session->badIndices().empty())
    return fail(status);
  if (!status.ok())
    status = Status::inputError(status.message());
  return agree(all, status);
}

/// The states are not those of any training: whoever goes on must not do so
/// unawares.
Status Trainer::Impl::lose(int64_t step, const std::string &why) {
  lost = "step " + std::to_string(step) + " has failed (" + why + ")";
  return Status::error(why + ". The step has changed the parameters, and they "
                             "are lost: go on from a checkpoint");
}

Status Trainer::lostStates() const {
  return impl->lost.empty()
             ? Status()
             : Status::error("the parameters are lost, because " + impl->lost +
                             ": load a checkpoint, or open the model again");
}

void Trainer::goOnAfter(int64_t steps) {
  impl->lost.clear();
  impl->done = steps;
}

Expected<StepResult> Trainer::step(std::span<const uint8_t *const> data) {
  if (data.size() != impl->inputs.size())
    return Status::error("a step needs " + std::to_string(impl->inputs.size()) +
                         " inputs, and has " + std::to_string(data.size()));
  PARTITA_TRY(lostStates());
  PARTITA_TRY(impl->checkIndices(data));
  for (size_t i = 0; i < data.size(); ++i)
    impl->train.binding.inputs[static_cast<size_t>(impl->train.data[i])] =
        data[i];
  impl->set.rates(impl->done, impl->rates);
  impl->step_number = static_cast<double>(impl->done + 1);
  std::iota(impl->numbers.begin(), impl->numbers.end(),
            impl->done * samplesPerStep());
  if (Status status = impl->activate(impl->train); !status.ok())
    return impl->fail(status);
  // What is refused has not begun.
  auto ticket = impl->train.session->submit(impl->train.binding);
  if (!ticket)
    return impl->fail(ticket.status());
  if (Status status = impl->train.session->wait(*ticket); !status.ok())
    return impl->fail(impl->lose(impl->done + 1, status.message()));
  ++impl->done;
  Learned learned = {impl->train.number(impl->loss),
                     impl->train.number(impl->norm)};
  impl->join(std::span(&learned, 1));
  StepResult result;
  result.loss = learned.loss;
  result.learningRate = impl->rates.front();
  result.gradientNorm = learned.norm;
  if (!std::isfinite(result.loss) || !std::isfinite(result.gradientNorm))
    return impl->judge(std::move(result), data);
  return result;
}

Expected<StepResult>
Trainer::Impl::judge(StepResult result, std::span<const uint8_t *const> data) {
  const std::string what =
      std::string(std::isfinite(result.loss) ? "the norm of the gradients"
                                             : "the loss") +
      " of step " + std::to_string(done) + " is not finite";
  const std::string advice =
      "with a smaller learning rate or with clip_norm. (A step whose labels "
      "are all ignored has no loss, either.)";
  if (set.onNonfinite.empty()) {
    lost = what;
    return Status::error(lost +
                         ", and the parameters are lost. Go on from a "
                         "checkpoint, " +
                         advice + " With --on-nonfinite of partita-compile " +
                         "such a step changes no parameter");
  }
  result.why = what;
  if (!std::exchange(explained, true)) {
    auto origin = explain(data);
    if (!origin)
      return fail(origin.status());
    if (!origin->empty())
      result.why += ": " + *origin;
  }
  result.skipped = set.onNonfinite == "skip";
  if (result.skipped)
    return result;
  --done;
  explained = false;
  return Status::error(result.why + ". No parameter has changed: go on " +
                       advice);
}

/// The step is computed once more, by a session that looks at all results.
Expected<std::string>
Trainer::Impl::explain(std::span<const uint8_t *const> data) {
  for (size_t i = 0; i < data.size(); ++i) {
    const abi::Port &port = at(train.plan().inputs(), train.data[i]);
    const int64_t count =
        elementCount(port.shape()) * stepMicroBatches(train.plan());
    if (!hasNan(port.dtype()))
      continue;
    if (auto at = findFirst(Search::not_finite, port.dtype(), data[i], count))
      return "the input '" + inputs[i].name +
             "' has a number that is not "
             "finite in sample " +
             std::to_string(*at * samples /
                            std::max<int64_t>(elementCount(port.shape()), 1)) +
             " of the step";
  }
  bool isVisible = false;
  for (int i = 0; i < static_cast<int>(length(train.plan().devices())); ++i)
    isVisible |= canBeSearched(train.plan(), i);
  if (!isVisible)
    return std::string();
  SessionOptions wanted = options;
  wanted.search = Search::not_finite;
  wanted.profile = false;
  PARTITA_TRY(all ? train.session->settle() : Status());
  // The training needs no explanation: without room for it there is none.
  auto session = load(train.artifact, wanted);
  if (!session)
    return std::string();
  Status status = (*session)->run(train.binding);
  if (status.ok() && all)
    status = (*session)->settle();
  if (!status.ok())
    return lose(done, status.message());
  std::vector<Found> found(static_cast<size_t>(all ? all->count() : 1));
  for (const NanOrigin &origin : (*session)->nanOrigins()) {
    Found &mine = found[static_cast<size_t>(all ? all->rank() : 0)];
    mine = {1, mine.is_there ? std::min(mine.origin, origin) : origin};
  }
  if (all)
    all->join({reinterpret_cast<uint8_t *>(found.data()),
               found.size() * sizeof(Found)});
  std::optional<NanOrigin> first;
  for (const auto &[is_there, origin] : found)
    if (is_there)
      first = first ? std::min(*first, origin) : origin;
  return first ? "the first op with such a result is " +
                     describe(train.plan(), *first) + ", in micro-batch " +
                     std::to_string(first->micro_batch)
               : std::string();
}

Expected<Evaluation> Trainer::evaluate(std::span<const uint8_t *const> data,
                                       int64_t microBatches) {
  if (data.size() != impl->inputs.size())
    return Status::error("an evaluation needs " +
                         std::to_string(impl->inputs.size()) +
                         " inputs, and has " + std::to_string(data.size()));
  if (microBatches < 1 || microBatches > mostEvaluated())
    return Status::error("an evaluation of " + std::to_string(microBatches) +
                         " micro-batches: it has 1 to " +
                         std::to_string(mostEvaluated()));
  PARTITA_TRY(lostStates());
  PARTITA_TRY(impl->runEvaluation(data, 0, static_cast<int>(microBatches)));
  for (int64_t m = 0; m < mostEvaluated(); ++m)
    for (size_t i = 0; i < kEvaluated.size(); ++i)
      impl->told[static_cast<size_t>(m)][i] =
          m < microBatches ? impl->eval.number(impl->evaluated[i], m) : 0;
  impl->join(std::span(impl->told));
  // In the order of the micro-batches, whoever computes them.
  Evaluation total;
  for (const auto &[sum, count, labels, right, rightOfFive] : impl->told)
    total.add({sum, count, std::llround(labels), std::llround(right),
               std::llround(rightOfFive)});
  return total;
}

Processes *Trainer::processes() const { return impl->all; }
const StatePlaces &Trainer::statePlaces() const { return impl->places; }
int64_t Trainer::stateCount() const {
  return length(impl->train.plan().states());
}
const abi::State &Trainer::state(int64_t index) const {
  return at(impl->train.plan().states(), index);
}
Status Trainer::readState(int64_t index, void *to) const {
  return impl->train.session->readState(static_cast<int>(index), to);
}
Status Trainer::writeState(int64_t index, const void *from) {
  return impl->train.session->writeState(static_cast<int>(index), from);
}
Expected<int64_t> Trainer::drawInitialStates() {
  int64_t drawn = 0;
  for (int64_t i = 0; i < stateCount(); ++i) {
    const std::string name = text(state(i).name());
    const auto found = impl->set.initial.find(name);
    if (found == impl->set.initial.end())
      continue;
    ++drawn;
    if (!impl->places.isHere(i))
      continue;
    auto made = PARTITA_TRY(
        Tensor::allocate(state(i).dtype(), shapeOf(state(i).shape())));
    const auto elements = static_cast<size_t>(made.elements());
    if (made.dtype() == abi::DType::f32)
      draw(found->second, impl->seed, name,
           std::span(reinterpret_cast<float *>(made.mutableData()), elements));
    else if (made.dtype() == abi::DType::f64)
      draw(found->second, impl->seed, name,
           std::span(reinterpret_cast<double *>(made.mutableData()), elements));
    else
      return Status::error("'" + name +
                           "' is drawn as f32 or f64, and is another type: "
                           "compile the model without `init` for it");
    PARTITA_TRY(writeState(i, made.data()));
  }
  return drawn;
}
const abi::Plan &Trainer::plan() const { return impl->train.plan(); }
std::vector<DeviceMemory> Trainer::memory() const {
  return impl->train.session->memory();
}
const std::vector<ProfileEvent> &Trainer::profile() const {
  return impl->train.session->profile();
}
std::string Trainer::remark() const { return impl->train.session->remark(); }

} // namespace partita::runtime::train
