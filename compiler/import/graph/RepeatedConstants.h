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

/// Some exporters write a constant twice under one name. If several
/// initializers or `Constant` nodes define a name with the same bytes, this
/// keeps the first and emits a remark. It looks at the graph, at the bodies of
/// functions and at graphs in attributes. Emits an error if the bytes differ.
llvm::LogicalResult mergeRepeatedConstants(ModelFile &file, mlir::Location loc);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPH_REPEATEDCONSTANTS_H
