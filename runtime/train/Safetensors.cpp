//===- Safetensors.cpp - Files of named tensors ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Safetensors.h"

#include "runtime/base/MappedFile.h"
#include "runtime/train/SafetensorsHeader.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <tuple>

namespace partita::runtime::train {

using abi::DType;

namespace {

constexpr size_t kLengthBytes = 8; ///< of a number that is little-endian

/// What is said of a file that is not as its header says.
constexpr const char *kFetchAgain = ": copy or make the file again";

/// As JSON has it, texts in quotes; none if one is not UTF-8.
std::optional<std::string> jsonText(const nlohmann::json &value) {
  try {
    return value.dump();
  } catch (const nlohmann::json::type_error &) {
    return std::nullopt;
  }
}

} // namespace

Expected<Safetensors> parseSafetensors(std::span<const uint8_t> bytes,
                                       std::shared_ptr<const void> owner,
                                       const std::string &where) {
  auto fail = [&](const std::string &why) {
    return Status::error("cannot read " + where + ": " + why);
  };
  if (bytes.size() < kLengthBytes)
    return fail("it is too short for a safetensors file" +
                std::string(kFetchAgain));
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMostHeaderBytes)
    return fail("it is no safetensors file: its header would have " +
                std::to_string(length) + " bytes, more than the format allows");
  if (length > bytes.size() - kLengthBytes)
    return fail("it ends within its header" + std::string(kFetchAgain));
  Expected<SafetensorsHeader> header = parseSafetensorsHeader(
      {reinterpret_cast<const char *>(bytes.data()) + kLengthBytes,
       size_t(length)});
  if (!header)
    return fail(header.status().message());

  const std::span<const uint8_t> content = bytes.subspan(kLengthBytes + length);
  std::vector<SafetensorsEntry> &entries = header->entries;
  std::sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  Safetensors result;
  result.metadata = std::move(header->metadata);
  result.tensors.reserve(entries.size());
  // Bytes that belong to no tensor are as wrong as those of two: somebody put
  // together what does not belong together.
  uint64_t end = 0;
  for (SafetensorsEntry &entry : entries) {
    const std::string tensor = "tensor '" + entry.name + "' ";
    if (entry.begin < end)
      return fail(tensor + "overlaps the one before it" + kFetchAgain);
    if (entry.begin > end)
      return fail("bytes before " + tensor + "belong to no tensor" +
                  kFetchAgain);
    if (entry.end > content.size())
      return fail(tensor + "ends beyond the end of the file" + kFetchAgain);
    end = entry.end;
    result.tensors.push_back(
        {std::move(entry.name),
         Tensor::refer(entry.dtype, std::move(entry.shape),
                       content.data() + entry.begin, owner)});
  }
  if (end != content.size())
    return fail(std::to_string(content.size() - end) +
                " bytes at its end belong to no tensor" + kFetchAgain);
  return result;
}

Expected<Safetensors> readSafetensors(const std::string &path) {
  std::shared_ptr<const MappedFile> file = PARTITA_TRY(MappedFile::open(path));
  return parseSafetensors(file->span(), file, "'" + path + "'");
}

Status writeSafetensors(const std::vector<TensorBytes> &tensors,
                        const std::map<std::string, std::string> &metadata,
                        const ByteSink &sink, const std::string &where) {
  auto fail = [&](const std::string &why) {
    return Status::error("cannot write " + where + ": " + why);
  };
  std::vector<const TensorBytes *> order;
  for (const TensorBytes &tensor : tensors)
    order.push_back(&tensor);
  std::sort(order.begin(), order.end(),
            [](const TensorBytes *a, const TensorBytes *b) {
              const int64_t left = elementBytes(a->dtype),
                            right = elementBytes(b->dtype);
              return left != right ? left > right : a->name < b->name;
            });
  std::set<std::string_view> names;
  for (const TensorBytes &tensor : tensors)
    if (!names.insert(tensor.name).second)
      return fail("two tensors are called '" + tensor.name +
                  "': give each a name of its own");

  std::string header = "{";
  auto add = [&](const std::string &key, const std::string &value) {
    header += (header.size() > 1 ? "," : "") + key + ":" + value;
  };
  if (!metadata.empty()) {
    std::optional<std::string> all = jsonText(metadata);
    if (!all)
      return fail("its metadata are not UTF-8");
    add("\"" + std::string(kMetadataKey) + "\"", *all);
  }
  uint64_t offset = 0;
  for (const TensorBytes *tensor : order) {
    const std::string what = "tensor '" + tensor->name + "' ";
    const char *type = safetensorsType(tensor->dtype);
    std::optional<std::string> name = jsonText(tensor->name);
    if (!name || tensor->name.empty() || tensor->name == kMetadataKey)
      return fail(what +
                  "needs another name: one in UTF-8 that is neither "
                  "empty nor '" +
                  kMetadataKey + "'");
    if (!type)
      return fail(what +
                  "has a type that the format does not have: convert it "
                  "to one of " +
                  kSafetensorsTypes);
    std::optional<int64_t> count = elementCount(tensor->shape);
    if (!count ||
        uint64_t(*count * elementBytes(tensor->dtype)) != tensor->bytes.size())
      return fail(what + "has " + std::to_string(tensor->bytes.size()) +
                  " bytes, which its shape " + shapeText(tensor->shape) +
                  " does not have");
    const uint64_t end = offset + tensor->bytes.size();
    add(*name, "{\"dtype\":\"" + std::string(type) +
                   "\",\"shape\":" + nlohmann::json(tensor->shape).dump() +
                   ",\"data_offsets\":[" + std::to_string(offset) + "," +
                   std::to_string(end) + "]}");
    offset = end;
  }
  header += "}";
  // So the first tensor is aligned.
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > kMostHeaderBytes)
    return fail("it has too many tensors for one file: split it");

  const uint64_t length = header.size();
  header.insert(0, reinterpret_cast<const char *>(&length), kLengthBytes);
  PARTITA_TRY(
      sink({reinterpret_cast<const uint8_t *>(header.data()), header.size()}));
  for (const TensorBytes *tensor : order)
    if (!tensor->bytes.empty())
      PARTITA_TRY(sink(PARTITA_TRY(tensor->bytes.get())));
  return Status();
}

} // namespace partita::runtime::train
