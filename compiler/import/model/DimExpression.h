//===- DimExpression.h - Dimensions that depend on others -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters name a dimension that depends on others by how it does:
// "past_sequence_length + sequence_length", "2*batch", "(height - 1)//2 + 1".
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MODEL_DIMEXPRESSION_H
#define PARTITA_COMPILER_IMPORT_MODEL_DIMEXPRESSION_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace partita::import {

/// The size of a name: of one that is not known, nothing.
using FindSize =
    llvm::function_ref<std::optional<int64_t>(llvm::StringRef name)>;

/// The names in an expression of + - * / // % and parentheses, of names and
/// numbers, in their order; none if `text` is no such expression, or a name.
llvm::SmallVector<llvm::StringRef> findDimNames(llvm::StringRef text);

/// The value of such an expression. Nothing if it is none, if a size is not
/// known, or if the value is no size: it is negative or too large, or a
/// division by / is not exact.
std::optional<int64_t> evaluateDim(llvm::StringRef text, FindSize find);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MODEL_DIMEXPRESSION_H
