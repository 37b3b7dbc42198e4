//===- Train.h - partita-run --train ----------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_TRAIN_TRAIN_H
#define PARTITA_TOOLS_PARTITA_RUN_TRAIN_TRAIN_H

#include "tools/partita-run/Options.h"

namespace partita::run {

/// Trains the artifact as the options say. Returns the exit status.
int runTraining(const Options &options);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_TRAIN_TRAIN_H
