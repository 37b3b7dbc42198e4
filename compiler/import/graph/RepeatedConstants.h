//===- RepeatedConstants.h - Names that constants define twice --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_GRAPH_REPEATEDCONSTANTS_H
#define PARTITA_COMPILER_IMPORT_GRAPH_REPEATEDCONSTANTS_H

#include "compiler/import/model/ModelFile.h"

namespace partita::import {

/// Some exporters write a constant twice under one name. Of initializers and
/// `Constant` nodes of a graph, of a function's body or of a graph in an
/// attribute that define a name with the same bytes, keeps the first, with a
/// remark. Emits an error if the bytes differ.
llvm::LogicalResult mergeRepeatedConstants(ModelFile &file, mlir::Location loc);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPH_REPEATEDCONSTANTS_H
