//===- Inputs.h - A tensor for every input ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_INPUTS_H
#define PARTITA_TOOLS_PARTITA_RUN_INPUTS_H

#include "runtime/feed/MadeUpInputs.h"

#include <string>
#include <vector>

namespace partita::run {

using namespace feed;

/// Reads the files of --input ("name=file" or "file"). One file without a name
/// is for the input that no other file is for. The error for an unknown name
/// suggests the nearest known one.
runtime::Expected<InputTensors>
readInputs(const Model &model, const std::vector<std::string> &arguments);

/// Fails, with a list of names, if inputs have no tensor.
runtime::Status checkComplete(const Model &model, const InputTensors &inputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_INPUTS_H
