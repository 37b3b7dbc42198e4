//===- SafetensorsHeader.cpp - What a file of tensors says ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/SafetensorsHeader.h"

#include "runtime/base/Elements.h"
#include "runtime/io/Tensor.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

namespace partita::runtime::train {

using abi::DType;

namespace {

constexpr std::pair<const char *, DType> kTypes[] = {
    {"F64", DType::f64},     {"F32", DType::f32}, {"F16", DType::f16},
    {"BF16", DType::bf16},   {"I64", DType::i64}, {"I32", DType::i32},
    {"I16", DType::i16},     {"I8", DType::i8},   {"U64", DType::u64},
    {"U32", DType::u32},     {"U16", DType::u16}, {"U8", DType::u8},
    {"BOOL", DType::boolean}};

constexpr size_t kMostDimensions = 64;

using Json = nlohmann::json;

/// Takes the header as it is parsed: a header of 100 MB must not become a tree
/// of objects first. Stops at the first thing that does not belong there, so
/// nothing is nested deeper than the format nests.
class HeaderReader : public nlohmann::json_sax<Json> {
public:
  SafetensorsHeader header;
  std::string wrong; ///< empty: it is no JSON

  bool start_object(size_t) override {
    switch (place) {
    case Place::start:
      place = Place::names;
      return true;
    case Place::names:
      if (name.empty())
        return fail("a tensor has no name");
      if (name == kMetadataKey) {
        place = Place::metadata;
        return true;
      }
      place = Place::entry;
      entry = {};
      entry.name = name;
      found = {};
      return true;
    default:
      return unexpected();
    }
  }
  bool end_object() override {
    switch (place) {
    case Place::entry:
      place = Place::names;
      return finish();
    case Place::metadata:
      place = Place::names;
      return true;
    default:
      place = Place::end;
      return true;
    }
  }
  bool key(std::string &text) override {
    if (place == Place::names) {
      name = text;
      return names.insert(text).second ||
             fail("tensor '" + text + "' is there twice");
    }
    if (place == Place::metadata) {
      field = text;
      return header.metadata.emplace(text, "").second ||
             fail("'" + text + "' is there twice in its metadata");
    }
    field = text;
    if (field == "dtype")
      return !std::exchange(found.dtype, true) || unexpected();
    if (field == "shape")
      return !std::exchange(found.shape, true) || unexpected();
    if (field == "data_offsets")
      return !std::exchange(found.offsets, true) || unexpected();
    return unexpected();
  }
  bool string(std::string &text) override {
    if (place == Place::metadata) {
      header.metadata[field] = text;
      return true;
    }
    if (place != Place::entry || field != "dtype")
      return unexpected();
    for (const auto &[type, dtype] : kTypes)
      if (text == type) {
        entry.dtype = dtype;
        return true;
      }
    return fail("tensor '" + name + "' has the type '" + text +
                "', which is not read: convert it to one of " +
                kSafetensorsTypes);
  }
  bool start_array(size_t) override {
    if (place != Place::entry || field == "dtype")
      return unexpected();
    place = Place::numbers;
    offsets.clear();
    return true;
  }
  bool end_array() override {
    place = Place::entry;
    if (field == "shape")
      return true;
    if (offsets.size() != 2)
      return unexpected();
    entry.begin = offsets[0];
    entry.end = offsets[1];
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place != Place::numbers)
      return unexpected();
    if (field == "data_offsets") {
      offsets.push_back(value);
      return offsets.size() <= 2 || unexpected();
    }
    if (entry.shape.size() == kMostDimensions ||
        value > uint64_t(std::numeric_limits<int64_t>::max()))
      return impossible();
    entry.shape.push_back(int64_t(value));
    return true;
  }
  bool number_integer(number_integer_t) override { return impossible(); }
  bool number_float(number_float_t, const std::string &) override {
    return impossible();
  }
  bool null() override { return unexpected(); }
  bool boolean(bool) override { return unexpected(); }
  bool binary(Json::binary_t &) override { return unexpected(); }
  bool parse_error(size_t, const std::string &,
                   const nlohmann::detail::exception &) override {
    return false;
  }

private:
  enum class Place { start, names, entry, numbers, metadata, end };

  bool fail(const std::string &why) {
    wrong = why;
    return false;
  }
  bool unexpected() {
    if (place == Place::metadata)
      return fail("its metadata are not texts: make the file again");
    if (place == Place::entry || place == Place::numbers)
      return fail("tensor '" + name +
                  "' is not described by a dtype, a shape and two "
                  "data_offsets: make the file again");
    return fail("its header is not an object of tensors: make the file again");
  }
  bool impossible() {
    if (place != Place::numbers)
      return unexpected();
    return fail("tensor '" + name + "' has impossible numbers in its " + field +
                ": make the file again");
  }

  bool finish() {
    if (!found.dtype || !found.shape || !found.offsets) {
      place = Place::entry;
      return unexpected();
    }
    std::optional<int64_t> count = elementCount(entry.shape);
    if (!count)
      return fail("tensor '" + name + "' of shape " + shapeText(entry.shape) +
                  " is too large");
    const uint64_t bytes = uint64_t(*count * elementBytes(entry.dtype));
    if (entry.end < entry.begin || entry.end - entry.begin != bytes)
      return fail("tensor '" + name + "' of type " +
                  safetensorsType(entry.dtype) + " and shape " +
                  shapeText(entry.shape) + " needs " + std::to_string(bytes) +
                  " bytes, and not those from " + std::to_string(entry.begin) +
                  " to " + std::to_string(entry.end) + ": make the file again");
    header.entries.push_back(std::move(entry));
    return true;
  }

  Place place = Place::start;
  std::string name, field;
  SafetensorsEntry entry;
  struct {
    bool dtype = false, shape = false, offsets = false;
  } found;
  std::vector<uint64_t> offsets;
  std::unordered_set<std::string> names;
};

} // namespace

const char *safetensorsType(DType dtype) {
  for (const auto &[type, each] : kTypes)
    if (each == dtype)
      return type;
  return nullptr;
}

Expected<SafetensorsHeader> parseSafetensorsHeader(std::string_view text) {
  HeaderReader reader;
  // Other readers look for this byte, too: it tells a header from anything
  // else.
  if (!text.starts_with('{') || !Json::sax_parse(text, &reader))
    return Status::error(reader.wrong.empty()
                             ? "its header is no JSON: make the file again"
                             : reader.wrong);
  return std::move(reader.header);
}

} // namespace partita::runtime::train
