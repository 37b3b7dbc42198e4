//===- TensorSummary.h - Outputs in a few numbers ---------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_TENSORSUMMARY_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_TENSORSUMMARY_H

#include "runtime/io/Tensor.h"

#include <string>
#include <vector>

namespace partita::run {

/// For each tensor the name, the type, the first values, and minimum, maximum
/// and mean.
std::string summaryText(const std::vector<runtime::NamedTensor> &tensors);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_TENSORSUMMARY_H
