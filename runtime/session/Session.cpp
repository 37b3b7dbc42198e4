//===- Session.cpp - A loaded plan, ready to run steps --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/Session.h"

#include "runtime/abi/Text.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/base/Arena.h"
#include "runtime/base/Cores.h"
#include "runtime/base/Programs.h"
#include "runtime/base/StateParts.h"
#include "runtime/base/StepScope.h"
#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/session/Executor.h"
#include "runtime/session/Links.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

namespace partita::runtime {
namespace {

constexpr int kMostThreads = 1024;

} // namespace

struct Session::Impl {
  /// A device's thread and what it works on.
  struct Worker {
    int device = 0;
    /// Whether it may be given a step while those before it are at work.
    bool overlaps = false;
    std::unique_ptr<Executor> executor;
    std::shared_ptr<DeviceThread> thread;
    std::thread waiter; ///< for the ends of its steps; none: who awaits them
    std::atomic<uint32_t> given = 0; ///< steps that the device was given
  };
  struct Step;
  /// A device's part of a step, for its thread.
  struct Part final : DeviceThread::Job {
    Impl *session = nullptr;
    size_t worker = 0;
    Step *step = nullptr;
    void run() override;
  };
  /// A step that is under way, or free.
  struct Step {
    StepBinding binding;
    bool loads = false; ///< the devices are loaded again instead
    bool taken = false; ///< until it is waited for
    uint64_t ticket = 0;
    uint32_t number = 0; ///< in the order in which devices work on steps
    std::atomic<uint32_t> running = 0; ///< devices that are not done with it
    std::atomic<bool> dropped = false; ///< one of them may have dropped NaN
    std::atomic<bool> failed = false;  ///< the session, before its end
    std::vector<std::vector<ProfileEvent>> events; ///< by worker
    std::vector<int64_t> busy;                     ///< likewise
    std::vector<BadIndex> bad;                     ///< under the mutex
    std::vector<NanOrigin> origins;                ///< likewise
    std::vector<Part> parts;                       ///< by worker
  };

  std::shared_ptr<const Artifact> artifact;
  SessionOptions options;
  std::shared_ptr<Communicator> comm;
  std::map<abi::DeviceKind, std::unique_ptr<Driver>> drivers;
  WeightPointers weights;
  std::unique_ptr<const Mesh> mesh;
  std::vector<int> cores;
  std::deque<Worker> workers;

  std::array<Step, kMostSteps> steps;
  Step loading; ///< for loading the devices (again)
  /// What devices work on, by the steps' numbers. The last device that is done
  /// with one counts `completed` up; the counters go around.
  std::array<Step *, kMostSteps> ring = {};
  uint32_t submitted = 0;
  std::atomic<uint32_t> completed = 0;
  std::atomic<bool> stopping = false;
  uint64_t tickets = 0;
  bool dropped_nan = false;
  bool connects = false; ///< once loaded; false: whoever gave `comm` does
  std::string remark;

  std::mutex order; ///< of those who submit and who wait
  std::mutex ends;  ///< of those who await steps that no thread awaits
  std::mutex mutex;
  Status failure; ///< of the device that failed first
  std::atomic<bool> failed = false;

  std::vector<ProfileEvent> events;
  std::vector<int64_t> busy;
  std::vector<BadIndex> bad;      ///< of the step that was last waited for
  std::vector<NanOrigin> origins; ///< likewise

  ~Impl();
  const abi::Plan &plan() const { return artifact->plan(); }
  /// Whether all devices of the plan are in this process.
  bool isWhole() const {
    return static_cast<int64_t>(workers.size()) == length(plan().devices());
  }
  Status load();
  Status start();
  std::shared_ptr<DeviceThread> startThread(int device);
  Status loadDrivers();
  Status checkWeights() const;
  void describeParts(Step &step);
  void loadDevice(size_t worker);
  void awaitEnds(size_t worker);
  void fail(const Status &status);
  void hand(Step &step);
  void await(const Step &step);
  void carryOut(size_t worker, Step &step);
  void awaitEnd(size_t worker, Step &step);
  void finish(Step &step);
  void loadAll();
  void runAgain(Step &step);
  void collect(const Step &step);
  Status checkBinding(const StepBinding &binding) const;
  std::vector<int> coresOf(size_t worker) const;
  Status chooseDevices();
};

void Session::Impl::Part::run() { session->carryOut(worker, *step); }

Session::Impl::~Impl() {
  // What is under way needs all devices.
  for (const Step &step : steps)
    if (step.taken)
      await(step);
  stopping = true;
  for (Worker &worker : workers) {
    if (worker.thread) // none, if it could not be started
      worker.thread->drain();
    worker.given.fetch_add(1);
    worker.given.notify_all();
    if (worker.waiter.joinable())
      worker.waiter.join();
  }
  // Devices of other sessions may still read what these have sent.
  for (Worker &worker : workers)
    if (worker.executor && !failed)
      (void)worker.executor->finishSends(); // what failed late, others report
}

std::vector<int> Session::Impl::coresOf(size_t worker) const {
  std::vector<int> chosen;
  if (!options.pin)
    return chosen;
  for (int i = 0; i < options.threads_per_device; ++i)
    chosen.push_back(
        cores[(options.first_core + worker * options.threads_per_device + i) %
              cores.size()]);
  return chosen;
}

void Session::Impl::fail(const Status &status) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!failed)
      failure = status;
    failed = true;
  }
  comm->abort();
}

/// Of the kinds of its own devices.
Status Session::Impl::loadDrivers() {
  for (const Worker &worker : workers) {
    const abi::Device &device = *plan().devices()->Get(worker.device);
    std::unique_ptr<Driver> &driver = drivers[device.kind()];
    if (driver)
      continue;
    const DeviceType *type = findDeviceType(device.kind());
    if (!type)
      return Status::error("'" + artifact->path() + "': device '" +
                           text(device.name()) +
                           "' is of a kind that this program does not have: "
                           "compile the model for another --target");
    driver = PARTITA_TRY(type->load(*artifact, options));
  }
  return Status();
}

/// Those of its own devices: a process does not read the weights of others.
Status Session::Impl::checkWeights() const {
  if (options.trust_weights)
    return Status();
  std::set<int> used;
  for (const Worker &worker : workers) {
    const abi::Program &program = programOf(plan(), worker.device);
    for (const abi::Slot &slot : each(program.slots()))
      if (slot.space() == abi::Space::weight)
        used.insert(static_cast<int>(slot.offset()));
      else if (slot.space() == abi::Space::state)
        if (const int initial = at(plan().states(), slot.offset()).weight();
            initial >= 0)
          used.insert(initial);
  }
  return artifact->verifyWeights({used.begin(), used.end()},
                                 options.threads_per_device *
                                     static_cast<int>(workers.size()));
}

/// Makes a worker for each device of this process.
Status Session::Impl::chooseDevices() {
  const int devices = static_cast<int>(length(plan().devices()));
  std::vector<int> &chosen = options.devices;
  if (chosen.empty())
    for (int i = 0; i < devices; ++i)
      chosen.push_back(i);
  int last = -1;
  for (int device : chosen) {
    if (device < 0 || device >= devices)
      return Status::error("'" + artifact->path() + "' is for " +
                           abi::countOf(devices, "device") +
                           " and has no device " + std::to_string(device));
    if (device <= last)
      return Status::error("the devices of a session are not in increasing "
                           "order");
    last = device;
    Worker &worker = workers.emplace_back();
    worker.device = device;
    const DeviceType *type =
        findDeviceType(plan().devices()->Get(device)->kind());
    // What a step wrote is looked for before the next one begins.
    worker.overlaps = type && !type->is_host && !options.measure_arena &&
                      options.search == Search::none;
  }
  return Status();
}

Status Session::Impl::load() {
  if (options.threads_per_device < 1 ||
      options.threads_per_device > kMostThreads)
    return Status::error("a device cannot have " +
                         std::to_string(options.threads_per_device) +
                         " threads: give 1 to " + std::to_string(kMostThreads));
  PARTITA_TRY(chooseDevices());
  // A step that has written states cannot be computed again.
  options.keep_nan |= plan().full_steps();
  for (int64_t i = 0; i < length(plan().weights()); ++i)
    weights.push_back(artifact->weight(static_cast<int>(i)));
  cores = availableCores();
  mesh = std::make_unique<Mesh>(plan());

  PARTITA_TRY(loadDrivers());
  PARTITA_TRY(checkWeights());
  if (!comm) {
    bool room = workers.size() * options.threads_per_device <= cores.size();
    comm = std::make_shared<LocalCommunicator>(
        linksOf(plan(), *mesh), plan().micro_batches(), options.timeout_s, room,
        collectivesOf(plan(), *mesh));
    if (isWhole()) {
      auto made = PARTITA_TRY(nccl::withNccl(
          comm, trafficOf(plan(), *mesh), gpusOf(plan(), options.places), {},
          options.timeout_s, nccl::loadLibrary()));
      comm = made.communicator;
      remark = made.remark;
    }
    connects = true;
  }
  busy.assign(workers.size(), 0);
  loading.loads = true;
  for (Step &step : steps) {
    step.binding.inputs.reserve(static_cast<size_t>(length(plan().inputs())));
    step.binding.outputs.reserve(static_cast<size_t>(length(plan().outputs())));
    step.events.resize(workers.size());
    step.busy.resize(workers.size());
    describeParts(step);
  }
  describeParts(loading);
  return start();
}

void Session::Impl::describeParts(Step &step) {
  step.parts.resize(workers.size());
  for (size_t i = 0; i < workers.size(); ++i) {
    step.parts[i].session = this;
    step.parts[i].worker = i;
    step.parts[i].step = &step;
  }
}

void Session::Impl::loadDevice(size_t number) {
  Worker &worker = workers[number];
  worker.executor.reset(); // its memory, before there is more
  Driver &driver = *drivers.at(plan().devices()->Get(worker.device)->kind());
  auto executor = Executor::create(plan(), worker.device, weights, driver,
                                   options, coresOf(number), *comm, *mesh);
  if (!executor)
    return fail(executor.status());
  worker.executor = std::move(*executor);
}

std::shared_ptr<DeviceThread> Session::Impl::startThread(int device) {
  if (workers.size() == 1 && !options.lone_thread)
    return useCallersThread();
  return options.shared ? options.shared->thread(device) : startDeviceThread();
}

Status Session::Impl::start() {
  for (size_t i = 0; i < workers.size(); ++i) {
    try {
      workers[i].thread = startThread(workers[i].device);
      if (workers[i].overlaps && !workers[i].thread->runsAtOnce())
        workers[i].waiter = std::thread([this, i] { awaitEnds(i); });
    } catch (const std::system_error &error) {
      // The others wait for work, and find that there is none.
      return Status::error(std::string("cannot start a thread for device ") +
                           std::to_string(workers[i].device) + ": " +
                           error.what() + "; its stack takes " +
                           std::to_string(stackBytes()) + " bytes");
    }
  }
  loadAll();
  if (failed)
    return failure;
  if (connects)
    PARTITA_TRY(comm->connect());
  size_t most = 0;
  for (size_t i = 0; i < workers.size(); ++i) {
    if (const std::string more = workers[i].executor->remark(); !more.empty())
      remark += (remark.empty() ? "" : "\n") + more;
    const size_t mine = workers[i].executor->mostEvents();
    most += mine;
    if (options.profile)
      for (Step &step : steps)
        step.events[i].reserve(mine);
  }
  if (options.profile)
    events.reserve(most);
  return Status();
}

/// The ends of the steps that a device was given, in their order.
void Session::Impl::awaitEnds(size_t number) {
  Worker &worker = workers[number];
  for (uint32_t next = 0;; ++next) {
    worker.given.wait(next);
    if (stopping)
      return;
    awaitEnd(number, *ring[next % kMostSteps]);
  }
}

/// One device's part of a step. Somebody else awaits its end if the device may
/// have more than one.
void Session::Impl::carryOut(size_t number, Step &step) {
  Worker &worker = workers[number];
  if (step.loads) {
    loadDevice(number);
  } else if (worker.executor) { // else it could not be loaded again
    StepScope scope;
    if (Status status = worker.executor->run(step.binding); !status.ok())
      fail(status);
  }
  if (!worker.overlaps)
    return awaitEnd(number, step);
  worker.given.fetch_add(1);
  worker.given.notify_all();
}

void Session::Impl::awaitEnd(size_t number, Step &step) {
  Worker &worker = workers[number];
  if (!step.loads && worker.executor) {
    StepScope scope;
    if (Status status = worker.executor->awaitStep(); !status.ok())
      fail(status);
    if (worker.executor->mayHaveDroppedNan())
      step.dropped = true;
    if (const std::vector<BadIndex> &found = worker.executor->badIndices();
        !found.empty()) {
      std::lock_guard<std::mutex> lock(mutex);
      step.bad.insert(step.bad.end(), found.begin(), found.end());
    }
    if (const NanSearch *search = worker.executor->nanSearch()) {
      std::lock_guard<std::mutex> lock(mutex);
      for (const std::optional<NanOrigin> &origin : search->origins())
        if (origin)
          step.origins.push_back(*origin);
    }
    step.busy[number] = worker.executor->busyNs();
    const std::vector<ProfileEvent> &recorded = worker.executor->events();
    step.events[number].assign(recorded.begin(), recorded.end());
  }
  finish(step);
}

/// Each device calls it when it is done with a step. The last one has then seen
/// all others be done with it, and with those before.
void Session::Impl::finish(Step &step) {
  const uint32_t number = step.number;
  if (failed)
    step.failed = true;
  if (step.running.fetch_sub(1) != 1)
    return;
  completed.store(number + 1);
  completed.notify_all();
}

/// Puts a step behind those that devices work on.
void Session::Impl::hand(Step &step) {
  step.number = submitted;
  step.dropped = false;
  step.failed = false;
  step.bad.clear();
  step.origins.clear();
  step.running = static_cast<uint32_t>(workers.size());
  ring[step.number % kMostSteps] = &step;
  submitted = step.number + 1;
  StepScope::stayOutside();
  for (Part &part : step.parts)
    workers[part.worker].thread->post(part);
}

void Session::Impl::await(const Step &step) {
  const uint32_t wanted = step.number + 1;
  auto isLeft = [&](uint32_t seen) {
    return static_cast<int32_t>(seen - wanted) < 0;
  };
  StepScope::stayOutside();
  Worker &first = workers.front();
  if (first.overlaps && first.thread->runsAtOnce()) {
    std::lock_guard<std::mutex> lock(ends);
    for (uint32_t next = completed; isLeft(next); ++next)
      awaitEnd(0, *ring[next % kMostSteps]);
    return;
  }
  for (uint32_t seen = completed.load(); isLeft(seen); seen = completed.load())
    completed.wait(seen);
}

/// While nothing else is under way. What a device has sent, others have taken
/// before any of them goes.
void Session::Impl::loadAll() {
  for (Worker &worker : workers)
    if (worker.executor)
      if (Status status = worker.executor->finishSends(); !status.ok())
        return fail(status);
  hand(loading);
  await(loading);
}

/// Computes a step again with code that keeps NaN, with which all steps are
/// computed from now on.
void Session::Impl::runAgain(Step &step) {
  for (const Step &other : steps)
    if (other.taken)
      await(other);
  if (!options.keep_nan) {
    options.keep_nan = true;
    loadAll();
  }
  if (failed)
    return;
  hand(step);
  await(step);
}

void Session::Impl::collect(const Step &step) {
  bad = step.bad;
  std::sort(bad.begin(), bad.end());
  origins = step.origins;
  std::sort(origins.begin(), origins.end());
  events.clear();
  for (size_t i = 0; i < workers.size(); ++i) {
    busy[i] = step.busy[i];
    events.insert(events.end(), step.events[i].begin(), step.events[i].end());
  }
}

Status Session::Impl::checkBinding(const StepBinding &binding) const {
  const int most = stepMicroBatches(plan());
  if (binding.micro_batches < 1 || binding.micro_batches > most)
    return Status::error("a step of " + std::to_string(binding.micro_batches) +
                         " micro-batches: the plan has 1 to " +
                         std::to_string(most));
  if (binding.sequence < 0 || binding.sequence >= plan().sequences())
    return Status::error("there is no sequence " +
                         std::to_string(binding.sequence) + " of " +
                         std::to_string(plan().sequences()));
  if (plan().full_steps() && binding.micro_batches != most)
    return Status::error("a step of " + std::to_string(binding.micro_batches) +
                         " micro-batches: a step of this plan has " +
                         std::to_string(most));
  if (static_cast<int64_t>(binding.inputs.size()) != length(plan().inputs()) ||
      static_cast<int64_t>(binding.outputs.size()) != length(plan().outputs()))
    return Status::error("a step needs one address for each input and output");
  for (const Worker &worker : workers) {
    for (size_t i = 0; i < binding.inputs.size(); ++i)
      if (!binding.inputs[i] && worker.executor->usesInput(i) &&
          elementCount(plan().inputs()->Get(i)->shape()) > 0)
        return Status::error(std::string("input '") +
                             text(plan().inputs()->Get(i)->name()) +
                             "' is not given");
    for (size_t i = 0; i < binding.outputs.size(); ++i)
      if (!binding.outputs[i] && worker.executor->usesOutput(i) &&
          elementCount(plan().outputs()->Get(i)->shape()) > 0)
        return Status::error(std::string("output '") +
                             text(plan().outputs()->Get(i)->name()) +
                             "' has no place to go to");
  }
  return Status();
}

Session::Session(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Session::~Session() = default;

Expected<std::unique_ptr<Session>>
Session::create(std::shared_ptr<const Artifact> artifact,
                const SessionOptions &options,
                std::shared_ptr<Communicator> comm) {
  auto impl = std::make_unique<Impl>();
  impl->artifact = std::move(artifact);
  impl->options = options;
  impl->comm = std::move(comm);
  PARTITA_TRY(impl->load());
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Status Session::run(const StepBinding &binding) {
  return wait(PARTITA_TRY(submit(binding)));
}

Expected<uint64_t> Session::submit(const StepBinding &binding) {
  std::lock_guard<std::mutex> lock(impl->order);
  if (impl->failed)
    return Status::error("the session has failed before: " +
                         impl->failure.message());
  PARTITA_TRY(impl->checkBinding(binding));
  for (Impl::Step &step : impl->steps) {
    if (step.taken)
      continue;
    step.taken = true;
    step.ticket = impl->tickets++;
    step.binding.micro_batches = binding.micro_batches;
    step.binding.sequence = binding.sequence;
    step.binding.begins = binding.begins;
    step.binding.inputs.assign(binding.inputs.begin(), binding.inputs.end());
    step.binding.outputs.assign(binding.outputs.begin(), binding.outputs.end());
    impl->hand(step);
    return step.ticket;
  }
  return Status::error(std::to_string(kMostSteps) +
                       " steps are under way: wait for one of them first");
}

Status Session::wait(uint64_t ticket) {
  Impl::Step *found = nullptr;
  {
    std::lock_guard<std::mutex> lock(impl->order);
    for (Impl::Step &step : impl->steps)
      if (step.taken && step.ticket == ticket)
        found = &step;
  }
  if (!found)
    return Status::error("no step of ticket " + std::to_string(ticket) +
                         " is under way");
  impl->await(*found);
  std::lock_guard<std::mutex> lock(impl->order);
  if (!impl->failed && found->dropped) {
    if (impl->isWhole())
      impl->runAgain(*found);
    else
      impl->dropped_nan = true;
  }
  impl->collect(*found);
  found->taken = false;
  if (found->failed || (found->dropped && impl->failed))
    return impl->failure;
  return impl->bad.empty()
             ? Status()
             : Status::error(describe(impl->plan(), impl->bad.front()));
}

bool Session::overlapsSteps() const {
  const Impl::Worker &first = impl->workers.front();
  return !first.thread->runsAtOnce() || first.overlaps;
}

const std::vector<BadIndex> &Session::badIndices() const { return impl->bad; }

const std::vector<NanOrigin> &Session::nanOrigins() const {
  return impl->origins;
}

Status Session::settle() {
  for (const Impl::Worker &worker : impl->workers)
    PARTITA_TRY(worker.executor->finishSends());
  return Status();
}

Status Session::readState(int state, void *to, int sequence) const {
  // Devices have parts of it, or replicas those of their micro-batches.
  const abi::State &described = at(impl->plan().states(), state);
  const bool isWhole =
      !isCut(described) && (described.role() != abi::StateRole::carried ||
                            impl->mesh->replicas() == 1);
  bool found = false;
  for (const Impl::Worker &worker : impl->workers) {
    if (!worker.executor->hasState(state))
      continue;
    found = true;
    if (Status status = worker.executor->readState(state, to, sequence);
        !status.ok() || isWhole)
      return status;
  }
  return found ? Status()
               : Status::error("no device of this process has the state " +
                               std::to_string(state));
}

Status Session::writeState(int state, const void *from, int sequence) {
  bool found = false;
  for (const Impl::Worker &worker : impl->workers)
    if (worker.executor->hasState(state)) {
      found = true;
      PARTITA_TRY(worker.executor->writeState(state, from, sequence));
    }
  return found ? Status()
               : Status::error("no device of this process has the state " +
                               std::to_string(state));
}

bool Session::keepsNan() const { return impl->options.keep_nan; }
bool Session::mayHaveDroppedNan() const { return impl->dropped_nan; }
const std::string &Session::remark() const { return impl->remark; }

const std::vector<ProfileEvent> &Session::profile() const {
  return impl->events;
}
const std::vector<int64_t> &Session::busyNs() const { return impl->busy; }

std::vector<DeviceMemory> Session::memory() const {
  std::vector<DeviceMemory> all;
  for (const Impl::Worker &worker : impl->workers)
    all.push_back(worker.executor->memory());
  return all;
}

} // namespace partita::runtime
