//===- Error.h - The driver's errors that the emulator reports --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_MACHINE_ERROR_H
#define PARTITA_TEST_GPUEMULATOR_MACHINE_ERROR_H

namespace gpuemu {

/// Values of CUresult, for what does not include the driver's header.
enum Error : int {
  InvalidValue = 1,
  OutOfMemory = 2,
  InvalidImage = 200,
  NoBinaryForGpu = 209,
  InvalidPtx = 218,
  NotFound = 500,
  IllegalAddress = 700,
  LaunchOutOfResources = 701,
  LaunchTimeout = 702,
  IllegalInstruction = 715,
  MisalignedAddress = 716,
  LaunchFailed = 719,
};

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_MACHINE_ERROR_H
