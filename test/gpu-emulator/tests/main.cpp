//===- main.cpp - The emulator's tests --------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char **argv) {
  // The tests provoke errors, small ones and many.
  setenv("CUDA_EMU_DEVICES", "2", 0);
  setenv("CUDA_EMU_MEMORY_MB", "64", 0);
  setenv("CUDA_EMU_QUIET", "1", 0);
  setenv("CUDA_EMU_TIMEOUT", "1", 0);
  setenv("CUDA_EMU_STEPS", "10", 0);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
