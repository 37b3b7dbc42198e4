//===- MadeUpInputs.h - Samples for whoever has none ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_FEED_MADEUPINPUTS_H
#define PARTITA_RUNTIME_FEED_MADEUPINPUTS_H

#include "runtime/feed/Model.h"
#include "runtime/io/Tensor.h"

#include <optional>

namespace partita::feed {

/// One entry for each of Model.inputs; empty: not given.
using InputTensors = std::vector<std::optional<runtime::Tensor>>;

/// Fills what is missing with made-up samples, `micro_batches` of them: floats
/// of moderate size, integers 0 and 1 (which index anything). The same on
/// every process and every machine.
runtime::Status makeUpMissing(const Model &model, int micro_batches,
                              InputTensors &inputs);

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_MADEUPINPUTS_H
