//===- Programs.h - The programs that follow from orders --------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_SCHEDULE_PROGRAMS_H
#define PARTITA_COMPILER_SCHEDULE_PROGRAMS_H

#include "compiler/schedule/Schedule.h"

namespace partita::schedule {

/// Fills in the programs and channels of a schedule whose transfers are
/// decided.
void buildPrograms(const ScheduleProblem &problem, const UnitOrders &orders,
                   Schedule &schedule);

} // namespace partita::schedule

#endif // PARTITA_COMPILER_SCHEDULE_PROGRAMS_H
