//===- TrainerFile.cpp - Where a training stands, as a file ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainerFile.h"

#include "runtime/train/ContentHash.h"
#include "runtime/train/JsonNumber.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace partita::runtime::train {

namespace {

using Json = nlohmann::json;

constexpr int kFormatVersion = 1;
constexpr const char *kFormatKey = "partita_checkpoint";
constexpr const char *kMakeAgain =
    ": go on from another checkpoint, or start anew";
/// As deep as the file and the text of a set-up are nested.
constexpr int kMostDepth = 3, kMostSetupDepth = 6;

/// Stops where the text is nested deeper than it can be.
struct DepthCheck : nlohmann::json_sax<Json> {
  const int most;
  int depth = 0;

  explicit DepthCheck(int most) : most(most) {}

  bool open() { return ++depth <= most; }
  bool close() { return --depth >= 0; }
  bool start_object(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(std::string &) override { return true; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const std::string &) override {
    return true;
  }
  bool string(std::string &) override { return true; }
  bool binary(Json::binary_t &) override { return true; }
  bool parse_error(size_t, const std::string &,
                   const nlohmann::detail::exception &) override {
    return false;
  }
};

/// Null, or discarded, if it is no JSON that is nested so.
Json parseNested(std::string_view text, int most) {
  DepthCheck check(most);
  return Json::sax_parse(text, &check)
             ? Json::parse(text, nullptr, /*allow_exceptions=*/false)
             : Json();
}

/// By name: what a set-up's text says. Of lists and objects each part has a
/// name of its own. Empty if it is no such text.
std::map<std::string, std::string> readSetup(const std::string &text) {
  std::map<std::string, std::string> said;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const Json json = parseNested(line, kMostSetupDepth);
  if (!json.is_object() || json.empty())
    return said;
  const Json flat = json.flatten();
  for (const auto &[path, value] : flat.items()) {
    std::string name = path.substr(1);
    std::replace(name.begin(), name.end(), '/', '.');
    said[name] = value.dump();
  }
  while (std::getline(lines, line))
    said[line.substr(0, line.find(' '))] =
        line.substr(std::min(line.find(' '), line.size() - 1) + 1);
  return said;
}

/// Reads what TrainerFile::json writes. Throws where something else stands
/// there.
class Reader {
public:
  static void read(const Json &json, TrainerFile &file) {
    Progress &progress = file.progress;
    progress.step = count(json.at("step"));
    progress.seed = json.at("seed").get_ref<const uint64_t &>();
    progress.epoch = count(json.at("data").at("epoch"));
    progress.sample = count(json.at("data").at("sample"));
    progress.identity.model = hash(json.at("model"));
    progress.identity.setup = hash(json.at("setup"));
    if (json.contains("setup_text"))
      progress.identity.setup_text = text(json.at("setup_text"));
    for (const auto &[name, value] : object(json.at("metrics")))
      progress.metrics[name] = readJsonNumber(value).value();
    for (const auto &[name, value] : object(json.at("files")))
      file.files[name] = {uint64_t(count(value.at("bytes"))),
                          hash(value.at("xxh3"))};
  }

private:
  static const std::string &text(const Json &json) {
    return json.get_ref<const std::string &>();
  }
  static const Json::object_t &object(const Json &json) {
    return json.get_ref<const Json::object_t &>();
  }
  /// Whole, and not negative.
  static int64_t count(const Json &json) {
    const uint64_t number = json.get_ref<const uint64_t &>();
    if (!std::in_range<int64_t>(number))
      throw std::out_of_range("no count");
    return int64_t(number);
  }
  static uint64_t hash(const Json &json) {
    return parseHash(text(json)).value();
  }
};

} // namespace

Expected<std::string> TrainerFile::json() const {
  if (progress.step < 0 || progress.epoch < 0 || progress.sample < 0)
    return Status::error("step, epoch and sample cannot be negative");
  nlohmann::ordered_json json;
  json[kFormatKey] = kFormatVersion;
  json["step"] = progress.step;
  json["seed"] = progress.seed;
  json["data"]["epoch"] = progress.epoch;
  json["data"]["sample"] = progress.sample;
  json["model"] = hashText(progress.identity.model);
  json["setup"] = hashText(progress.identity.setup);
  if (const std::string &said = progress.identity.setup_text;
      !said.empty() && said.size() <= kMostSetupBytes)
    json["setup_text"] = said;
  json["metrics"] = nlohmann::ordered_json::object();
  for (const auto &[name, value] : progress.metrics)
    json["metrics"][name] = jsonNumber<nlohmann::ordered_json>(value);
  json["files"] = nlohmann::ordered_json::object();
  for (const auto &[name, file] : files)
    json["files"][name] = {{"bytes", file.bytes},
                           {"xxh3", hashText(file.hash)}};
  std::string text;
  try {
    text = json.dump(1) + "\n";
  } catch (const nlohmann::json::type_error &) {
    return Status::error("the name of a metric is not UTF-8: rename it");
  }
  // What is written can be read.
  if (text.size() > kMostTrainerBytes)
    return Status::error("there are too many metrics: keep fewer");
  return text;
}

Expected<TrainerFile> TrainerFile::parse(std::string_view text) {
  if (text.size() > kMostTrainerBytes)
    return Status::error("is too large for one that a training wrote" +
                         std::string(kMakeAgain));
  const Json json = parseNested(text, kMostDepth);
  auto version = json.is_object() ? json.find(kFormatKey) : json.end();
  if (!json.is_object() || version == json.end())
    return Status::error("does not describe a checkpoint" +
                         std::string(kMakeAgain));
  if (*version != kFormatVersion)
    return Status::error("is of another version: use the partita-run that "
                         "wrote it");
  TrainerFile file;
  try {
    Reader::read(json, file);
    return file;
  } catch (const std::bad_alloc &) {
    throw; // says nothing of the file
  } catch (const std::exception &) {
    return Status::error("is not as a training wrote it" +
                         std::string(kMakeAgain));
  }
}

std::string describeDifference(const Identity &found, const Identity &expected,
                               size_t most) {
  auto there = readSetup(found.setup_text),
       here = readSetup(expected.setup_text);
  if (there.empty() || here.empty())
    return "";
  // How a person said it, from which the rest follows.
  auto isSaid = [](const std::string &name) {
    return name.starts_with("said.");
  };
  std::string text;
  size_t count = 0;
  auto compare = [&](const std::string &name) {
    auto valueIn = [&](const std::map<std::string, std::string> &all) {
      auto it = all.find(name);
      return it == all.end() ? "nothing" : it->second;
    };
    const std::string is = valueIn(there), should = valueIn(here);
    if (is != should && count++ < most)
      text += (text.empty() ? "" : ", ") + name + " is " + is + " there and " +
              should + " here";
  };
  std::set<std::string> names;
  for (const auto &all : {there, here})
    for (const auto &[name, value] : all)
      names.insert(name);
  for (bool said : {false, true})
    if (count == 0)
      for (const std::string &name : names)
        if (isSaid(name) == said)
          compare(name);
  return text + (count > most ? ", and others differ" : "");
}

} // namespace partita::runtime::train
