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
#include "runtime/io/Tensor.h"
#include "runtime/session/NanSearch.h"
#include "runtime/trainer/Accuracy.h"
#include "runtime/trainer/InputCheck.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

namespace partita::runtime::train {
namespace {

/// The input that counts all samples of a training.
constexpr const char *kSampleNumbers = "sample_number";

/// The first device that stores an output; -1: none does.
int deviceThatStores(const abi::Plan &plan, int output) {
  const Mesh mesh(plan);
  for (int device = 0; device < length(plan.devices()); ++device) {
    const abi::Program &program = programOf(plan, device);
    for (int64_t i = 0; mesh.stores(device) && i < length(program.actions());
         ++i) {
      const abi::ProgramAction action = actionOf(program, i);
      if (action.kind == abi::ActionKind::store_output &&
          action.subject == output)
        return device;
    }
  }
  return -1;
}

/// What processes tell each other of a step or an evaluation. Of each number,
/// one of them knows the value, and the others have 0.
struct Outcome {
  double loss = 0, norm = 0;
  double loss_sum = 0, loss_count = 0;
  int64_t labels = 0, right = 0, right_of_five = 0;
};
static_assert(sizeof(Outcome) == 7 * 8, "its padding would be sent, too");

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
  std::vector<bool> tells;     ///< whether this process says what an output is
  const abi::Plan &plan() const { return artifact->plan(); }

  /// The number of an output; -1 if there is none of the name.
  int output(const std::string &name) const {
    for (int64_t i = 0; i < length(plan().outputs()); ++i)
      if (text(plan().outputs()->Get(static_cast<unsigned>(i))->name()) == name)
        return static_cast<int>(i);
    return -1;
  }
  /// Whether `number` may be asked for it.
  bool isNumber(int output) const {
    const Tensor &tensor = outputs[static_cast<size_t>(output)];
    return tensor.elements() == 1 && (tensor.dtype() == abi::DType::f32 ||
                                      tensor.dtype() == abi::DType::f64);
  }
  /// The first element of an output, as a double; 0 if there is no output, and
  /// where another process tells it.
  double number(int output) const {
    if (output < 0 || !tells[static_cast<size_t>(output)])
      return 0;
    const Tensor &tensor = outputs[static_cast<size_t>(output)];
    return tensor.dtype() == abi::DType::f64
               ? *reinterpret_cast<const double *>(tensor.data())
               : static_cast<double>(
                     *reinterpret_cast<const float *>(tensor.data()));
  }
};

namespace {

std::vector<int64_t> shapeOf(const abi::Port &port) {
  return port.shape()
             ? std::vector<int64_t>(port.shape()->begin(), port.shape()->end())
             : std::vector<int64_t>();
}

} // namespace

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
  int loss = -1, norm = -1, loss_sum = -1, loss_count = -1, scores = -1;
  int labels = -1; ///< the data input that a loss compares with
  std::optional<ScoreShape> scored; ///< see findScores
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
  /// To be called before a session runs.
  Status activate(Runner &runner);
  /// An error of a step that the other processes do not have.
  Status fail(const Status &status) const;
  Outcome join(Outcome outcome) const;
  std::optional<ScoreShape> findScores() const;
  /// An error if the model allows some index of a step not.
  Status checkIndices(std::span<const uint8_t *const> data);
  /// Computes micro-batch `m` of the data.
  Status runEvaluation(std::span<const uint8_t *const> data, int m);
  Status lose(int64_t step, const std::string &why);
  /// What a step whose loss or gradients are not finite comes to.
  Expected<StepResult> judge(StepResult result,
                             std::span<const uint8_t *const> data);
  /// Where the last step has made the first number that is not finite; empty:
  /// nobody knows.
  Expected<std::string> explain(std::span<const uint8_t *const> data);
  /// Adds the labels that are predicted, if there are any.
  void count(std::span<const uint8_t *const> data, Evaluation &result) const;
};

Status Trainer::Impl::checkStates() const {
  const int64_t missing = places.missing();
  if (missing < 0)
    return Status();
  const abi::State &state =
      *train.plan().states()->Get(static_cast<unsigned>(missing));
  return Status::error(std::string("state '") + text(state.name()) + "' of '" +
                       path + "' is on no device: compile the model again");
}

/// The inputs of the model and of the loss, but for those of the optimizer.
Status Trainer::Impl::findInputs() {
  const abi::Plan &plan = train.plan();
  for (int64_t i = 0; i < length(plan.inputs()); ++i) {
    const abi::Port &port = *plan.inputs()->Get(static_cast<unsigned>(i));
    if (port.per_step())
      continue;
    std::vector<int64_t> shape = shapeOf(port);
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
    if (inputs.back().name == set.loss.target)
      labels = static_cast<int>(inputs.size()) - 1;
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
  if (plan.micro_batches() != 1)
    return wrong(std::to_string(plan.micro_batches()) + " micro-batches");
  eval.data.assign(inputs.size(), -1);
  for (int64_t i = 0; i < length(plan.inputs()); ++i) {
    const abi::Port &port = *plan.inputs()->Get(static_cast<unsigned>(i));
    const auto found =
        std::find_if(inputs.begin(), inputs.end(), [&](const DataInput &each) {
          return each.name == text(port.name());
        });
    if (found == inputs.end())
      return wrong(std::string("with the input '") + text(port.name()) +
                   "', without which it is trained");
    std::vector<int64_t> shape = found->shape;
    shape.insert(shape.begin(), samples);
    if (port.dtype() != found->dtype || shapeOf(port) != shape)
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
  loss_sum = eval.output("loss.sum");
  loss_count = eval.output("loss.count");
  scores = eval.output(set.loss.output);
  if (loss >= 0 && loss_sum >= 0 && train.isNumber(loss) &&
      eval.isNumber(loss_sum) && (norm < 0 || train.isNumber(norm)) &&
      (loss_count < 0 || eval.isNumber(loss_count)))
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
    const abi::Port &port =
        *train.plan().inputs()->Get(static_cast<unsigned>(i));
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
    if (all) {
      auto made = all->communicator(artifact);
      if (!made)
        return made.status();
      carrier = std::move(*made);
    }
    auto made = Session::create(artifact, wanted, carrier);
    if (made)
      session = std::move(*made);
    return made.status();
  };
  if (Status status = agree(all, create()); !status.ok())
    return status;
  if (carrier)
    if (Status status = agree(all, carrier->connect()); !status.ok())
      return status;
  return session;
}

Status Trainer::Impl::prepare(Runner &runner) {
  auto session = load(runner.artifact, options);
  if (!session)
    return session.status();
  runner.session = std::move(*session);
  // Of an evaluation, the first replica computes all.
  runner.binding.micro_batches =
      runner.plan().full_steps() ? stepMicroBatches(runner.plan()) : 1;
  runner.binding.inputs.resize(
      static_cast<size_t>(length(runner.plan().inputs())));
  return allocateOutputs(runner);
}

Status Trainer::Impl::allocateOutputs(Runner &runner) {
  for (int64_t i = 0; i < length(runner.plan().outputs()); ++i) {
    const abi::Port &port =
        *runner.plan().outputs()->Get(static_cast<unsigned>(i));
    std::vector<int64_t> shape = shapeOf(port);
    if (!port.per_step())
      shape.insert(shape.begin(), runner.binding.micro_batches);
    auto made = Tensor::allocate(port.dtype(), shape);
    if (!made)
      return made.status();
    runner.outputs.push_back(std::move(*made));
    runner.binding.outputs.push_back(runner.outputs.back().mutableData());
    const int device = deviceThatStores(runner.plan(), static_cast<int>(i));
    runner.tells.push_back(
        !all || (device >= 0 && all->processOf(device) == all->rank()));
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

Outcome Trainer::Impl::join(Outcome outcome) const {
  if (all)
    all->join({reinterpret_cast<uint8_t *>(&outcome), sizeof outcome});
  return outcome;
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
  auto artifacts = Artifact::openTraining(path);
  if (!artifacts)
    return artifacts.status();
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->all = all;
  impl->train.artifact = artifacts->train;
  impl->eval.artifact = artifacts->eval;
  auto setup = parseSetup(text(impl->train.plan().training()), path);
  if (!setup)
    return setup.status();
  impl->set = std::move(*setup);
  impl->places = StatePlaces(impl->train.plan(), all);
  for (const Status &status : {impl->checkStates(), impl->findInputs()})
    if (!status.ok())
      return status;
  for (const auto &[name, scale] : impl->set.scales)
    if (std::none_of(
            impl->inputs.begin(), impl->inputs.end(),
            [&](const DataInput &input) { return input.name == name; }))
      return Status::error("'" + path + "' has a scale for '" + name +
                           "', and no such input: compile it with the name of "
                           "an input under `scale`");
  impl->options = given;
  std::vector<size_t> bytes;
  for (int64_t i = 0; i < length(impl->train.plan().devices()); ++i)
    bytes.push_back(static_cast<size_t>(std::max(
        programOf(impl->train.plan(), static_cast<int>(i)).arena_bytes(),
        programOf(impl->eval.plan(), static_cast<int>(i)).arena_bytes())));
  impl->options.shared = std::make_shared<SharedDevices>(std::move(bytes));
  for (Runner *runner : {&impl->train, &impl->eval})
    if (Status status = impl->prepare(*runner); !status.ok())
      return status;
  impl->options.shared->releaseUnread();
  if (Status status = impl->findOutputs(); !status.ok())
    return status;
  if (Status status = impl->bindRates(); !status.ok())
    return status;
  impl->scored = impl->findScores();
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
int64_t Trainer::samplesPerEvaluation() const { return impl->samples; }
bool Trainer::countsLabels() const { return impl->scored.has_value(); }
int64_t Trainer::steps() const { return impl->done; }
void Trainer::setSteps(int64_t steps) { impl->done = steps; }
void Trainer::setSeed(uint64_t seed) { impl->seed = seed; }

/// What a check suspects, an evaluation decides: it has the same checks, and
/// changes no state.
Status Trainer::Impl::checkIndices(std::span<const uint8_t *const> data) {
  for (const BadIndex &bad : check->find(data)) {
    const Status status = runEvaluation(data, bad.micro_batch);
    if (!status.ok() && !status.isInputError())
      return status;
    if (!status.ok()) {
      const abi::Check &checked =
          *train.plan().checks()->Get(static_cast<unsigned>(bad.check));
      std::optional<int64_t> sample;
      if (checked.rows() == samples)
        sample = bad.micro_batch * samples + bad.row;
      return Status::inputError(describe(train.plan(), bad, sample));
    }
  }
  return Status();
}

Status Trainer::Impl::runEvaluation(std::span<const uint8_t *const> data,
                                    int m) {
  for (size_t i = 0; i < data.size(); ++i) {
    if (eval.data[i] < 0)
      continue;
    const auto port = static_cast<unsigned>(eval.data[i]);
    const abi::Port &described = *eval.plan().inputs()->Get(port);
    const int64_t bytes =
        elementCount(described.shape()) * elementBytes(described.dtype());
    eval.binding.inputs[port] = data[i] ? data[i] + m * bytes : nullptr;
  }
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
  if (Status status = lostStates(); !status.ok())
    return status;
  if (Status status = impl->checkIndices(data); !status.ok())
    return status;
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
  Outcome outcome;
  outcome.loss = impl->train.number(impl->loss);
  outcome.norm = impl->train.number(impl->norm);
  outcome = impl->join(outcome);
  StepResult result;
  result.loss = outcome.loss;
  result.learningRate = impl->rates.front();
  result.gradientNorm = outcome.norm;
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
    const abi::Port &port =
        *train.plan().inputs()->Get(static_cast<unsigned>(train.data[i]));
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
  if (Status status = all ? train.session->settle() : Status(); !status.ok())
    return status;
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

/// Where the scores of labels lie, if the loss compares with labels.
std::optional<ScoreShape> Trainer::Impl::findScores() const {
  if ((set.loss.kind != "cross_entropy" && set.loss.kind != "nll") ||
      scores < 0 || labels < 0 ||
      inputs[static_cast<size_t>(labels)].dtype != abi::DType::i64)
    return std::nullopt;
  if (eval.plan().outputs()->Get(static_cast<unsigned>(scores))->per_step())
    return std::nullopt;
  const Tensor &tensor = eval.outputs[static_cast<size_t>(scores)];
  if (tensor.dtype() != abi::DType::f32 && tensor.dtype() != abi::DType::f64)
    return std::nullopt;
  std::vector<int64_t> shape(tensor.shape().begin() + 1, tensor.shape().end());
  if (shape.size() < 2)
    return std::nullopt;
  // As the loss has it: docs/gradients.md.
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t place = set.loss.axis.value_or(rank <= 3 ? rank - 1 : 1);
  place += place < 0 ? rank : 0;
  if (place < 0 || place >= rank)
    return std::nullopt;
  const auto axis = static_cast<size_t>(place);
  ScoreShape found{1, shape[axis], 1};
  for (size_t i = 0; i < shape.size(); ++i)
    (i < axis ? found.outer : found.inner) *= i == axis ? 1 : shape[i];
  int64_t wanted = samples;
  for (int64_t size : inputs[static_cast<size_t>(labels)].shape)
    wanted *= size;
  if (wanted != found.outer * found.inner)
    return std::nullopt;
  return found;
}

void Trainer::Impl::count(std::span<const uint8_t *const> data,
                          Evaluation &result) const {
  if (!scored || !eval.tells[static_cast<size_t>(scores)])
    return;
  const Tensor &tensor = eval.outputs[static_cast<size_t>(scores)];
  const auto *target =
      reinterpret_cast<const int64_t *>(data[static_cast<size_t>(labels)]);
  const LabelCount found =
      tensor.dtype() == abi::DType::f32
          ? countRight(reinterpret_cast<const float *>(tensor.data()), target,
                       *scored, set.loss.ignoreIndex)
          : countRight(reinterpret_cast<const double *>(tensor.data()), target,
                       *scored, set.loss.ignoreIndex);
  result.labels = found.labels;
  result.right = found.right;
  result.rightOfFive = found.rightOfFive;
}

Expected<Evaluation> Trainer::evaluate(std::span<const uint8_t *const> data) {
  if (data.size() != impl->inputs.size())
    return Status::error("an evaluation needs " +
                         std::to_string(impl->inputs.size()) +
                         " inputs, and has " + std::to_string(data.size()));
  if (Status status = lostStates(); !status.ok())
    return status;
  if (Status status = impl->runEvaluation(data, 0); !status.ok())
    return status;
  Evaluation result;
  impl->count(data, result);
  Outcome outcome;
  outcome.loss_sum = impl->eval.number(impl->loss_sum);
  outcome.loss_count = impl->eval.number(impl->loss_count);
  outcome.labels = result.labels;
  outcome.right = result.right;
  outcome.right_of_five = result.rightOfFive;
  outcome = impl->join(outcome);
  return Evaluation{outcome.loss_sum, outcome.loss_count, outcome.labels,
                    outcome.right, outcome.right_of_five};
}

Processes *Trainer::processes() const { return impl->all; }
const StatePlaces &Trainer::statePlaces() const { return impl->places; }
int64_t Trainer::stateCount() const {
  return length(impl->train.plan().states());
}
const abi::State &Trainer::state(int64_t index) const {
  return *impl->train.plan().states()->Get(static_cast<unsigned>(index));
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
    std::vector<int64_t> shape;
    if (state(i).shape())
      shape.assign(state(i).shape()->begin(), state(i).shape()->end());
    auto made = Tensor::allocate(state(i).dtype(), shape);
    if (!made)
      return made.status();
    const auto elements = static_cast<size_t>(made->elements());
    if (made->dtype() == abi::DType::f32)
      draw(found->second, impl->seed, name,
           {reinterpret_cast<float *>(made->mutableData()), elements});
    else if (made->dtype() == abi::DType::f64)
      draw(found->second, impl->seed, name,
           {reinterpret_cast<double *>(made->mutableData()), elements});
    else
      return Status::error("'" + name +
                           "' is drawn as f32 or f64, and is another type: "
                           "compile the model without `init` for it");
    if (Status status = writeState(i, made->data()); !status.ok())
      return status;
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
