//===- CudaTarget.cpp - The GPUs that are compiled for --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/CudaTarget.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <iterator>

namespace partita::codegen::cuda {

using abi::GpuArchitecture;

static constexpr Gpu kGpus[] = {
    {"sm_80", GpuArchitecture::sm_80, "+ptx70"},
    {"sm_90", GpuArchitecture::sm_90, "+ptx78"},
    {"sm_100", GpuArchitecture::sm_100, "+ptx86"},
    {"sm_120", GpuArchitecture::sm_120, "+ptx87"},
};

namespace {

/// Of a data sheet. `link` and `bus` are GB/s of NVLink and of PCIe, one way.
struct DataSheet {
  const char *name;
  double operations, half, byte; ///< of a processor in a clock, without zeros
  double processors, clock, memory, link, bus;
};

// Every product is the published number of operations: 108 processors of an
// A100 at 1.41 GHz with 2048 operations make 312 TFLOP/s of f16. A RTX 5090
// has no NVLink, and sums products of f16 in f32 at half of its rate.
constexpr DataSheet kSheets[] = {
    {"an A100 80GB SXM", 128, 2048, 4096, 108, 1.41, 2039, 300, 32},
    {"an H100 80GB SXM", 256, 4096, 8192, 132, 1.83, 3350, 450, 64},
    {"a B200", 256, 8192, 16384, 148, 1.85, 8000, 900, 64},
    {"an RTX 5090", 256, 512, 2048, 170, 2.41, 1792, 0, 64},
};
static_assert(std::size(kSheets) == std::size(kGpus));

/// The part of a published rate of bytes that large transfers reach.
constexpr double kReachedShare = 0.8;
/// From one kernel of a unit to the next, what a unit takes to begin behind an
/// event, and what the driver takes for a copy.
constexpr double kLaunchNs = 3000, kUnitNs = 5000, kCopyNs = 10000;
// As NCCL itself predicts its rings (src/graph/tuning.cc, LL): what a call
// takes, and a hop over NVLink or PCIe.
constexpr double kCollectiveNs = 6600, kLinkHopNs = 600, kBusHopNs = 1000;

} // namespace

DeviceSpeeds getUsualSpeeds(const Gpu &gpu) {
  const DataSheet &sheet = kSheets[&gpu - kGpus];
  DeviceSpeeds speeds;
  speeds.name = sheet.name;
  speeds.operations = sheet.operations;
  speeds.halfProducts = sheet.half;
  speeds.byteProducts = sheet.byte;
  speeds.processors = sheet.processors;
  speeds.clock = sheet.clock;
  speeds.memory = kReachedShare * sheet.memory;
  speeds.launch = kLaunchNs;
  speeds.unit = kUnitNs;
  speeds.copy = kCopyNs;
  speeds.host = kReachedShare * sheet.bus;
  speeds.peer = kReachedShare * (sheet.link > 0 ? sheet.link : sheet.bus);
  speeds.collective = kCollectiveNs;
  speeds.hop = sheet.link > 0 ? kLinkHopNs : kBusHopNs;
  return speeds;
}

const Gpu *findGpu(llvm::StringRef name) {
  if (name.empty())
    return &kGpus[0];
  const Gpu *gpu = llvm::find_if(
      kGpus, [&](const Gpu &known) { return known.name == name; });
  return gpu == std::end(kGpus) ? nullptr : gpu;
}

/// 86 of "sm_86" and of "sm_86a".
static std::optional<unsigned> getNumber(llvm::StringRef name) {
  unsigned number;
  if (!name.consume_front("sm_") || name.consumeInteger(10, number))
    return std::nullopt;
  return number;
}

std::string describeUnknownGpu(llvm::StringRef name) {
  std::string text =
      "kernels are compiled for " +
      llvm::join(
          llvm::map_range(kGpus, [](const Gpu &gpu) { return gpu.name.str(); }),
          ", ") +
      ", not for '" + name.str() + "'";
  const std::optional<unsigned> number = getNumber(name);
  if (!number)
    return text;
  // A GPU's driver compiles the PTX of any architecture before its own.
  const Gpu *before = nullptr;
  for (const Gpu &gpu : kGpus)
    if (*getNumber(gpu.name) <= *number)
      before = &gpu;
  if (!before)
    return text + "; GPUs before " + kGpus[0].name.str() + " run none of these";
  return text + "; those for " + before->name.str() +
         " run on it: give cuda:" + before->name.str();
}

} // namespace partita::codegen::cuda
