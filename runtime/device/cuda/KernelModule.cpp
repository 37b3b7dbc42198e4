//===- KernelModule.cpp - The PTX of an artifact on a GPU -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelModule.h"

#include "runtime/abi/GpuUses.h"
#include "runtime/base/Elements.h"

#include <cstdio>
#include <string_view>
#include <xxhash.h>

namespace partita::runtime::cuda {

namespace {

/// Whether the plan asks of the code what it was compiled for.
Status checkUses(const Artifact &artifact) {
  const char *ptx = artifact.ptx().text;
  if (!ptx)
    return Status();
  const std::string uses = abi::gpuUses(artifact.plan());
  char wanted[64];
  std::snprintf(
      wanted, sizeof wanted, "%s%016llx\n", abi::kGpuUsesMark,
      static_cast<unsigned long long>(XXH3_64bits(uses.data(), uses.size())));
  const std::string_view text(ptx);
  if (text.ends_with(wanted))
    return Status();
  return Status::error(
      "its plan does not fit its code for GPUs: kernels were compiled for "
      "other "
      "launches or sizes of operands: compile the model again");
}

} // namespace

Expected<std::shared_ptr<const KernelModule>>
KernelModule::load(const Artifact &artifact,
                   const std::shared_ptr<const Gpu> &gpu) {
  std::shared_ptr<KernelModule> self(new KernelModule);
  self->gpu = gpu;
  const auto *kernels = artifact.plan().kernels();
  const std::string path = "'" + artifact.path() + "': ";
  bool any = false;
  for (const abi::Kernel &kernel : each(kernels))
    any |= kernel.launch() != nullptr;
  if (any) {
    PARTITA_TRY(within(path, checkUses(artifact)));
    PARTITA_TRY(within(path, self->load(artifact.ptx())));
  }
  for (const abi::Kernel &kernel : each(kernels)) {
    self->launches.emplace_back();
    if (!kernel.launch())
      continue;
    PARTITA_TRY(within(path, self->find(kernel, self->launches.back())));
  }
  return std::shared_ptr<const KernelModule>(std::move(self));
}

Status KernelModule::load(const PtxSection &ptx) {
  if (!ptx.text)
    return Status::error("this artifact holds no code for NVIDIA's GPUs but "
                         "its plan needs some: compile the model again");
  const int needed = static_cast<int>(ptx.architecture);
  if (needed > gpu->architecture())
    return Status::error("this artifact holds code for sm_" +
                         std::to_string(needed) + ", which " + gpu->name() +
                         " cannot run: compile the model for it, or run it "
                         "on a GPU of this architecture or a later one");
  char log[4096] = "";
  JitOption options[] = {JitOption::error_log_buffer,
                         JitOption::error_log_buffer_size_bytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
  ModuleHandle handle = nullptr;
  const Result result =
      gpu->api.moduleLoadDataEx(&handle, ptx.text, 2, options, values);
  if (result == Result::success) {
    module = Module(gpu, handle);
    return Status();
  }
  std::string what = "the driver cannot load the artifact's kernels";
  if (result == Result::unsupported_ptx_version) {
    int version = 0;
    (void)gpu->api.driverGetVersion(&version);
    what = "the driver, of " + versionText(version) +
           ", is too old for the artifact's kernels: install a newer one";
  }
  log[sizeof(log) - 1] = 0;
  Status error = gpu->api.error(result, what);
  return log[0] ? Status::error(error.message() + "\n" + log) : error;
}

Status KernelModule::find(const abi::Kernel &kernel,
                          KernelLaunch &launch) const {
  const Api &api = gpu->api;
  const std::string name = text(kernel.name());
  const Result found =
      api.moduleGetFunction(&launch.function, module.get(), name.c_str());
  if (found == Result::not_found)
    return Status::error("the artifact's code has no kernel '" + name +
                         "': compile the model again");
  const std::string unusable = "kernel '" + name + "' cannot be used";
  if (found != Result::success)
    return api.error(found, unusable);
  const abi::Launch &described = *kernel.launch();
  for (int64_t i = 0; i < length(described.blocks()); ++i)
    launch.blocks[static_cast<size_t>(i)] = static_cast<unsigned>(
        described.blocks()->Get(static_cast<unsigned>(i)));
  launch.threads = static_cast<unsigned>(described.threads());
  launch.shared_bytes = static_cast<unsigned>(described.shared_bytes());

  int most_threads = 0, shared = 0;
  for (Result result :
       {api.funcGetAttribute(&most_threads,
                             FunctionAttribute::max_threads_per_block,
                             launch.function),
        api.funcGetAttribute(&shared, FunctionAttribute::shared_size_bytes,
                             launch.function)})
    if (result != Result::success)
      return api.error(result, unusable);
  auto tooMuch = [&](int64_t needed, const char *what, int64_t most) {
    return Status::error("kernel '" + name + "' needs " +
                         std::to_string(needed) + what + " in a block, and " +
                         gpu->name() + " has " + std::to_string(most) +
                         " for it: compile the model for this GPU");
  };
  if (described.threads() > most_threads)
    return tooMuch(described.threads(), " threads", most_threads);
  const int64_t all = int64_t(shared) + described.shared_bytes();
  if (all > gpu->mostShared())
    return tooMuch(all, " bytes of shared memory", gpu->mostShared());
  if (launch.shared_bytes == 0)
    return Status();
  return api.check(
      api.funcSetAttribute(launch.function,
                           FunctionAttribute::max_dynamic_shared_size_bytes,
                           described.shared_bytes()),
      unusable.c_str());
}

} // namespace partita::runtime::cuda
