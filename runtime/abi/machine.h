//===- machine.h - Names in a file about a machine --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Besides its tables a team has measurements of the work of models, under
// "work", by the number of busy devices:
//
//   "work": {"2": {"00f3c21d9a5be871": [52100, 48700], ...}, ...}
//
// The key is `Instruction.work_key` of a plan. The pair is the measured time
// and the time that the tables predict, in ns. Both are sums over all work with
// this key. "id" identifies the tables: every calibration has another id.
//
// A machine with devices that are no part of its processor has an entry for
// each architecture of them, under "devices":
//
//   "devices": [{"kind": "...", "architecture": "...", "name": "...",
//                "rates": {"processors": 132, "clock": 1.98, ...}}, ...]
//
// "kind" is one of abi::getDeviceKindNames, "architecture" what stands behind
// the colon of --target, and "name" is for people.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_MACHINE_H
#define PARTITA_RUNTIME_ABI_MACHINE_H

namespace partita::abi::machine {

inline constexpr char kFormatKey[] = "partita_machine";
inline constexpr int kFormatVersion = 4;
inline constexpr char kIdKey[] = "id";
inline constexpr char kWorkKey[] = "work";
inline constexpr char kDevicesKey[] = "devices";

// clang-format off
/// Tables of a team of threads, with their axes and units. `side` is that of
/// the result, a square image. `taps` are the elements of a window.
///
///   dot        rows, columns, depth          GFLOP/s, packed weights, bias
///   dot_plain  rows, columns, depth          GFLOP/s, both operands computed
///   conv       taps, stride, in, out, side   GFLOP/s
///   winograd   in, out, side             GFLOP/s of a direct 3x3 convolution
///   depthwise  taps, stride, channels, side  GFLOP/s
///   pool       taps, channels, side          taps per nanosecond
///   attention  rows, columns, depth          GFLOP/s, as nn.attention counts
///   cold       rows, bytes                   ns per KiB of weights, added to
///                                            dot, if a step touches `bytes`
///   read       bytes                         GB/s, reading `bytes` repeatedly
///   spill      bytes                         ns per KiB of result, added to
///                                            dot, if a step touches `bytes`
///   transfer   bytes                         ns, from another device
///   collective bytes                         ns, an all_reduce of f32 between
///                                            two devices that each send
///                                            `bytes`
// clang-format on
inline constexpr char kDot[] = "dot", kDotPlain[] = "dot_plain",
                      kConv[] = "conv", kWinograd[] = "winograd",
                      kDepthwise[] = "depthwise", kPool[] = "pool",
                      kAttention[] = "attention", kCold[] = "cold",
                      kRead[] = "read", kEviction[] = "spill",
                      kTransfer[] = "transfer", kCollective[] = "collective";

// clang-format off
/// Tables without axes.
///
///   simple           elements per nanosecond of an addition or the like, in
///                    cache
///   exponential      the same for a softmax
///   divide           the same for a division
///   reordered        the same for a copy that reads in another order than it
///                    writes
///   epilogue_gelu    ns per element of a GELU after a library call
///   epilogue_exp     the same for other functions
///   epilogue_binary  the same for the sum with another value
///   integer          speedup of products of 8-bit integers over those of f32
///   dispatch         ns to start a kernel on all threads
///   crowd_compute    slowdown of computing with all cores at work
///   crowd_memory     slowdown of moving uncached bytes with all cores at work
///   crowd_cache      devices whose bytes share one large cache
// clang-format on
inline constexpr char kSimple[] = "simple", kExponential[] = "exponential",
                      kDivide[] = "divide", kReordered[] = "reordered",
                      kEpilogueGelu[] = "epilogue_gelu",
                      kEpilogueExp[] = "epilogue_exp",
                      kEpilogueBinary[] = "epilogue_binary",
                      kInteger[] = "integer", kDispatch[] = "dispatch",
                      kContentionCompute[] = "crowd_compute",
                      kContentionMemory[] = "crowd_memory",
                      kContentionCache[] = "crowd_cache";

// clang-format off
/// Rates of a device that is no part of the processor.
///
///   processors       that compute side by side
///   clock            of a processor, GHz
///   memory           GB/s, read from and written to its memory
///   launch           ns from the begin of a small kernel to the next one's, in
///                    one unit
///   unit             ns from the end of a unit to the begin of the next one;
///                    may be missing
///   copy             ns of a transfer, besides its bytes
///   host             GB/s between its memory and the host's, one way
///   peer             GB/s between two such devices, one way; only where there
///                    are two
// clang-format on
inline constexpr char kProcessors[] = "processors", kClock[] = "clock",
                      kMemory[] = "memory", kLaunch[] = "launch",
                      kUnit[] = "unit", kCopy[] = "copy", kHost[] = "host",
                      kPeer[] = "peer";

} // namespace partita::abi::machine

#endif // PARTITA_RUNTIME_ABI_MACHINE_H
