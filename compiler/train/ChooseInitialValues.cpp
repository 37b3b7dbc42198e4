//===- ChooseInitialValues.cpp - What training begins with ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/files/Globs.h"
#include "compiler/train/InitSpec.h"
#include "compiler/train/Passes.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/plan/PlanDialect.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;

namespace partita::train {

#define GEN_PASS_DEF_CHOOSEINITIALVALUESPASS
#include "compiler/train/Passes.h.inc"

namespace {

struct Entry {
  InitSpec spec;
  files::Globs globs;
};

struct ChooseInitialValuesPass
    : impl::ChooseInitialValuesPassBase<ChooseInitialValuesPass> {
  using ChooseInitialValuesPassBase::ChooseInitialValuesPassBase;

  LogicalResult choose(nn::WeightOp weight, std::vector<Entry> &entries) {
    const Entry *chosen = nullptr;
    for (Entry &entry : entries)
      if (entry.globs.match(weight.getOrigin()))
        chosen = &entry; // the last that matches
    if (!chosen)
      return success();
    auto standard = weight->getAttrOfType<StringAttr>(nn::kDefaultInitialAttr);
    auto fans = weight->getAttrOfType<DenseI64ArrayAttr>(nn::kFansAttr);
    llvm::Expected<std::string> values =
        resolveInit(chosen->spec.values, standard ? standard.getValue() : "",
                    fans ? fans.asArrayRef() : ArrayRef<int64_t>());
    if (!values)
      return emitError(UnknownLoc::get(&getContext()))
             << "--init " << chosen->spec.glob << "=" << chosen->spec.values
             << ": '" << weight.getOrigin()
             << "': " << llvm::toString(values.takeError());
    weight->setAttr(nn::kInitialAttr, StringAttr::get(&getContext(), *values));
    return success();
  }

  /// What states are drawn from, for those who run the artifact.
  void describe() {
    auto described =
        getOperation()->getAttrOfType<StringAttr>(plan::kTrainingAttr);
    llvm::json::Object initial;
    for (auto weight : getOperation().getOps<nn::WeightOp>())
      if (auto values = weight->getAttrOfType<StringAttr>(nn::kInitialAttr))
        initial[weight.getOrigin()] = values.getValue();
    if (initial.empty() || !described)
      return;
    auto all = llvm::json::parse(described.getValue());
    if (!all)
      return llvm::consumeError(all.takeError());
    (*all->getAsObject())["initial"] = std::move(initial);
    getOperation()->setAttr(
        plan::kTrainingAttr,
        StringAttr::get(&getContext(), llvm::formatv("{0}", *all).str()));
  }

  void runOnOperation() override {
    const Location loc = UnknownLoc::get(&getContext());
    std::vector<Entry> entries;
    for (const std::string &text : *init) {
      llvm::Expected<InitSpec> spec = parseInit(text);
      if (!spec) {
        emitError(loc) << "--init: " << llvm::toString(spec.takeError());
        return signalPassFailure();
      }
      entries.push_back({*spec, files::Globs("--init", {spec->glob})});
      if (failed(entries.back().globs.compile(loc)))
        return signalPassFailure();
    }
    for (auto weight : getOperation().getOps<nn::WeightOp>()) {
      // What the optimizer keeps begins with its own values.
      if (weight.getState() && !weight->hasAttr(nn::kRoleAttr) &&
          failed(choose(weight, entries)))
        return signalPassFailure();
    }
    for (Entry &entry : entries)
      if (failed(entry.globs.checkUse(loc)))
        return signalPassFailure();
    describe();
  }
};

} // namespace
} // namespace partita::train
