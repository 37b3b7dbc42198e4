//===- ChoiceCache.cpp - Algorithms that were chosen before ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/ChoiceCache.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace partita::runtime::cuda {
namespace {

/// A file beyond this is not ours.
constexpr uintmax_t kMostBytes = uintmax_t(16) << 20;

std::string fileName(const std::string &name) {
  std::string file;
  for (const char c : name)
    file += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_'
                ? c
                : '-';
  return file;
}

bool parse(const std::string &line, std::string &problem,
           ChoiceCache::Choice &choice) {
  const size_t colon = line.find(": ");
  if (colon == std::string::npos)
    return false;
  problem = line.substr(0, colon);
  std::istringstream words(line.substr(colon + 2));
  words >> std::hex;
  choice.clear();
  for (uint64_t word; words >> word;)
    choice.push_back(word);
  return words.eof() && !choice.empty();
}

} // namespace

std::string cacheFolder() {
  if (const char *folder = std::getenv("PARTITA_CACHE"))
    return folder;
  if (const char *folder = std::getenv("XDG_CACHE_HOME"); folder && *folder)
    return std::string(folder) + "/partita";
  const char *home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/partita" : "";
}

ChoiceCache::ChoiceCache(const std::string &folder, const std::string &name) {
  if (folder.empty())
    return;
  path = folder + "/" + fileName(name);
  std::error_code error;
  if (std::filesystem::file_size(path, error) > kMostBytes || error)
    return;
  std::ifstream file(path);
  std::string line, problem;
  Choice choice;
  while (std::getline(file, line))
    if (parse(line, problem, choice))
      known[problem] = choice;
}

std::optional<ChoiceCache::Choice>
ChoiceCache::find(const std::string &problem) const {
  const auto it = known.find(problem);
  return it == known.end() ? std::nullopt : std::optional(it->second);
}

void ChoiceCache::add(const std::string &problem, const Choice &choice) {
  known[problem] = choice;
  if (path.empty())
    return;
  std::string line = problem + ":";
  for (const uint64_t word : choice) {
    char text[24];
    std::snprintf(text, sizeof(text), " %llx",
                  static_cast<unsigned long long>(word));
    line += text;
  }
  line += "\n";
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(),
                                      error);
  // One call appends a whole line, also where several processes do so.
  const int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0)
    return;
  [[maybe_unused]] const ssize_t written =
      ::write(file, line.data(), line.size());
  ::close(file);
}

} // namespace partita::runtime::cuda
