//===- ProfileModules.cpp - Where the time of a step goes, by module ------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/ProfileTable.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <string_view>

namespace partita::run {

namespace {

using Path = std::vector<std::string>;

Path split(std::string_view text, char separator) {
  Path parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0)
      parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// Repeated layers have a number for a name.
void foldNumbers(Path &path) {
  for (std::string &part : path)
    if (std::all_of(part.begin(), part.end(),
                    [](unsigned char c) { return std::isdigit(c); }))
      part = "*";
}

/// The module that has all of the paths in it.
Path commonModule(const std::vector<Path> &paths) {
  Path common = paths.empty() ? Path() : paths.front();
  for (const Path &path : paths) {
    size_t same = 0;
    while (same < std::min(path.size(), common.size()) &&
           path[same] == common[same])
      ++same;
    common.resize(same);
  }
  return common;
}

Path moduleOfScopes(const std::vector<std::string> &scopes) {
  std::vector<Path> paths;
  for (const std::string &scope : scopes)
    foldNumbers(paths.emplace_back(split(scope, '.')));
  return commonModule(paths);
}

/// The module of nodes, where names say it: "/encoder/layer.0/MatMul" or
/// "encoder.layer.0.matmul+encoder.layer.0.add".
Path moduleOfNames(const std::string &names) {
  std::vector<Path> paths;
  for (const std::string &name : split(names, '+')) {
    Path parts = split(name, '/');
    if (parts.size() < 2)
      parts = split(parts.empty() ? "" : parts.front(), '.');
    if (!parts.empty())
      parts.pop_back();
    Path &path = paths.emplace_back();
    for (const std::string &part : parts)
      for (std::string &module : split(part, '.'))
        path.push_back(std::move(module));
    foldNumbers(path);
  }
  return commonModule(paths);
}

struct Node : ProfileTable::Cost {
  std::string name;
  std::vector<std::unique_ptr<Node>> within;

  Node &child(const std::string &wanted) {
    for (const std::unique_ptr<Node> &each : within)
      if (each->name == wanted)
        return *each;
    within.push_back(std::make_unique<Node>());
    within.back()->name = wanted;
    return *within.back();
  }

  /// Rows of what is within. A module that does nothing but what one in it does
  /// shares a row with that.
  void list(int depth, std::vector<ProfileTable::Module> &rows) {
    std::stable_sort(
        within.begin(), within.end(),
        [](const auto &a, const auto &b) { return a->ns > b->ns; });
    for (const std::unique_ptr<Node> &each : within) {
      Node *node = each.get();
      std::string path = node->name;
      while (node->within.size() == 1 &&
             node->within.front()->runs == node->runs) {
        node = node->within.front().get();
        path += "." + node->name;
      }
      rows.push_back({*node, path, depth});
      node->list(depth + 1, rows);
    }
  }
};

} // namespace

void ProfileTable::addModules() {
  const bool hasScopes =
      std::any_of(instructions.begin(), instructions.end(),
                  [](const Work &row) { return !row.scopes.empty(); });
  Node all;
  for (const Work &row : instructions) {
    Node *node = &all;
    for (const std::string &part :
         hasScopes ? moduleOfScopes(row.scopes) : moduleOfNames(row.name)) {
      node = &node->child(part);
      node->runs += row.runs;
      node->add(row);
    }
  }
  all.list(0, modules);
}

} // namespace partita::run
