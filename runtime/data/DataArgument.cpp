//===- DataArgument.cpp - The value of --data -----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/DataArgument.h"

#include "runtime/base/NearestName.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

namespace partita::data {

using abi::DType;
using runtime::Expected;
using runtime::Status;

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (;;) {
    size_t end = std::min(text.find(separator), text.size());
    words.emplace_back(text.substr(0, end));
    if (end == text.size())
      return words;
    text.remove_prefix(end + 1);
  }
}

template <typename T> bool parseNumber(const std::string &text, T &number) {
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

Status setCount(std::optional<int64_t> &target, const std::string &value) {
  int64_t count = 0;
  if (!parseNumber(value, count) || count < 1)
    return Status::error("'" + value + "' is not a whole number from 1 on");
  target = count;
  return Status();
}

Status setNumber(double &target, const std::string &value, bool divides) {
  if (!parseNumber(value, target) || !std::isfinite(target))
    return Status::error("'" + value + "' is not a number");
  if (divides && target == 0)
    return Status::error("it divides, and may not be 0");
  return Status();
}

Status setDType(std::optional<DType> &target, const std::string &value) {
  target = PARTITA_TRY(parseDType(value));
  return Status();
}

Status setOption(DataArgument &argument, const std::string &name,
                 const std::string &value) {
  DatasetOptions &options = argument.options;
  Scale &scale = argument.scale;
  const std::pair<const char *, std::function<Status()>> known[] = {
      {"dtype", [&] { return setDType(options.dtype, value); }},
      {"window", [&] { return setCount(options.window, value); }},
      {"stride", [&] { return setCount(options.stride, value); }},
      {"divide", [&] { return setNumber(scale.divide, value, true); }},
      {"mean", [&] { return setNumber(scale.mean, value, false); }},
      {"std", [&] { return setNumber(scale.std, value, true); }}};
  std::vector<std::string> names;
  for (const auto &[option, set] : known) {
    if (name == option)
      return within("'" + name + "': ", set());
    names.emplace_back(option);
  }
  return Status::error(runtime::unknownName("option", name, names));
}

} // namespace

Expected<DType> parseDType(const std::string &name) {
  std::vector<std::string> names;
  for (DType dtype : abi::EnumValuesDType()) {
    for (const char *known :
         {abi::EnumNameDType(dtype), runtime::dtypeName(dtype)}) {
      if (name == known)
        return dtype;
      names.emplace_back(known);
    }
  }
  return Status::error(runtime::unknownName("element type", name, names));
}

Expected<DataArgument> parseDataArgument(const std::string &text) {
  DataArgument argument;
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Status::error(
        "say which input gets the samples of which file, as in "
        "NAME=PATH");
  argument.input = text.substr(0, equals);
  const std::string rest = text.substr(equals + 1);
  const size_t end = std::min(rest.find_first_of(":,"), rest.size());
  argument.path = rest.substr(0, end);
  if (argument.path.empty())
    return Status::error("there is no path after '" + argument.input + "='");
  if (end == rest.size())
    return argument;

  const bool hasParts = rest[end] == ':';
  std::vector<std::string> seen;
  for (const std::string &word : split(rest.substr(end + 1), ',')) {
    const size_t assign = word.find('=');
    if (assign == std::string::npos) {
      if (word.empty())
        return Status::error(hasParts && argument.options.parts.empty()
                                 ? "there is no name after ':'"
                                 : "there is nothing after a comma");
      if (!hasParts)
        return Status::error(
            "'" + word +
            "' is no option, which is NAME=VALUE; arrays and columns "
            "follow a colon, as in '" +
            argument.path + ":" + word + "'");
      argument.options.parts.push_back(word);
      continue;
    }
    const std::string name = word.substr(0, assign);
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      return Status::error("option '" + name + "' is given twice");
    seen.push_back(name);
    PARTITA_TRY(setOption(argument, name, word.substr(assign + 1)));
  }
  return argument;
}

} // namespace partita::data
