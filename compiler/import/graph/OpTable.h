//===- OpTable.h - Which function imports which ONNX op ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// To support another ONNX op, write a function `LogicalResult
// importFoo(NodeImport &n)` in the file of its family and add it to the rows at
// the end of that file. An op without a row is expanded by the function body in
// its ONNX schema, if it has one.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_GRAPH_OPTABLE_H
#define PARTITA_COMPILER_IMPORT_GRAPH_OPTABLE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <vector>

namespace onnx {
class OpSchema;
}

namespace partita::import {

class NodeImport;

using ImportFunction = llvm::LogicalResult (*)(NodeImport &);

/// The domain of ops that cross replicas. In a model they may have functions as
/// bodies, for other runtimes; these do not count here.
inline constexpr llvm::StringLiteral kReplicaDomain = "ai.partita";

/// The domain of the ops that ONNX Runtime adds to ONNX.
inline constexpr llvm::StringLiteral kMicrosoftDomain = "com.microsoft";

/// The domain of gradients, and of ops that update tensors with them.
inline constexpr llvm::StringLiteral kTrainingDomain =
    "ai.onnx.preview.training";

/// The versions of an op of its domain that a function imports. A
/// version is the opset in which the op, or its meaning, last changed. A
/// version newer than `last` is not imported until somebody has read the
/// change.
struct OpRow {
  llvm::StringRef op;
  int first;
  int last;
  ImportFunction function;
};

/// An op of version 1 of a domain that is not ONNX's. In the lists of inputs
/// and outputs, `?` stands behind what may be omitted, and `*` behind the last
/// one if there may be several of it.
struct ForeignOp {
  llvm::StringLiteral name, inputs, outputs;
  /// As "name: type = default", where the default may be left out. The types
  /// are int, float, string, ints, floats, strings and graph, which must be
  /// given.
  llvm::StringLiteral attributes;
  ImportFunction function;
};

/// Lets ONNX's library know the schemas of a domain's ops. Returns their rows.
std::vector<OpRow>
registerOps(llvm::StringRef domain,
            llvm::ArrayRef<llvm::ArrayRef<ForeignOp>> families);

/// How an op is imported, by its schema for the opset in force.
struct OpImport {
  /// Null: ONNX does not define the op, or no longer does.
  const onnx::OpSchema *schema = nullptr;
  ImportFunction function = nullptr; ///< null: there is no row for it
  bool expandable = false;           ///< the schema has a function body
};

/// Looks up the version of an op that is in force in `opset` of `domain`.
OpImport findOp(llvm::StringRef domain, llvm::StringRef opType, int64_t opset);

/// Lists the ops that ONNX defines today, with the versions (the opsets in
/// which an op, or its meaning, changed) that are imported by a function of
/// ours, that are expanded by the function body in ONNX's schema, and that are
/// not supported. A table, or with `json` one array of objects.
void listOps(llvm::raw_ostream &out, bool json);

/// Returns the rows of a family of ops.
using Family = llvm::ArrayRef<OpRow>();

// ONNX's own ops.
Family getActivationOps, getCastOps, getConstantOps, getContractionOps,
    getControlFlowOps, getConvTransposeOps, getEinsumOps, getElementwiseOps,
    getFourierOps, getNormalizationOps, getPatternOps, getPoolingOps,
    getQuantizeOps, getRandomOps, getRankingOps, getRearrangeOps,
    getRecurrentOps, getReductionOps, getResizeOps, getSamplingOps,
    getScatterOps, getSequenceOps, getShapeOps, getSliceOps;

/// The ops of `kTrainingDomain`.
Family getOptimizerOps, getGradientOps;

/// The ops of `kReplicaDomain`, and those of `kMicrosoftDomain` (see
/// microsoft/Microsoft.h). They let ONNX's library know the schemas.
Family getReplicaOps, getMicrosoftOps;

/// Ops that ONNX no longer defines. They have no schema, so their functions
/// must expect any attributes. Their versions mean nothing.
Family getRetiredOps;

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_GRAPH_OPTABLE_H
