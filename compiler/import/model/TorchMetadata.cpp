//===- TorchMetadata.cpp - What PyTorch's exporter notes ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/TorchMetadata.h"

#include "dialects/nn/CheckAttr.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"

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

std::optional<int64_t> getPaddingIndex(const onnx::NodeProto &node) {
  for (const onnx::StringStringEntryProto &entry : node.metadata_props()) {
    if (entry.key() != "pkg.torch.onnx.fx_node")
      continue;
    StringRef arguments =
        StringRef(entry.value())
            .split("torch.ops.aten.embedding.default](args = (")
            .second.split(')')
            .first;
    SmallVector<StringRef> list;
    arguments.split(list, ", ");
    int64_t index = 0;
    if (list.size() >= 3 && !list[2].getAsInteger(10, index) && index >= 0)
      return index;
  }
  return std::nullopt;
}

StringMap<StringRef> getTorchTensors(const onnx::GraphProto &graph) {
  StringMap<StringRef> tensors;
  for (const onnx::ValueInfoProto &value : graph.value_info())
    for (const onnx::StringStringEntryProto &entry : value.metadata_props()) {
      if (entry.key() != "pkg.torch.export.graph_signature.InputSpec.kind")
        continue;
      const auto kind = llvm::StringSwitch<StringRef>(entry.value())
                            .Case("PARAMETER", nn::kDeclaredParameter)
                            .Case("BUFFER", "buffer")
                            .Case("CONSTANT_TENSOR", "constant")
                            .Default("");
      if (!kind.empty())
        tensors[value.name()] = kind;
    }
  return tensors;
}

} // namespace partita::import
