//===- PlanTable.h - The plan for people and programs -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_PLANTABLE_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_PLANTABLE_H

#include "runtime/feed/Model.h"

namespace partita::run {

using namespace feed;

/// E.g. " for AMD EPYC with 2 cores a device". Empty unless times are predicted
/// for a certain machine.
std::string predictedFor(const abi::Plan &plan);

/// A table of the stages, with what the compiler decided and predicts. Then the
/// inputs, the outputs and the values that cross devices.
std::string planText(const Model &model);

/// The same as one JSON object. The plan that learns, if there is one, is the
/// object "training" in it, and those for steps of `several` sequences the list
/// "of_several_sequences".
std::string planJson(const Model &model, const Model *training,
                     const std::vector<const Model *> &several);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_PLANTABLE_H
