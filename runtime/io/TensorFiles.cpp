//===- TensorFiles.cpp - Tensors by file name -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/TensorFiles.h"

#include "runtime/io/Npy.h"
#include "runtime/io/PendingFile.h"
#include "runtime/io/TensorProtoFile.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <unistd.h>

namespace partita::runtime {

namespace fs = std::filesystem;

namespace {

Status cannotWrite(const std::string &path, const std::string &reason) {
  return Status::error("cannot write '" + path + "': " + reason);
}

Status writeFolder(const std::string &path,
                   const std::vector<NamedTensor> &tensors) {
  std::vector<std::string> names;
  for (const NamedTensor &item : tensors)
    names.push_back(item.name);
  names = fileNames(names);
  // All files are complete before the first takes its name.
  std::vector<std::unique_ptr<PendingFile>> files;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::unique_ptr<PendingFile> file = PARTITA_TRY(
        PendingFile::create((fs::path(path) / (names[i] + ".npy")).string()));
    const Tensor &tensor = tensors[i].tensor;
    PARTITA_TRY(file->write(npyHeader(tensor)));
    PARTITA_TRY(file->write({tensor.data(), size_t(tensor.bytes())}));
    files.push_back(std::move(file));
  }
  for (std::unique_ptr<PendingFile> &file : files)
    PARTITA_TRY(file->commit());
  return Status();
}

} // namespace

std::vector<std::string> fileNames(const std::vector<std::string> &names) {
  std::vector<std::string> result;
  std::set<std::string> taken;
  for (const std::string &name : names) {
    std::string safe;
    // Most file systems end at 255 bytes; leave room for suffixes.
    for (char c : name.substr(0, 200))
      safe += std::isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                      c == '_' || c == '-'
                  ? c
                  : '_';
    if (safe.empty() || safe[0] == '.' || safe[0] == '-')
      safe.insert(safe.begin(), '_');
    std::string unique = safe;
    for (int k = 2; !taken.insert(unique).second; ++k)
      unique = safe + "_" + std::to_string(k);
    result.push_back(unique);
  }
  return result;
}

std::vector<std::string> uniqueNames(const std::vector<std::string> &names) {
  std::set<std::string> taken(names.begin(), names.end());
  std::set<std::string> seen;
  std::vector<std::string> result;
  for (const std::string &name : names) {
    std::string unique = name;
    if (!seen.insert(name).second)
      for (int k = 1; !taken.insert(unique).second; ++k)
        unique = name + "." + std::to_string(k);
    result.push_back(unique);
  }
  return result;
}

bool isArchive(const std::string &path) { return path.ends_with(".npz"); }

Expected<Tensor> readTensor(const std::string &path,
                            std::optional<abi::DType> expected) {
  if (path.ends_with(".npy"))
    return readNpy(path, expected);
  if (path.ends_with(".pb")) {
    NamedTensor item = PARTITA_TRY(readTensorProto(path));
    return item.tensor;
  }
  return Status::error("cannot read '" + path +
                       "': its name must end in .npy, .npz or .pb");
}

Status checkOutputPath(const std::string &path) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (isArchive(path)) {
    if (fs::exists(status) && !fs::is_regular_file(status))
      return cannotWrite(path, "something that is not a file has this name");
  } else {
    if (fs::is_directory(status))
      return ::access(path.c_str(), W_OK | X_OK) == 0
                 ? Status()
                 : cannotWrite(path, "the folder may not be written to");
    if (fs::exists(status))
      return cannotWrite(path, "it is a file; name an .npz file or a folder");
    if (fs::path(path).has_extension() && path.back() != '/')
      return cannotWrite(path,
                         "name an .npz file, or a folder (ending in '/')");
  }
  fs::path clean =
      path.ends_with('/') ? fs::path(path).parent_path() : fs::path(path);
  fs::path parent = clean.parent_path();
  if (parent.empty())
    parent = ".";
  if (!fs::is_directory(parent, error))
    return cannotWrite(path, "there is no folder '" + parent.string() + "'");
  if (::access(parent.c_str(), W_OK | X_OK) != 0)
    return cannotWrite(path, "the folder '" + parent.string() +
                                 "' may not be written to");
  return Status();
}

Status writeTensors(const std::string &path,
                    const std::vector<NamedTensor> &tensors) {
  PARTITA_TRY(checkOutputPath(path));
  if (isArchive(path))
    return writeNpz(path, tensors);
  std::error_code error;
  bool created = fs::create_directory(path, error);
  if (error)
    return cannotWrite(path, error.message());
  Status status = writeFolder(path, tensors);
  if (!status.ok() && created)
    fs::remove_all(path, error);
  return status;
}

} // namespace partita::runtime
