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

/// Compares outputs with the tensors of the same name in --compare: first inner
/// values in the order of the model, then the model's own outputs. Prints the
/// first tensor that differs, with its node; with --json all tensors. A
/// reference may have another order of dimensions than the model (images
/// channels-last), or another shape. It is then compared in the order that
/// agrees best. Returns false if a tensor differs. Fails if the file cannot be
/// read or names none of the outputs.
runtime::Expected<bool>
compareWithReference(const Options &options, const Model &model,
                     const std::vector<runtime::Tensor> &outputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_COMPAREREFERENCE_H
