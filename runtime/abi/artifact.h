//===- artifact.h - Layout of a .partita file -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A .partita file, little-endian:
//
//   FileHeader                     64 bytes
//   SectionEntry[section_count]    64 bytes each
//   sections, each at a multiple of 4096, in the table's order, no overlap
//
// A file has one plan, or several: the same model for several sizes of its
// dimensions. Each plan has a section, and code of its own: objects for CPUs,
// and at most one PTX module for GPUs. All of them share the weights section.
//
// FileHeader.table_hash is the XXH3 (64 bits) of the section table.
// FileHeader.header_hash is that of the header's first 56 bytes. Each entry
// holds the hash of its section's bytes. So every byte of header, table, plans
// and code is covered. The weights section is large: a plan has a hash for
// each weight, which is checked when a session is loaded. Bytes between
// sections are zero.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ABI_ARTIFACT_H
#define PARTITA_RUNTIME_ABI_ARTIFACT_H

#include <cstdint>

namespace partita::abi {

inline constexpr char kMagic[8] = {'P', 'A', 'R', 'T', 'I', 'T', 'A', '\n'};
inline constexpr uint32_t kVersion = 13;
inline constexpr uint64_t kSectionAlignment = 4096;
/// Alignment of slots in an arena and of weights in their section, in bytes.
inline constexpr uint64_t kSlotAlignment = 64;
/// The most that Plan.step_sequences is: a step has a bit for each.
inline constexpr int kMostStepSequences = 64;

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t section_count;
  uint64_t file_bytes;
  uint64_t table_hash;
  uint8_t reserved[24]; // zero
  uint64_t header_hash; // of the 56 bytes before it
};
static_assert(sizeof(FileHeader) == 64);

enum class SectionKind : uint32_t {
  plan = 1,    // FlatBuffers, plan.fbs
  object = 2,  // a shared object for the CPU level named in `level`
  weights = 3, // parameters and constants, each at kSlotAlignment
  ptx = 4,     // PTX text that ends with its only NUL, for `architecture`
};

/// Instruction-set level of an object section: the x86-64 psABI's levels.
enum class CpuLevel : uint32_t { none = 0, x86_64_v3 = 3, x86_64_v4 = 4 };

/// The architecture that the `.target` of a PTX section names. A GPU of this
/// architecture or of a later one can run it.
enum class GpuArchitecture : uint32_t {
  none = 0,
  sm_80 = 80,
  sm_90 = 90,
  sm_100 = 100,
  sm_120 = 120,
};

struct SectionEntry {
  SectionKind kind;
  CpuLevel level;
  uint64_t offset; // multiple of kSectionAlignment
  uint64_t bytes;
  uint64_t hash; // XXH3 of the bytes; 0 for the weights section
  uint32_t plan; // number of the plan, or of that which the code is for
  GpuArchitecture architecture; // of a PTX section
  uint8_t reserved[24];
};
static_assert(sizeof(SectionEntry) == 64);

} // namespace partita::abi

#endif // PARTITA_RUNTIME_ABI_ARTIFACT_H
