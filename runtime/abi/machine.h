//===- machine.h - Names in a file about a machine --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Besides its tables a team has, under "work", what was measured of the work of
// models, each with so many devices busy:
//
//   "work": {"2": {"00f3c21d9a5be871": [52100, 48700], ...}, ...}
//
// The key is `Instruction.work_key` of a plan, the pair how long the work took
// and how long the tables let expect, ns, of all work with this key together.
// "id" names the tables: another calibration has another.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_MACHINE_H
#define PARTITA_RUNTIME_ABI_MACHINE_H

namespace partita::abi::machine {

inline constexpr char kFormatKey[] = "partita_machine";
inline constexpr int kFormatVersion = 4;
inline constexpr char kIdKey[] = "id";
inline constexpr char kWorkKey[] = "work";

// clang-format off
/// Tables of a team of threads, with their axes and units. A side is that of a
/// square image, the result's; taps are the elements of a window.
///
///   dot        rows, columns, depth          GFLOP/s, packed weights, bias
///   dot_plain  rows, columns, depth          GFLOP/s, both operands computed
///   conv       taps, stride, in, out, side   GFLOP/s
///   winograd   in, out, side             GFLOP/s of a direct 3x3 convolution
///   depthwise  taps, stride, channels, side  GFLOP/s
///   pool       taps, channels, side          taps a nanosecond
///   attention  rows, columns, depth          GFLOP/s, as nn.attention counts
///   cold       rows, bytes                   ns a KiB of weights, beyond dot, if
///                                            a step touches so many bytes
///   read       bytes                         GB/s, again and again over these
///   spill      bytes                         ns a KiB of result, beyond dot, if
///                                            a step touches so many bytes
///   transfer   bytes                         ns, from another device
// clang-format on
inline constexpr char kDot[] = "dot", kDotPlain[] = "dot_plain",
                      kConv[] = "conv", kWinograd[] = "winograd",
                      kDepthwise[] = "depthwise", kPool[] = "pool",
                      kAttention[] = "attention", kCold[] = "cold",
                      kRead[] = "read", kEviction[] = "spill",
                      kTransfer[] = "transfer";

// clang-format off
/// Tables without axes.
///
///   simple           elements a nanosecond of an addition or the like, in cache
///   exponential      the same of a softmax
///   divide           of a division
///   reordered        of elements that are read in another order than written
///   epilogue_gelu    ns an element, after a library call
///   epilogue_exp     the same of other functions
///   epilogue_binary  of the sum with another value
///   integer          times as fast, products of 8 bits as of f32
///   dispatch         ns, to start a kernel on all threads
///   crowd_compute    how many times as long with all cores at work
///   crowd_memory     the same of bytes that no cache holds
///   crowd_cache      how many devices' bytes share one large cache
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

} // namespace partita::abi::machine

#endif // PARTITA_RUNTIME_ABI_MACHINE_H
