//===- Inputs.h - A tensor for every input ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_INPUTS_H
#define PARTITA_TOOLS_PARTITA_RUN_INPUTS_H

#include "Model.h"

#include "runtime/io/Tensor.h"

#include <optional>

namespace partita::run {

/// One entry for each of Model.inputs; empty: not given.
using InputTensors = std::vector<std::optional<runtime::Tensor>>;

/// Reads the files of --input ("name=file" or "file"). An unknown name is
/// answered with the nearest known one.
runtime::Expected<InputTensors>
readInputs(const Model &model, const std::vector<std::string> &arguments);

/// An error that lists the inputs for which there is nothing.
runtime::Status checkComplete(const Model &model, const InputTensors &inputs);

/// Fills what is missing with made-up samples, `micro_batches` of them: floats
/// of moderate size, integers 0 and 1 (which index anything). The same on
/// every process and every machine.
runtime::Status makeUpMissing(const Model &model, int micro_batches,
                              InputTensors &inputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_INPUTS_H
