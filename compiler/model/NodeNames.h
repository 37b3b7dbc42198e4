//===- NodeNames.h - Globs over node names, and nearest names ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_MODEL_NODENAMES_H
#define PARTITA_COMPILER_MODEL_NODENAMES_H

#include "dialects/nn/NodeScopes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace partita {

using nn::getNodeNames;

/// Whether an op belongs to no node, but to the loss that the compiler adds.
inline bool isOfLoss(mlir::Operation *op) {
  return llvm::equal(getNodeNames(op->getLoc()),
                     llvm::ArrayRef<llvm::StringRef>("loss"));
}

/// "; did you mean 'x'?" for the known name nearest to `name`, or "" if none is
/// near. Of several equally near names the first counts.
std::string didYouMean(llvm::StringRef name,
                       llvm::ArrayRef<llvm::StringRef> known);

/// A glob that matches exactly `name`.
std::string escapeGlob(llvm::StringRef name);

/// Whether the pattern is a plain name, and if so the name without escapes.
std::optional<std::string> getPlainName(llvm::StringRef pattern);

/// Globs for the names of each list. The glob of a name is the shortest
/// `prefix*` that matches several names and only names of the same list. If
/// there is none, it is the escaped name. The lists must be disjoint.
std::vector<std::vector<std::string>>
compactNames(const std::vector<std::vector<std::string>> &lists);

} // namespace partita

#endif // PARTITA_COMPILER_MODEL_NODENAMES_H
