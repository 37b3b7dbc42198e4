//===- SampleProof.h - Whether a run may split a model's inputs -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Along a dimension of size 1 everything seems independent: the mean over one
// sample is the sample. So a model that is for any number of samples is
// imported once more for a few of them, and the proof is about that. It is
// imported for another number, too: the same ops on the same numbers must
// compute it, or its numbers depend on how many samples there are.
//
// Where the model itself says how many samples there are, it is no model for
// another number. Then a proof about the shapes that it has is enough.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_SAMPLEPROOF_H
#define PARTITA_COMPILER_DRIVER_SAMPLEPROOF_H

#include "compiler/import/graph/Import.h"

namespace partita::driver {

/// Proves that samples along the arguments' `nn.batch_axis` are independent,
/// and writes the axes of the results. Without proof a remark names the first
/// op that combines them, and the module gets `nn.mixes`. A model with ops that
/// cross replicas stays as it is: its statistics are those of whole
/// micro-batches.
void proveSampleAxes(mlir::ModuleOp module,
                     const import::ImportOptions &options);

/// Why a model does not compute each sample by itself, from all of its inputs
/// with a dimension 0 to all outputs, along dimension 0, and for each of some
/// numbers of samples; "" if it does.
std::string findMixing(mlir::ModuleOp module,
                       const import::ImportOptions &options,
                       llvm::ArrayRef<int64_t> counts);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_SAMPLEPROOF_H
