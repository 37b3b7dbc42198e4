//===- SectionTable.h - Header and section table of an artifact -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ARTIFACT_SECTIONTABLE_H
#define PARTITA_RUNTIME_ARTIFACT_SECTIONTABLE_H

#include "runtime/artifact/Artifact.h"

namespace partita::runtime {

struct Section {
  const uint8_t *data = nullptr;
  size_t bytes = 0;
};

struct PlanSections {
  Section plan;
  std::vector<ObjectSection> objects;
  PtxSection ptx;
};

struct SectionTable {
  std::vector<PlanSections> plans; ///< at least one
  Section weights;                 ///< empty if the file has none
};

/// Checks everything that runtime/abi/artifact.h promises about the file at
/// `data`. That is magic, version, size and hashes, and for each section its
/// alignment, order, bounds and hash. Reserved bytes and the bytes between
/// sections must be zero. Plans must be numbered from 0 in their order, with at
/// most one object each for a CPU level, and at most one PTX module. There may
/// be one weights section.
Expected<SectionTable> readSectionTable(const std::string &path,
                                        const uint8_t *data, size_t size);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_ARTIFACT_SECTIONTABLE_H
