//===- Session.cpp - A loaded plan, ready to run steps --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/Session.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/base/Cores.h"
#include "runtime/base/Programs.h"
#include "runtime/base/StepScope.h"
#include "runtime/comm/local/LocalCommunicator.h"
#include "runtime/session/Executor.h"

#include <atomic>
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
    std::unique_ptr<Executor> executor;
    std::thread thread;
  };

  std::shared_ptr<const Artifact> artifact;
  SessionOptions options;
  std::shared_ptr<Communicator> comm;
  std::map<abi::DeviceKind, std::unique_ptr<Driver>> drivers;
  WeightPointers weights;
  std::vector<int> cores;
  std::vector<Worker> workers;
  std::unique_ptr<SavedAffinity> affinity; ///< of a session without threads

  /// Counts up to start the workers; `running` counts down as they finish.
  std::atomic<uint32_t> generation = 0;
  std::atomic<uint32_t> running = 0;
  std::atomic<bool> stopping = false;
  const StepBinding *binding = nullptr; ///< null: load the device again
  bool dropped_nan = false;

  std::mutex mutex;
  Status failure; ///< of the device that failed first
  bool failed = false;

  std::vector<ProfileEvent> events;
  std::vector<int64_t> busy;

  ~Impl();
  const abi::Plan &plan() const { return artifact->plan(); }
  /// Whether all devices of the plan are in this process.
  bool isWhole() const {
    return static_cast<int64_t>(workers.size()) == length(plan().devices());
  }
  Status load();
  Status start();
  Status loadDrivers();
  Status checkWeights() const;
  void loadDevice(Worker &worker);
  void work(Worker &worker);
  void fail(const Status &status);
  void runStep(const StepBinding &step);
  void keepNan();
  void finished();
  void wakeAll();
  void awaitAll();
  Status checkBinding(const StepBinding &binding) const;
  std::vector<int> coresOf(int device) const;
};

Session::Impl::~Impl() {
  stopping = true;
  generation.fetch_add(1);
  generation.notify_all();
  for (Worker &worker : workers)
    if (worker.thread.joinable())
      worker.thread.join();
}

std::vector<int> Session::Impl::coresOf(int device) const {
  std::vector<int> chosen;
  if (!options.pin)
    return chosen;
  for (int i = 0; i < options.threads_per_device; ++i)
    chosen.push_back(
        cores[(static_cast<size_t>(device) * options.threads_per_device + i) %
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
    auto loaded = type->load(*artifact, options.deviceOptions());
    if (!loaded)
      return loaded.status();
    driver = std::move(*loaded);
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
    for (int64_t i = 0; i < length(program.slots()); ++i)
      if (const abi::Slot &slot = *program.slots()->Get(i);
          slot.space() == abi::Space::weight)
        used.insert(static_cast<int>(slot.offset()));
  }
  return artifact->verifyWeights({used.begin(), used.end()},
                                 options.threads_per_device *
                                     static_cast<int>(workers.size()));
}

Status Session::Impl::load() {
  int devices = static_cast<int>(length(plan().devices()));
  if (options.threads_per_device < 1 ||
      options.threads_per_device > kMostThreads)
    return Status::error("a device cannot have " +
                         std::to_string(options.threads_per_device) +
                         " threads: give 1 to " + std::to_string(kMostThreads));
  if (options.device < -1 || options.device >= devices)
    return Status::error(
        "'" + artifact->path() + "' is for " + std::to_string(devices) +
        " devices and has no device " + std::to_string(options.device) +
        ": start one process for each of its devices");
  for (int64_t i = 0; i < length(plan().weights()); ++i)
    weights.push_back(artifact->weight(static_cast<int>(i)));
  cores = availableCores();

  for (int i = 0; i < devices; ++i)
    if (options.device < 0 || options.device == i) {
      workers.emplace_back();
      workers.back().device = i;
    }
  if (Status status = loadDrivers(); !status.ok())
    return status;
  if (Status status = checkWeights(); !status.ok())
    return status;
  if (!comm) {
    std::vector<ChannelInfo> channels;
    for (int64_t i = 0; i < length(plan().channels()); ++i) {
      const abi::Channel &channel = *plan().channels()->Get(i);
      channels.push_back({deviceOf(plan(), channel.source()),
                          deviceOf(plan(), channel.target()), channel.bytes()});
    }
    bool room = workers.size() * options.threads_per_device <= cores.size();
    comm = std::make_shared<LocalCommunicator>(channels, plan().micro_batches(),
                                               options.timeout_s, room);
  }
  busy.assign(workers.size(), 0);
  return start();
}

void Session::Impl::loadDevice(Worker &worker) {
  worker.executor.reset(); // its memory, before there is more
  Driver &driver = *drivers.at(plan().devices()->Get(worker.device)->kind());
  auto executor = Executor::create(plan(), worker.device, weights, driver,
                                   options, coresOf(worker.device), *comm);
  if (!executor)
    return fail(executor.status());
  worker.executor = std::move(*executor);
}

Status Session::Impl::start() {
  if (workers.size() == 1) {
    affinity = std::make_unique<SavedAffinity>();
    loadDevice(workers[0]);
  } else {
    running = static_cast<uint32_t>(workers.size());
    for (Worker &worker : workers) {
      try {
        worker.thread = std::thread([this, &worker] { work(worker); });
      } catch (const std::system_error &error) {
        fail(Status::error(std::string("cannot start a thread for device ") +
                           std::to_string(worker.device) + ": " +
                           error.what()));
        finished();
      }
    }
    awaitAll();
  }
  if (failed)
    return failure;
  size_t most = 0;
  for (const Worker &worker : workers)
    most += worker.executor->mostEvents();
  if (options.profile)
    events.reserve(most);
  return Status();
}

void Session::Impl::work(Worker &worker) {
  uint32_t seen = generation.load();
  loadDevice(worker);
  finished();
  while (true) {
    generation.wait(seen);
    seen = generation.load();
    if (stopping)
      return;
    if (!binding)
      loadDevice(worker);
    else if (Status status = worker.executor->run(*binding); !status.ok())
      fail(status);
    finished();
  }
}

/// On all devices of this process; `fail` has been called if one failed.
void Session::Impl::runStep(const StepBinding &step) {
  StepScope scope;
  if (workers.size() == 1) {
    if (Status status = workers[0].executor->run(step); !status.ok())
      fail(status);
    return;
  }
  binding = &step;
  wakeAll();
}

/// Loads the devices again, so that from now on they keep NaN.
void Session::Impl::keepNan() {
  options.keep_nan = true;
  if (workers.size() == 1) {
    loadDevice(workers[0]);
    return;
  }
  binding = nullptr;
  wakeAll();
}

void Session::Impl::wakeAll() {
  running = static_cast<uint32_t>(workers.size());
  generation.fetch_add(1);
  generation.notify_all();
  awaitAll();
}

void Session::Impl::finished() {
  if (running.fetch_sub(1) == 1)
    running.notify_all();
}

void Session::Impl::awaitAll() {
  for (uint32_t left = running.load(); left != 0; left = running.load())
    running.wait(left);
}

Status Session::Impl::checkBinding(const StepBinding &binding) const {
  if (binding.micro_batches < 1 ||
      binding.micro_batches > plan().micro_batches())
    return Status::error("a step of " + std::to_string(binding.micro_batches) +
                         " micro-batches: the plan has 1 to " +
                         std::to_string(plan().micro_batches()));
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
  if (Status status = impl->load(); !status.ok())
    return status;
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Status Session::run(const StepBinding &binding) {
  if (impl->failed)
    return Status::error("the session has failed before: " +
                         impl->failure.message());
  if (Status status = impl->checkBinding(binding); !status.ok())
    return status;
  impl->runStep(binding);
  bool dropped = false;
  if (!impl->failed)
    for (const Impl::Worker &worker : impl->workers)
      dropped |= worker.executor->mayHaveDroppedNan();
  if (dropped && impl->isWhole()) {
    impl->keepNan();
    if (!impl->failed)
      impl->runStep(binding);
    if (impl->failed)
      return impl->failure;
  } else {
    impl->dropped_nan |= dropped;
  }
  impl->events.clear();
  for (size_t i = 0; i < impl->workers.size(); ++i) {
    const Executor &executor = *impl->workers[i].executor;
    impl->busy[i] = executor.busyNs();
    impl->events.insert(impl->events.end(), executor.events().begin(),
                        executor.events().end());
  }
  return impl->failed ? impl->failure : Status();
}

bool Session::keepsNan() const { return impl->options.keep_nan; }
bool Session::mayHaveDroppedNan() const { return impl->dropped_nan; }

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
