//===- MachineSpeedsTarget.cpp - Fuzzes machine files that are updated ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Target.h"

#include "runtime/calibrate/MachineSpeeds.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto machine = runtime::MachineSpeeds::parse(
      std::string_view(reinterpret_cast<const char *>(data), size));
  if (!machine) {
    fuzz::require(!machine.status().message().empty(),
                  "an error has a message");
    return 0;
  }
  fuzz::require(runtime::MachineSpeeds::parse(machine->json()).ok(),
                "what is written can be read");
  return 0;
}
