//===- Stream.cpp - Samples from many, in steps of several ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/Stream.h"

#include "runtime/abi/Text.h"
#include "runtime/base/Programs.h"
#include "runtime/feed/Layout.h"
#include "runtime/feed/SharedSteps.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace partita::feed {

using runtime::Expected;
using runtime::length;
using runtime::Session;
using runtime::Status;
using runtime::StepBinding;
using runtime::Tensor;

struct Stream::Impl {
  /// A port as a stream sees it: so many entries along its batch axis belong to
  /// one sample.
  struct StreamPort {
    const Port *port;
    Layout layout;
    int64_t perSample = 1;
  };
  struct Request {
    std::vector<Tensor> inputs, outputs;
    std::vector<uint8_t *> places; ///< of the outputs
    int64_t samples = 0;
    int64_t taken = 0; ///< samples that are in steps
    int64_t left = 0;  ///< samples that are not done
    int sequence = 0;
    bool begins = false; ///< the sequence's states are 0 before it
    Clock::time_point arrived, finished;
    Status refused; ///< if samples have wrong indices
  };
  /// A plan that computes the samples: first the one of a step, then those of
  /// steps of several sequences.
  struct StreamPlan {
    const Model &model;
    std::vector<StreamPort> inputs, outputs;
    int64_t perBatch = 1; ///< samples of a micro-batch
    int64_t perStep = 1;
    std::unique_ptr<Session> session;

    int sequences() const { return model.plan->step_sequences(); }
  };
  /// Samples of a request within a step.
  struct Piece {
    std::shared_ptr<Request> request;
    int64_t begin = 0, count = 0; ///< in the request
    int64_t place = 0;            ///< in the step
  };
  /// What is to be done between steps.
  struct Job {
    const std::function<Status(Session &)> &work;
    Status status;
    bool done = false;
  };
  /// The bytes of a step, but for ports that are read or written where they
  /// lie in a request's tensors. Room is made when it is first needed.
  struct Lane {
    StreamPlan *plan = nullptr;
    std::vector<std::vector<uint8_t>> inputs, outputs; ///< by port
    std::vector<uint8_t> live; ///< which of the sequences the step is of
    Clock::time_point begun;
    std::vector<Piece> pieces;
    int64_t samples = 0;
    StepBinding binding;
    uint64_t ticket = 0;
  };

  const runtime::SessionOptions sessionOptions;
  StreamOptions options;
  std::vector<StreamPlan> plans;
  const Model &model; ///< of the first plan

  std::string remark; ///< of the sessions, once they are loaded
  std::array<Lane, Session::kMostSteps> lanes;
  std::vector<Lane *> idle;
  std::deque<Lane *> underWay;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Request>> queue; ///< not wholly in steps
  std::deque<Job *> jobs;                     ///< not begun
  std::map<uint64_t, std::shared_ptr<Request>> requests;
  uint64_t tickets = 0;
  int64_t waiting = 0; ///< samples that are in no step
  bool loaded = false, stopping = false;
  bool overlaps = false; ///< Session::overlapsSteps
  bool has_turn = false;
  int64_t turn_steps = 0;     ///< that were begun since
  SharedSteps shared;         ///< numbers its plans as `plans`
  std::vector<int> sequences; ///< waitingSequences
  bool gone = false; ///< the session, after which nobody touches a request
  bool nanKept = false;
  Status failure;
  Counts done;
  std::vector<int64_t> busy; ///< by device, in the steps that are done
  std::thread feeder, finisher;

  Impl(const Model &model, const runtime::SessionOptions &session,
       const StreamOptions &options,
       const std::vector<const Model *> &several = {})
      : sessionOptions(session), options(options), model(model) {
    std::vector<SharedSteps::Plan> times;
    auto add = [&](const Model &each) {
      plans.push_back({each});
      times.push_back(
          {each.plan->step_sequences(), double(each.plan->step_ns())});
    };
    add(model);
    for (const Model *each : several)
      add(*each);
    shared = SharedSteps(std::move(times), model.plan->sequences());
  }
  ~Impl();

  Status describe();
  Status describe(StreamPlan &plan) const;
  Status describe(const StreamPlan &plan, const std::vector<Port> &ports,
                  bool hasAxes, std::vector<StreamPort> &described) const;
  Status start();
  Status load();
  void feed();
  void finishSteps();
  bool mayBegin(std::unique_lock<std::mutex> &lock);
  void giveTurn();
  const std::vector<int> &waitingSequences();
  size_t choosePlan();
  bool isFull();
  Clock::time_point latestBegin() const;
  void gather(Lane &lane);
  std::optional<int64_t> placeInRequest(const Lane &lane,
                                        const StreamPort &port) const;
  void fill(Lane &lane) const;
  void finish(Lane &lane);
  void refuse(const Lane &lane, const Piece &piece) const;
  void fail(const Status &status);
  Expected<int64_t> check(const std::vector<Tensor> &given) const;
  Expected<uint64_t> accept(std::shared_ptr<Request> request);
};

Stream::Impl::~Impl() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  for (std::thread *thread : {&feeder, &finisher})
    if (thread->joinable())
      thread->join();
}

//===----------------------------------------------------------------------===//
// Ports
//===----------------------------------------------------------------------===//

Status Stream::Impl::describe(const StreamPlan &plan,
                              const std::vector<Port> &ports, bool hasAxes,
                              std::vector<StreamPort> &described) const {
  for (const Port &port : ports) {
    StreamPort made{&port, layoutOf(port), 1};
    if (!hasAxes) {
      // The whole port is a sample.
      made.layout = {1, port.bytes()};
    } else if (port.batchAxis < 0) {
      return Status::error("'" + port.name +
                           "' has no axis for samples, while others have: "
                           "such a model computes no stream of samples");
    } else if (port.samples() % plan.perBatch != 0) {
      return Status::error("'" + port.name + "' has " +
                           std::to_string(port.samples()) +
                           " entries a micro-batch, which does not divide "
                           "for its " +
                           abi::countOf(plan.perBatch, "sample"));
    } else {
      made.perSample = port.samples() / plan.perBatch;
    }
    described.push_back(made);
  }
  return Status();
}

Status Stream::Impl::describe(StreamPlan &plan) const {
  bool hasAxes = false;
  for (const std::vector<Port> *ports :
       {&plan.model.inputs, &plan.model.outputs})
    for (const Port &port : *ports)
      hasAxes |= port.batchAxis >= 0;
  plan.perBatch = hasAxes ? plan.model.samples() : 1;
  plan.perStep = plan.perBatch * plan.model.microBatches;
  PARTITA_TRY(describe(plan, plan.model.inputs, hasAxes, plan.inputs));
  return describe(plan, plan.model.outputs, hasAxes, plan.outputs);
}

Status Stream::Impl::describe() {
  if (options.delay_s > 0 && length(model.plan->mixes()))
    return Status::error("samples cannot wait for others to share a step "
                         "(dynamic batching): " +
                         std::string(runtime::text(model.plan->mixes())) +
                         "; leave out the delay");
  for (StreamPlan &plan : plans)
    PARTITA_TRY(describe(plan));
  if (options.queued_samples <= 0)
    options.queued_samples = Session::kMostSteps * plans.back().perStep;
  return Status();
}

Expected<int64_t> Stream::Impl::check(const std::vector<Tensor> &given) const {
  const std::vector<StreamPort> &inputs = plans.front().inputs;
  if (given.size() != inputs.size())
    return Status::error("the model has " +
                         abi::countOf(int64_t(inputs.size()), "input") +
                         ", and " + std::to_string(given.size()) +
                         (given.size() == 1 ? " is" : " are") + " given");
  int64_t samples = 1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Port &port = *inputs[i].port;
    PARTITA_TRY(checkInput(port, given[i]));
    if (port.batchAxis < 0)
      continue;
    const int64_t entries = given[i].shape()[size_t(port.batchAxis)];
    const int64_t mine = entries / inputs[i].perSample;
    if (entries % inputs[i].perSample != 0 || (i > 0 && mine != samples))
      return Status::error("the inputs '" + inputs[0].port->name + "' and '" +
                           port.name +
                           "' do not have the same number of samples");
    samples = mine;
  }
  // Requests of whole micro-batches share none.
  PARTITA_TRY(model.checkSamples(samples));
  return samples;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Status Stream::Impl::start() {
  for (Lane &lane : lanes) {
    lane.inputs.resize(plans.front().inputs.size());
    lane.outputs.resize(plans.front().outputs.size());
    idle.push_back(&lane);
  }
  feeder = std::thread([this] { feed(); });
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return loaded; });
  if (!failure.ok())
    return failure;
  if (overlaps)
    finisher = std::thread([this] { finishSteps(); });
  return Status();
}

Status Stream::Impl::load() {
  for (StreamPlan &plan : plans) {
    plan.session =
        PARTITA_TRY(Session::create(plan.model.artifact, sessionOptions));
    if (const std::string &own = plan.session->remark(); !own.empty())
      remark += (remark.empty() ? "" : "\n") + own;
    overlaps |= plan.session->overlapsSteps();
  }
  return Status();
}

/// The thread that loads the sessions and submits their steps.
void Stream::Impl::feed() {
  const Status status = load();
  std::unique_lock<std::mutex> lock(mutex);
  failure = status;
  loaded = true;
  changed.notify_all();
  if (!status.ok())
    return;
  while (mayBegin(lock)) {
    if (options.devices_lock && !has_turn) {
      lock.unlock();
      options.devices_lock->lock();
      lock.lock();
      has_turn = true;
      turn_steps = 0;
      continue; // what is to be computed may have failed or changed
    }
    ++turn_steps;
    if (queue.empty()) {
      Job &job = *jobs.front();
      jobs.pop_front();
      lock.unlock();
      job.status = job.work(*plans.front().session);
      lock.lock();
      job.done = true;
      changed.notify_all();
      continue;
    }
    Lane &lane = *idle.back();
    idle.pop_back();
    gather(lane);
    lock.unlock();
    changed.notify_all(); // there is room in the queue
    fill(lane);
    Expected<uint64_t> ticket = lane.plan->session->submit(lane.binding);
    lock.lock();
    if (!ticket) {
      fail(ticket.status());
      continue;
    }
    lane.ticket = *ticket;
    underWay.push_back(&lane);
    if (overlaps) {
      changed.notify_all();
      continue;
    }
    lock.unlock();
    finish(lane);
    lock.lock();
  }
  // What is under way keeps the session until it is done.
  changed.wait(lock, [&] { return underWay.empty(); });
  for (StreamPlan &plan : plans)
    plan.session.reset();
  gone = true;
  changed.notify_all();
  giveTurn();
}

/// Lets another stream compute, if it is this one's turn. Nothing may be under
/// way.
void Stream::Impl::giveTurn() {
  if (!has_turn)
    return;
  options.devices_lock->unlock();
  has_turn = false;
}

/// Waits until a step should begin; false if none will.
bool Stream::Impl::mayBegin(std::unique_lock<std::mutex> &lock) {
  /// More steps than that are begun only if they are full: a sample that comes
  /// later finds a place in the next.
  constexpr size_t kBusy = 2;
  while (true) {
    if (!failure.ok())
      return false;
    // Another stream comes when this one has computed, or has nothing to.
    const bool isWanted =
        has_turn && turn_steps > 0 && options.devices_lock->hasWaiters();
    if (underWay.empty() && ((queue.empty() && jobs.empty()) || isWanted))
      giveTurn();
    else if (isWanted) {
      changed.wait(lock); // for the steps under way
      continue;
    }
    if (queue.empty()) {
      if (!jobs.empty() && underWay.empty())
        return true;
      if (stopping)
        return false;
      changed.wait(lock);
      continue;
    }
    // Plans share the devices' memory, and compute one after another.
    if (!underWay.empty() && underWay.back()->plan != &plans[choosePlan()]) {
      changed.wait(lock);
      continue;
    }
    if (!idle.empty() && isFull())
      return true;
    if (idle.empty() || underWay.size() >= kBusy) {
      changed.wait(lock);
      continue;
    }
    const Clock::time_point latest = latestBegin();
    if (stopping || Clock::now() >= latest)
      return true;
    if (underWay.empty())
      giveTurn(); // others need not wait until this step is full
    changed.wait_until(lock, latest);
  }
}

const std::vector<int> &Stream::Impl::waitingSequences() {
  sequences.clear();
  for (const std::shared_ptr<Request> &request : queue)
    sequences.push_back(request->sequence);
  return sequences;
}

/// The plan for the next step.
size_t Stream::Impl::choosePlan() {
  return shared.areShared() ? shared.choose(waitingSequences()) : 0;
}

/// Whether no other sample could share the next step.
bool Stream::Impl::isFull() {
  return shared.areShared() ? shared.isFull(waitingSequences())
                            : waiting >= plans.front().perStep;
}

/// When the next step begins, full or not.
Stream::Clock::time_point Stream::Impl::latestBegin() const {
  const Request &first = *queue.front();
  return shared.latestBegin(
      first.sequence,
      first.arrived + std::chrono::duration_cast<Clock::duration>(
                          std::chrono::duration<double>(options.delay_s)));
}

/// Takes samples from the front of the queue, or the next ones of several
/// sequences.
void Stream::Impl::gather(Lane &lane) {
  const size_t number = choosePlan();
  lane.plan = &plans[number];
  lane.begun = Clock::now();
  lane.pieces.clear();
  lane.samples = 0;
  if (lane.plan->sequences() > 1) {
    const int64_t each = plans.front().perStep;
    for (size_t position : shared.find(waitingSequences(), number)) {
      const std::shared_ptr<Request> &request = queue[position];
      lane.pieces.push_back({request, request->taken, each,
                             shared.place(request->sequence, number) * each});
      request->taken += each;
      waiting -= each;
    }
    std::erase_if(queue, [](const std::shared_ptr<Request> &request) {
      return request->taken == request->samples;
    });
    lane.samples = lane.plan->perStep;
    return;
  }
  const int64_t perStep = lane.plan->perStep;
  while (!queue.empty() && lane.samples < perStep) {
    const std::shared_ptr<Request> &request = queue.front();
    Piece piece{
        request, request->taken,
        std::min(request->samples - request->taken, perStep - lane.samples),
        lane.samples};
    request->taken += piece.count;
    lane.samples += piece.count;
    waiting -= piece.count;
    lane.pieces.push_back(piece);
    if (request->taken == request->samples)
      queue.pop_front();
  }
}

/// Where the samples of a step lie one after another in a tensor of a request,
/// bytes from its beginning: if they are whole micro-batches of one request.
std::optional<int64_t>
Stream::Impl::placeInRequest(const Lane &lane, const StreamPort &port) const {
  if (lane.pieces.size() != 1 || lane.samples % lane.plan->perBatch != 0 ||
      lane.plan->sequences() > 1 || port.layout.outer != 1)
    return std::nullopt;
  return lane.pieces[0].begin * port.perSample * port.layout.inner;
}

/// Brings the samples into the bytes of their micro-batches. What no request
/// has samples for is filled up: the last micro-batch with its last sample, and
/// sequences that are not there with those of another one.
void Stream::Impl::fill(Lane &lane) const {
  const StreamPlan &plan = *lane.plan;
  const int64_t perBatch = plan.perBatch,
                batches = (lane.samples + perBatch - 1) / perBatch;
  lane.binding.micro_batches = int(batches);
  // Where there are states, requests are of whole steps, and share none but
  // with other sequences.
  const int64_t each = plans.front().perStep;
  const auto sequences = size_t(plan.sequences());
  lane.live.assign(sequences, 0);
  lane.binding.sequence =
      lane.pieces.front().request->sequence / plan.sequences();
  lane.binding.begins = 0;
  for (const Piece &piece : lane.pieces) {
    const size_t place = sequences > 1 ? size_t(piece.place / each) : 0;
    lane.live[place] = 1;
    if (piece.request->begins && piece.begin == 0)
      lane.binding.begins |= uint64_t(1) << place;
  }
  lane.binding.inputs.clear();
  lane.binding.outputs.clear();
  auto makeRoom = [&](std::vector<uint8_t> &bytes, const Port &port) {
    if (const size_t all = size_t(port.bytes() * plan.model.microBatches);
        bytes.size() < all)
      bytes.resize(all);
    return bytes.data();
  };
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const auto &[port, layout, perSample] = plan.inputs[i];
    if (auto direct = placeInRequest(lane, plan.inputs[i])) {
      lane.binding.inputs.push_back(lane.pieces[0].request->inputs[i].data() +
                                    *direct);
      continue;
    }
    uint8_t *bytes = makeRoom(lane.inputs[i], *port);
    const int64_t entries = perBatch * perSample;
    auto place = [&](int64_t sample) {
      return bytes + sample / perBatch * port->bytes();
    };
    auto copy = [&](int64_t to, int64_t from, int64_t count) {
      copyEntries(layout, place(to), entries, to % perBatch * perSample,
                  place(from), entries, from % perBatch * perSample,
                  count * perSample);
    };
    for (const Piece &piece : lane.pieces)
      for (int64_t at = 0; at < piece.count;) {
        // As many as one micro-batch takes at a time.
        const int64_t within = (piece.place + at) % perBatch;
        const int64_t count = std::min(piece.count - at, perBatch - within);
        copyEntries(layout, place(piece.place + at), entries,
                    within * perSample, piece.request->inputs[i].data(),
                    piece.request->samples * perSample,
                    (piece.begin + at) * perSample, count * perSample);
        at += count;
      }
    for (int64_t s = lane.samples; s < batches * perBatch; ++s)
      copy(s, lane.samples - 1, 1);
    for (size_t s = 0; sequences > 1 && s < sequences; ++s)
      if (!lane.live[s])
        copy(int64_t(s) * each, lane.pieces.front().place, each);
    lane.binding.inputs.push_back(bytes);
  }
  if (sequences > 1)
    lane.binding.inputs.push_back(lane.live.data());
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    auto direct = placeInRequest(lane, plan.outputs[i]);
    lane.binding.outputs.push_back(
        direct ? lane.pieces[0].request->places[i] + *direct
               : makeRoom(lane.outputs[i], *plan.outputs[i].port));
  }
}

/// The thread that waits for steps, in their order.
void Stream::Impl::finishSteps() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] {
      return !underWay.empty() ||
             (!failure.ok() || (stopping && queue.empty()));
    });
    if (underWay.empty()) {
      if (!failure.ok() || idle.size() == lanes.size())
        return;
      // A step is being filled.
      changed.wait(lock);
      continue;
    }
    Lane &lane = *underWay.front();
    lock.unlock();
    finish(lane);
    lock.lock();
  }
}

/// Gives the results of the first step under way to those who asked.
void Stream::Impl::finish(Lane &lane) {
  StreamPlan &plan = *lane.plan;
  Session &session = *plan.session;
  const int64_t perBatch = plan.perBatch;
  const Status status = session.wait(lane.ticket);
  // Wrong indices are the fault of those who gave them; others have results.
  const bool computed = status.ok() || !session.badIndices().empty();
  if (computed)
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const auto &[port, layout, perSample] = plan.outputs[i];
      if (placeInRequest(lane, plan.outputs[i]))
        continue;
      for (const Piece &piece : lane.pieces)
        for (int64_t at = 0; at < piece.count;) {
          const int64_t sample = piece.place + at, within = sample % perBatch;
          const int64_t count = std::min(piece.count - at, perBatch - within);
          copyEntries(
              layout, piece.request->places[i],
              piece.request->samples * perSample,
              (piece.begin + at) * perSample,
              lane.outputs[i].data() + sample / perBatch * port->bytes(),
              perBatch * perSample, within * perSample, count * perSample);
          at += count;
        }
    }
  std::lock_guard<std::mutex> lock(mutex);
  const Clock::time_point now = Clock::now();
  if (computed) {
    ++done.steps;
    const std::vector<int64_t> &took = session.busyNs();
    busy.resize(took.size());
    for (size_t device = 0; device < busy.size(); ++device)
      busy[device] = took[device] < 0 ? -1 : busy[device] + took[device];
    for (const Piece &piece : lane.pieces)
      done.samples += piece.count;
    done.direct += std::all_of(plan.outputs.begin(), plan.outputs.end(),
                               [&](const StreamPort &port) {
                                 return placeInRequest(lane, port).has_value();
                               });
    nanKept = session.keepsNan();
    shared.tookTime(size_t(&plan - plans.data()), now - lane.begun);
  } else {
    fail(status);
  }
  for (const Piece &piece : lane.pieces) {
    if (!status.ok() && computed)
      refuse(lane, piece);
    if (computed)
      piece.request->left -= piece.count;
    if (piece.request->left != 0)
      continue;
    piece.request->finished = now;
    if (shared.areShared())
      shared.wasAnswered(piece.request->sequence, now);
  }
  lane.pieces.clear();
  underWay.pop_front();
  idle.push_back(&lane);
  changed.notify_all();
}

/// Keeps the first error of a request whose samples have a wrong index. Where
/// nobody knows the sample, it is one of the micro-batch. Of several sequences
/// each has its rows of a check. The mutex is held.
void Stream::Impl::refuse(const Lane &lane, const Piece &piece) const {
  if (!piece.request->refused.ok())
    return;
  const abi::Plan &plan = *lane.plan->model.plan;
  const int64_t perBatch = lane.plan->perBatch, all = plan.step_sequences();
  for (runtime::BadIndex bad : lane.plan->session->badIndices()) {
    const abi::Plan *of = &plan; // of which there is a message
    if (all > 1) {
      const abi::Check &check = *plan.checks()->Get(unsigned(bad.check));
      const int64_t rows = check.rows() / all,
                    place = piece.place / plans.front().perStep;
      if (bad.row / rows != place)
        continue;
      // As the plan for this sequence alone says it.
      std::optional<int64_t> mine;
      if (const auto *own = model.plan->checks();
          length(own) == length(plan.checks()) &&
          own->Get(unsigned(bad.check))->rows() == rows) {
        of = model.plan;
        bad.row %= rows;
        if (mine = sampleOf(*of, bad); mine)
          *mine += piece.begin;
      }
      piece.request->refused =
          Status::inputError(runtime::describe(*of, bad, mine));
      return;
    }
    const std::optional<int64_t> sample = sampleOf(plan, bad);
    const int64_t first = sample.value_or(bad.micro_batch * perBatch),
                  end = first + (sample ? 1 : perBatch);
    if (end <= piece.place || first >= piece.place + piece.count)
      continue;
    std::optional<int64_t> mine;
    if (sample || perBatch == 1)
      mine = first - piece.place + piece.begin;
    piece.request->refused =
        Status::inputError(runtime::describe(plan, bad, mine));
    return;
  }
}

/// Nothing more is computed. The mutex is held.
void Stream::Impl::fail(const Status &status) {
  if (failure.ok())
    failure = status;
  queue.clear();
  waiting = 0;
  changed.notify_all();
}

//===----------------------------------------------------------------------===//
// Stream
//===----------------------------------------------------------------------===//

Stream::Stream(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Stream::~Stream() = default;

Expected<std::unique_ptr<Stream>>
Stream::create(const Model &model, const runtime::SessionOptions &session,
               const StreamOptions &options,
               const std::vector<const Model *> &several) {
  auto impl = std::make_unique<Impl>(model, session, options, several);
  PARTITA_TRY(impl->describe());
  PARTITA_TRY(impl->start());
  return std::unique_ptr<Stream>(new Stream(std::move(impl)));
}

Expected<uint64_t> Stream::submit(const std::vector<Tensor> &inputs) {
  int64_t samples = PARTITA_TRY(impl->check(inputs));
  auto request = std::make_shared<Impl::Request>();
  request->inputs = inputs;
  request->samples = samples;
  for (const Impl::StreamPort &output : impl->plans.front().outputs) {
    std::vector<int64_t> shape = output.port->shape;
    if (output.port->batchAxis >= 0)
      shape[size_t(output.port->batchAxis)] = samples * output.perSample;
    Tensor tensor = PARTITA_TRY(Tensor::allocate(output.port->dtype, shape));
    request->places.push_back(tensor.mutableData());
    request->outputs.push_back(std::move(tensor));
  }
  return impl->accept(std::move(request));
}

Expected<uint64_t> Stream::submit(const std::vector<Tensor> &inputs,
                                  const std::vector<uint8_t *> &outputs,
                                  int sequence, bool begins) {
  int64_t samples = PARTITA_TRY(impl->check(inputs));
  const std::vector<Impl::StreamPort> &ports = impl->plans.front().outputs;
  if (outputs.size() != ports.size())
    return Status::error("the model has " +
                         abi::countOf(int64_t(ports.size()), "output") +
                         ", and " + std::to_string(outputs.size()) +
                         (outputs.size() == 1 ? " has" : " have") + " a place");
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i] && ports[i].port->bytes() > 0)
      return Status::error("the output '" + ports[i].port->name +
                           "' has no place to go to");
  if (sequence < 0 || sequence >= impl->model.plan->sequences())
    return Status::error("there is no sequence " + std::to_string(sequence) +
                         " of " +
                         std::to_string(impl->model.plan->sequences()));
  auto request = std::make_shared<Impl::Request>();
  request->inputs = inputs;
  request->samples = samples;
  request->places = outputs;
  request->sequence = sequence;
  request->begins = begins;
  return impl->accept(std::move(request));
}

Expected<uint64_t> Stream::Impl::accept(std::shared_ptr<Request> request) {
  const int64_t samples = request->left = request->samples;
  std::unique_lock<std::mutex> lock(mutex);
  // Whoever has more samples than may wait comes when nothing waits.
  changed.wait(lock, [&] {
    return !failure.ok() || waiting == 0 ||
           waiting + samples <= options.queued_samples;
  });
  if (!failure.ok())
    return failure;
  request->arrived = Clock::now();
  if (shared.areShared())
    shared.hasCome(request->sequence, request->arrived);
  waiting += samples;
  queue.push_back(request);
  requests.emplace(tickets, std::move(request));
  changed.notify_all();
  return tickets++;
}

int64_t Stream::inputEntries(size_t input) const {
  return impl->plans.front().inputs[input].perSample;
}
int64_t Stream::outputEntries(size_t output) const {
  return impl->plans.front().outputs[output].perSample;
}
int64_t Stream::stepSamples() const { return impl->plans.front().perStep; }

Expected<Stream::Answer> Stream::wait(uint64_t ticket) {
  std::unique_lock<std::mutex> lock(impl->mutex);
  auto found = impl->requests.find(ticket);
  if (found == impl->requests.end())
    return Status::error("no samples of ticket " + std::to_string(ticket) +
                         " are under way");
  const std::shared_ptr<Impl::Request> request = found->second;
  impl->requests.erase(found);
  // After a failure a device may go on for a while, and touch its bytes.
  impl->changed.wait(lock, [&] { return request->left == 0 || impl->gone; });
  if (request->left != 0)
    return impl->failure;
  if (!request->refused.ok())
    return request->refused;
  return Answer{std::move(request->outputs), request->finished};
}

Status Stream::whenIdle(const std::function<Status(Session &)> &work) {
  Impl::Job job{work, {}};
  std::unique_lock<std::mutex> lock(impl->mutex);
  impl->jobs.push_back(&job);
  impl->changed.notify_all();
  impl->changed.wait(lock, [&] { return job.done || impl->gone; });
  return job.done ? job.status : impl->failure;
}

bool Stream::suits(const Model &model) {
  return Impl(model, {}, {}).describe().ok();
}

bool Stream::keepsNan() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->nanKept;
}

const std::string &Stream::remark() const { return impl->remark; }

std::vector<int64_t> Stream::busyNs() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  std::vector<int64_t> busy = impl->busy;
  busy.resize(size_t(impl->model.devices)); // before the first step, too
  return busy;
}

Stream::Counts Stream::counts() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->done;
}

} // namespace partita::feed
