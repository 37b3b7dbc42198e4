//===- ScheduleFile.cpp - A schedule that a person wrote ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/partition/ScheduleFile.h"

#include "compiler/analysis/Samples.h"
#include "compiler/files/ReadFile.h"
#include "compiler/model/Decision.h"
#include "compiler/model/PartitionFile.h"
#include "dialects/support/Try.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace partita::pipeline {
namespace {

FailureOr<schedule::OrderFile> parseText(MLIRContext *context, StringRef path,
                                         StringRef text) {
  schedule::OrderFile file;
  if (std::optional<schedule::OrderError> error =
          schedule::parseOrders({text.data(), text.size()}, file))
    return emitError(
               FileLineColLoc::get(context, path, error->line, error->column))
           << error->text;
  return file;
}

} // namespace

bool isScheduleFile(StringRef schedule) {
  return !schedule.empty() && schedule != kFormerSequential &&
         schedule != kAutoSchedule && !schedule::findSchedule(schedule) &&
         llvm::sys::fs::exists(schedule) &&
         !llvm::sys::fs::is_directory(schedule);
}

std::optional<int64_t> countMicroBatches(StringRef schedule) {
  if (!isScheduleFile(schedule))
    return std::nullopt;
  auto buffer = files::readFile(schedule, files::kMostTextBytes);
  if (!buffer) {
    llvm::consumeError(buffer.takeError());
    return std::nullopt;
  }
  const StringRef text = (*buffer)->getBuffer();
  schedule::OrderFile file;
  if (schedule::parseOrders({text.data(), text.size()}, file))
    return std::nullopt;
  return file.microBatches;
}

FailureOr<schedule::OrderFile> readScheduleFile(func::FuncOp function,
                                                StringRef path) {
  auto buffer = files::readFile(path, files::kMostTextBytes);
  if (!buffer)
    return emitError(UnknownLoc::get(function.getContext()))
           << "cannot read the schedule '" << path
           << "': " << llvm::toString(buffer.takeError());
  const StringRef text = (*buffer)->getBuffer();
  auto file = PARTITA_TRY(parseText(function.getContext(), path, text));
  Builder builder(function.getContext());
  function->setAttr(dist::kScheduleAttr, builder.getStringAttr(path));
  function->setAttr(kOrdersAttr, builder.getStringAttr(text));
  if (!file.leftOut.empty())
    emitRemark(getScheduleFileLoc(function))
        << llvm::join(file.leftOut, ", ")
        << ": left out; parameters are whole, and updates follow the "
           "last micro-batch";
  return file;
}

FailureOr<NamedSchedule> getSchedule(func::FuncOp function) {
  NamedSchedule named;
  if (auto text = function->getAttrOfType<StringAttr>(kOrdersAttr))
    named.file = PARTITA_TRY(parseText(
        function.getContext(), getString(function, dist::kScheduleAttr, ""),
        text.getValue()));
  named.kind = PARTITA_TRY(getScheduleKind(function));
  return named;
}

int64_t getMicroBatches(func::FuncOp function,
                        const schedule::ScheduleKind &kind, int64_t stages,
                        int64_t devices) {
  const bool isWhole = analysis::isWhole(function->getParentOfType<ModuleOp>());
  return getInteger(function, dist::kMicroBatchesAttr,
                    isWhole ? 1
                            : kind.microBatches(static_cast<int>(stages),
                                                static_cast<int>(devices)));
}

Location getScheduleFileLoc(func::FuncOp function) {
  return FileLineColLoc::get(function.getContext(),
                             getString(function, dist::kScheduleAttr, ""), 1,
                             1);
}

} // namespace partita::pipeline
