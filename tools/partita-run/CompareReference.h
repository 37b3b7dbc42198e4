//===- CompareReference.h - The first tensor that differs -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_COMPAREREFERENCE_H
#define PARTITA_TOOLS_PARTITA_RUN_COMPAREREFERENCE_H

#include "tools/partita-run/Run.h"

namespace partita::run {

/// Compares outputs with the tensors of the same name in --compare, inner
/// values in the order of the model and then its own outputs, and prints the
/// first that differs, with its node; with --json all of them. A tensor may lie in another order of
/// dimensions than in the model (images channels-last), or in another shape:
/// then it is compared in whichever order of the reference agrees best. False
/// if one differs; an error if the file cannot be read or names none of them.
runtime::Expected<bool>
compareWithReference(const Options &options, const Model &model,
                     const std::vector<runtime::Tensor> &outputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_COMPAREREFERENCE_H
