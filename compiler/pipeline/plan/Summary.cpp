//===- Summary.cpp - A plan for people and for programs -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/pipeline/plan/Summary.h"

#include "compiler/pipeline/partition/ByteSize.h"

#include "dialects/dist/DistDialect.h"
#include "dialects/plan/PlanDialect.h"

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

/// Bytes that each device of a collective sends: in a ring, or straight to the
/// others, which is as much.
static int64_t getSentBytes(plan::CollectiveOp collective) {
  const int64_t devices = collective.getGroupSize(),
                part = plan::getByteSize(RankedTensorType::get(
                    {static_cast<int64_t>(collective.getRows()),
                     static_cast<int64_t>(collective.getPart())},
                    collective.getElement()));
  return collective.getKind() == plan::CollectiveKind::all_reduce
             ? 2 * (devices - 1) * part / devices
             : (devices - 1) * part;
}

std::optional<Summary> summarize(ModuleOp module) {
  auto models = module.getOps<plan::ModelOp>();
  if (models.empty())
    return std::nullopt;
  plan::ModelOp model = *models.begin();
  const llvm::StringMap<std::string> deviceOf = nameDevices(module);
  Summary summary;
  SmallVector<StringRef> axes;
  for (auto axis : module.getOps<plan::AxisOp>()) {
    axes.push_back(axis.getAxisName());
    if (axis.getAxisName() == dist::kDataAxis)
      summary.replicas = axis.getSize();
  }
  summary.model = model.getModel().str();
  summary.schedule = model.getSchedule().str();
  if (DictionaryAttr sizes = model.getDimensionsAttr())
    for (NamedAttribute dimension : sizes)
      summary.sizes +=
          (summary.sizes.empty() ? "" : ", ") + dimension.getName().str() +
          " = " +
          std::to_string(cast<IntegerAttr>(dimension.getValue()).getInt());
  summary.microBatches = model.getMicroBatches();
  summary.machine = model.getMachine().value_or("").str();
  summary.threads = model.getThreads();
  summary.stepNs = model.getStepNs();
  summary.bubble = model.getBubble().convertToDouble();
  for (auto stage : module.getOps<plan::StageOp>()) {
    StageSummary row;
    row.name = stage.getStageName().str();
    row.device = deviceOf.lookup(stage.getProgram());
    for (auto block : stage.getBlocks().getAsRange<StringAttr>())
      row.blocks.push_back(block.str());
    row.flops = stage.getFlops();
    row.parameterBytes = stage.getParameterBytes();
    row.activationBytes = stage.getActivationBytes();
    row.sentBytes = stage.getSentBytes();
    row.peakBytes = stage.getPeakBytes();
    row.durationNs = stage.getDurationNs();
    summary.stages.push_back(std::move(row));
  }
  for (auto channel : module.getOps<plan::ChannelOp>())
    if (channel.getBytes() > 0)
      summary.transfers.push_back(
          {channel.getValue().str(), deviceOf.lookup(channel.getSource()),
           deviceOf.lookup(channel.getTarget()), channel.getReason().str(),
           static_cast<int64_t>(channel.getBytes())});
  for (auto collective : module.getOps<plan::CollectiveOp>()) {
    std::string along;
    for (int64_t axis : collective.getAxes())
      along += (along.empty() ? "" : ", ") + axes[axis].str();
    summary.collectives.push_back(
        {collective.getValue().str(),
         plan::stringifyCollectiveKind(collective.getKind()).str(), along,
         collective.getReason().str(), getSentBytes(collective),
         static_cast<int64_t>(collective.getDurationNs())});
  }
  return summary;
}

/// "1.23 M".
static std::string formatCount(int64_t value) {
  static const char *prefixes[] = {"", "k", "M", "G", "T"};
  double scaled = value;
  int prefix = 0;
  while (scaled >= 1000 && prefix < 4) {
    scaled /= 1000;
    ++prefix;
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  if (prefix == 0)
    os << value;
  else
    os << llvm::format(scaled < 10    ? "%.2f"
                       : scaled < 100 ? "%.1f"
                                      : "%.0f",
                       scaled);
  os << ' ' << prefixes[prefix];
  return StringRef(text).rtrim().str();
}

static std::string formatTime(double ns) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (ns < 1e6)
    os << llvm::format("%.1f us", ns / 1e3);
  else if (ns < 1e9)
    os << llvm::format("%.2f ms", ns / 1e6);
  else
    os << llvm::format("%.2f s", ns / 1e9);
  return text;
}

/// " for AMD EPYC with 2 cores a device", or nothing.
static std::string describeMachine(const Summary &summary) {
  if (summary.machine.empty())
    return "";
  return " for " + summary.machine + " with " +
         std::to_string(summary.threads) +
         (summary.threads == 1 ? " core" : " cores") + " a device";
}

/// Columns from `numbers` on are set right.
static void printRows(const std::vector<std::vector<std::string>> &rows,
                      llvm::function_ref<bool(size_t)> isNumber,
                      llvm::raw_ostream &os) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const std::vector<std::string> &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string pad(widths[i] - row[i].size(), ' ');
      line += (i ? "  " : "") + (isNumber(i) ? pad + row[i] : row[i] + pad);
    }
    os << StringRef(line).rtrim() << '\n';
  }
}

/// A line for each kind of collective.
static void printCollectives(const Summary &summary, llvm::raw_ostream &os) {
  struct Sum {
    int count = 0;
    int64_t bytes = 0, ns = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const CollectiveSummary &each : summary.collectives) {
    Sum &sum = sums[{each.kind, each.axes}];
    ++sum.count;
    sum.bytes += each.sentBytes;
    sum.ns += each.durationNs;
  }
  for (const auto &[key, sum] : sums)
    os << sum.count << ' ' << key.first << " along " << key.second
       << ", a micro-batch: each device sends " << formatByteSize(sum.bytes)
       << ", predicted " << formatTime(sum.ns) << '\n';
}

void printCommunication(const Summary &summary, llvm::raw_ostream &os) {
  std::vector<std::vector<std::string>> rows = {
      {"value", "how", "bytes", "time", "why"}};
  for (const TransferSummary &each : summary.transfers)
    rows.push_back({each.value, each.source + " to " + each.target,
                    formatByteSize(each.bytes), "", each.reason});
  for (const CollectiveSummary &each : summary.collectives)
    rows.push_back({each.value, each.kind + " along " + each.axes,
                    formatByteSize(each.sentBytes), formatTime(each.durationNs),
                    each.reason});
  if (rows.size() == 1) {
    os << "nothing is sent\n";
    return;
  }
  os << "what each device sends in a micro-batch:\n";
  printRows(
      rows, [](size_t column) { return column == 2 || column == 3; }, os);
}

void printTable(const Summary &summary, llvm::raw_ostream &os) {
  if (!summary.sizes.empty())
    os << summary.sizes << "\n";
  std::vector<std::vector<std::string>> rows = {
      {"stage", "device", "blocks", "flops", "parameters", "activations",
       "sends", "peak", "time"}};
  for (const StageSummary &stage : summary.stages) {
    std::string blocks;
    for (size_t i = 0; i < stage.blocks.size(); ++i) {
      if (i == 4) {
        blocks += ", +" + std::to_string(stage.blocks.size() - i);
        break;
      }
      blocks += (i ? ", " : "") + stage.blocks[i];
    }
    rows.push_back(
        {stage.name, stage.device,
         blocks.empty() ? std::string("(empty)") : blocks,
         formatCount(stage.flops), formatByteSize(stage.parameterBytes),
         formatByteSize(stage.activationBytes), formatByteSize(stage.sentBytes),
         formatByteSize(stage.peakBytes), formatTime(stage.durationNs)});
  }
  printRows(
      rows, [](size_t column) { return column >= 3; }, os);
  printCollectives(summary, os);
  os << summary.schedule << ", " << summary.microBatches
     << (summary.microBatches == 1 ? " micro-batch" : " micro-batches")
     << " a step"
     << (summary.replicas > 1
             ? " for each of " + std::to_string(summary.replicas) + " replicas"
             : "")
     << "; predicted" << describeMachine(summary) << ": step "
     << formatTime(summary.stepNs) << ", bubble "
     << llvm::format("%.1f", summary.bubble * 100) << "%\n";
}

llvm::json::Value toJson(const Summary &summary) {
  llvm::json::Array stages, transfers, collectives;
  for (const CollectiveSummary &each : summary.collectives)
    collectives.push_back(llvm::json::Object{{"value", each.value},
                                             {"kind", each.kind},
                                             {"axes", each.axes},
                                             {"reason", each.reason},
                                             {"sent_bytes", each.sentBytes},
                                             {"duration_ns", each.durationNs}});
  for (const StageSummary &stage : summary.stages)
    stages.push_back(
        llvm::json::Object{{"name", stage.name},
                           {"device", stage.device},
                           {"blocks", llvm::json::Array(stage.blocks)},
                           {"flops", stage.flops},
                           {"parameter_bytes", stage.parameterBytes},
                           {"activation_bytes", stage.activationBytes},
                           {"sent_bytes", stage.sentBytes},
                           {"peak_bytes", stage.peakBytes},
                           {"duration_ns", stage.durationNs}});
  for (const TransferSummary &transfer : summary.transfers)
    transfers.push_back(llvm::json::Object{{"value", transfer.value},
                                           {"source", transfer.source},
                                           {"target", transfer.target},
                                           {"reason", transfer.reason},
                                           {"bytes", transfer.bytes}});
  return llvm::json::Object{{"model", summary.model},
                            {"sizes", summary.sizes},
                            {"schedule", summary.schedule},
                            {"replicas", summary.replicas},
                            {"micro_batches", summary.microBatches},
                            {"step_ns", summary.stepNs},
                            {"bubble", summary.bubble},
                            {"machine", summary.machine},
                            {"threads", summary.threads},
                            {"stages", std::move(stages)},
                            {"transfers", std::move(transfers)},
                            {"collectives", std::move(collectives)}};
}

} // namespace partita::pipeline
