//===- DeviceSpeeds.h - What an accelerator can do --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_DEVICESPEEDS_H
#define PARTITA_COMPILER_CODEGEN_DEVICESPEEDS_H

#include <string>

namespace partita::codegen {

/// By these a device is priced that is no part of the processor. Times are in
/// nanoseconds. Rates of bytes are what a device reaches, in GB/s.
struct DeviceSpeeds {
  std::string name; ///< for people: the device that has these speeds

  // Of an architecture: operations of one of its processors in a clock. Those
  // of products by type, as tensor cores compute them.
  double operations = 0, halfProducts = 0, byteProducts = 0;

  // Those below a machine file may say instead (runtime/abi/machine.h).
  double processors = 0; ///< that compute side by side
  double clock = 0;      ///< of a processor, GHz
  double memory = 0;     ///< read from and written to the device's memory
  double launch = 0;     ///< from a small kernel of a unit to the next one
  double unit = 0;       ///< to start a unit of a plan
  double copy = 0;       ///< of a transfer, besides its bytes
  double host = 0;       ///< between its memory and the host's, one way
  double peer = 0;       ///< between two such devices, one way
  double collective = 0; ///< of a collective, besides its hops and bytes
  double hop = 0;        ///< from one device of a collective to the next
};

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_DEVICESPEEDS_H
