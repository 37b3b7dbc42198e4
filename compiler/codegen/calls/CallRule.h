//===- CallRule.h - How an op becomes a call's root -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CALLS_CALLRULE_H
#define PARTITA_COMPILER_CODEGEN_CALLS_CALLRULE_H

#include "compiler/codegen/Backend.h"

namespace partita::codegen {

class CallMatcher;

struct CallRule {
  /// Whether the op may be the root of such a call.
  bool (*isRoot)(mlir::Operation *op);

  /// Whether the library takes an operand, or the result, of this type.
  bool (*takes)(mlir::Operation *root, mlir::Value value);

  /// Fills in the kind of the call, its operands and their views. Returns false
  /// if the library cannot compute the op.
  bool (*match)(CallMatcher &call, mlir::Operation *root);

  /// The work of the call, in terms of the tables that are measured on a
  /// machine. Null for calls that are not measured. `lanes`: floats in a
  /// vector.
  CallWork (*getWork)(mlir::Operation *root, analysis::Rates &rates,
                      int64_t lanes) = nullptr;

  bool onlyByLibrary = false; ///< no kernel can compute the op
  bool accumulates = false;   ///< see CallTuning::accumulates
  bool counts32 = true;       ///< a dimension must fit 32 bits
};

/// What is asked of a library while a call is put together.
struct CallLibrary {
  /// The rule of the op, or null.
  const CallRule *(*getRule)(mlir::Operation *op);
  /// Whether the library computes the call with its epilogue. The rule of its
  /// root has filled it in.
  bool (*computes)(const CallMatcher &call);
};

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CALLS_CALLRULE_H
