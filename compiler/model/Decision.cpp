//===- Decision.cpp - Attributes that carry the partition's decision ------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/Decision.h"

#include "compiler/model/NodeNames.h"
#include "compiler/schedule/OrderFile.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace partita {

/// `more`: names that are no schedule's.
static std::string describeUnknown(StringRef name, ArrayRef<StringRef> more) {
  SmallVector<StringRef> known;
  for (const schedule::ScheduleKind *kind : schedule::getScheduleKinds())
    known.push_back(kind->name);
  llvm::append_range(known, more);
  return "unknown schedule '" + name.str() + "' (" + llvm::join(known, ", ") +
         ")" + didYouMean(name, known);
}

std::string describeUnknownSchedule(StringRef name) {
  return describeUnknown(name, StringRef(kAutoSchedule));
}

const schedule::ScheduleKind *getScheduleKind(Operation *function) {
  if (function->hasAttr(kOrdersAttr))
    return &schedule::kFromFile;
  StringRef name = getString(function, dist::kScheduleAttr, "");
  const schedule::ScheduleKind *kind = schedule::findSchedule(name);
  if (!kind)
    function->emitError()
        << (name == kAutoSchedule
                ? "`auto` is no schedule: partita-compile makes a plan of each "
                  "and takes one; name one of them"
                : describeUnknown(name, {}));
  return kind;
}

std::string getEvaluationSchedule(Operation *function) {
  const schedule::ScheduleKind *kind =
      schedule::findSchedule(getString(function, dist::kScheduleAttr, ""));
  return std::string(
      (kind && !kind->isForTraining ? *kind : schedule::kFillDrain).name);
}

} // namespace partita
