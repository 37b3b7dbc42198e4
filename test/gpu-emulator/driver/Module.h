//===- Module.h - A loaded module -------------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_DRIVER_MODULE_H
#define PARTITA_TEST_GPUEMULATOR_DRIVER_MODULE_H

#include "machine/Memory.h"
#include "machine/Program.h"

#include <map>
#include <memory>
#include <string>

namespace gpuemu {

struct ModuleText;

/// A module's kernels, and its variables in a device's memory.
class Module {
public:
  /// Reads PTX. Throws a Fault that names the line.
  Module(const char *text, Memory &memory, int device, unsigned architecture,
         int driverVersion);
  ~Module();

  std::shared_ptr<const Program> kernel(const std::string &name) const;
  struct Global {
    uint64_t address = 0, bytes = 0;
  };
  const Global *global(const std::string &name) const;
  size_t kernelCount() const { return kernels.size(); }
  int device() const { return deviceNumber; }

private:
  Module(Memory &memory, int device) : memory(memory), deviceNumber(device) {}
  void placeVariables(const ModuleText &text);

  Memory &memory;
  int deviceNumber;
  std::map<std::string, std::shared_ptr<const Program>> kernels;
  std::map<std::string, Global> globals;
};

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_DRIVER_MODULE_H
