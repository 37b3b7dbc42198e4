//===- ModuleScopeTest.cpp - The module that made a node ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/ModuleScope.h"

#include <gtest/gtest.h>

using partita::import::getModuleScope;

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

} // namespace
