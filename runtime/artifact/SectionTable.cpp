//===- SectionTable.cpp - Header and section table of an artifact ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/SectionTable.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <xxhash.h>

namespace partita::runtime {
namespace {

constexpr uint32_t kMostSections = 1024;

class Reader {
public:
  Reader(const std::string &path, const uint8_t *data, size_t size)
      : path(path), data(data), size(size) {}

  Expected<SectionTable> read() {
    PARTITA_TRY(readHeader());
    uint64_t end = sizeof(abi::FileHeader) +
                   uint64_t(header.section_count) * sizeof(abi::SectionEntry);
    for (uint32_t i = 0; i < header.section_count; ++i)
      PARTITA_TRY(readSection(i, end));
    if (size - end >= abi::kSectionAlignment ||
        !areZero({data + end, size - end}))
      return damaged("there are bytes after the last section");
    if (table.plans.empty())
      return damaged("it has no plan");
    return table;
  }

private:
  Status error(const std::string &what) const {
    return Status::error("'" + path + "' " + what);
  }
  Status damaged(const std::string &what) const {
    return error("is damaged: " + what +
                 "; copy it again from where it was made, or compile the model "
                 "again");
  }
  static bool areZero(std::span<const uint8_t> bytes) {
    return std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; });
  }

  Status readHeader() {
    if (size == 0)
      return error("is empty: compile the model again");
    size_t seen = std::min(size, sizeof(abi::kMagic));
    if (std::memcmp(data, abi::kMagic, seen) != 0)
      return error("is not a .partita artifact: make one of the model with "
                   "partita-compile");
    if (size < sizeof(header))
      return damaged("it ends after " + std::to_string(size) +
                     " bytes, inside its header");
    std::memcpy(&header, data, sizeof(header));
    if (header.version != abi::kVersion)
      return error("is of version " + std::to_string(header.version) +
                   "; this partita-run reads version " +
                   std::to_string(abi::kVersion) + ": compile the model again");
    if (XXH3_64bits(data, offsetof(abi::FileHeader, header_hash)) !=
        header.header_hash)
      return damaged("its header has another hash than it says");
    if (!areZero(header.reserved))
      return damaged("reserved bytes of its header are not zero");
    if (header.file_bytes != size)
      return damaged("it has " + std::to_string(size) +
                     " bytes and should have " +
                     std::to_string(header.file_bytes));
    if (header.section_count == 0 || header.section_count > kMostSections)
      return damaged("it says it has " + std::to_string(header.section_count) +
                     " sections");
    uint64_t bytes = header.section_count * sizeof(abi::SectionEntry);
    if (bytes > size - sizeof(header))
      return damaged("it ends inside its section table");
    if (XXH3_64bits(data + sizeof(header), bytes) != header.table_hash)
      return damaged("its section table has another hash than it says");
    return Status();
  }

  /// Reads entry `index`; `end` is the end of what comes before it.
  Status readSection(uint32_t index, uint64_t &end) {
    abi::SectionEntry entry;
    std::memcpy(&entry, data + sizeof(header) + index * sizeof(entry),
                sizeof(entry));
    std::string name = "section " + std::to_string(index);
    if (!areZero(entry.reserved))
      return damaged("reserved bytes of " + name + " are not zero");
    if (entry.offset % abi::kSectionAlignment != 0)
      return damaged(name + " is not aligned");
    if (entry.offset < end)
      return damaged(name + " overlaps what comes before it");
    if (entry.offset > size || entry.bytes > size - entry.offset)
      return damaged(name + " reaches past the end of the file");
    if (!areZero({data + end, data + entry.offset}))
      return damaged("the bytes before " + name + " are not zero");
    end = entry.offset + entry.bytes;

    Section section{data + entry.offset, static_cast<size_t>(entry.bytes)};
    bool weights = entry.kind == abi::SectionKind::weights;
    uint64_t hash = weights ? 0 : XXH3_64bits(section.data, section.bytes);
    if (hash != entry.hash)
      return damaged(name + " has another hash than the table says");
    return place(name, entry, section);
  }

  Status place(const std::string &name, const abi::SectionEntry &entry,
               const Section &section) {
    if (entry.kind != abi::SectionKind::object &&
        entry.level != abi::CpuLevel::none)
      return damaged(name + " has a CPU level but is no object");
    if (entry.kind != abi::SectionKind::ptx &&
        entry.architecture != abi::GpuArchitecture::none)
      return damaged(name + " has a GPU architecture but is no PTX");
    if (entry.kind == abi::SectionKind::object)
      return placeObject(name, entry, section);
    if (entry.kind == abi::SectionKind::ptx)
      return placePtx(name, entry, section);
    if (entry.kind == abi::SectionKind::plan) {
      if (entry.plan != table.plans.size())
        return damaged(name + " has plan " + std::to_string(entry.plan) +
                       " where plan " + std::to_string(table.plans.size()) +
                       " should be");
      table.plans.push_back({section, {}, {}});
      return Status();
    }
    if (entry.kind != abi::SectionKind::weights)
      return damaged(name + " is of the unknown kind " +
                     std::to_string(static_cast<uint32_t>(entry.kind)));
    if (table.weights.data || entry.plan != 0)
      return damaged(name + " is the second of its kind, or of a plan");
    table.weights = section;
    return Status();
  }

  Status placeObject(const std::string &name, const abi::SectionEntry &entry,
                     const Section &section) {
    if (entry.level != abi::CpuLevel::x86_64_v3 &&
        entry.level != abi::CpuLevel::x86_64_v4)
      return damaged(name + " is for the unknown CPU level " +
                     std::to_string(static_cast<uint32_t>(entry.level)));
    if (!standsBehindItsPlan(entry))
      return damaged(name + " does not stand behind its plan");
    std::vector<ObjectSection> &objects = table.plans.back().objects;
    for (const ObjectSection &other : objects)
      if (other.level == entry.level)
        return damaged(name + " is the second for its CPU level");
    objects.push_back({entry.level, section.data, section.bytes});
    return Status();
  }

  Status placePtx(const std::string &name, const abi::SectionEntry &entry,
                  const Section &section) {
    switch (entry.architecture) {
    case abi::GpuArchitecture::sm_80:
    case abi::GpuArchitecture::sm_90:
    case abi::GpuArchitecture::sm_100:
    case abi::GpuArchitecture::sm_120:
      break;
    default:
      return damaged(name + " is for the unknown GPU architecture " +
                     std::to_string(static_cast<uint32_t>(entry.architecture)));
    }
    if (!standsBehindItsPlan(entry))
      return damaged(name + " does not stand behind its plan");
    PtxSection &ptx = table.plans.back().ptx;
    if (ptx.text)
      return damaged(name + " is the second with PTX for its plan");
    if (section.bytes == 0 || std::memchr(section.data, 0, section.bytes) !=
                                  section.data + section.bytes - 1)
      return damaged(name + " is no text that ends with NUL");
    ptx = {entry.architecture, reinterpret_cast<const char *>(section.data)};
    return Status();
  }

  bool standsBehindItsPlan(const abi::SectionEntry &entry) const {
    return !table.plans.empty() && entry.plan == table.plans.size() - 1;
  }

  const std::string &path;
  const uint8_t *data;
  size_t size;
  abi::FileHeader header;
  SectionTable table;
};

} // namespace

Expected<SectionTable> readSectionTable(const std::string &path,
                                        const uint8_t *data, size_t size) {
  return Reader(path, data, size).read();
}

} // namespace partita::runtime
