//===- CallRule.h - How an op becomes a call's root -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each rule has a file in this folder, and a line in
// runtime/device/cpu/onednn/rules/Calls.def that names it.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLRULE_H
#define PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLRULE_H

#include "compiler/codegen/calls/CallMatcher.h"

namespace partita::codegen::onednn {

/// Whether the element type is f32. Most calls of the library compute in it.
bool isF32(mlir::Value value);

/// What a rule takes that takes f32 alone.
bool takesF32(mlir::Operation *root, mlir::Value value);

/// The rule of the op, or null.
const CallRule *getRule(mlir::Operation *op);

/// Rounds `count` up to whole vectors, to at least one vector.
double roundToLanes(double count, int64_t lanes);

/// Whether the view is dense and row-major in the order of its own dimensions.
/// The library is slow if the input and the result of an image op have
/// different orders of dimensions in memory.
bool isDense(const StridedView &view);

/// A first addition of a tensor that lies as the result does becomes a sum
/// upon the result's bytes.
void takeSum(CallMatcher &call);

#define PARTITA_CALL(kind, name) extern const CallRule k##name##Rule;
#include "runtime/device/cpu/onednn/rules/Calls.def"
#undef PARTITA_CALL

} // namespace partita::codegen::onednn

#endif // PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLRULE_H
