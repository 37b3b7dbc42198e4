//===- MadeUpInputs.h - Samples for runs without data -----------*- C++ -*-===//
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

/// One entry for each of Model.inputs. An empty one was not given.
using InputTensors = std::vector<std::optional<runtime::Tensor>>;

/// Fills the missing inputs with `micro_batches` micro-batches of made-up
/// samples: floats of moderate size, and integers 0 and 1 (which can index
/// anything). They are the same in every process and on every machine.
runtime::Status makeUpMissing(const Model &model, int micro_batches,
                              InputTensors &inputs);

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_MADEUPINPUTS_H
