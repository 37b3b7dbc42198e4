//===- Decision.cpp - Attributes that carry the partition's decision ------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/Decision.h"

#include "compiler/pipeline/NodeNames.h"
#include "compiler/schedule/OrderFile.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace partita::pipeline {

std::string describeUnknownSchedule(StringRef name) {
  SmallVector<StringRef> known;
  for (const schedule::ScheduleKind *kind : schedule::getScheduleKinds())
    known.push_back(kind->name);
  return "unknown schedule '" + name.str() + "' (" + llvm::join(known, ", ") +
         ")" + didYouMean(name, known);
}

const schedule::ScheduleKind *getScheduleKind(Operation *function) {
  if (function->hasAttr(kOrdersAttr))
    return &schedule::kFromFile;
  StringRef name = getString(function, dist::kScheduleAttr, "");
  const schedule::ScheduleKind *kind = schedule::findSchedule(name);
  if (!kind)
    function->emitError() << describeUnknownSchedule(name);
  return kind;
}

} // namespace partita::pipeline
