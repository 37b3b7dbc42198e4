//===- NodeNumbers.h - Which node of a file is which ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_ANNOTATIONS_NODENUMBERS_H
#define PARTITA_COMPILER_IMPORT_ANNOTATIONS_NODENUMBERS_H

#include "onnx/onnx_pb.h"

#include "llvm/ADT/DenseMap.h"

namespace partita::import {

/// The nodes of a model, numbered as they follow one another in its file. A
/// node comes before those of the graphs in its attributes. Nodes of the graph
/// have the numbers 0, 1, ..., those of functions -1, -2, ....
using NodeNumbers = llvm::DenseMap<const onnx::NodeProto *, int64_t>;

NodeNumbers numberNodes(const onnx::ModelProto &model);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_ANNOTATIONS_NODENUMBERS_H
