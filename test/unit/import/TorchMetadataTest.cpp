//===- TorchMetadataTest.cpp - What PyTorch's exporter notes --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/TorchMetadata.h"

#include <gtest/gtest.h>

using partita::import::getModuleScope;
using partita::import::getPaddingIndex;
using partita::import::getTorchTensors;

namespace {

onnx::NodeProto nodeOf(const std::string &scopes) {
  onnx::NodeProto node;
  auto add = [&](const char *key, const std::string &value) {
    onnx::StringStringEntryProto *entry = node.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("namespace", ": Model/encoder: Encoder/add: aten.add.Tensor");
  add("pkg.torch.onnx.name_scopes", scopes);
  return node;
}

std::string scopeOf(const std::string &scopes) {
  return getModuleScope(nodeOf(scopes), "around");
}

TEST(ModuleScope, TheLastButTheNodeItself) {
  EXPECT_EQ(scopeOf("['', 'network', 'network.0', 'linear']"), "network.0");
  EXPECT_EQ(scopeOf("['', 'linear']"), "around") << "the model itself";
  EXPECT_EQ(scopeOf("['a','b']"), "a");
  EXPECT_EQ(scopeOf(R"(['', "it's", 'x'])"), "it's");
  EXPECT_EQ(scopeOf(R"(['', 'a\\b\'c', 'x'])"), R"(a\b'c)");
}

TEST(ModuleScope, WhatIsNoListSaysNothing) {
  for (const char *wrong :
       {"", "[]", "['a']", "'a', 'b'", "['a', 'b'", "['a' 'b']", "[a, b]",
        "['a', 'b]", "['a', 'b\\']", "['a', 1]", "[", "]"})
    EXPECT_EQ(scopeOf(wrong), "around") << wrong;
  EXPECT_EQ(getModuleScope(onnx::NodeProto(), ""), "");
}

TEST(PaddingIndex, ThirdArgumentOfAnEmbedding) {
  auto indexOf = [](const std::string &call) {
    onnx::NodeProto node;
    onnx::StringStringEntryProto *entry = node.add_metadata_props();
    entry->set_key("pkg.torch.onnx.fx_node");
    entry->set_value("%e : [num_users=1] = call_function[target=" + call);
    return getPaddingIndex(node);
  };
  const std::string embedding = "torch.ops.aten.embedding.default](args = (";
  EXPECT_EQ(indexOf(embedding + "%w, %i, 7), kwargs = {})"), 7);
  EXPECT_EQ(indexOf(embedding + "%w, %i, 0, True), kwargs = {})"), 0);
  for (const char *none :
       {"%w, %i), kwargs = {})", "%w, %i, -1), kwargs = {})", "%w, %i, 1e3)",
        "%w, %i, %n)", "%w, %i, 99999999999999999999)", "%w, %i, ", ""})
    EXPECT_EQ(indexOf(embedding + none), std::nullopt) << none;
  EXPECT_EQ(indexOf("torch.ops.aten.gather.default](args = (%x, %y, 1))"),
            std::nullopt);
  EXPECT_EQ(getPaddingIndex(onnx::NodeProto()), std::nullopt);
}

TEST(TorchTensors, KindsOfInitializers) {
  onnx::GraphProto graph;
  for (auto [name, kind] : {std::pair("w", "PARAMETER"),
                            {"b", "BUFFER"},
                            {"c", "CONSTANT_TENSOR"},
                            {"x", "USER_INPUT"},
                            {"o", "CUSTOM_OBJ"}}) {
    onnx::ValueInfoProto *value = graph.add_value_info();
    value->set_name(name);
    onnx::StringStringEntryProto *entry = value->add_metadata_props();
    entry->set_key("pkg.torch.export.graph_signature.InputSpec.persistent");
    entry->set_value("None");
    entry = value->add_metadata_props();
    entry->set_key("pkg.torch.export.graph_signature.InputSpec.kind");
    entry->set_value(kind);
  }
  graph.add_value_info()->set_name("inner");
  auto tensors = getTorchTensors(graph);
  EXPECT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors.at("w"), "parameter");
  EXPECT_EQ(tensors.at("b"), "buffer");
  EXPECT_EQ(tensors.at("c"), "constant");
}

} // namespace
