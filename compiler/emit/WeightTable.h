//===- WeightTable.h - The weights that a plan uses -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_EMIT_WEIGHTTABLE_H
#define PARTITA_COMPILER_EMIT_WEIGHTTABLE_H

#include "dialects/nn/NNDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace partita::emit {

/// A weight that one or several plans use, and the place of its bytes.
struct WeightEntry {
  nn::WeightOp op;
  std::string file;   ///< empty: inside the artifact
  int64_t offset = 0; ///< in the weights section, or in `file`
  int64_t bytes = 0;
  uint64_t hash = 0;
};

/// The weights that slots of the plans refer to, each once, in the order of the
/// modules.
struct WeightTable {
  std::vector<WeightEntry> entries;
  std::vector<llvm::StringMap<int>> indexOf; ///< by plan, then by symbol
  int64_t sectionBytes = 0;                  ///< size of the weights section
};

/// Collects the weights of plans. Their modules have one MLIR context. With
/// `beside`, a weight of a file stays in that file, and its path is made
/// relative to the folder of `artifact`. All other weights get a place in the
/// weights section. Hashes are not set.
mlir::FailureOr<WeightTable>
collectWeights(llvm::ArrayRef<mlir::ModuleOp> modules, bool beside,
               llvm::StringRef artifact);

/// The path of a file, from the folder of `artifact` on.
mlir::FailureOr<std::string> getRelativePath(mlir::Operation *op,
                                             llvm::StringRef path,
                                             llvm::StringRef artifact);

/// Passes a weight's bytes to `sink`, in pieces and in order. A file is mapped,
/// not read whole. Fails with a diagnostic if the file does not have the bytes.
mlir::LogicalResult
readWeight(nn::WeightOp weight,
           llvm::function_ref<mlir::LogicalResult(llvm::StringRef)> sink);

} // namespace partita::emit

#endif // PARTITA_COMPILER_EMIT_WEIGHTTABLE_H
