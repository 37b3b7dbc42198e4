//===- ModelNodes.h - What the nodes of a model are called ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A person names a node by its own name, or by its module: the whole module, or
// the node within it. A node "node_Add_3" of the scope "encoder.layer.0.output"
// has the names
//
//   node_Add_3
//   encoder, encoder.layer, encoder.layer.0, encoder.layer.0.output
//   encoder.layer.0.output.node_Add_3
//
// so that "encoder.layer.[0-3]" names all nodes of four modules, and
// "encoder.layer.0.*" all of one.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_MODEL_MODELNODES_H
#define PARTITA_COMPILER_MODEL_MODELNODES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/GlobPattern.h"

#include <vector>

namespace partita {

class ModelNodes {
public:
  /// The nodes of the model, those that have folded away too; then what else
  /// the locations of the function's ops name. The module must outlive them.
  explicit ModelNodes(mlir::func::FuncOp function);

  /// In the order in which the model computes them.
  llvm::ArrayRef<llvm::StringRef> getNames() const { return names; }
  /// The scope of a node; "" if it has none.
  llvm::StringRef getScope(llvm::StringRef name) const;
  /// Everything that nodes may be called, each once: nodes, then modules.
  llvm::ArrayRef<llvm::StringRef> getKeys() const { return keys; }

  /// The nodes that may be called so, ascending.
  llvm::ArrayRef<int> find(llvm::StringRef key) const;
  std::vector<int> match(const llvm::GlobPattern &glob) const;

  /// How an error begins that is about a name: "no node", or "no node or
  /// module" if the model has modules.
  llvm::StringRef none() const {
    return hasScopes ? "no node or module" : "no node";
  }

private:
  void add(llvm::StringRef name, llvm::StringRef scope);
  void call(llvm::StringRef key, int node);

  std::vector<llvm::StringRef> names, scopes, keys;
  llvm::StringMap<std::vector<int>> called; ///< by key
  llvm::StringMap<int> indices;             ///< by name
  bool hasScopes = false;
};

} // namespace partita

#endif // PARTITA_COMPILER_MODEL_MODELNODES_H
