//===- NodeList.h - A row for each node of a model --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `partita-compile --list-nodes` prints these rows: the nodes as the model has
// them, and what became of each.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_NODELIST_H
#define PARTITA_COMPILER_PIPELINE_NODELIST_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace partita::pipeline {

/// How often a node is computed.
enum class NodeUse {
  micro_batch, ///< in every micro-batch
  load,        ///< once, when the model is loaded: it depends on weights alone
  folded       ///< never: it is a constant, or another name of a value
};

struct NodeRow {
  std::string name;
  std::string op;                   ///< ONNX operator, e.g. "MatMul"
  std::string scope;                ///< module; empty: not recorded
  std::vector<std::string> outputs; ///< e.g. "float32 [1, 128, 768]"
  int64_t flops = 0;                ///< in one micro-batch
  NodeUse use = NodeUse::folded;
  std::string block, stage; ///< empty unless in every micro-batch
  /// The predicted time in one micro-batch, in ns. Nodes that are computed
  /// together share one time. The node with the most operations has it. The
  /// other nodes name that node in `with`.
  double ns = 0;
  std::string with;
};

class NodeList {
public:
  /// The nodes of a model that was imported with ImportOptions.recordOps.
  void readModel(mlir::ModuleOp imported);
  /// Reads what was decided about the nodes. `decided` is the same model with
  /// blocks, stages and prices. Each call replaces what the last one read.
  void readDecision(mlir::ModuleOp decided);

  llvm::ArrayRef<NodeRow> getRows() const { return rows; }

  /// A table of the nodes that are not folded, in the order of the model.
  void print(llvm::raw_ostream &os) const;
  /// All nodes: {"nodes": [{"name", "op", "scope", "outputs", "flops",
  /// "computed", "block", "stage", "duration_ns", "with"}]}.
  llvm::json::Value toJson() const;

private:
  std::vector<NodeRow> rows;
};

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_NODELIST_H
