//===- CheckOptions.cpp - What options and a model may not be -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/CheckOptions.h"

#include "compiler/analysis/Samples.h"
#include "compiler/codegen/Backend.h"
#include "compiler/cost/CostModel.h"
#include "compiler/model/PartitionFile.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/support/Try.h"
#include "runtime/abi/Text.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace partita::driver {

FailureOr<PartitionFacts> readPartitionFacts(Location loc,
                                             const PartitionOptions &options) {
  PartitionFile file = PARTITA_TRY(readPartitionFile(loc, options.file));
  PartitionFacts facts;
  if (options.replicas > 0) {
    facts.replicas = options.replicas;
  } else {
    for (const FileAxis &axis : file.mesh)
      if (axis.name.text == dist::kReplicaAxis)
        facts.replicas = axis.size;
  }
  auto addTarget = [&](const std::string &target) {
    if (!llvm::is_contained(facts.targets, target))
      facts.targets.push_back(target);
  };
  for (const FileText &target : file.targets)
    addTarget(target.text);
  if (facts.targets.empty())
    llvm::for_each(options.targets, addTarget);
  facts.schedule = options.schedule.empty() && file.schedule
                       ? file.schedule->text
                       : options.schedule;
  facts.zero = options.zero == -1 && file.zero ? static_cast<int>(*file.zero)
                                               : options.zero;
  return facts;
}

/// The targets of the devices: those that were said of each, or that of all.
static std::vector<std::string> getTargets(const CompileOptions &options,
                                           ArrayRef<std::string> targets) {
  if (!targets.empty())
    return targets.vec();
  return {options.target.empty() ? "cpu" : options.target};
}

LogicalResult checkTargets(Location loc, const CompileOptions &options,
                           ArrayRef<std::string> targets) {
  llvm::StringMap<StringRef> known;
  for (const std::string &target : targets) {
    auto [kind, architecture] = codegen::splitTarget(target);
    auto [it, isNew] = known.try_emplace(kind, target);
    if (!isNew)
      return emitError(loc)
             << "the devices are of '" << it->second << "' and of '" << target
             << "': an artifact has code for one architecture of a kind";
  }
  for (const std::string &target : getTargets(options, targets)) {
    auto [kind, architecture] = codegen::splitTarget(target);
    const codegen::Backend *backend = codegen::findBackend(kind);
    std::string error = backend ? backend->checkArchitecture(architecture)
                                : "there is no such kind of device";
    if (!error.empty())
      return emitError(loc)
             << (targets.empty() ? "--target " + target : "'" + target + "'")
             << ": " << error;
  }
  return success();
}

FailureOr<int64_t> checkMachine(Location loc, const CompileOptions &options,
                                ArrayRef<std::string> targets) {
  int64_t cores = 0;
  for (const std::string &target : getTargets(options, targets)) {
    auto machine = PARTITA_TRY(
        makeCostModel(loc, options.partition.machine, 1, 0, target));
    cores = std::max(cores, machine->getCores());
    if (machine->lacksDevice())
      emitRemark(loc)
          << "the machine file '" << options.partition.machine
          << "' says nothing of devices of " << target
          << ": times are predicted for " << machine->getName()
          << ", by its data sheet; measure them with partita-run --calibrate "
             "on a machine that has some";
  }
  return cores;
}

LogicalResult checkPrecision(Location loc, const CompileOptions &options,
                             ArrayRef<std::string> targets) {
  if (options.mixedPrecision.empty())
    return success();
  if (options.mixedPrecision == "f16" && !options.autodiff.loss.empty())
    return emitError(loc) << "--mixed-precision f16: small derivatives would "
                             "be 0 in f16; give --mixed-precision bf16";
  if (options.mixedPrecision == "bf16")
    return success();
  for (const std::string &target : getTargets(options, targets))
    if (!codegen::findBackend(codegen::splitTarget(target).first)
             ->hasCpuLevels())
      return success();
  if (options.autodiff.results != autodiff::LossResults::evaluation)
    emitRemark(loc) << "--mixed-precision " << options.mixedPrecision
                    << " changes nothing: CPUs multiply bf16 or f32";
  return success();
}

LogicalResult checkTraining(Location loc, const CompileOptions &options,
                            ArrayRef<std::string> targets) {
  if (options.sumsMicroBatches())
    for (const auto &[input, axis] : options.import.samples)
      if (axis != 0)
        return emitError(loc)
               << "--samples " << input
               << ": dimension 0 of every input counts samples where a model "
                  "is trained, or gradients are summed over micro-batches";
  if (options.train.optimizerOnHost &&
      options.autodiff.results == autodiff::LossResults::parts) {
    bool any = false;
    for (const std::string &target : getTargets(options, targets))
      if (const codegen::Backend *backend =
              codegen::findBackend(codegen::splitTarget(target).first))
        any |= backend->reachesHost();
    if (!any)
      emitRemark(loc) << "--optimizer-state host changes nothing: the memory "
                         "of CPU devices is that of the host";
  }
  return success();
}

LogicalResult checkScales(ModuleOp module, const CompileOptions &options) {
  std::vector<std::string> names;
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto name = function.getArgAttrOfType<StringAttr>(i, nn::kNameAttr))
        names.push_back("'" + name.str() + "'");
  for (const std::string &scaled : options.train.scaledInputs)
    if (!llvm::is_contained(names, "'" + scaled + "'"))
      return emitError(UnknownLoc::get(module.getContext()))
             << "`scale` names '" << scaled
             << "', which is no input of the model; its inputs are "
             << abi::namesText(names);
  return success();
}

LogicalResult checkMask(ModuleOp module, const CompileOptions &options) {
  auto mixes = module->getAttrOfType<StringAttr>(analysis::kMixesAttr);
  if (!mixes || options.mask.empty())
    return success();
  return emitError(UnknownLoc::get(module.getContext()))
         << "--mask " << options.mask << ": samples cannot be padded, because "
         << mixes.getValue()
         << "; leave out --mask, and compile the model for each size";
}

} // namespace partita::driver
