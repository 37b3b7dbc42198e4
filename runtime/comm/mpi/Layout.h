//===- Layout.h - How the bytes of a message lie ----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_MPI_LAYOUT_H
#define PARTITA_RUNTIME_COMM_MPI_LAYOUT_H

#include <cstdint>
#include <mpi.h>

namespace partita::runtime::mpi {

/// The MPI type and count of a message. It is a number of MPI_BYTE if an int
/// can count the bytes. Otherwise it is one element of a derived type, which
/// `free` releases.
struct Layout {
  MPI_Datatype type = MPI_BYTE;
  int count = 0;

  static Layout ofBytes(int64_t bytes);
  /// `rows` rows of `bytes` bytes, `stride` bytes apart; both counts fit an
  /// int.
  static Layout ofRows(int64_t rows, int64_t bytes, int64_t stride);
  void free();
};

} // namespace partita::runtime::mpi

#endif // PARTITA_RUNTIME_COMM_MPI_LAYOUT_H
