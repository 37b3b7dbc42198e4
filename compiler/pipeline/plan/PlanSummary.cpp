//===- PlanSummary.cpp - A plan for people and for programs ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/plan/PlanSummary.h"

#include "compiler/model/Decision.h"
#include "compiler/pipeline/plan/DeviceMemory.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/NodeScopes.h"
#include "dialects/plan/PlanDialect.h"
#include "runtime/abi/Collectives.h"
#include "runtime/abi/PlanText.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <map>

using namespace mlir;

namespace partita::pipeline {

/// The devices that execute each program; of many, the first few.
static llvm::StringMap<std::string> nameDevices(ModuleOp module) {
  constexpr size_t kShown = 4;
  llvm::StringMap<SmallVector<StringRef>> devices;
  for (auto device : module.getOps<plan::DeviceOp>())
    devices[device.getProgram()].push_back(device.getDeviceName());
  llvm::StringMap<std::string> names;
  for (auto &entry : devices) {
    ArrayRef<StringRef> all = entry.second;
    std::string &text = names[entry.first()];
    text = llvm::join(all.take_front(kShown), ", ");
    if (all.size() > kShown)
      text += " +" + std::to_string(all.size() - kShown);
  }
  return names;
}

static std::optional<abi::MemoryRow> summarizeMemory(plan::ProgramOp program,
                                                     StringRef device) {
  auto parts =
      program->getAttrOfType<DenseI64ArrayAttr>(plan::kMemoryPartsAttr);
  if (!parts)
    return std::nullopt;
  abi::MemoryRow row;
  row.device = device.str();
  row.states = parts[0];
  row.host = parts[1];
  row.gradients = parts[2];
  row.kept = parts[3];
  row.work = parts[4];
  completeRow(row, program.getArenaBytes().value_or(0),
              program.getParameterBytes().value_or(0),
              program.getPackedBytes().value_or(0),
              program.getWorkspaceBytes().value_or(0));
  return row;
}

static int64_t getSentBytes(plan::CollectiveOp collective) {
  const int64_t bytes = plan::getByteSize(RankedTensorType::get(
      {collective.getRows(), collective.getPart()}, collective.getElement()));
  return abi::sentBytes(collective.getKind(), bytes, collective.getGroupSize());
}

/// Channels and collectives that are used once in a step of several
/// micro-batches.
static llvm::DenseSet<Attribute> findUsedOnce(ModuleOp module,
                                              int64_t microBatches) {
  llvm::DenseMap<Attribute, int64_t> uses;
  for (auto program : module.getOps<plan::ProgramOp>())
    for (Operation &op : program.getBody().front())
      if (isa<plan::SendOp, plan::StartOp>(op))
        ++uses[cast<plan::ActionOpInterface>(op).getActionSubject()];
  llvm::DenseSet<Attribute> once;
  for (const auto &[subject, count] : uses)
    if (count == 1 && microBatches > 1)
      once.insert(subject);
  return once;
}

/// Samples in a micro-batch: those of the first input that has any.
static int64_t countSamples(ModuleOp module) {
  for (auto port : module.getOps<plan::PortOp>()) {
    const int64_t axis = port.getBatchAxis();
    auto type = cast<RankedTensorType>(port.getType());
    if (port.getKind() == plan::PortKind::input && axis >= 0 &&
        axis < type.getRank() && type.getDimSize(axis) > 0)
      return type.getDimSize(axis);
  }
  return 1;
}

/// The modules of the nodes that each stage computes, by its number.
static std::map<int64_t, llvm::SetVector<StringRef>>
collectScopes(ModuleOp module) {
  std::map<int64_t, llvm::SetVector<StringRef>> scopes;
  for (auto program : module.getOps<plan::ProgramOp>())
    for (auto unit : program.getBody().front().getOps<plan::UnitOp>())
      for (Operation &op : unit.getBody().front())
        for (StringRef scope : nn::getScopes(op.getLoc()))
          scopes[unit.getStage()].insert(scope);
  return scopes;
}

std::optional<PlanSummary> summarize(ModuleOp module) {
  auto models = module.getOps<plan::ModelOp>();
  if (models.empty())
    return std::nullopt;
  plan::ModelOp model = *models.begin();
  const llvm::StringMap<std::string> deviceOf = nameDevices(module);
  PlanSummary summary;
  SmallVector<StringRef> axes;
  for (auto axis : module.getOps<plan::AxisOp>()) {
    axes.push_back(axis.getAxisName());
    if (axis.getAxisName() == dist::kDataAxis)
      summary.step.replicas = axis.getSize();
  }
  summary.model = model.getModel().str();
  abi::StepLine &step = summary.step;
  step.schedule = model.getSchedule().str();
  if (DictionaryAttr sizes = model.getDimensionsAttr())
    for (NamedAttribute dimension : sizes)
      summary.sizes +=
          (summary.sizes.empty() ? "" : ", ") + dimension.getName().str() +
          " = " +
          std::to_string(cast<IntegerAttr>(dimension.getValue()).getInt());
  step.micro_batches = model.getMicroBatches();
  step.machine = model.getMachine().value_or("").str();
  step.threads = model.getThreads();
  step.step_ns = model.getStepNs();
  step.alone_ns = model.getAloneNs();
  step.bubble = model.getBubble().convertToDouble();
  step.samples = countSamples(module);
  summary.entry = model.getEntry().value_or("").str();
  // Dimension 0 of the inputs of a model that is trained counts samples.
  if (!summary.entry.empty())
    for (auto port : module.getOps<plan::PortOp>())
      if (auto type = cast<RankedTensorType>(port.getType());
          port.getKind() == plan::PortKind::input && !port.getPerStep() &&
          type.getRank() > 0)
        step.samples = type.getDimSize(0);
  if (auto said = model->getAttrOfType<DictionaryAttr>(kRecomputationAttr))
    summary.recomputation = {said.getAs<IntegerAttr>("nodes").getInt(),
                             said.getAs<FloatAttr>("work").getValueAsDouble(),
                             said.getAs<IntegerAttr>("kept").getInt(),
                             said.getAs<IntegerAttr>("all").getInt()};
  summary.mixes = model.getMixes().value_or("").str();
  for (auto port : module.getOps<plan::PortOp>())
    if (port.getKind() != plan::PortKind::bound_input)
      summary.sampleAxes.push_back(
          {port.getPortName().str(), port.getBatchAxis()});
  const auto scopes = collectScopes(module);
  for (auto stage : module.getOps<plan::StageOp>()) {
    abi::StageRow row;
    if (auto it = scopes.find(summary.stages.size()); it != scopes.end())
      for (StringRef scope : it->second)
        row.scopes.push_back(scope.str());
    row.name = stage.getStageName().str();
    row.device = deviceOf.lookup(stage.getProgram());
    for (auto block : stage.getBlocks().getAsRange<StringAttr>())
      row.blocks.push_back(block.str());
    row.flops = stage.getFlops();
    row.parameter_bytes = stage.getParameterBytes();
    row.activation_bytes = stage.getActivationBytes();
    row.sent_bytes = stage.getSentBytes();
    row.peak_bytes = stage.getPeakBytes();
    row.duration_ns = stage.getDurationNs();
    summary.stages.push_back(std::move(row));
  }
  if (summary.entry == "train")
    for (auto program : module.getOps<plan::ProgramOp>())
      if (auto row =
              summarizeMemory(program, deviceOf.lookup(program.getSymName())))
        summary.memory.push_back(std::move(*row));
  const auto once = findUsedOnce(module, step.micro_batches);
  auto isOnce = [&](StringAttr name) {
    return once.contains(FlatSymbolRefAttr::get(name));
  };
  for (auto channel : module.getOps<plan::ChannelOp>())
    if (channel.getBytes() > 0)
      summary.transfers.push_back(
          {channel.getValue().str(), deviceOf.lookup(channel.getSource()),
           deviceOf.lookup(channel.getTarget()), channel.getReason().str(),
           channel.getBytes(), channel.getDurationNs(),
           isOnce(channel.getSymNameAttr())});
  for (auto collective : module.getOps<plan::CollectiveOp>()) {
    std::string along;
    for (int64_t axis : collective.getAxes())
      along += (along.empty() ? "" : ", ") + axes[axis].str();
    summary.collectives.push_back(
        {collective.getValue().str(),
         plan::stringifyCollectiveKind(collective.getKind()).str(), along,
         collective.getReason().str(), getSentBytes(collective),
         collective.getDurationNs(), isOnce(collective.getSymNameAttr())});
  }
  return summary;
}

void describePlan(ModuleOp module, TriedPlan &tried) {
  const PlanSummary plan = *summarize(module);
  tried.schedule = plan.step.schedule;
  tried.replicas = plan.step.replicas;
  tried.microBatches = plan.step.micro_batches;
  tried.stepNs = plan.step.step_ns;
  tried.bubble = plan.step.bubble;
  for (const CollectiveSummary &each : plan.collectives)
    tried.sentBytes += each.sentBytes * (each.perStep ? 1 : tried.microBatches);
  tried.peakBytes = getPlannedPeak(findFullest(module));
  tried.fits = fitsMemory(module);
}

/// A line for each kind of collective.
static void printCollectives(const PlanSummary &summary,
                             llvm::raw_ostream &os) {
  struct Sum {
    int count = 0;
    int64_t bytes = 0, ns = 0;
  };
  std::map<std::tuple<bool, std::string, std::string>, Sum> sums;
  for (const CollectiveSummary &each : summary.collectives) {
    Sum &sum = sums[{each.perStep, each.kind, each.axes}];
    ++sum.count;
    sum.bytes += each.sentBytes;
    sum.ns += each.durationNs;
  }
  for (const auto &[key, sum] : sums)
    os << sum.count << ' ' << std::get<1>(key) << " along " << std::get<2>(key)
       << (std::get<0>(key) ? ", a step" : ", a micro-batch")
       << ": each device sends " << abi::bytesText(sum.bytes) << ", predicted "
       << abi::timeText(sum.ns) << '\n';
}

void printCommunication(const PlanSummary &summary, llvm::raw_ostream &os) {
  std::vector<abi::MessageRow> rows;
  for (const TransferSummary &each : summary.transfers)
    rows.push_back({each.value, each.source + " to " + each.target, each.bytes,
                    each.durationNs, each.reason, each.perStep});
  for (const CollectiveSummary &each : summary.collectives)
    rows.push_back({each.value, each.kind + " along " + each.axes,
                    each.sentBytes, each.durationNs, each.reason,
                    each.perStep});
  os << abi::messagesText(rows);
}

static void printRecomputation(const RecomputationSummary &said,
                               llvm::raw_ostream &os) {
  if (said.nodes == 0) {
    os << "recompute: nothing, because it would save no memory\n";
    return;
  }
  os << "recompute: " << abi::countOf(said.nodes, "node")
     << " again in each micro-batch, " << llvm::format("%.1f", said.work)
     << "% more work; " << abi::bytesText(said.keptBytes)
     << " are kept of it for gradients instead of "
     << abi::bytesText(said.wholeBytes) << '\n';
}

/// A row for each plan that was tried. `getCells`: all but the last cell.
static void printTried(
    ArrayRef<TriedPlan> all, const std::vector<std::string> &header,
    llvm::function_ref<std::vector<std::string>(const TriedPlan &)> getCells,
    llvm::raw_ostream &os) {
  abi::Table table(header);
  for (const TriedPlan &each : all) {
    std::vector<std::string> row = getCells(each);
    if (!each.error.empty()) // nothing else is known
      std::fill(row.begin() + 1, row.end(), "");
    row.push_back(!each.error.empty() ? each.error
                  : each.isTaken      ? "taken"
                  : each.fits         ? ""
                                      : "does not fit");
    table.add(std::move(row));
  }
  os << table.text();
}

void printTable(const PlanSummary &summary, llvm::raw_ostream &os) {
  if (!summary.sizes.empty())
    os << summary.sizes << "\n";
  if (!summary.entry.empty())
    os << (summary.entry == "train" ? "to learn\n" : "to evaluate\n");
  os << abi::stagesText(summary.stages);
  os << abi::memoryText(summary.memory);
  printCollectives(summary, os);
  if (summary.recomputation)
    printRecomputation(*summary.recomputation, os);
  os << abi::stepText(summary.step);
  if (summary.entry.empty())
    os << abi::samplesText(summary.sampleAxes, summary.mixes);
  using Cells = std::vector<std::string>;
  if (!summary.schedules.empty())
    printTried(
        summary.schedules,
        {"schedule", ">micro-batches", ">step", ">bubble", ">peak", ""},
        [](const TriedPlan &each) {
          return Cells{each.schedule, std::to_string(each.microBatches),
                       abi::timeText(double(each.stepNs)),
                       abi::percentText(each.bubble),
                       abi::bytesText(each.peakBytes)};
        },
        os);
  if (!summary.zeros.empty())
    printTried(
        summary.zeros,
        {"zero", "schedule", ">step", ">sent a step", ">peak", ""},
        [](const TriedPlan &each) {
          return Cells{std::to_string(each.zero), each.schedule,
                       abi::timeText(double(each.stepNs)),
                       abi::bytesText(each.sentBytes),
                       abi::bytesText(each.peakBytes)};
        },
        os);
}

static double toMs(int64_t ns) { return ns / 1e6; }

llvm::json::Value toJson(const PlanSummary &summary) {
  const abi::StepLine &step = summary.step;
  llvm::json::Array stages, transfers, collectives;
  for (const CollectiveSummary &each : summary.collectives)
    collectives.push_back(
        llvm::json::Object{{"value", each.value},
                           {"kind", each.kind},
                           {"axes", each.axes},
                           {"reason", each.reason},
                           {"sent_bytes", each.sentBytes},
                           {"per_step", each.perStep},
                           {"predicted_ms", toMs(each.durationNs)}});
  for (const abi::StageRow &stage : summary.stages)
    stages.push_back(
        llvm::json::Object{{"name", stage.name},
                           {"device", stage.device},
                           {"blocks", llvm::json::Array(stage.blocks)},
                           {"scopes", llvm::json::Array(stage.scopes)},
                           {"flops", stage.flops},
                           {"parameter_bytes", stage.parameter_bytes},
                           {"activation_bytes", stage.activation_bytes},
                           {"sent_bytes", stage.sent_bytes},
                           {"peak_bytes", stage.peak_bytes},
                           {"predicted_ms", toMs(stage.duration_ns)}});
  for (const TransferSummary &transfer : summary.transfers)
    transfers.push_back(
        llvm::json::Object{{"value", transfer.value},
                           {"source", transfer.source},
                           {"target", transfer.target},
                           {"reason", transfer.reason},
                           {"bytes", transfer.bytes},
                           {"per_step", transfer.perStep},
                           {"predicted_ms", toMs(transfer.durationNs)}});
  llvm::json::Object all{
      {"model", summary.model},
      {"sizes", summary.sizes},
      {"entry", summary.entry},
      {"schedule", step.schedule},
      {"replicas", step.replicas},
      {"micro_batches", step.micro_batches},
      {"samples_per_micro_batch", step.samples},
      {"mixes", summary.mixes},
      {"predicted_ms", toMs(step.step_ns)},
      {"alone_predicted_ms", toMs(step.alone_ns)},
      {"bubble_predicted", step.bubble},
      {"predicted_for", llvm::json::Object{{"machine", step.machine},
                                           {"threads", step.threads}}},
      {"stages", std::move(stages)},
      {"transfers", std::move(transfers)},
      {"collectives", std::move(collectives)}};
  if (!summary.memory.empty()) {
    llvm::json::Array memory;
    for (const abi::MemoryRow &each : summary.memory) {
      llvm::json::Object row{{"device", each.device}};
      for (const auto &[key, bytes] : abi::memoryFields(each))
        row[key] = bytes;
      memory.push_back(std::move(row));
    }
    all["memory"] = std::move(memory);
  }
  if (!summary.schedules.empty()) {
    llvm::json::Array schedules;
    for (const TriedPlan &each : summary.schedules)
      if (each.error.empty())
        schedules.push_back(
            llvm::json::Object{{"name", each.schedule},
                               {"micro_batches", each.microBatches},
                               {"predicted_ms", toMs(each.stepNs)},
                               {"bubble_predicted", each.bubble},
                               {"peak_bytes", each.peakBytes},
                               {"fits", each.fits}});
      else
        schedules.push_back(
            llvm::json::Object{{"name", each.schedule}, {"error", each.error}});
    all["schedules"] = std::move(schedules);
  }
  if (!summary.zeros.empty()) {
    llvm::json::Array zeros;
    for (const TriedPlan &each : summary.zeros)
      if (each.error.empty())
        zeros.push_back(llvm::json::Object{{"zero", each.zero},
                                           {"schedule", each.schedule},
                                           {"predicted_ms", toMs(each.stepNs)},
                                           {"sent_bytes", each.sentBytes},
                                           {"peak_bytes", each.peakBytes},
                                           {"fits", each.fits},
                                           {"taken", each.isTaken}});
      else
        zeros.push_back(
            llvm::json::Object{{"zero", each.zero}, {"error", each.error}});
    all["zeros"] = std::move(zeros);
  }
  if (summary.recomputation)
    all["recomputation"] =
        llvm::json::Object{{"nodes", summary.recomputation->nodes},
                           {"work_percent", summary.recomputation->work},
                           {"kept_bytes", summary.recomputation->keptBytes},
                           {"whole_bytes", summary.recomputation->wholeBytes}};
  return all;
}

} // namespace partita::pipeline
