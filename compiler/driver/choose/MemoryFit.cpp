//===- MemoryFit.cpp - Stages that devices have room for ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/choose/MemoryFit.h"

#include "compiler/model/Decision.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/plan/DeviceMemory.h"
#include "dialects/plan/PlanDialect.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace partita::driver {
namespace {

using pipeline::TriedPlan;

constexpr int kMostDevicesTried = 64;

/// Tries on copies of one model.
class Tries {
public:
  Tries(ModuleOp whole, Partition partition)
      : whole(whole), partition(partition) {}

  /// Makes `module` the result. Remarks are kept for later.
  LogicalResult run(const PartitionOptions &options, EmitKind until,
                    bool isAdvice = false) {
    remarks.clear();
    error.clear();
    module = cast<ModuleOp>(whole->clone());
    ScopedDiagnosticHandler keep(
        whole.getContext(), [&](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
            if (error.empty())
              error = diagnostic.str();
            return failure();
          }
          remarks.push_back(std::move(diagnostic));
          return success();
        });
    return partition(*module, options, until, isAdvice);
  }

  void emitRemarks() {
    for (Diagnostic &remark : remarks)
      whole.getContext()->getDiagEngine().emit(std::move(remark));
  }

  OwningOpRef<ModuleOp> module;
  std::string error; ///< the first of the last try

private:
  ModuleOp whole;
  Partition partition;
  std::vector<Diagnostic> remarks;
};

/// What would have room, found by planning it.
std::string findWhatFits(Tries tries, ModuleOp plan, PartitionOptions tried,
                         const std::vector<std::string> &targets,
                         const CompileOptions &options) {
  // More devices are more places along the axis "stage".
  const int places =
      static_cast<int>(llvm::range_size(plan.getOps<plan::ProgramOp>()));
  const int each = static_cast<int>(std::max<size_t>(
      llvm::range_size(plan.getOps<plan::DeviceOp>()) / places, 1));
  // What cannot be planned at all is no advice, and no error of the person.
  ScopedDiagnosticHandler quiet(plan.getContext(), [](Diagnostic &) {});
  auto fits = [&](const PartitionOptions &other) {
    return succeeded(tries.run(other, EmitKind::plan, /*isAdvice=*/true)) &&
           pipeline::fitsMemory(*tries.module);
  };
  SmallVector<std::string> found;
  PartitionOptions more = tried;
  int most = places;
  // Of devices of several kinds nobody knows which there are more of.
  const SmallVector<int> counts =
      targets.size() > 1 ? SmallVector<int>{}
                         : SmallVector<int>{places + 1, places + 2, 2 * places,
                                            4 * places, 8 * places};
  for (int count : counts) {
    if (count <= most || count > kMostDevicesTried)
      continue;
    more.devices = most = count;
    if (fits(more)) {
      const std::string all = std::to_string(count * each);
      found.push_back(all + " devices (--devices " + all + ")");
      break;
    }
  }
  // What gradients need again.
  for (const char *word : {"standard", "full"}) {
    PartitionOptions again = tried;
    again.recompute = word;
    if (options.learns() && tried.recompute != word &&
        tried.recompute != "full" && fits(again)) {
      found.push_back(std::string("computing again what gradients need "
                                  "(--recompute ") +
                      word + ")");
      break;
    }
  }
  PartitionOptions fewer = tried;
  fewer.microBatches = 1;
  if (fits(fewer))
    found.push_back("one micro-batch in flight (--micro-batches 1)");
  if (options.learns())
    if (const auto level =
            findZeroThatFits(*plan.getContext(), options, targets)) {
      const std::string number = std::to_string(*level);
      found.push_back("replicas that share more (--zero " + number + ")");
    }
  if (!found.empty())
    return "what would fit: " + llvm::join(found, ", or ");
  return "neither " + std::to_string(most * each) +
         " devices nor one micro-batch in flight would fit: compile it for "
         "smaller micro-batches (--dim, --shape), or give it more memory";
}

/// Its predicted time is that of a micro-batch, because schedules differ in how
/// many a step has if nobody says.
double getTime(const TriedPlan &tried) {
  return static_cast<double>(tried.stepNs) /
         static_cast<double>(std::max<int64_t>(tried.microBatches, 1));
}

/// `memoryTry`: see --dist-assign-stages.
TriedPlan trySchedule(Tries &tries, PartitionOptions options, StringRef name,
                      int memoryTry) {
  TriedPlan tried;
  tried.schedule = options.schedule = name.str();
  options.memoryTry = memoryTry;
  if (failed(tries.run(options, EmitKind::plan, /*isAdvice=*/true)))
    tried.error = tries.error;
  else
    pipeline::describePlan(*tries.module, tried);
  return tried;
}

/// With other stages, as long as it is not slower than `best`.
void retry(Tries &tries, const PartitionOptions &options, TriedPlan &tried,
           const TriedPlan *best) {
  for (int number = 1; number <= kLastMemoryTry && !tried.fits; ++number) {
    if (best && getTime(*best) <= getTime(tried))
      return;
    TriedPlan other = trySchedule(tries, options, tried.schedule, number);
    if (other.error.empty() &&
        (other.fits || other.peakBytes < tried.peakBytes))
      tried = std::move(other);
  }
}

/// The choices of a person as tries on copies of the cut model take them.
PartitionOptions getTriedOptions(const CompileOptions &options) {
  PartitionOptions tried = options.partition;
  tried.devices = 0; // the mesh says it
  tried.wholeNodes = !options.emitOnnx.empty();
  tried.emitFile.clear();
  return tried;
}

} // namespace

LogicalResult partitionToFit(OwningOpRef<ModuleOp> &module,
                             const CompileOptions &options,
                             const std::vector<std::string> &targets,
                             Partition partition) {
  PartitionOptions given = getTriedOptions(options);
  given.emitFile = options.partition.emitFile;
  // The file may say how much memory there is.
  if (given.memory <= 0 && given.file.empty())
    return partition(*module, given, options.kind, /*isAdvice=*/false);
  Tries tries(*module, partition);
  PartitionOptions tried = getTriedOptions(options);
  LogicalResult result = success();
  while (true) {
    result = tries.run(tried, EmitKind::plan);
    if (failed(result) || pipeline::fitsMemory(*tries.module) ||
        tried.memoryTry == kLastMemoryTry)
      break;
    ++tried.memoryTry;
  }
  tries.emitRemarks();
  if (failed(result))
    return failure();
  OwningOpRef<ModuleOp> plan = std::move(tries.module);
  if (!options.isTry && !pipeline::fitsMemory(*plan)) {
    PassManager pm(plan->getContext(), ModuleOp::getOperationName());
    pm.addPass(pipeline::createPlanCheckMemoryPass({findWhatFits(
        Tries(*module, partition), *plan, tried, targets, options)}));
    return pm.run(*plan);
  }
  const bool stopsEarly = options.kind == EmitKind::decision ||
                          options.kind == EmitKind::stages ||
                          options.kind == EmitKind::clusters;
  if (!given.emitFile.empty() || stopsEarly) {
    tried.emitFile = given.emitFile;
    result = tries.run(tried, stopsEarly ? options.kind : EmitKind::stages);
  }
  module = std::move(stopsEarly ? tries.module : plan);
  return result;
}

std::vector<TriedPlan> chooseSchedule(ModuleOp whole,
                                      const CompileOptions &options,
                                      Partition partition) {
  ScopedDiagnosticHandler quiet(whole.getContext(), [](Diagnostic &) {});
  Tries tries(whole, partition);
  const PartitionOptions given = getTriedOptions(options);
  std::vector<TriedPlan> all;
  for (const schedule::ScheduleKind *kind : schedule::getScheduleKinds())
    if (options.learns() || !kind->isForTraining)
      all.push_back(trySchedule(tries, given, kind->name, 0));
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
    retry(tries, given, tried, best);
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
