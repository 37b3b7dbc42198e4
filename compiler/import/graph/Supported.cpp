//===- Supported.cpp - The list of what cannot be imported ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/GraphPrep.h"
#include "compiler/import/graph/InputShapes.h"
#include "compiler/import/graph/OpTable.h"

#include "onnx/defs/schema.h"

#include "mlir/IR/Diagnostics.h"

#include <map>

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

class SupportCheck {
public:
  explicit SupportCheck(const LocalFunctions &functions)
      : functions(functions) {}

  template <typename Nodes>
  void visit(const Nodes &nodes, const Opsets &opsets, StringRef prefix) {
    for (const onnx::NodeProto &node : nodes)
      visitNode(node, opsets, prefix);
  }

  LogicalResult report(Location loc) const {
    if (unsupported.empty())
      return success();
    InFlightDiagnostic error = emitError(loc)
                               << "the model uses ops that are not supported:";
    for (const auto &[op, nodes] : unsupported) {
      error << "\n  " << op << ", " << nodes.size()
            << (nodes.size() == 1 ? " node: " : " nodes: ");
      constexpr size_t maxShown = 5;
      for (size_t i = 0; i < std::min(nodes.size(), maxShown); ++i)
        error << (i ? ", " : "") << "'" << nodes[i] << "'";
      if (nodes.size() > maxShown)
        error << ", and " << nodes.size() - maxShown << " more";
    }
    return error;
  }

private:
  void visitNode(const onnx::NodeProto &node, const Opsets &opsets,
                 StringRef prefix) {
    std::string name = (prefix + getNodeDisplayName(node)).str();
    StringRef domain = normalizeDomain(node.domain());
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        visit(attribute.g().node(), opsets, name + "/");
      for (const onnx::GraphProto &graph : attribute.graphs())
        visit(graph.node(), opsets, name + "/");
    }

    auto local =
        functions.find(getFunctionKey(domain, node.op_type(), node.overload()));
    if (local != functions.end()) {
      // Once is enough; that no function calls itself is checked on import.
      if (visited.insert(local->first()).second)
        visit(local->second->node(), getOpsets(local->second->opset_import()),
              name + "/");
      return;
    }
    auto version = opsets.find(domain);
    int64_t opset = version == opsets.end() ? 1 : version->second;
    OpImport op = findOp(domain, node.op_type(), opset);
    if (!op.function && !op.expandable) {
      std::string what = node.op_type();
      if (domain == kReplicaDomain)
        what = (domain + "." + what + suggest(what)).str();
      else if (!domain.empty())
        what = (domain + "." + what).str();
      else if (!op.schema)
        what += " (no op of opset " + std::to_string(opset) + ")";
      unsupported[what].push_back(name);
    } else if (!op.function && op.schema->HasFunction()) {
      if (!visited.insert((domain + "::" + node.op_type()).str()).second)
        return;
      const onnx::FunctionProto *body =
          op.schema->GetFunction(static_cast<int>(opset));
      if (body)
        visit(body->node(), getOpsets(body->opset_import()), name + "/");
    }
  }

  /// Of our own domain we know all ops.
  static std::string suggest(StringRef op) {
    llvm::StringSet<> known;
    for (const OpRow &row : getReplicaOps())
      known.insert(row.op);
    return suggestName(op, "its ops are", known);
  }

  const LocalFunctions &functions;
  std::map<std::string, std::vector<std::string>> unsupported;
  llvm::StringSet<> visited;
};

} // namespace

LogicalResult checkSupported(const onnx::ModelProto &model,
                             const LocalFunctions &functions, Location loc) {
  SupportCheck check(functions);
  check.visit(model.graph().node(), getOpsets(model.opset_import()), "");
  return check.report(loc);
}

} // namespace partita::import
