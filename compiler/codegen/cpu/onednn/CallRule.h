//===- CallRule.h - How an op becomes the root of a library call -*- C++
//-*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rule a file in this folder, and a line in
// runtime/device/cpu/onednn/rules/Calls.def, which names it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLRULE_H
#define PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLRULE_H

#include "compiler/codegen/Backend.h"
#include "compiler/codegen/cpu/onednn/CallMatcher.h"

namespace partita::codegen::onednn {

/// Whether the element type is the one that the library computes most in.
bool isF32(mlir::Value value);

struct CallRule {
  /// Whether the op may be the root of such a call.
  bool (*isRoot)(mlir::Operation *op);

  /// Whether the library takes an operand, or the result, of this type.
  bool (*takes)(mlir::Operation *root, mlir::Value value);

  /// Fills in what the call is, its operands and their views; false if the
  /// library does not compute it.
  bool (*match)(CallMatcher &call, mlir::Operation *root);

  /// What the call computes in terms of what is measured of a machine; null
  /// for calls that are not measured. `lanes`: floats in a vector.
  CallWork (*getWork)(mlir::Operation *root, analysis::Rates &rates,
                      int64_t lanes) = nullptr;

  bool onlyByLibrary = false; ///< loops cannot compute the op
  bool accumulates = false;   ///< see Backend::accumulates
  bool counts32 = true;       ///< a dimension must fit 32 bits
};

/// The rule of the op, or null.
const CallRule *getRule(mlir::Operation *op);

/// As many as whole vectors hold, at least one vector.
double roundToLanes(double count, int64_t lanes);

double product(llvm::ArrayRef<int64_t> sizes);

/// Logical order [N, C, spatial..] of an image's dimensions, whose channels
/// come second, or last.
llvm::SmallVector<int64_t> getChannelsFirst(int64_t rank, bool last);

/// Whether a view is the tensor as the op itself would lay it out. The library
/// is slow where input and result of an image op lie in different orders.
bool isDense(const StridedView &view);

#define PARTITA_CALL(kind, name) extern const CallRule k##name##Rule;
#include "runtime/device/cpu/onednn/rules/Calls.def"
#undef PARTITA_CALL

} // namespace partita::codegen::onednn

#endif // PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLRULE_H
