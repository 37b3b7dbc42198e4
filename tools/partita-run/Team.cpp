//===- Team.cpp - This process among those that run the plan --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/Team.h"

#include "tools/partita-run/show/Progress.h"

#include "runtime/abi/artifact.h"
#include "runtime/feed/Layout.h"
#include "runtime/session/Links.h"

#ifdef PARTITA_WITH_MPI
#include "runtime/comm/mpi/Job.h"
#include "runtime/comm/mpi/MpiCommunicator.h"
#endif

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace partita::run {

using runtime::Expected;
using runtime::Status;

namespace {

#ifdef PARTITA_WITH_MPI
/// The hash in the artifact's header covers plan and objects.
uint64_t identity(const Model &model) {
  abi::FileHeader header = {};
  std::ifstream file(model.artifact->path(), std::ios::binary);
  file.read(reinterpret_cast<char *>(&header), sizeof header);
  return header.header_hash;
}
#else
/// How many processes a launcher says it started; 1 without a launcher.
int launchedProcesses() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char *value = std::getenv(name))
      return std::atoi(value);
  return 1;
}
#endif

} // namespace

struct Team::Impl {
#ifdef PARTITA_WITH_MPI
  std::unique_ptr<runtime::mpi::Job> job;
#endif
};

Team::Team() : impl(std::make_unique<Impl>()) {}
Team::~Team() = default;

Expected<std::unique_ptr<Team>> Team::start(double timeout_s) {
  std::unique_ptr<Team> team(new Team);
#ifdef PARTITA_WITH_MPI
  if (runtime::mpi::launched()) {
    Expected<std::unique_ptr<runtime::mpi::Job>> job =
        runtime::mpi::Job::start();
    if (!job)
      return job.status();
    team->impl->job = std::move(*job);
    team->impl->job->setTimeout(timeout_s);
  }
#else
  if (launchedProcesses() > 1)
    return Status::error("this partita-run was built without MPI "
                         "(PARTITA_MPI=OFF); run it without mpirun, with all "
                         "devices in one process");
#endif
  return team;
}

#ifdef PARTITA_WITH_MPI

bool Team::distributed() const { return impl->job != nullptr; }
int Team::rank() const { return impl->job ? impl->job->rank() : 0; }

int Team::processesHere() const {
  if (!impl->job)
    return 1;
  MPI_Comm here;
  int count = 1;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                      &here);
  MPI_Comm_size(here, &count);
  MPI_Comm_free(&here);
  return count;
}

Status Team::check(const Model &model) {
  if (!impl->job)
    return Status();
  const int size = impl->job->size();
  if (size != model.devices)
    return Status::error(
        "'" + model.file + "' was compiled for " +
        std::to_string(model.devices) + " device" +
        (model.devices == 1 ? "" : "s") + ", but " + std::to_string(size) +
        (size == 1 ? " process was" : " processes were") +
        " started: use mpirun -n " + std::to_string(model.devices) +
        ", or compile with --devices " + std::to_string(size));
  Expected<bool> same = impl->job->allEqual(identity(model));
  if (!same)
    return same.status();
  if (!*same)
    return Status::error("the processes have different artifacts under the "
                         "name '" +
                         model.artifact->path() + "'");
  return Status();
}

Expected<std::shared_ptr<runtime::Communicator>>
Team::communicator(const Model &model, double timeout_s) {
  if (!impl->job)
    return std::shared_ptr<runtime::Communicator>();
  auto made = runtime::MpiCommunicator::create(
      impl->job->transfers(), runtime::linksOf(*model.plan, model.mesh),
      model.plan->micro_batches(), timeout_s,
      runtime::collectivesOf(*model.plan, model.mesh));
  if (!made)
    return made.status();
  return std::shared_ptr<runtime::Communicator>(*made);
}

bool Team::allWell(const Status &status) {
  int lowest = status.ok() ? -1 : 0;
  if (impl->job) {
    Expected<int> failed = impl->job->firstFailed(status.ok());
    if (!failed)
      fail(status.ok() ? failed.status() : status);
    lowest = *failed;
  }
  if (lowest == rank())
    std::fprintf(stderr, "partita-run: error: %s\n", status.message().c_str());
  return lowest < 0;
}

void Team::fail(const Status &status) {
  std::string who =
      impl->job ? " (process " + std::to_string(rank()) + ")" : std::string();
  Progress::wipe();
  std::fflush(stdout);
  std::fprintf(stderr, "partita-run%s: error: %s\n", who.c_str(),
               status.message().c_str());
  if (impl->job)
    impl->job->abort();
  // Threads of the session may stand anywhere; nothing is torn down under them.
  std::_Exit(1);
}

void Team::barrier() {
  if (impl->job)
    require(impl->job->barrier());
}

void Team::max(std::span<double> values) {
  if (impl->job)
    require(impl->job->max(values));
}

void Team::sum(std::span<double> values) {
  if (impl->job)
    require(impl->job->sum(values));
}

void Team::gatherOutputs(const Model &model,
                         std::vector<runtime::Tensor> &outputs) {
  if (!impl->job)
    return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Port &port = model.outputs[i];
    const size_t bytes = size_t(outputs[i].bytes());
    for (int owner : port.devices) {
      if (owner == 0)
        continue;
      if (rank() == owner)
        require(impl->job->send(0, {outputs[i].data(), bytes}));
      if (!root())
        continue;
      std::vector<uint8_t> received(bytes);
      require(impl->job->receive(owner, received));
      feed::takeReplica(port, outputs[i], received.data(),
                        model.mesh.replica(owner), model.mesh.replicas());
    }
  }
}

std::vector<std::vector<uint8_t>> Team::gather(std::span<const uint8_t> bytes) {
  if (!impl->job)
    return {std::vector<uint8_t>(bytes.begin(), bytes.end())};
  Expected<std::vector<std::vector<uint8_t>>> parts = impl->job->gather(bytes);
  require(parts.status());
  return std::move(*parts);
}

#else

bool Team::distributed() const { return false; }
int Team::rank() const { return 0; }
int Team::processesHere() const { return 1; }
Status Team::check(const Model &) { return Status(); }
Expected<std::shared_ptr<runtime::Communicator>>
Team::communicator(const Model &, double) {
  return std::shared_ptr<runtime::Communicator>();
}
bool Team::allWell(const Status &status) {
  if (!status.ok())
    std::fprintf(stderr, "partita-run: error: %s\n", status.message().c_str());
  return status.ok();
}
void Team::fail(const Status &status) {
  Progress::wipe();
  std::fflush(stdout);
  std::fprintf(stderr, "partita-run: error: %s\n", status.message().c_str());
  std::_Exit(1);
}
void Team::barrier() {}
void Team::max(std::span<double>) {}
void Team::sum(std::span<double>) {}
void Team::gatherOutputs(const Model &, std::vector<runtime::Tensor> &) {}
std::vector<std::vector<uint8_t>> Team::gather(std::span<const uint8_t> bytes) {
  return {std::vector<uint8_t>(bytes.begin(), bytes.end())};
}

#endif

void Team::require(const Status &status) {
  if (!status.ok())
    fail(status);
}

} // namespace partita::run
