//===- Spinning.cpp - How long the cores of a device spin -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/measure/Spinning.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>

namespace partita::run {

/// Less than a millisecond: longer than the gap between two ops of a step,
/// shorter than a time slice. MobileNetV2 on two idle cores is as fast as with
/// any larger count; with a third of it, some runs take half as long again.
static constexpr char kSpinCount[] = "30000";

void boundSpinning(char **argv) {
  if (std::getenv("GOMP_SPINCOUNT") || std::getenv("OMP_WAIT_POLICY"))
    return;
  // The program's own path, and not the link, whose name it would have then.
  std::error_code error;
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error || setenv("GOMP_SPINCOUNT", kSpinCount, 1) != 0)
    return;
  // Where this fails the program goes on as it is.
  (void)execv(program.c_str(), argv);
}

} // namespace partita::run
