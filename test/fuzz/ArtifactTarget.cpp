//===- ArtifactTarget.cpp - Fuzzes the loader of artifacts ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bytes are a file. Its hashes are made right before it is opened, so that
// what stands behind them is reached. It is not run: its machine code may be
// damaged (see PlanTarget.cpp).
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/PlanMutator.h"
#include "test/fuzz/Target.h"
#include "test/unit/runtime/PlanBuilder.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/base/Elements.h"

#include <numeric>

using namespace partita;

namespace {

/// Calls `visit` with each entry of a table that lies inside the file.
template <typename Visit>
void forEachSection(std::vector<uint8_t> &file, Visit visit) {
  abi::FileHeader header;
  if (file.size() < sizeof(header))
    return;
  std::memcpy(&header, file.data(), sizeof(header));
  for (uint32_t i = 0; i < std::min(header.section_count, 64u); ++i) {
    abi::SectionEntry entry;
    size_t at = sizeof(header) + i * sizeof(entry);
    if (at + sizeof(entry) > file.size())
      return;
    std::memcpy(&entry, file.data() + at, sizeof(entry));
    if (entry.offset <= file.size() &&
        entry.bytes <= file.size() - entry.offset) {
      visit(entry);
      std::memcpy(file.data() + at, &entry, sizeof(entry));
    }
  }
}

void makeHashesRight(std::vector<uint8_t> &file) {
  forEachSection(file, [&](abi::SectionEntry &entry) {
    if (entry.kind != abi::SectionKind::weights)
      entry.hash = XXH3_64bits(file.data() + entry.offset, entry.bytes);
  });
  abi::FileHeader header;
  if (file.size() < sizeof(header))
    return;
  std::memcpy(&header, file.data(), sizeof(header));
  header.file_bytes = file.size();
  std::memcpy(file.data(), &header, sizeof(header));
  if (header.section_count <= 64 &&
      header.section_count * sizeof(abi::SectionEntry) <=
          file.size() - sizeof(header))
    test::rehash(file);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  makeHashesRight(bytes);
  fuzz::MemoryFile file(bytes.data(), bytes.size());
  auto artifact = runtime::Artifact::open(file.path());
  if (artifact) {
    std::vector<int> all(
        static_cast<size_t>(runtime::length((*artifact)->plan().weights())));
    std::iota(all.begin(), all.end(), 0);
    (void)(*artifact)->verifyWeights(all, 1);
    if (auto training = runtime::Artifact::openTraining(file.path()))
      fuzz::require(training->train && training->eval,
                    "a model that is trained has both plans");
  } else {
    fuzz::require(!artifact.status().message().empty(),
                  "an error has a message");
  }
  return 0;
}

/// Header and table are 64 bytes each of a large file: half of the mutations
/// are there, others in the plan.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                               unsigned seed) {
  size_t table = sizeof(abi::FileHeader) + 4 * sizeof(abi::SectionEntry);
  if (seed % 4 == 0 || size < table)
    return LLVMFuzzerMutate(data, size, most);
  if (seed % 4 < 3) {
    LLVMFuzzerMutate(data, table, table);
    return size;
  }
  std::vector<uint8_t> file(data, data + size);
  forEachSection(file, [&](abi::SectionEntry &entry) {
    if (entry.kind == abi::SectionKind::plan)
      fuzz::mutatePlan(data + entry.offset, entry.bytes, entry.bytes, seed / 4);
  });
  return size;
}
