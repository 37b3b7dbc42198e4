//===- PlaceModels.cpp - Predicted times of each device -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/cost/PlaceModels.h"

#include "compiler/codegen/Backend.h"
#include "compiler/pipeline/Decision.h"
#include "compiler/pipeline/DeviceMesh.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace partita::pipeline {

StringRef getTargetAt(func::FuncOp function, int64_t place) {
  auto targets = function->getAttrOfType<ArrayAttr>(kTargetsAttr);
  if (!targets || targets.empty())
    return codegen::getTarget(function);
  const auto last = static_cast<int64_t>(targets.size()) - 1;
  return cast<StringAttr>(targets[std::min(place, last)]).getValue();
}

FailureOr<PlaceModels> PlaceModels::load(func::FuncOp function, StringRef path,
                                         int64_t threads) {
  PlaceModels all;
  const int64_t devices =
      DeviceMesh(function, getInteger(function, kDeviceCountAttr, 1)).getSize();
  auto targets = function->getAttrOfType<ArrayAttr>(kTargetsAttr);
  const int64_t places = targets ? static_cast<int64_t>(targets.size()) : 1;
  SmallVector<StringRef> known;
  for (int64_t place = 0; place < places; ++place) {
    const StringRef target = getTargetAt(function, place);
    const size_t index = llvm::find(known, target) - known.begin();
    all.indices.push_back(index);
    if (index < known.size())
      continue;
    known.push_back(target);
    FailureOr<MachineModel> model =
        MachineModel::load(function->getLoc(), path, devices, threads, target);
    if (failed(model))
      return failure();
    all.models.push_back(std::move(*model));
  }
  return all;
}

size_t PlaceModels::getIndex(int64_t place) const {
  const auto last = static_cast<int64_t>(indices.size()) - 1;
  return indices[std::min(place, last)];
}

std::string PlaceModels::getName() const {
  if (models.size() == 1)
    return models.front().getName().str();
  SmallVector<std::string> names;
  for (const MachineModel &model : models)
    if (std::string name =
            model.getName().empty() ? "a processor" : model.getName().str();
        !llvm::is_contained(names, name))
      names.push_back(name);
  return llvm::join(names, " and ");
}

int64_t PlaceModels::getThreads() const {
  int64_t threads = 0;
  for (const MachineModel &model : models)
    threads = std::max(threads, model.getThreads());
  return threads;
}

StringRef PlaceModels::getId() const {
  return models.size() == 1 ? models.front().getId() : StringRef();
}

} // namespace partita::pipeline
