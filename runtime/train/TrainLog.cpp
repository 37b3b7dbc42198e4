//===- TrainLog.cpp - How a training goes, for people and tools -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainLog.h"

#include "runtime/train/DiskCalls.h"
#include "runtime/train/JsonNumber.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace partita::runtime::train {

Expected<std::string> logLine(const TrainRecord &record) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["step"] = record.step;
  json["epoch"] = record.epoch;
  auto add = [&](const char *name, const std::optional<double> &value) {
    if (value)
      json[name] = jsonNumber<Json>(*value);
  };
  add("loss", record.loss);
  add("learning_rate", record.learning_rate);
  add("gradient_norm", record.gradient_norm);
  add("samples_per_second", record.samples_per_second);
  add("data_wait_fraction", record.data_wait_fraction);
  for (const auto &[name, value] : record.eval)
    json["eval"][name] = jsonNumber<Json>(value);
  try {
    return json.dump() + "\n";
  } catch (const nlohmann::json::type_error &) {
    return Status::error("the name of a metric is not UTF-8: rename it");
  }
}

AppendedFile::~AppendedFile() { ::close(file); }

Expected<std::unique_ptr<AppendedFile>>
AppendedFile::open(const std::string &path, int flags) {
  // O_NONBLOCK: opening a FIFO must not wait for its other end.
  const int file = ::open(
      path.c_str(),
      flags | O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file < 0)
    return diskError("write", path);
  std::unique_ptr<AppendedFile> opened(new AppendedFile(path, file));
  struct stat info;
  if (::fstat(file, &info) != 0)
    return diskError("write", path);
  if (!S_ISREG(info.st_mode))
    return Status::error("cannot write '" + path + "': it is not a file");
  return opened;
}

Status AppendedFile::append(std::string_view bytes) {
  const off_t before = ::lseek(file, 0, SEEK_END);
  if (before < 0)
    return diskError("write", path);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0) {
      Status status = diskError("write", path);
      // Half a record would spoil those after it.
      (void)!::ftruncate(file, before);
      return status;
    }
    bytes.remove_prefix(size_t(written));
  }
  return Status();
}

Status AppendedFile::cutToLine() {
  off_t end = ::lseek(file, 0, SEEK_END);
  if (end < 0)
    return diskError("write", path);
  char last = '\n';
  const off_t size = end;
  for (; end > 0; --end) {
    if (::pread(file, &last, 1, end - 1) != 1)
      return diskError("read", path);
    if (last == '\n')
      break;
  }
  if (end != size && ::ftruncate(file, end) != 0)
    return diskError("write", path);
  return Status();
}

Expected<TrainLog> TrainLog::open(const std::string &path) {
  std::unique_ptr<AppendedFile> file = PARTITA_TRY(AppendedFile::open(path, 0));
  PARTITA_TRY(file->cutToLine());
  return TrainLog(std::move(file));
}

Status TrainLog::write(const TrainRecord &record) {
  return file->append(PARTITA_TRY(logLine(record)));
}

} // namespace partita::runtime::train
