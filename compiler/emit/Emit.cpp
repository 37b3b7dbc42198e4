//===- Emit.cpp - From the plan dialect to an artifact --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/emit/Emit.h"

#include "compiler/emit/PlanWriter.h"
#include "compiler/emit/WeightTable.h"
#include "dialects/support/Try.h"
#include "runtime/abi/GpuUses.h"
#include "runtime/abi/artifact.h"
#include "runtime/abi/plan_generated.h"
#include "runtime/files/NewFile.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <xxhash.h>

using namespace mlir;

namespace partita::emit {
namespace {

/// An artifact, written whole or not. `commit` gives the file its name when it
/// is complete and on the disk. Without `commit` no file is left. After an
/// error all calls do nothing.
class ArtifactFile {
public:
  ArtifactFile(StringRef path, unsigned sectionCount)
      : path(path), sectionCount(sectionCount) {
    // A rename would put a file in the place of /dev/null.
    if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path)) {
      error = llvm::sys::fs::is_directory(path)
                  ? "it is a folder"
                  : "something that is not a file has this name";
      return;
    }
    if (std::error_code code = file.create(this->path)) {
      fail(code);
      return;
    }
    temporary = file.temporary();
    if (!temporary.empty())
      llvm::sys::RemoveFileOnSignal(temporary);
    stream = std::make_unique<llvm::raw_fd_ostream>(file.descriptor(),
                                                    /*shouldClose=*/false);
    writeZeros(sizeof(abi::FileHeader) +
               sectionCount * sizeof(abi::SectionEntry));
  }

  ~ArtifactFile() {
    if (stream) {
      stream->flush();
      stream->clear_error();
      stream.reset();
    }
    if (!temporary.empty())
      llvm::sys::DontRemoveFileOnSignal(temporary);
  }

  /// Begins a section of that kind, level or architecture, and plan.
  void beginSection(abi::SectionEntry entry) {
    if (hasError())
      return;
    uint64_t offset = llvm::alignTo(stream->tell(), abi::kSectionAlignment);
    writeZeros(offset - stream->tell());
    entry.offset = offset;
    sections.push_back(entry);
  }

  void write(StringRef bytes) {
    if (hasError())
      return;
    *stream << bytes;
    if (stream->has_error())
      fail(stream->error());
  }

  void writeZeros(uint64_t count) {
    static const char zeros[4096] = {};
    for (; count > 0 && !hasError();) {
      uint64_t piece = std::min<uint64_t>(count, sizeof(zeros));
      write(StringRef(zeros, piece));
      count -= piece;
    }
  }

  void endSection(uint64_t hash) {
    if (hasError())
      return;
    sections.back().bytes = stream->tell() - sections.back().offset;
    sections.back().hash = hash;
  }

  /// Writes header and table, synchronises and renames.
  void commit() {
    if (hasError())
      return;
    abi::FileHeader header;
    std::memset(&header, 0, sizeof(header));
    std::memcpy(header.magic, abi::kMagic, sizeof(header.magic));
    header.version = abi::kVersion;
    header.section_count = sectionCount;
    header.file_bytes = stream->tell();
    header.table_hash =
        XXH3_64bits(sections.data(), sections.size() * sizeof(sections[0]));
    header.header_hash =
        XXH3_64bits(&header, offsetof(abi::FileHeader, header_hash));
    stream->pwrite(reinterpret_cast<const char *>(&header), sizeof(header), 0);
    stream->pwrite(reinterpret_cast<const char *>(sections.data()),
                   sections.size() * sizeof(sections[0]), sizeof(header));
    stream->flush();
    if (stream->has_error())
      return fail(stream->error());
    if (std::error_code code = file.commit(/*sync=*/true))
      return fail(code);
  }

  bool hasError() const { return !error.empty(); }
  const std::string &errorText() const { return error; }

private:
  void fail(std::error_code code) {
    if (error.empty())
      error = code.message();
  }

  std::string path;
  files::NewFile file;
  std::string temporary; ///< empty: no signal leaves anything
  std::unique_ptr<llvm::raw_fd_ostream> stream;
  unsigned sectionCount;
  std::vector<abi::SectionEntry> sections;
  std::string error;
};

} // namespace

/// Hashes every weight, and writes those that lie inside the artifact.
static LogicalResult writeWeights(WeightTable &weights, ArtifactFile &file) {
  XXH3_state_t *state = XXH3_createState();
  llvm::scope_exit release([&] { XXH3_freeState(state); });
  int64_t written = 0;
  for (WeightEntry &entry : weights.entries) {
    XXH3_64bits_reset(state);
    int64_t bytes = 0;
    if (entry.file.empty()) {
      file.writeZeros(entry.offset - written);
      written = entry.offset + entry.bytes;
    }
    PARTITA_TRY(readWeight(entry.op, [&](StringRef piece) {
      XXH3_64bits_update(state, piece.data(), piece.size());
      bytes += piece.size();
      if (entry.file.empty())
        file.write(piece);
      return success(!file.hasError());
    }));
    if (bytes != entry.bytes)
      return entry.op.emitError()
             << "the weight '" << entry.op.getOrigin() << "' has " << bytes
             << " bytes where its type needs " << entry.bytes;
    entry.hash = XXH3_64bits_digest(state);
  }
  return success();
}

/// PTX that says what it was compiled for.
static std::string withUses(ArrayRef<char> ptx, const abi::Plan &plan) {
  const std::string uses = abi::gpuUses(plan);
  std::string text(ptx.data()); // ends with a NUL
  llvm::raw_string_ostream(text)
      << abi::kGpuUsesMark
      << llvm::format_hex_no_prefix(XXH3_64bits(uses.data(), uses.size()), 16)
      << "\n";
  return text;
}

/// The model's file, hashed.
static FailureOr<TrainedModel> readTrained(ModuleOp module,
                                           const EmitOptions &options) {
  TrainedModel trained;
  if (options.trainedModel.empty())
    return trained;
  auto buffer = llvm::MemoryBuffer::getFile(options.trainedModel,
                                            /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return module.emitError() << "cannot read '" << options.trainedModel
                              << "': " << buffer.getError().message();
  trained.given = options.trainedModel;
  trained.path = PARTITA_TRY(
      getRelativePath(module, options.trainedModel, options.output));
  trained.bytes = static_cast<int64_t>((*buffer)->getBufferSize());
  trained.hash =
      XXH3_64bits((*buffer)->getBufferStart(), (*buffer)->getBufferSize());
  return trained;
}

LogicalResult emitArtifact(ArrayRef<CompiledPlan> plans,
                           const EmitOptions &options) {
  SmallVector<ModuleOp> modules;
  unsigned sections = 0;
  for (const CompiledPlan &plan : plans) {
    modules.push_back(plan.module);
    sections += 1 + plan.objects.size();
  }
  WeightTable weights = PARTITA_TRY(collectWeights(
      modules, options.weights == WeightPlacement::beside, options.output));
  TrainedModel trained = PARTITA_TRY(readTrained(modules.front(), options));
  bool hasWeights = weights.sectionBytes > 0;
  ArtifactFile file(options.output, sections + hasWeights);
  auto report = [&]() -> LogicalResult {
    if (file.hasError())
      return modules.front().emitError()
             << "cannot write the artifact '" << options.output
             << "': " << file.errorText();
    return failure();
  };
  if (file.hasError())
    return report();

  // Weights come first: the plans hold their hashes, which are known only when
  // their bytes have passed by, once.
  if (hasWeights)
    file.beginSection({.kind = abi::SectionKind::weights});
  if (failed(writeWeights(weights, file)))
    return report();
  if (hasWeights)
    file.endSection(0);

  for (auto [number, compiled] : llvm::enumerate(plans)) {
    auto plan =
        PARTITA_TRY(writePlan(compiled.module, weights, number, trained));
    auto writeHashed = [&](abi::SectionEntry entry, StringRef bytes) {
      entry.plan = number;
      file.beginSection(entry);
      file.write(bytes);
      file.endSection(XXH3_64bits(bytes.data(), bytes.size()));
    };
    writeHashed(
        {.kind = abi::SectionKind::plan},
        StringRef(reinterpret_cast<const char *>(plan.data()), plan.size()));
    for (const ObjectFile &object : compiled.objects) {
      const bool ptx = object.architecture != abi::GpuArchitecture::none;
      std::string text;
      if (ptx)
        text = withUses(object.bytes, *abi::GetPlan(plan.data()));
      writeHashed(
          {.kind = ptx ? abi::SectionKind::ptx : abi::SectionKind::object,
           .level = object.level,
           .architecture = object.architecture},
          ptx ? StringRef(text.data(), text.size() + 1)
              : StringRef(object.bytes.data(), object.bytes.size()));
    }
  }
  file.commit();
  return file.hasError() ? report() : success();
}

} // namespace partita::emit
