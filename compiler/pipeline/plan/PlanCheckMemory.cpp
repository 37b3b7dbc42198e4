//===- PlanCheckMemory.cpp - Does every device have room for its part? ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a device has not, the error says what takes the room: the action at
// which most bytes of the arena are needed, and the largest tensors then.
//
//===----------------------------------------------------------------------===//

#include "compiler/model/Decision.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/plan/ArenaWalk.h"
#include "compiler/pipeline/plan/DeviceMemory.h"
#include "runtime/abi/Text.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace partita::pipeline {

#define GEN_PASS_DEF_PLANCHECKMEMORYPASS
#include "compiler/pipeline/Passes.h.inc"

namespace {

struct PlanCheckMemoryPass
    : impl::PlanCheckMemoryPassBase<PlanCheckMemoryPass> {
  using PlanCheckMemoryPassBase::PlanCheckMemoryPassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    ModuleOp module = getOperation();
    if (fitsMemory(module))
      return;
    report(findFullest(module), getMemory(module));
    signalPassFailure();
  }

private:
  static constexpr size_t kMostShown = 4;

  void report(plan::ProgramOp program, int64_t memory) {
    Location loc = getOperation().getLoc();
    plan::DeviceOp device = plan::getFirstDevice(program);
    int64_t parameters = program.getParameterBytes().value_or(0) +
                         program.getPackedBytes().value_or(0);
    InFlightDiagnostic error =
        emitError(loc)
        << "device " << (device ? device.getDeviceName() : program.getSymName())
        << " needs " << abi::bytesText(getPlannedPeak(program)) << " ("
        << getPlannedPeak(program) << " bytes), but has room for "
        << abi::bytesText(memory) << ": weights and constants "
        << abi::bytesText(parameters) << ", arena "
        << abi::bytesText(program.getArenaBytes().value_or(0))
        << ", the library's scratch "
        << abi::bytesText(program.getWorkspaceBytes().value_or(0));
    ArenaWalk walk(program);
    Moment peak = walk.findPeak();
    if (peak.bytes > 0) {
      std::vector<std::string> list;
      for (const LiveTensor *tensor : walk.getTensors(peak.time))
        list.push_back("'" + walk.nameOf(*tensor) + "' " +
                       std::to_string(tensor->bytes) + " bytes");
      error.attachNote(loc)
          << "its arena is fullest, with " << abi::bytesText(peak.bytes)
          << " in use, at " << walk.nameOf(peak)
          << "; the largest tensors then: " << shorten(list);
    }
    if (std::vector<std::string> list = getWeights(program); !list.empty())
      error.attachNote(loc) << "its largest weights: " << shorten(list);
    if (!advice.empty())
      error.attachNote(loc) << std::string(advice);
  }

  static std::string shorten(std::vector<std::string> list) {
    size_t more = list.size() - std::min(list.size(), kMostShown);
    list.resize(list.size() - more);
    return llvm::join(list, ", ") +
           (more ? ", and " + std::to_string(more) + " more" : "");
  }

  /// Weights of a program, the largest first.
  static std::vector<std::string> getWeights(plan::ProgramOp program) {
    std::vector<std::pair<int64_t, std::string>> weights;
    for (auto slot : program.getBody().front().getOps<plan::SlotOp>())
      if (slot.hasWeight())
        weights.emplace_back(slot.getByteSize(), slot.getWeight()->str());
    llvm::stable_sort(weights,
                      [](auto &a, auto &b) { return a.first > b.first; });
    std::vector<std::string> list;
    for (const auto &[bytes, name] : weights)
      list.push_back("'" + name + "' " + std::to_string(bytes) + " bytes");
    return list;
  }
};

} // namespace

plan::ProgramOp findFullest(ModuleOp module) {
  plan::ProgramOp fullest;
  for (auto program : module.getOps<plan::ProgramOp>())
    if (!fullest || getPlannedPeak(program) > getPlannedPeak(fullest))
      fullest = program;
  return fullest;
}

int64_t getMemory(ModuleOp module) {
  for (auto model : module.getOps<plan::ModelOp>())
    return getInteger(model, kMemoryAttr, 0);
  return 0;
}

bool fitsMemory(ModuleOp module) {
  const int64_t memory = getMemory(module);
  plan::ProgramOp fullest = findFullest(module);
  return memory <= 0 || !fullest || getPlannedPeak(fullest) <= memory;
}

} // namespace partita::pipeline
