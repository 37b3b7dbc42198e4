//===- Handshake.cpp - What processes tell each other of GPUs -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/nccl/Handshake.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <set>
#include <string>

namespace partita::runtime::nccl {
namespace {

uint64_t hashOf(const std::string &text) {
  return text.empty() ? 0 : std::hash<std::string>()(text);
}

std::string processText(size_t process) {
  return "process " + std::to_string(process);
}

std::string keyOf(const cuda::Uuid &id) { return {id.bytes, sizeof(id.bytes)}; }

/// What every process passes, one after another; in each equally many.
template <typename T>
Expected<std::vector<T>> gather(const Processes &processes,
                                const std::vector<T> &mine) {
  if (!processes.gather_all)
    return mine;
  auto gathered = PARTITA_TRY(
      processes.gather_all({reinterpret_cast<const uint8_t *>(mine.data()),
                            mine.size() * sizeof(T)}));
  std::vector<T> all(gathered.size() / sizeof(T));
  std::memcpy(all.data(), gathered.data(), all.size() * sizeof(T));
  return all;
}

std::vector<int> processOf(const Processes &processes, size_t devices) {
  std::vector<int> all = processes.process_of;
  all.resize(devices, processes.rank);
  return all;
}

std::string modelText(const cuda::GpuFacts &facts) {
  return std::string(facts.model) + " (sm_" +
         std::to_string(facts.architecture) + ")";
}

} // namespace

Expected<Handshake> shakeHands(const Gpus &gpus, const Processes &processes,
                               const Library &library) {
  const std::vector<int> process_of = processOf(processes, gpus.size());
  const cuda::VisibleGpus visible = cuda::readVisibleGpus();
  ProcessFacts mine;
  // Where NCCL is told what its machine is, it takes several processes on one
  // GPU.
  const char *host = std::getenv("NCCL_HOSTID");
  mine.host = hashOf(host ? host : "");
  mine.request = hashOf(processes.request);
  mine.nccl = library.api ? library.api->version : library.is_missing ? 0 : -1;
  mine.driver = visible.driver;
  std::vector<DeviceFacts> own(gpus.size());
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (process_of[i] != processes.rank)
      continue;
    own[i].gpu = gpus[i];
    if (gpus[i] >= 0 && size_t(gpus[i]) < visible.gpus.size())
      own[i].facts = visible.gpus[size_t(gpus[i])];
  }
  auto facts = PARTITA_TRY(gather(processes, std::vector{mine}));
  auto told = PARTITA_TRY(gather(processes, own));
  Handshake handshake;
  handshake.processes = std::move(facts);
  for (size_t i = 0; i < gpus.size(); ++i) {
    const auto from =
        static_cast<size_t>(processes.gather_all ? process_of[i] : 0);
    const DeviceFacts &device = told[from * gpus.size() + i];
    handshake.devices.push_back(device);
    Place place{device.gpu >= 0, process_of[i], handshake.processes[from].host,
                keyOf(device.facts.id)};
    if (device.facts.architecture == 0) // its process will say why
      place.gpu = std::to_string(device.gpu) + " of " + processText(from);
    handshake.places.push_back(std::move(place));
  }
  return handshake;
}

Status Handshake::checkVersions(const Library &library) const {
  auto said = [&](size_t process) {
    const int version = processes[process].nccl;
    return processText(process) + " has " +
           (version > 0    ? versionText(version)
            : version == 0 ? std::string("no NCCL")
                           : std::string("an NCCL that cannot be used"));
  };
  for (size_t i = 1; i < processes.size(); ++i)
    if (processes[i].nccl != processes[0].nccl)
      return Status::error(said(i) + ", but " + said(0) +
                           ": install the same NCCL for all processes");
  return library.api || library.is_missing ? Status() : library.status;
}

Status Handshake::checkModels(const Routes &routes) const {
  const DeviceFacts *first = nullptr;
  int process = 0;
  for (int device : routes.devices) {
    const DeviceFacts &told = devices[size_t(device)];
    const int its = places[size_t(device)].process;
    if (told.facts.architecture == 0)
      continue;
    if (!first) {
      first = &told;
      process = its;
    }
    if (its != process && modelText(told.facts) != modelText(first->facts))
      return Status::error(
          processText(size_t(its)) + " has another model of GPU, " +
          modelText(told.facts) + ", than " + processText(size_t(process)) +
          ", " + modelText(first->facts) +
          ": start the processes where GPUs are alike, or choose such GPUs by "
          "CUDA_VISIBLE_DEVICES or --devices");
  }
  return Status();
}

Status Handshake::checkSharing() const {
  std::vector<int> most(processes.size());
  for (const Place &place : places)
    if (place.is_gpu) {
      int &of = most[processes.size() > 1 ? size_t(place.process) : 0];
      of = std::max(of, int(std::count_if(places.begin(), places.end(),
                                          [&](const Place &b) {
                                            return sameGpu(place, b);
                                          })));
    }
  auto said = [&](size_t process) {
    return processText(process) + " has " +
           (most[process] == 1
                ? std::string("a GPU for each device")
                : std::to_string(most[process]) + " devices on one GPU");
  };
  const auto first = std::find_if(most.begin(), most.end(),
                                  [](int count) { return count > 0; });
  for (auto other = first; other != most.end(); ++other) {
    const auto a = size_t(first - most.begin()),
               b = size_t(other - most.begin());
    if (*other > 0 && *other != *first &&
        processes[a].request != processes[b].request)
      return Status::error(said(b) + ", but " + said(a) +
                           ": say the same --devices for all processes");
  }
  return Status();
}

std::string Handshake::remarkDrivers() const {
  for (size_t i = 1; i < processes.size(); ++i)
    if (processes[i].driver && processes[0].driver &&
        processes[i].driver != processes[0].driver)
      return processText(i) + " has a driver of " +
             cuda::versionText(processes[i].driver) +
             ", but process 0 one of " +
             cuda::versionText(processes[0].driver) +
             ": each compiles the kernels in its own way";
  return "";
}

std::vector<int> deal(const std::vector<Sees> &all, int process) {
  // Those that see the fewest choose first.
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return all[a].count < all[b].count;
  });
  std::set<std::string> given;
  std::vector<int> numbers;
  for (size_t next : order) {
    const Sees &sees = all[next];
    std::vector<int> chosen;
    for (int i = 0; i < sees.count && int(chosen.size()) < sees.wanted; ++i)
      if (given.insert(keyOf(sees.ids[size_t(i)])).second)
        chosen.push_back(i);
    for (int none = sees.count; int(chosen.size()) < sees.wanted; ++none)
      chosen.push_back(none);
    if (int(next) == process)
      numbers = std::move(chosen);
  }
  return numbers;
}

Expected<std::vector<int>> dealGpus(const std::vector<bool> &is_gpu,
                                    const Processes &processes) {
  const std::vector<int> process_of = processOf(processes, is_gpu.size());
  const cuda::VisibleGpus visible = cuda::readVisibleGpus();
  Sees mine;
  mine.count = static_cast<int32_t>(std::min(visible.gpus.size(), Sees::kMost));
  for (int i = 0; i < mine.count; ++i)
    mine.ids[size_t(i)] = visible.gpus[size_t(i)].id;
  for (size_t i = 0; i < is_gpu.size(); ++i)
    mine.wanted += is_gpu[i] && process_of[i] == processes.rank;
  auto all = PARTITA_TRY(gather(processes, std::vector{mine}));
  const std::vector<int> numbers = deal(all, processes.rank);
  std::vector<int> places(is_gpu.size());
  auto next = numbers.begin();
  for (size_t i = 0; i < is_gpu.size(); ++i)
    if (is_gpu[i] && process_of[i] == processes.rank)
      places[i] = *next++;
  return places;
}

Expected<UniqueId> shareId(const Processes &processes, const Api &api) {
  UniqueId id;
  Status status;
  if (processes.rank == 0)
    if (Result result = api.getUniqueId(&id); result != Result::success)
      status = api.error(result, "cannot begin with NCCL");
  auto ids = PARTITA_TRY(gather(processes, std::vector{id}));
  if (!status.ok())
    return status;
  return ids.front();
}

} // namespace partita::runtime::nccl
