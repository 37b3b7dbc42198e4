//===- PlanWriter.h - The plan dialect as FlatBuffers -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_EMIT_PLANWRITER_H
#define PARTITA_COMPILER_EMIT_PLANWRITER_H

#include "compiler/emit/WeightTable.h"

#include "flatbuffers/flatbuffers.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::emit {

/// The file of a model that is trained.
struct TrainedModel {
  std::string given; ///< as the compiler opened it; empty: there is none
  std::string path;  ///< relative to the folder of the artifact
  int64_t bytes = 0;
  uint64_t hash = 0; ///< XXH3
};

/// Writes the plan of a module. `weights` lists the weights of all plans, in
/// the order of `Plan.weights`, with their hashes and places. `plan` is the
/// index of this plan.
mlir::FailureOr<flatbuffers::DetachedBuffer>
writePlan(mlir::ModuleOp module, const WeightTable &weights, size_t plan,
          const TrainedModel &trained);

} // namespace partita::emit

#endif // PARTITA_COMPILER_EMIT_PLANWRITER_H
