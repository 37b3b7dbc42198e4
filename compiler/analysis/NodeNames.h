//===- NodeNames.h - The ONNX nodes of an op ------------------ -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_ANALYSIS_NODENAMES_H
#define PARTITA_COMPILER_ANALYSIS_NODENAMES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace partita::analysis {

/// The names of the ONNX nodes in a location, in order. A FusedLoc has one for
/// each of its leaves.
llvm::SmallVector<llvm::StringRef, 2> getNodeNames(mlir::Location loc);

} // namespace partita::analysis

#endif // PARTITA_COMPILER_ANALYSIS_NODENAMES_H
