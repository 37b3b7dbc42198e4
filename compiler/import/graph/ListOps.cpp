//===- ListOps.cpp - Which ONNX ops can be imported -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/OpTable.h"

#include "runtime/abi/Text.h"

#include "onnx/defs/schema.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <set>

using namespace llvm;

namespace partita::import {
namespace {

/// Versions of an op, in increasing order.
struct Support {
  std::set<int> imported, expanded, unsupported;
};

} // namespace

/// By domain and name. What ONNX has withdrawn is left out.
static std::map<std::pair<std::string, std::string>, Support> collect() {
  std::map<std::pair<std::string, std::string>, Support> ops;
  (void)getReplicaOps();
  (void)getMicrosoftOps();
  for (const onnx::OpSchema &schema :
       onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    const int version = schema.since_version();
    OpImport import = findOp(schema.domain(), schema.Name(), version);
    if (!import.schema)
      continue;
    Support &op = ops[{schema.domain(), schema.Name()}];
    (import.function     ? op.imported
     : import.expandable ? op.expanded
                         : op.unsupported)
        .insert(version);
  }
  return ops;
}

static std::string joinVersions(const std::set<int> &versions) {
  return join(map_range(versions, [](int v) { return std::to_string(v); }),
              ", ");
}

void listOps(raw_ostream &out, bool json) {
  abi::Table table({"domain", "op", "imported", "expanded", "not supported"});
  json::Array array;
  for (const auto &[name, op] : collect()) {
    const std::string domain = name.first.empty() ? "ai.onnx" : name.first;
    table.add({domain, name.second, joinVersions(op.imported),
               joinVersions(op.expanded), joinVersions(op.unsupported)});
    array.push_back(json::Object{{"domain", domain},
                                 {"op", name.second},
                                 {"imported", json::Array(op.imported)},
                                 {"expanded", json::Array(op.expanded)},
                                 {"unsupported", json::Array(op.unsupported)}});
  }
  if (json)
    out << json::Value(std::move(array)) << "\n";
  else
    out << table.text();
}

} // namespace partita::import
