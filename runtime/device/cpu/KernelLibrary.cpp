//===- KernelLibrary.cpp - Compiled kernels of an artifact ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/KernelLibrary.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/base/BestLevel.h"
#include "runtime/base/Programs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace partita::runtime {
namespace {

int processorLevel() { return atBestLevel(2, 3, 4); }

std::string levelNames(const std::vector<ObjectSection> &objects) {
  std::string text;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (i)
      text += i + 1 == objects.size() ? " and " : ", ";
    text += (i ? "v" : "x86-64-v") +
            std::to_string(static_cast<uint32_t>(objects[i].level));
  }
  return text;
}

Status noLevel(const std::vector<ObjectSection> &objects, int max_level) {
  if (objects.empty())
    return Status::error("this artifact holds no code for x86-64 but its plan "
                         "needs some: compile the model again");
  bool capped = max_level < processorLevel();
  std::string have = capped ? "level " + std::to_string(max_level) +
                                  " is the highest that was allowed"
                     : objects.size() == 1
                         ? "this processor is not of that level"
                     : objects.size() == 2 ? "this processor is neither"
                                           : "this processor is none of them";
  return Status::error("this artifact holds code for " + levelNames(objects) +
                       "; " + have + ": compile the model for it");
}

/// A sealed file in memory, which cannot change while it is mapped as code.
Expected<int> inMemory(const ObjectSection &object) {
  int file = ::memfd_create("partita-kernels", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0)
    return Status::error(std::string("cannot make a file in memory for the "
                                     "artifact's kernels: ") +
                         std::strerror(errno));
  const char *data = reinterpret_cast<const char *>(object.data);
  for (size_t written = 0; written < object.bytes;) {
    ssize_t now = ::write(file, data + written, object.bytes - written);
    if (now <= 0) {
      std::string why = std::strerror(errno);
      ::close(file);
      return Status::error("cannot copy the artifact's kernels into memory: " +
                           why);
    }
    written += static_cast<size_t>(now);
  }
  (void)::fcntl(file, F_ADD_SEALS,
                F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  return file;
}

std::string number(int64_t value) { return std::to_string(value); }

/// How a dispatch differs from what its kernel was compiled for, or "".
std::string useError(const abi::Program &program, const abi::Dispatch &dispatch,
                     const int64_t *use) {
  const int64_t extent = use[PARTITA_USE_EXTENT];
  if (extent >= 0 && dispatch.extent() != extent)
    return "with " + number(dispatch.extent()) +
           " iterations, and it was compiled for " + number(extent);
  if (use[PARTITA_USE_OPERANDS] < 0)
    return "";
  if (length(dispatch.operands()) != use[PARTITA_USE_OPERANDS])
    return "with " + number(length(dispatch.operands())) +
           " operands, and it was compiled for " +
           number(use[PARTITA_USE_OPERANDS]);
  if (dispatch.results() != use[PARTITA_USE_RESULTS])
    return "with " + number(dispatch.results()) +
           " results, and it was compiled for " +
           number(use[PARTITA_USE_RESULTS]);
  for (int64_t i = 0; i < length(dispatch.operands()); ++i) {
    const int64_t has =
        at(program.slots(), dispatch.operands()->Get(static_cast<unsigned>(i)))
            .bytes();
    int64_t needed = use[PARTITA_USE_BYTES + i];
    if (extent < 0 &&
        __builtin_mul_overflow(needed, dispatch.extent(), &needed))
      return "with too many iterations: " + number(dispatch.extent());
    if (has < needed)
      return "with " + number(has) + " bytes as operand " + number(i) +
             ", and it was compiled for " + number(needed);
  }
  return "";
}

/// Compares each dispatch of the plan with the table of its kernel, which is
/// described in runtime/abi/kernel.h. `uses` has one for each of Plan.kernels;
/// null: the kernel is for another kind of device.
Status checkKernelUses(const abi::Plan &plan,
                       const std::vector<const int64_t *> &uses) {
  Status status;
  for (const abi::Program &program : each(plan.programs()))
    forEachInstruction(
        program, /*with_load=*/true, [&](const abi::Instruction &instruction) {
          const abi::Dispatch *dispatch = instruction.work_as_Dispatch();
          const int64_t *use =
              dispatch ? uses[static_cast<size_t>(dispatch->kernel())]
                       : nullptr;
          if (!use || !status.ok())
            return;
          std::string why = useError(program, *dispatch, use);
          if (!why.empty())
            status = Status::error(
                std::string("its plan does not fit its code: '") +
                text(instruction.label()) + "' starts the kernel '" +
                text(at(plan.kernels(), dispatch->kernel()).name()) + "' " +
                why + ": compile the model again");
        });
  return status;
}

} // namespace

Expected<std::shared_ptr<const KernelLibrary>>
KernelLibrary::load(const Artifact &artifact, int max_level) {
  std::shared_ptr<KernelLibrary> library(new KernelLibrary);
  PARTITA_TRY(within("'" + artifact.path() + "': ",
                     library->open(artifact, max_level)));
  return std::shared_ptr<const KernelLibrary>(library);
}

Status KernelLibrary::open(const Artifact &artifact, int max_level) {
  const std::vector<ObjectSection> &objects = artifact.objects();
  // Those with a launch are for other devices of the plan.
  int own = 0;
  for (const abi::Kernel &kernel : each(artifact.plan().kernels()))
    own += !kernel.launch();
  if (own == 0)
    return Status();

  int level = std::min(max_level, processorLevel());
  const ObjectSection *best = nullptr;
  for (const ObjectSection &object : objects)
    if (static_cast<int>(object.level) <= level &&
        (!best || object.level > best->level))
      best = &object;
  if (!best)
    return noLevel(objects, max_level);

  // The descriptor stays open: the loader takes a library of the same path for
  // the same library, so no other may get this number meanwhile.
  file = PARTITA_TRY(inMemory(*best));
  std::string path = "/proc/self/fd/" + std::to_string(file);
  handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char *why = handle ? nullptr : ::dlerror();
  if (!handle)
    return Status::error(
        "cannot load the artifact's kernels, " + std::to_string(best->bytes) +
        " bytes: " + (why ? why : "unknown reason") +
        ": give the process more memory, or compile the model again");
  std::vector<const int64_t *> uses;
  for (const abi::Kernel &kernel : each(artifact.plan().kernels())) {
    if (kernel.launch()) {
      kernels.push_back(nullptr);
      uses.push_back(nullptr);
      continue;
    }
    const std::string name = text(kernel.name());
    void *symbol = ::dlsym(handle, name.c_str());
    if (!symbol)
      return Status::error("the artifact's code has no kernel '" + name +
                           "': compile the model again");
    void *use = ::dlsym(handle, (name + "_use").c_str());
    if (!use)
      return Status::error("the artifact's code does not say what its kernel "
                           "'" +
                           name +
                           "' was compiled for: compile the model again");
    kernels.push_back(reinterpret_cast<partita_kernel_fn>(symbol));
    uses.push_back(static_cast<const int64_t *>(use));
  }
  return checkKernelUses(artifact.plan(), uses);
}

KernelLibrary::~KernelLibrary() {
  if (handle)
    ::dlclose(handle);
  if (file >= 0)
    ::close(file);
}

} // namespace partita::runtime
