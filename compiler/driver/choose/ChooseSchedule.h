//===- ChooseSchedule.h - The fastest schedule that fits --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_DRIVER_CHOOSE_CHOOSESCHEDULE_H
#define PARTITA_COMPILER_DRIVER_CHOOSE_CHOOSESCHEDULE_H

#include "compiler/driver/choose/MemoryFit.h"

namespace partita::driver {

/// Plans a model, whole or with cut tensors, by every schedule, and takes the
/// one with the shortest predicted time for a micro-batch whose devices have
/// room. If none has room, it takes the one that needs least, so that the error
/// of its plan says what would fit. Returns all, that one first. Emits nothing.
std::vector<pipeline::TriedPlan> chooseSchedule(mlir::ModuleOp whole,
                                                const CompileOptions &options,
                                                Partition partition);

} // namespace partita::driver

#endif // PARTITA_COMPILER_DRIVER_CHOOSE_CHOOSESCHEDULE_H
