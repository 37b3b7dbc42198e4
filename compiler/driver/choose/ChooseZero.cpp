//===- ChooseZero.cpp - What replicas share, chosen -----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/choose/MemoryFit.h"

#include "compiler/driver/CheckOptions.h"
#include "compiler/driver/PlanCompilation.h"
#include "compiler/model/Decision.h"

using namespace mlir;

namespace partita::driver {
namespace {

using pipeline::TriedPlan;

TriedPlan tryLevel(MLIRContext &context, const CompileOptions &learns,
                   const std::vector<std::string> &targets, int level) {
  TriedPlan tried;
  tried.zero = level;
  ScopedDiagnosticHandler keep(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        tried.error.empty())
      tried.error = diagnostic.str();
  });
  CompileOptions options = learns;
  options.partition.zero = level;
  options.partition.emitFile.clear();
  options.kind = EmitKind::plan;
  options.isTry = true;
  options.explain = false;
  options.dumpPhases.clear();
  options.emitOnnx.clear();
  options.nodes = nullptr;
  options.parameters = nullptr;
  options.progress = nullptr;
  PlanCompilation compilation(context, std::move(options), targets, 0, 1);
  std::vector<pipeline::PlanSummary> summaries;
  if (failed(compilation.run(llvm::nulls(), summaries)) || summaries.empty())
    return tried;
  pipeline::describePlan(compilation.take().module, tried);
  return tried;
}

} // namespace

ZeroChoice chooseZero(MLIRContext &context, const CompileOptions &learns,
                      const std::vector<std::string> &targets) {
  ZeroChoice choice;
  for (int level = 0; level <= kMostZero; ++level) {
    choice.tried.push_back(tryLevel(context, learns, targets, level));
    // The other levels would not do better.
    if (level == 0 && (!choice.tried.front().error.empty() ||
                       choice.tried.front().replicas < 2))
      break;
  }
  // What does not fit goes by what it needs.
  auto best = llvm::min_element(
      choice.tried, [](const TriedPlan &a, const TriedPlan &b) {
        auto rank = [](const TriedPlan &each) {
          return std::tuple(!each.error.empty(), !each.fits,
                            each.fits ? each.stepNs : each.peakBytes,
                            each.peakBytes);
        };
        return rank(a) < rank(b);
      });
  best->isTaken = true;
  choice.level = best->zero;
  if (choice.tried.size() == 1)
    choice.tried.clear();
  return choice;
}

std::optional<int> findZeroThatFits(MLIRContext &context,
                                    const CompileOptions &learns,
                                    const std::vector<std::string> &targets) {
  const FailureOr<PartitionFacts> now =
      readPartitionFacts(UnknownLoc::get(&context), learns.partition);
  if (failed(now) || now->zero == kAutoZero)
    return std::nullopt;
  for (int level = std::max(now->zero, 0) + 1; level <= kMostZero; ++level) {
    const TriedPlan tried = tryLevel(context, learns, targets, level);
    if (!tried.error.empty() || tried.replicas < 2)
      return std::nullopt;
    if (tried.fits)
      return level;
  }
  return std::nullopt;
}

} // namespace partita::driver
