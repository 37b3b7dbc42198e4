//===- DistDialect.h - The dist dialect -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_DIALECTS_DIST_DISTDIALECT_H
#define PARTITA_DIALECTS_DIST_DISTDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/nn/NNDialect.h"
#include "runtime/abi/plan_generated.h"

namespace partita::dist {

/// The shape in which a collective sees a tensor: `rows` rows. In each row the
/// devices' parts, of `part` elements each, follow one another.
struct RowsAndPart {
  int64_t rows = 1, part = 1;
};

/// The rows and part of a tensor whose dimension `dim` consists of `blocks`
/// equal blocks, each of which is cut over devices. `part` is the type of one
/// device's part.
RowsAndPart getRowsAndPart(mlir::RankedTensorType part, int64_t dim,
                           int64_t blocks);

/// `parts` has one tensor for each device along its first dimension. They come
/// to stand one after another along dimension `dim` of the result.
mlir::Value joinParts(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value parts, int64_t dim);

} // namespace partita::dist

#include "dialects/dist/DistDialect.h.inc"
#include "dialects/dist/DistEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/dist/DistInterfaces.h.inc"
#include "dialects/dist/DistTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.h.inc"

namespace partita::dist {

/// Names of the dialect's discardable attributes.
inline constexpr llvm::StringLiteral kAnnotatedStagesAttr =
    "dist.annotated_stages";
inline constexpr llvm::StringLiteral kBlockAttr = "dist.block";
inline constexpr llvm::StringLiteral kStageAttr = "dist.stage";
inline constexpr llvm::StringLiteral kDevicesAttr = "dist.devices";
inline constexpr llvm::StringLiteral kMicroBatchesAttr = "dist.micro_batches";
inline constexpr llvm::StringLiteral kFullStepsAttr = "dist.full_steps";
inline constexpr llvm::StringLiteral kSequencesAttr = "dist.sequences";
inline constexpr llvm::StringLiteral kStepSequencesAttr = "dist.step_sequences";
inline constexpr llvm::StringLiteral kSumsAttr = "dist.sums";
inline constexpr llvm::StringLiteral kScheduleAttr = "dist.schedule";
inline constexpr llvm::StringLiteral kAxesAttr = "dist.axes";
inline constexpr llvm::StringLiteral kShardingAttr = "dist.sharding";
inline constexpr llvm::StringLiteral kFullMicroBatchesAttr =
    "dist.full_micro_batches";
inline constexpr llvm::StringLiteral kWholeAttr = "dist.whole";
inline constexpr llvm::StringLiteral kReproducibleAttr = "dist.reproducible";
inline constexpr llvm::StringLiteral kZeroAttr = "dist.zero";
inline constexpr llvm::StringLiteral kFusionBytesAttr = "dist.fusion_bytes";

/// The largest number of devices of a plan.
inline constexpr int64_t kMostDevices = 4096;

/// Names of axes that have a meaning; see Dist_AxisAttr.
inline constexpr llvm::StringLiteral kDataAxis = "data";
inline constexpr llvm::StringLiteral kReplicaAxis = "replica";
inline constexpr llvm::StringLiteral kStageAxis = "stage";
/// The axis that --tensor-parallel makes.
inline constexpr llvm::StringLiteral kTensorAxis = "tensor";

/// The number of devices in a group along `axes` of a model's function
/// (`dist.axes`).
int64_t getGroupSize(mlir::Operation *function, mlir::ArrayAttr axes);

/// The tensor type of a plain or placed tensor.
mlir::RankedTensorType getTensorType(mlir::Type type);

} // namespace partita::dist

#endif // PARTITA_DIALECTS_DIST_DISTDIALECT_H
