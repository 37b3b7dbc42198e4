//===- CostModels.cpp - Predicted times of each device --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/CostModels.h"

#include "compiler/codegen/Backend.h"
#include "compiler/cost/CostKinds.h"
#include "compiler/model/Decision.h"
#include "compiler/model/DeviceMesh.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/support/Try.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace partita {

StringRef getTargetAt(func::FuncOp function, int64_t place) {
  auto targets = function->getAttrOfType<ArrayAttr>(kTargetsAttr);
  if (!targets || targets.empty())
    return codegen::getTarget(function);
  const auto last = static_cast<int64_t>(targets.size()) - 1;
  return cast<StringAttr>(targets[std::min(place, last)]).getValue();
}

int64_t countFlops(ArrayRef<Operation *> ops) {
  int64_t flops = 0;
  for (Operation *op : ops)
    if (auto costed = dyn_cast<nn::CostOpInterface>(op))
      flops += costed.getCost().flops;
  return flops;
}

//===----------------------------------------------------------------------===//
// Made once
//===----------------------------------------------------------------------===//

namespace {

/// The machine files that were read in a context, and what was made of them.
class CostCache : public DialectInterface::Base<CostCache> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CostCache)

  explicit CostCache(Dialect *dialect) : Base(dialect) {}

  static CostCache &of(MLIRContext *context) {
    Dialect *dialect = context->getOrLoadDialect<dist::DistDialect>();
    if (auto *known = dialect->getRegisteredInterface<CostCache>())
      return *known;
    dialect->addInterface(std::make_unique<CostCache>(dialect));
    return *dialect->getRegisteredInterface<CostCache>();
  }

  llvm::StringMap<std::shared_ptr<const MachineFile>> files;
  llvm::StringMap<std::unique_ptr<const CostModels>> models;
};

} // namespace

FailureOr<std::unique_ptr<const CostModel>>
makeCostModel(Location loc, StringRef path, int64_t devices, int64_t threads,
              StringRef target) {
  auto [kind, architecture] = codegen::splitTarget(target);
  const codegen::Backend *backend = codegen::findBackend(kind);
  if (!backend)
    return emitError(loc) << "there are no devices of '" << target << "'";
  std::shared_ptr<const MachineFile> file;
  if (!path.empty()) {
    auto &known = CostCache::of(loc.getContext()).files[path];
    if (!known) {
      llvm::Expected<MachineFile> read = MachineFile::read(path);
      if (!read)
        return emitError(loc) << llvm::toString(read.takeError());
      known = std::make_shared<const MachineFile>(std::move(*read));
    }
    file = known;
  }
  if (std::optional<codegen::DeviceSpeeds> speeds =
          backend->getDeviceSpeeds(architecture))
    return makeDeviceCosts(*backend, std::move(*speeds), file.get(), kind,
                           architecture);
  return makeProcessorCosts(*backend, std::move(file), devices, threads);
}

FailureOr<const CostModels *> CostModels::get(func::FuncOp function) {
  const int64_t places = getInteger(function, kDeviceCountAttr, 1);
  return make(
      function, DeviceMesh(function, places).getSize(),
      getInteger(function->getParentOfType<ModuleOp>(), kThreadsAttr, 0));
}

FailureOr<const CostModels *> CostModels::getAlone(func::FuncOp function) {
  FailureOr<const CostModels *> all = get(function);
  return failed(all) ? all : make(function, 1, (*all)->getThreads());
}

FailureOr<const CostModels *>
CostModels::make(func::FuncOp function, int64_t devices, int64_t threads) {
  const StringRef path =
      getString(function->getParentOfType<ModuleOp>(), kMachineAttr, "");
  auto targets = function->getAttrOfType<ArrayAttr>(kTargetsAttr);
  const int64_t places = targets ? static_cast<int64_t>(targets.size()) : 1;
  std::string key =
      (path + "\n" + Twine(threads) + "\n" + Twine(devices)).str();
  for (int64_t place = 0; place < places; ++place)
    key += "\n" + getTargetAt(function, place).str();
  auto &known = CostCache::of(function.getContext()).models[key];
  if (known)
    return known.get();
  auto all = std::make_unique<CostModels>();
  SmallVector<StringRef> made;
  for (int64_t place = 0; place < places; ++place) {
    const StringRef target = getTargetAt(function, place);
    const size_t index = llvm::find(made, target) - made.begin();
    all->indices.push_back(index);
    if (index < made.size())
      continue;
    made.push_back(target);
    all->models.push_back(PARTITA_TRY(
        makeCostModel(function->getLoc(), path, devices, threads, target)));
  }
  known = std::move(all);
  return known.get();
}

//===----------------------------------------------------------------------===//
// All kinds of devices
//===----------------------------------------------------------------------===//

size_t CostModels::getIndex(int64_t place) const {
  const auto last = static_cast<int64_t>(indices.size()) - 1;
  return indices[std::min(place, last)];
}

std::string CostModels::getName() const {
  if (models.size() == 1)
    return models.front()->getName().str();
  SmallVector<std::string> names;
  for (const auto &model : models)
    if (std::string name =
            model->getName().empty() ? "a processor" : model->getName().str();
        !llvm::is_contained(names, name))
      names.push_back(name);
  return llvm::join(names, " and ");
}

int64_t CostModels::getThreads() const {
  int64_t threads = 0;
  for (const auto &model : models)
    threads = std::max(threads, model->getThreads());
  return threads;
}

StringRef CostModels::getId() const {
  return models.size() == 1 ? models.front()->getId() : StringRef();
}

} // namespace partita
