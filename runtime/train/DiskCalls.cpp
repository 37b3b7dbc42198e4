//===- DiskCalls.cpp - What changes the disk ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/DiskCalls.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace partita::runtime::train {

int DiskCalls::create(const char *path) {
  return ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}
ssize_t DiskCalls::write(int file, const void *bytes, size_t count) {
  return ::write(file, bytes, count);
}
int DiskCalls::fsync(int file) { return ::fsync(file); }
int DiskCalls::close(int file) { return ::close(file); }
int DiskCalls::mkdir(const char *path) { return ::mkdir(path, 0777); }
int DiskCalls::rename(const char *from, const char *to) {
  return ::rename(from, to);
}
int DiskCalls::exchange(const char *one, const char *other) {
  return ::renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
}
int DiskCalls::unlink(const char *path) { return ::unlink(path); }
int DiskCalls::rmdir(const char *path) { return ::rmdir(path); }

Status diskError(const char *what, const std::string &path) {
  const int reason = errno;
  std::string text = std::string("cannot ") + what + " '" + path +
                     "': " + std::strerror(reason);
  if (reason == ENOSPC || reason == EDQUOT)
    text += ": make room there, or name another folder";
  return Status::error(text);
}

DiskFile::~DiskFile() {
  if (file >= 0)
    calls.close(file);
}

Status DiskFile::create() {
  file = calls.create(path.c_str());
  return file < 0 ? diskError("create", path) : Status();
}

Status DiskFile::write(std::span<const uint8_t> bytes) {
  // The system writes no more than 2 GiB in one call.
  while (!bytes.empty()) {
    const ssize_t written = calls.write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return diskError("write", path);
    bytes = bytes.subspan(size_t(written));
  }
  return Status();
}

Status DiskFile::close() {
  if (calls.fsync(file) != 0)
    return diskError("write", path);
  const int closed = calls.close(file);
  file = -1;
  return closed != 0 ? diskError("write", path) : Status();
}

Status syncFolder(DiskCalls &calls, const std::string &path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return diskError("open", path);
  const int synced = calls.fsync(folder);
  Status status = synced != 0 ? diskError("write", path) : Status();
  ::close(folder);
  return status;
}

Expected<std::vector<std::string>> namesIn(const std::string &folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator each(folder, error), end;
       !error && each != end; each.increment(error))
    names.push_back(each->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory) {
    errno = error.value();
    return diskError("read", folder);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status removeFolder(DiskCalls &calls, const std::string &path) {
  std::vector<std::string> names = PARTITA_TRY(namesIn(path));
  for (const std::string &name : names)
    if (const std::string file = path + "/" + name;
        calls.unlink(file.c_str()) != 0 && errno != ENOENT)
      return diskError("remove", file);
  if (calls.rmdir(path.c_str()) != 0 && errno != ENOENT)
    return diskError("remove", path);
  return Status();
}

} // namespace partita::runtime::train
