//===- ModuleScope.cpp - The module that made a node ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/ModuleScope.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

using namespace llvm;

namespace partita::import {

/// The strings of a list such as ['a', "b's"]; none if it is anything else. Of
/// escapes a path has at most \\, \' and \".
static std::optional<SmallVector<std::string>> readPythonList(StringRef text) {
  text = text.trim();
  if (!text.consume_front("[") || !text.consume_back("]"))
    return std::nullopt;
  SmallVector<std::string> items;
  for (text = text.ltrim(); !text.empty(); text = text.ltrim()) {
    const char quote = text.front();
    if (quote != '\'' && quote != '"')
      return std::nullopt;
    std::string item;
    size_t at = 1;
    for (; at < text.size() && text[at] != quote; ++at) {
      if (text[at] == '\\' && ++at == text.size())
        return std::nullopt;
      item += text[at];
    }
    if (at >= text.size())
      return std::nullopt;
    items.push_back(std::move(item));
    text = text.drop_front(at + 1).ltrim();
    if (!text.empty() && !text.consume_front(","))
      return std::nullopt;
  }
  return items;
}

std::string getModuleScope(const onnx::NodeProto &node, StringRef around) {
  for (const onnx::StringStringEntryProto &entry : node.metadata_props()) {
    if (entry.key() != "pkg.torch.onnx.name_scopes")
      continue;
    std::optional<SmallVector<std::string>> path =
        readPythonList(entry.value());
    if (path && path->size() >= 2 && !(*path)[path->size() - 2].empty())
      return (*path)[path->size() - 2];
  }
  return around.str();
}

} // namespace partita::import
