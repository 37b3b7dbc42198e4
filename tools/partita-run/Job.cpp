//===- Job.cpp - This process among those that run the plan ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/Job.h"

#include "tools/partita-run/Run.h"
#include "tools/partita-run/show/Progress.h"

#include "runtime/abi/Text.h"
#include "runtime/abi/artifact.h"
#include "runtime/base/Cores.h"
#include "runtime/feed/Layout.h"
#include "runtime/session/Links.h"

#ifdef PARTITA_WITH_MPI
#include "runtime/comm/mpi/Job.h"
#include "runtime/comm/mpi/MixedCommunicator.h"
#include "runtime/comm/mpi/Wait.h"
#endif

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <optional>
#include <unistd.h>

namespace partita::run {

using runtime::Expected;
using runtime::Status;

namespace {

#ifdef PARTITA_WITH_MPI
uint64_t combine(uint64_t hash, uint64_t more) {
  return (hash ^ more) * 0x9E3779B97F4A7C15u + (hash >> 32);
}

/// Equal where processes run the same plan in the same way. The hash in the
/// artifact's header covers plans and objects.
uint64_t identity(const Model &model, size_t plan,
                  const runtime::mpi::Placement &placement) {
  abi::FileHeader header = {};
  std::ifstream file(model.artifact->path(), std::ios::binary);
  file.read(reinterpret_cast<char *>(&header), sizeof header);
  uint64_t hash = combine(header.header_hash, plan);
  for (int device = 0; device < placement.devices(); ++device)
    hash = combine(hash, uint64_t(placement.processOf(device)));
  return hash;
}

template <typename T> std::span<uint8_t> bytesOf(T &value) {
  return {reinterpret_cast<uint8_t *>(&value), sizeof value};
}

/// Equal where processes may run on the same cores.
uint64_t hashOfCores() {
  uint64_t hash = 0;
  for (int core : runtime::availableCores())
    hash = combine(hash, uint64_t(core));
  return hash;
}

/// Seconds in which what a process waits for may still come when the launcher
/// ends the job. It kills all processes after about a second.
constexpr double kGrace = 0.25;

#endif

/// This process was asked to stop.
volatile std::sig_atomic_t signalled = 0;

void onSignal(int number, siginfo_t *from, void *) {
  signalled = 1;
#ifdef PARTITA_WITH_MPI
  // From the launcher: another process has ended, or somebody has stopped the
  // launcher. A person who stops this process alone leaves it the time to come
  // to the end of its step.
  if (number == SIGTERM && (from->si_pid == 0 || from->si_pid == ::getppid()))
    runtime::mpi::interrupt(kGrace);
#else
  (void)number, (void)from;
#endif
}

} // namespace

struct Job::Impl {
#ifdef PARTITA_WITH_MPI
  std::unique_ptr<runtime::mpi::Job> mpi;
  std::optional<runtime::mpi::Placement> placement; ///< with a job

  runtime::nccl::Processes processes() const {
    runtime::nccl::Processes all;
    all.rank = mpi->rank();
    for (int device = 0; device < placement->devices(); ++device)
      all.process_of.push_back(placement->processOf(device));
    all.gather_all = [this](std::span<const uint8_t> bytes) {
      return mpi->gatherAll(bytes);
    };
    return all;
  }
#endif
};

Job::Job(const Options &options)
    : options(options), impl(std::make_unique<Impl>()) {}
Job::~Job() = default;

Expected<std::unique_ptr<Job>> Job::start(const Options &options) {
  std::unique_ptr<Job> job(new Job(options));
#ifdef PARTITA_WITH_MPI
  if (runtime::mpi::launched())
    job->impl->mpi = PARTITA_TRY(runtime::mpi::Job::start(options.timeout));
#else
  // What launchers say of how many processes they have started.
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char *value = std::getenv(name); value && std::atoi(value) > 1)
      return Status::error("this partita-run was built without MPI "
                           "(PARTITA_MPI=OFF); run it without mpirun, with "
                           "all devices in one process");
#endif
  return job;
}

#ifdef PARTITA_WITH_MPI

bool Job::distributed() const { return impl->mpi != nullptr; }
int Job::rank() const { return impl->mpi ? impl->mpi->rank() : 0; }
int Job::count() const { return impl->mpi ? impl->mpi->size() : 1; }
int Job::processOf(int device) const {
  return impl->mpi ? impl->placement->processOf(device) : 0;
}

Status Job::check(const Model &model, size_t plan, const std::string &map) {
  shared = {int(runtime::availableCores().size()), model.devices, 0};
  if (!impl->mpi)
    return map.empty() ? Status()
                       : Status::error("--device-map says which process runs "
                                       "which devices, but there is one "
                                       "process: use mpirun, or leave it out");
  using runtime::mpi::Placement;
  const int size = impl->mpi->size();
  if (size > model.devices)
    return Status::error(
        "'" + model.file + "' was compiled for " +
        abi::countOf(model.devices, "device") + ", but " +
        std::to_string(size) + " processes were started: use mpirun -n " +
        std::to_string(model.devices) + (model.devices > 1 ? " or fewer" : "") +
        ", or compile with --devices " + std::to_string(size));
  const Placement placement = PARTITA_TRY(
      within("--device-map ",
             map.empty() ? Placement::even(model.devices, size)
                         : Placement::parse(map, model.devices, size)));
  impl->placement = placement;
  mine = placement.devicesOf(rank());
  int other =
      PARTITA_TRY(impl->mpi->firstOther(identity(model, plan, placement)));
  if (other >= 0)
    return Status::error(
        "process " + std::to_string(other) +
        " has another artifact than process 0 under the name '" +
        model.artifact->path() + "', or another plan or --device-map");
  int place = 0;
  const std::vector<uint64_t> cores =
      impl->mpi->onThisMachine(hashOfCores(), place);
  const std::vector<uint64_t> counts =
      impl->mpi->onThisMachine(mine.size(), place);
  shared.devices = 0;
  for (size_t i = 0; i < cores.size(); ++i)
    if (cores[i] == cores[size_t(place)]) {
      shared.devices += int(counts[i]);
      shared.before += int(i) < place ? int(counts[i]) : 0;
    }
  return dealGpus(model);
}

Status Job::dealGpus(const Model &model) {
  std::vector<bool> isGpu;
  for (const abi::Device *device : *model.plan->devices())
    isGpu.push_back(device->kind() == abi::DeviceKind::cuda);
  gpuPlaces.assign(isGpu.size(), 0);
  if (std::find(isGpu.begin(), isGpu.end(), true) == isGpu.end())
    return Status();
  gpuPlaces = PARTITA_TRY(runtime::nccl::dealGpus(isGpu, impl->processes()));
  return Status();
}

Expected<std::shared_ptr<runtime::Communicator>>
Job::communicator(const Model &model, const std::vector<int> &places,
                  size_t number) {
  if (!impl->mpi)
    return std::shared_ptr<runtime::Communicator>();
  auto made = PARTITA_TRY(runtime::MixedCommunicator::create(
      impl->mpi->transfers(std::min(number, runtime::mpi::Job::kPlans - 1)),
      *impl->placement, runtime::linksOf(*model.plan, model.mesh),
      model.plan->micro_batches(), {options.timeout, &impl->mpi->liveness()},
      haveRoom(options, *this),
      runtime::collectivesOf(*model.plan, model.mesh)));
  runtime::nccl::Processes processes = impl->processes();
  processes.request = options.devices;
  processes.interrupted = [this] {
    impl->mpi->liveness().answer();
    return runtime::mpi::isInterrupted() ? runtime::mpi::interruptedError()
                                         : Status();
  };
  processes.absent = [this] {
    return impl->mpi->liveness().absent(runtime::mpi::kLivenessSeconds);
  };
  auto with = PARTITA_TRY(
      runtime::nccl::withNccl(made, runtime::trafficOf(*model.plan, model.mesh),
                              runtime::gpusOf(*model.plan, places), processes,
                              options.timeout, runtime::nccl::loadLibrary()));
  if (root())
    remark(with.remark);
  return with.communicator;
}

bool Job::allWell(const Status &status) {
  int lowest = status.ok() ? -1 : 0;
  if (impl->mpi) {
    Expected<int> failed = impl->mpi->firstFailed(status.ok());
    if (!failed)
      fail(status.ok() ? failed.status() : status);
    lowest = *failed;
  }
  if (lowest == rank())
    std::fprintf(stderr, "partita-run: error: %s\n", status.message().c_str());
  return lowest < 0;
}

bool Job::allLoaded(bool ok) {
  if (!impl->mpi)
    return ok;
  return require(impl->mpi->firstFailed(ok)) < 0;
}

void Job::fail(const Status &status) {
  std::string who =
      impl->mpi ? " (process " + std::to_string(rank()) + ")" : std::string();
  Progress::wipe();
  std::fflush(stdout);
  std::fprintf(stderr, "partita-run%s: error: %s\n", who.c_str(),
               status.message().c_str());
  if (impl->mpi)
    impl->mpi->abort();
  // Threads of the session may stand anywhere; nothing is torn down under them.
  std::_Exit(1);
}

Status Job::agree(const Status &mine) {
  if (!impl->mpi)
    return mine;
  const int from = require(impl->mpi->firstFailed(mine.ok()));
  if (from < 0)
    return Status();
  struct {
    uint64_t length;
    bool input;
  } head = {};
  std::string message = mine.message();
  if (from > 0)
    message = "process " + std::to_string(from) + ": " + message;
  if (rank() == from) {
    head.length = message.size();
    head.input = mine.isInputError();
    for (int to = 0; to < count(); ++to)
      if (to != from) {
        send(to, bytesOf(head));
        send(to, {reinterpret_cast<const uint8_t *>(message.data()),
                  message.size()});
      }
  } else {
    receive(from, bytesOf(head));
    message.resize(head.length);
    receive(from,
            {reinterpret_cast<uint8_t *>(message.data()), message.size()});
  }
  return head.input ? Status::inputError(message) : Status::error(message);
}

Status Job::requireSame(const std::string &what, const std::string &text) {
  if (!impl->mpi)
    return Status();
  uint64_t hash = text.size();
  for (char each : text)
    hash = combine(hash, uint64_t(uint8_t(each)));
  const int other = require(impl->mpi->firstOther(hash));
  return other < 0 ? Status()
                   : Status::error("process " + std::to_string(other) +
                                   " has other " + what +
                                   " than process 0: all must have the same");
}

void Job::join(std::span<uint8_t> bytes) {
  if (!impl->mpi)
    return;
  joined.assign(bytes.begin(), bytes.end());
  joined.push_back(signalled != 0);
  require(impl->mpi->join(joined));
  std::copy_n(joined.begin(), bytes.size(), bytes.begin());
  stopping = joined.back() != 0;
}

void Job::send(int to, std::span<const uint8_t> bytes) {
  require(impl->mpi->send(to, bytes));
}
void Job::receive(int from, std::span<uint8_t> bytes) {
  require(impl->mpi->receive(from, bytes));
}

void Job::barrier() {
  if (impl->mpi)
    require(impl->mpi->barrier());
}

void Job::max(std::span<double> values) {
  if (impl->mpi)
    require(impl->mpi->max(values));
}

void Job::sum(std::span<double> values) {
  if (impl->mpi)
    require(impl->mpi->sum(values));
}

void Job::gatherOutputs(const Model &model,
                        std::vector<runtime::Tensor> &outputs) {
  if (!impl->mpi)
    return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Port &port = model.outputs[i];
    const size_t bytes = size_t(outputs[i].bytes());
    for (int from = 1; from < impl->mpi->size(); ++from) {
      std::vector<int> owners = impl->placement->devicesOf(from);
      std::erase_if(owners, [&](int device) { return !port.usedBy({device}); });
      if (owners.empty())
        continue;
      if (rank() == from)
        require(impl->mpi->send(0, {outputs[i].data(), bytes}));
      if (!root())
        continue;
      std::vector<uint8_t> received(bytes);
      require(impl->mpi->receive(from, received));
      for (int owner : owners)
        feed::takeReplica(port, outputs[i], received.data(),
                          model.mesh.replica(owner), model.mesh.replicas());
    }
  }
}

std::vector<std::vector<uint8_t>>
Job::gatherBytes(std::span<const uint8_t> bytes) {
  if (!impl->mpi)
    return {std::vector<uint8_t>(bytes.begin(), bytes.end())};
  return require(impl->mpi->gather(bytes));
}

#else

bool Job::distributed() const { return false; }
int Job::rank() const { return 0; }
int Job::count() const { return 1; }
int Job::processOf(int) const { return 0; }
Status Job::check(const Model &model, size_t, const std::string &map) {
  shared = {int(runtime::availableCores().size()), model.devices, 0};
  return map.empty() ? Status()
                     : Status::error("--device-map needs MPI, and this "
                                     "partita-run was built without it");
}
Expected<std::shared_ptr<runtime::Communicator>>
Job::communicator(const Model &, const std::vector<int> &, size_t) {
  return std::shared_ptr<runtime::Communicator>();
}
bool Job::allWell(const Status &status) {
  if (!status.ok())
    std::fprintf(stderr, "partita-run: error: %s\n", status.message().c_str());
  return status.ok();
}
bool Job::allLoaded(bool ok) { return ok; }
void Job::fail(const Status &status) {
  Progress::wipe();
  std::fflush(stdout);
  std::fprintf(stderr, "partita-run: error: %s\n", status.message().c_str());
  std::_Exit(1);
}
Status Job::agree(const Status &mine) { return mine; }
Status Job::requireSame(const std::string &, const std::string &) {
  return Status();
}
void Job::join(std::span<uint8_t>) {}
void Job::send(int, std::span<const uint8_t>) {}
void Job::receive(int, std::span<uint8_t>) {}
void Job::barrier() {}
void Job::max(std::span<double>) {}
void Job::sum(std::span<double>) {}
void Job::gatherOutputs(const Model &, std::vector<runtime::Tensor> &) {}
std::vector<std::vector<uint8_t>>
Job::gatherBytes(std::span<const uint8_t> bytes) {
  return {std::vector<uint8_t>(bytes.begin(), bytes.end())};
}

#endif

Expected<std::shared_ptr<runtime::Communicator>>
Job::communicator(std::shared_ptr<const runtime::Artifact> artifact) {
  const Model model(std::move(artifact));
  return communicator(model, sessionOptions(options, model, *this).places,
                      trained++);
}

std::vector<int> Job::devicesOf([[maybe_unused]] int process,
                                const Model &model) const {
#ifdef PARTITA_WITH_MPI
  if (impl->mpi)
    return impl->placement->devicesOf(process);
#endif
  std::vector<int> all(size_t(model.devices));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void Job::stopOnSignals() {
  struct sigaction action = {};
  action.sa_sigaction = onSignal;
  action.sa_flags = int(SA_SIGINFO | SA_RESTART);
  for (int number : {SIGINT, SIGTERM, SIGUSR1})
    sigaction(number, &action, nullptr);
}

bool Job::stopAsked() const {
  return distributed() ? stopping : signalled != 0;
}

} // namespace partita::run
