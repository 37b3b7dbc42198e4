//===- Sameness.h - What all processes must be told -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_TRAIN_SAMENESS_H
#define PARTITA_TOOLS_PARTITA_RUN_TRAIN_SAMENESS_H

#include "runtime/data/Loader.h"
#include "tools/partita-run/Options.h"

#include <string>
#include <vector>

namespace partita::run {

/// The flags on which the numbers of a training depend, and what its processes
/// do together, as text. Paths may differ: only whether they are given counts.
std::string flagsText(const Options &options);

/// How many samples each input has, of which type and shape, how they are
/// scaled, and what stands in some of them, as text.
runtime::Expected<std::string>
samplesText(const std::vector<data::LoaderInput> &inputs);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_TRAIN_SAMENESS_H
