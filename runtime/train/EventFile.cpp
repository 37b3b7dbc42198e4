//===- EventFile.cpp - Curves for TensorBoard -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/EventFile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace partita::runtime::train {

namespace {

constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0);
    table[i] = value;
  }
  return table;
}();

template <typename T> std::string littleEndian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i)
    bytes += char(value >> (8 * i));
  return bytes;
}

std::string maskedCrc(const std::string &bytes) {
  const uint32_t crc = crc32c(bytes);
  return littleEndian(std::rotr(crc, 15) + 0xa282ead8u);
}

std::string record(const std::string &message) {
  const std::string length = littleEndian(uint64_t(message.size()));
  return length + maskedCrc(length) + message + maskedCrc(message);
}

// The few fields that are written need no library: the wire format of protobuf
// is stable.

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += char(value | 0x80);
  return bytes + char(value);
}

enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string key(int field, Wire wire) { return varint(field << 3 | wire); }

std::string bytesField(int field, const std::string &bytes) {
  return key(field, kBytes) + varint(bytes.size()) + bytes;
}

/// Event: 1 wall_time, 2 step, and `content`, one of 3 file_version, 5 summary
/// and 7 session_log.
std::string event(int64_t step, const std::string &content) {
  const double now = std::chrono::duration<double>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
  std::string message =
      key(1, kFixed64) + littleEndian(std::bit_cast<uint64_t>(now));
  if (step)
    message += key(2, kVarint) + varint(uint64_t(step));
  return message + content;
}

/// A Summary.Value: 1 tag, 2 simple_value.
std::string value(const std::string &tag, double number) {
  return bytesField(1,
                    bytesField(1, tag) + key(2, kFixed32) +
                        littleEndian(std::bit_cast<uint32_t>(float(number))));
}

std::string hostName() {
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) != 0 || !host[0])
    return "localhost";
  std::string name = host;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

} // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char c : bytes)
    crc = crc >> 8 ^ kCrcTable[(crc ^ uint8_t(c)) & 0xff];
  return ~crc;
}

Expected<EventFile> EventFile::create(const std::string &folder,
                                      std::optional<int64_t> after) {
  using namespace std::chrono;
  int64_t time =
      duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
  const std::string host = hostName();
  // A second file of the same second gets the next one.
  for (int tries = 0;; ++tries, ++time) {
    char number[24];
    std::snprintf(number, sizeof number, "%010lld",
                  static_cast<long long>(time));
    const std::string path =
        folder + "/events.out.tfevents." + number + "." + host;
    Expected<std::unique_ptr<AppendedFile>> opened =
        AppendedFile::open(path, O_EXCL);
    if (!opened) {
      if (::access(path.c_str(), F_OK) == 0 && tries < 100)
        continue;
      return opened.status();
    }
    EventFile file(path, std::move(*opened));
    std::string first = record(event(0, bytesField(3, "brain.Event:2")));
    // SessionLog: 1 status, START.
    if (after)
      first +=
          record(event(*after + 1, bytesField(7, key(1, kVarint) + varint(1))));
    PARTITA_TRY(file.file->append(first));
    return file;
  }
}

Status EventFile::write(const TrainRecord &entry) {
  std::string summary = value("epoch", double(entry.epoch));
  auto add = [&](const char *tag, const std::optional<double> &number) {
    if (number)
      summary += value(tag, *number);
  };
  add("loss", entry.loss);
  add("learning_rate", entry.learning_rate);
  add("gradient_norm", entry.gradient_norm);
  add("samples_per_second", entry.samples_per_second);
  add("data_wait_fraction", entry.data_wait_fraction);
  for (const auto &[name, number] : entry.eval)
    summary += value("eval/" + name, number);
  return file->append(record(event(entry.step, bytesField(5, summary))));
}

} // namespace partita::runtime::train
