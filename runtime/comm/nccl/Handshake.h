//===- Handshake.h - What processes tell each other of GPUs -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Before anything is connected, each process tells all others which NCCL and
// which driver it has, and what the GPUs of its devices are. All of them come
// to the same decisions from that.
//
// A GPU is known by its UUID. The number that a process has for it says
// nothing to others: CUDA_VISIBLE_DEVICES and batch systems change it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_NCCL_HANDSHAKE_H
#define PARTITA_RUNTIME_COMM_NCCL_HANDSHAKE_H

#include "runtime/comm/nccl/Routes.h"
#include "runtime/comm/nccl/library/Api.h"
#include "runtime/device/cuda/machine/VisibleGpus.h"

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace partita::runtime::nccl {

/// The processes of a run.
struct Processes {
  int rank = 0;
  /// By device; empty: all are in this process.
  std::vector<int> process_of = {};
  /// Gives every process what each passes, in the order of their ranks. Null:
  /// there is one process.
  std::function<Expected<std::vector<uint8_t>>(std::span<const uint8_t>)>
      gather_all = nullptr;
  /// An error if somebody ends this process; null: nobody does. It is asked
  /// again and again while the process waits.
  std::function<Status()> interrupted = nullptr;
  /// The processes that do not answer, after a wait that was too long; null:
  /// nobody knows.
  std::function<std::vector<int>()> absent = nullptr;
  /// How the user wants the GPUs to be used (--devices); empty: does not say.
  std::string request = {};
};

/// By device of the plan: the number of its GPU among those of its process;
/// -1: it is none.
using Gpus = std::vector<int>;

/// What a process says of itself, as it is sent.
struct ProcessFacts {
  uint64_t host = 0;    ///< NCCL_HOSTID; 0: not set
  uint64_t request = 0; ///< of Processes
  int32_t nccl = 0; ///< version; 0: there is none; -1: one that cannot be used
  int32_t driver = 0; ///< 0: not known
};
/// What the process of a device says of it.
struct DeviceFacts {
  int32_t gpu = -1; ///< its number there; -1: it is none
  cuda::GpuFacts facts;
};

struct Handshake {
  std::vector<ProcessFacts> processes; ///< by process
  std::vector<DeviceFacts> devices;    ///< by device
  std::vector<Place> places;           ///< by device

  /// An error if processes have other versions of NCCL, or one that cannot be
  /// used.
  Status checkVersions(const Library &library) const;
  /// An error if GPUs that NCCL joins are of different models. Their libraries
  /// choose different algorithms, and the plan was made for one of them.
  Status checkModels(const Routes &routes) const;
  /// An error if one process puts more devices on a GPU than another one, and
  /// they were not told the same.
  Status checkSharing() const;
  /// What the user should know of the drivers; empty: they are the same.
  std::string remarkDrivers() const;
};

/// All processes must call it. `gpus` is right for the devices of this process.
Expected<Handshake> shakeHands(const Gpus &gpus, const Processes &processes,
                               const Library &library);

/// The GPUs that a process sees, and how many it wants, as it is sent.
struct Sees {
  static constexpr size_t kMost = 64;
  int32_t count = 0, wanted = 0;
  std::array<cuda::Uuid, kMost> ids;
};
/// Deals out the GPUs of all machines, none of them twice. Returns the numbers
/// that `process` has for its GPUs. If too few are left for it, numbers that it
/// has no GPUs for: their use tells.
std::vector<int> deal(const std::vector<Sees> &all, int process);

/// The same for the devices of this process: a number for each that is a GPU; 0
/// for others. `is_gpu`: by device. All processes must call it.
Expected<std::vector<int>> dealGpus(const std::vector<bool> &is_gpu,
                                    const Processes &processes);

/// Process 0 makes the id by which all join.
Expected<UniqueId> shareId(const Processes &processes, const Api &api);

} // namespace partita::runtime::nccl

#endif // PARTITA_RUNTIME_COMM_NCCL_HANDSHAKE_H
