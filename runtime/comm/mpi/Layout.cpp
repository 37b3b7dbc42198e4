//===- Layout.cpp - How the bytes of a message lie ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/Layout.h"

#include <limits>

namespace partita::runtime::mpi {

Layout Layout::ofBytes(int64_t bytes) {
  if (bytes <= std::numeric_limits<int>::max())
    return {MPI_BYTE, int(bytes)};
  // Whole blocks and the rest.
  constexpr int64_t kBlock = int64_t(1) << 20;
  MPI_Datatype block, large;
  MPI_Type_contiguous(int(kBlock), MPI_BYTE, &block);
  int lengths[] = {int(bytes / kBlock), int(bytes % kBlock)};
  MPI_Aint offsets[] = {0, MPI_Aint(bytes / kBlock * kBlock)};
  MPI_Datatype types[] = {block, MPI_BYTE};
  MPI_Type_create_struct(2, lengths, offsets, types, &large);
  MPI_Type_commit(&large);
  MPI_Type_free(&block);
  return {large, 1};
}

Layout Layout::ofRows(int64_t rows, int64_t bytes, int64_t stride) {
  if (rows <= 1 || stride == bytes)
    return ofBytes(rows * bytes);
  MPI_Datatype type;
  MPI_Type_create_hvector(int(rows), int(bytes), MPI_Aint(stride), MPI_BYTE,
                          &type);
  MPI_Type_commit(&type);
  return {type, 1};
}

void Layout::free() {
  if (type != MPI_BYTE)
    MPI_Type_free(&type);
}

} // namespace partita::runtime::mpi
