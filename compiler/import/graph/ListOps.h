//===- ListOps.h - Which ONNX ops can be imported ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_GRAPH_LISTOPS_H
#define PARTITA_COMPILER_IMPORT_GRAPH_LISTOPS_H

#include "llvm/Support/raw_ostream.h"

namespace partita::import {

/// Lists the ops that ONNX defines today, with the versions (the opsets in
/// which an op, or its meaning, changed) that are imported by a function of
/// ours, that are expanded by the function body in ONNX's schema, and that are
/// not supported. A table, or with `json` one array of objects.
void listOps(llvm::raw_ostream &out, bool json);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPH_LISTOPS_H
