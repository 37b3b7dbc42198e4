//===- Emulator.h - What libcuda.so.1 has for tests -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions beside those of the driver, for tests and for stand-ins of
// libraries (NCCL, cuBLASLt, cuDNN). Look them up with dlsym.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_EMULATOR_H
#define PARTITA_TEST_GPUEMULATOR_EMULATOR_H

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)
extern "C" {

/// How often something happened, or how much of it there is now:
///   calls             of the driver's functions
///   launches          of kernels, also by graphs
///   allocations       of device and pinned memory so far
///   synchronisations  of the host with a stream, an event or a device
///   peer-copies       from one device to another; staged-copies: those of them
///                     that go through the host, for lack of peer access
///   live-allocations, live-streams, live-events, live-modules, live-graphs
///   lane-instructions that kernels have run
///   waits-N           of streams of device N for events
/// ~0 for another name.
uint64_t cuEmuCount(const char *name);

/// Makes the `calls`-th call of a driver function from now on fail; 0: none.
/// With `error` 0 the error is one that suits the function: out of memory where
/// something is created, else a failed launch.
void cuEmuFail(uint64_t calls, int error);

/// Draws orders from another seed than CUDA_EMU_SEED from now on.
void cuEmuSeed(uint64_t seed);

/// What the last error was, in words; empty if there was none.
const char *cuEmuLastError();

/// Queues an operation behind what is in the stream, in a graph if the stream
/// is being captured. `ready` says whether it can run now (null: always); it is
/// asked again and again, with the emulator's lock held. `run` returns null, or
/// what went wrong; it may use cuEmuBytes. `drop` is called when nothing will
/// run the operation any more.
struct CuEmuOperation {
  const char *name;
  int (*ready)(void *data);
  const char *(*run)(void *data);
  void (*drop)(void *data);
  void *data;
};
int cuEmuEnqueue(struct CUstream_st *stream, const CuEmuOperation *operation);

/// Runs what a stream can run now, as a device does while the host does
/// something else.
void cuEmuAdvance(struct CUstream_st *stream);

/// Where the bytes of a device range are for the host, or null where no
/// allocation holds them all. `access`: 1 to read (null where nothing wrote
/// some of them), 2 to write (they count as written then), 3 both.
void *cuEmuBytes(uint64_t address, size_t bytes, int access);

/// The device of a stream (null: of the current context).
int cuEmuDevice(struct CUstream_st *stream);

} // extern "C"
#pragma GCC visibility pop

#endif // PARTITA_TEST_GPUEMULATOR_EMULATOR_H
