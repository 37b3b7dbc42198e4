//===- ModelExport.cpp - Trained weights in a copy of the model -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ModelExport.h"

#include "runtime/base/MappedFile.h"
#include "runtime/io/PendingFile.h"
#include "runtime/train/ContentHash.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

namespace partita::runtime::train {

namespace {

namespace fs = std::filesystem;

/// A file of the original, and where it goes to.
struct Copy {
  std::string from, to;
  std::shared_ptr<const MappedFile> content;
  std::vector<const ModelPatch *> patches; ///< ascending, apart
  std::unique_ptr<PendingFile> file;
};

std::string inQuotes(const std::string &path) { return "'" + path + "'"; }

std::string folderOf(const std::string &path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Whether both paths name one file, also by links.
bool sameFile(const std::string &one, const std::string &other) {
  std::error_code error;
  return fs::equivalent(one, other, error) && !error;
}

Status openPart(const std::string &original, const ModelPart &part,
                const std::string &output, Copy &copy) {
  const std::string folder = folderOf(original);
  const bool model = part.file.empty();
  copy.from = model ? original : folder + "/" + part.file;
  copy.to = model ? output : folderOf(output) + "/" + part.file;
  // A model names its external data, so they are opened with care.
  copy.content =
      PARTITA_TRY(model ? MappedFile::open(original)
                        : MappedFile::openContained(folder, part.file));
  const std::span<const uint8_t> bytes = copy.content->span();
  if (part.hash &&
      (bytes.size() != part.bytes || contentHash(bytes) != *part.hash))
    return Status::error(inQuotes(copy.from) +
                         " is not what it was when the model was compiled: "
                         "give back the original, or compile and train anew");
  return Status();
}

Status addPatches(const std::vector<ModelPatch> &patches,
                  std::map<std::string, Copy> &copies) {
  for (const ModelPatch &patch : patches) {
    auto copy = copies.find(patch.file);
    if (copy == copies.end())
      return Status::error("a trained weight is in " + inQuotes(patch.file) +
                           ", which is not among the model's files");
    const uint64_t size = copy->second.content->size();
    if (patch.offset > size || patch.bytes.size() > size - patch.offset)
      return Status::error(
          "a trained weight of " + std::to_string(patch.bytes.size()) +
          " bytes at " + std::to_string(patch.offset) +
          " lies beyond the end of " + inQuotes(copy->second.from) +
          ": compile the model anew");
    if (!patch.bytes.empty())
      copy->second.patches.push_back(&patch);
  }
  for (auto &[name, copy] : copies) {
    std::sort(copy.patches.begin(), copy.patches.end(),
              [](auto *a, auto *b) { return a->offset < b->offset; });
    for (size_t i = 1; i < copy.patches.size(); ++i)
      if (copy.patches[i]->offset - copy.patches[i - 1]->offset <
          copy.patches[i - 1]->bytes.size())
        return Status::error("two trained weights share bytes of " +
                             inQuotes(copy.from) +
                             ": train only one of them, or export the model "
                             "with weights of their own");
  }
  return Status();
}

/// No file of the original is written, and no file twice.
Status checkTargets(const std::map<std::string, Copy> &copies,
                    const std::string &output) {
  for (const auto &[name, copy] : copies)
    for (const auto &[other, source] : copies) {
      if (sameFile(copy.to, source.from))
        return Status::error("cannot write " + inQuotes(copy.to) +
                             ": it is a file of the original model; export "
                             "into another folder");
      if (name < other && (fs::path(copy.to).lexically_normal() ==
                               fs::path(source.to).lexically_normal() ||
                           sameFile(copy.to, source.to)))
        return Status::error("cannot write " + inQuotes(output) +
                             ": the model has external data of this name; "
                             "give it another name");
    }
  return Status();
}

Status writeCopy(Copy &copy) {
  std::error_code error;
  fs::create_directories(folderOf(copy.to), error);
  if (error)
    return Status::error("cannot create " + inQuotes(folderOf(copy.to)) + ": " +
                         error.message());
  copy.file = PARTITA_TRY(PendingFile::create(copy.to));
  const std::span<const uint8_t> bytes = copy.content->span();
  uint64_t at = 0;
  for (const ModelPatch *patch : copy.patches) {
    PARTITA_TRY(copy.file->write(bytes.subspan(at, patch->offset - at)));
    const Content::Bytes trained = PARTITA_TRY(patch->bytes.get());
    PARTITA_TRY(copy.file->write(trained));
    at = patch->offset + patch->bytes.size();
  }
  return copy.file->write(bytes.subspan(at));
}

} // namespace

Status exportModel(const std::string &original,
                   const std::vector<ModelPart> &parts,
                   const std::vector<ModelPatch> &patches,
                   const std::string &output) {
  std::map<std::string, Copy> copies;
  for (const ModelPart &part : parts) {
    auto [copy, added] = copies.try_emplace(part.file);
    if (!added)
      return Status::error("the model's file " + inQuotes(part.file) +
                           " is there twice");
    PARTITA_TRY(openPart(original, part, output, copy->second));
  }
  if (!copies.contains(""))
    return Status::error("the size and hash of " + inQuotes(original) +
                         " are missing");
  PARTITA_TRY(addPatches(patches, copies));
  PARTITA_TRY(checkTargets(copies, output));
  for (auto &[name, copy] : copies)
    PARTITA_TRY(writeCopy(copy));
  // The model is the first of the names, and what makes the others a model.
  for (auto copy = copies.rbegin(); copy != copies.rend(); ++copy)
    PARTITA_TRY(copy->second.file->commit(/*sync=*/true));
  return Status();
}

} // namespace partita::runtime::train
