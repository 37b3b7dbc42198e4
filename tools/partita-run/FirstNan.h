//===- FirstNan.h - Where NaN in outputs comes from -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run without NaN only pays for a look at its outputs. If they have NaN, the
// step of the first one is computed once more, in a session that looks at every
// instruction (SessionOptions.search).
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_FIRSTNAN_H
#define PARTITA_TOOLS_PARTITA_RUN_FIRSTNAN_H

#include "tools/partita-run/Run.h"

namespace partita::run {

/// Prints a remark on stderr if outputs have NaN, or if a step has met some
/// (Context.metNan): which output and sample, and the input, the parameter or
/// the op that it comes from. `outputs` are complete on process 0. All
/// processes must call this at the same point.
void remarkNan(Context &context, const InputTensors &inputs,
               const std::vector<runtime::Tensor> &outputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_FIRSTNAN_H
