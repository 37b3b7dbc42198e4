//===- Module.cpp - A loaded module -----------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/Module.h"

#include "driver/Cuda.h"
#include "ptx/ProgramBuilder.h"

#include <algorithm>
#include <cstring>

using namespace gpuemu;

namespace {

/// The newest PTX that a driver reads, e.g. 87 of CUDA 12.8.
unsigned newestPtx(int driverVersion) {
  int major = driverVersion / 1000, minor = driverVersion % 1000 / 10;
  if (major > 13)
    return ~0u;
  if (major == 13)
    return 90 + unsigned(minor);
  if (major < 12)
    return major == 11 ? 70 + unsigned(std::min(minor, 8)) : 60;
  // From 12.6 on the numbers are one behind.
  return 80 + unsigned(minor >= 6 ? minor - 1 : minor);
}

} // namespace

Module::Module(const char *text, Memory &memory, int device,
               unsigned architecture, int driverVersion)
    // Once this is done, the destructor runs where something throws below.
    : Module(memory, device) {
  if (!memcmp(text,
              "\x7f"
              "ELF",
              4))
    throw Fault(CUDA_ERROR_NO_BINARY_FOR_GPU,
                "a cubin: the emulator runs PTX alone");
  std::unique_ptr<ModuleText> module = parseModule(text);
  if (module->version > newestPtx(driverVersion))
    throw Fault(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                "PTX " + std::to_string(module->version / 10) + "." +
                    std::to_string(module->version % 10) +
                    " is newer than the driver");
  if (module->architecture > architecture)
    throw Fault(CUDA_ERROR_INVALID_PTX,
                "PTX for sm_" + std::to_string(module->architecture) +
                    " on a device of sm_" + std::to_string(architecture));
  placeVariables(*module);
  auto addressOf = [&](const Variable &variable) {
    return globals.at(variable.name).address;
  };
  for (const auto &[name, function] : module->functions)
    if (function->isEntry && function->isDefined)
      kernels[name] = ProgramBuilder(*module, *function, addressOf).build();
}

Module::~Module() {
  for (const auto &[name, global] : globals)
    memory.free(global.address, false);
}

void Module::placeVariables(const ModuleText &text) {
  for (const Variable *variable : text.order)
    if (variable->space != Space::Shared)
      globals[variable->name] = {
          memory.allocate(deviceNumber, std::max<uint64_t>(variable->bytes, 1),
                          true),
          variable->bytes};
  for (const Variable *variable : text.order) {
    if (variable->space == Space::Shared)
      continue;
    uint64_t address = globals[variable->name].address;
    Bytes bytes = deviceBytes(memory, address, variable->bytes, "a variable");
    memset(bytes.data, 0, variable->bytes);
    memset(bytes.written, 1, variable->bytes);
    uint8_t *out = bytes.data;
    for (const Initial &initial : variable->initial) {
      uint64_t value = initial.bits;
      if (!initial.variable.empty()) {
        auto found = globals.find(initial.variable);
        if (found == globals.end())
          throw Fault(CUDA_ERROR_INVALID_PTX,
                      "the initial value of " + variable->name +
                          " is the address of " + initial.variable +
                          ", which is no variable in global memory");
        value += found->second.address;
      }
      memcpy(out, &value, initial.bytes);
      out += initial.bytes;
    }
    if (variable->space == Space::Const)
      memory.setReadOnly(address);
  }
}

std::shared_ptr<const Program> Module::kernel(const std::string &name) const {
  auto found = kernels.find(name);
  return found == kernels.end() ? nullptr : found->second;
}

const Module::Global *Module::global(const std::string &name) const {
  auto found = globals.find(name);
  return found == globals.end() ? nullptr : &found->second;
}
