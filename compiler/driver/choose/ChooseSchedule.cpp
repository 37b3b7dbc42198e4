//===- ChooseSchedule.cpp - The fastest schedule that fits ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/choose/ChooseSchedule.h"

#include "compiler/model/Decision.h"

using namespace mlir;

namespace partita::driver {
namespace {

using pipeline::TriedPlan;

/// Its predicted time is that of a micro-batch, because schedules differ in how
/// many a step has if nobody says.
double getTime(const TriedPlan &tried) {
  return static_cast<double>(tried.stepNs) /
         static_cast<double>(std::max<int64_t>(tried.microBatches, 1));
}

/// Plans copies of one model.
class ScheduleTries {
public:
  ScheduleTries(ModuleOp whole, const CompileOptions &options,
                Partition partition)
      : whole(whole), options(getTriedOptions(options)), partition(partition) {}

  /// `memoryTry`: see --dist-assign-stages.
  TriedPlan run(StringRef name, int memoryTry) {
    TriedPlan tried;
    tried.schedule = name.str();
    OwningOpRef<ModuleOp> module = cast<ModuleOp>(whole->clone());
    ScopedDiagnosticHandler keep(
        whole.getContext(), [&](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
              tried.error.empty())
            tried.error = diagnostic.str();
        });
    PartitionOptions again = options;
    again.schedule = tried.schedule;
    again.memoryTry = memoryTry;
    if (failed(partition(*module, again, EmitKind::plan, /*isAdvice=*/true)))
      return tried;
    pipeline::describePlan(*module, tried);
    return tried;
  }

private:
  ModuleOp whole;
  const PartitionOptions options;
  Partition partition;
};

/// With other stages, as long as it is not slower than `best`.
void retry(ScheduleTries &tries, TriedPlan &tried, const TriedPlan *best) {
  for (int number = 1; number <= kLastMemoryTry && !tried.fits; ++number) {
    if (best && getTime(*best) <= getTime(tried))
      return;
    TriedPlan other = tries.run(tried.schedule, number);
    if (other.error.empty() &&
        (other.fits || other.peakBytes < tried.peakBytes))
      tried = std::move(other);
  }
}

} // namespace

std::vector<TriedPlan> chooseSchedule(ModuleOp whole,
                                      const CompileOptions &options,
                                      Partition partition) {
  ScheduleTries tries(whole, options, partition);
  std::vector<TriedPlan> all;
  for (const schedule::ScheduleKind *kind : schedule::getScheduleKinds())
    if (options.learns() || !kind->isForTraining)
      all.push_back(tries.run(kind->name, 0));
  // What could not be planned comes last, and of equal ones that which holds
  // less.
  llvm::stable_sort(all, [](const auto &a, const auto &b) {
    return std::tuple(!a.error.empty(), getTime(a), a.peakBytes) <
           std::tuple(!b.error.empty(), getTime(b), b.peakBytes);
  });
  TriedPlan *best = nullptr;
  for (TriedPlan &tried : all) {
    if (!tried.error.empty())
      break;
    retry(tries, tried, best);
    if (tried.fits && (!best || getTime(tried) < getTime(*best)))
      best = &tried;
  }
  if (!best)
    best = &*std::min_element(
        all.begin(), all.end(), [](const auto &a, const auto &b) {
          return std::tuple(!a.error.empty(), a.peakBytes) <
                 std::tuple(!b.error.empty(), b.peakBytes);
        });
  const auto place = all.begin() + (best - all.data());
  std::rotate(all.begin(), place, place + 1);
  all.front().isTaken = true;
  return all;
}

} // namespace partita::driver
