//===- Profile.cpp - A trace for Perfetto ---------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/Profile.h"

#include "tools/partita-run/show/Format.h"
#include "tools/partita-run/show/Stages.h"
#include "tools/partita-run/show/Waiting.h"

#include "runtime/base/Programs.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

namespace partita::run {

using Json = nlohmann::ordered_json;
using runtime::Status;

namespace {

double rate(int64_t amount, int64_t nanoseconds) {
  return nanoseconds > 0 ? double(amount) / double(nanoseconds) : 0;
}

/// Turns events into the objects of the trace.
class Writer {
public:
  Writer(const Model &model, int64_t origin)
      : model(model), origin(origin), stages(stagesOf(model)) {}

  /// What an event did, without the first `waited` nanoseconds of it.
  Json complete(const Profile::Event &item, int64_t waited) {
    const runtime::ProfileEvent &event = item.event;
    const abi::ProgramAction action = entryOf(model, event);
    Json json = slice(item, waited, event.end_ns - event.begin_ns);
    // An object that gets more keys moves those that it has.
    Json args = std::move(json["args"]);
    if (action.kind == abi::ActionKind::run)
      describeRun(event, action, json, args);
    else
      describeTransfer(event, action, waited, json, args);
    json["args"] = std::move(args);
    return json;
  }

  /// The first `waited` nanoseconds of a receive, or of the end of a
  /// collective.
  Json waiting(const Profile::Event &item, int64_t waited) {
    const abi::ProgramAction action = entryOf(model, item.event);
    Json json = slice(item, 0, waited);
    json["cat"] = "wait";
    const std::string number = " #" + std::to_string(item.event.micro_batch);
    if (action.kind == abi::ActionKind::finish) {
      const abi::Collective &collective =
          *model.plan->collectives()->Get(unsigned(action.subject));
      json["name"] = "wait for the others, " +
                     model.collectiveText(collective) + " of " +
                     runtime::text(collective.name()) + number;
      return json;
    }
    const abi::Channel *channel =
        model.plan->channels()->Get(unsigned(action.subject));
    const std::string peer = peerOf(item.event, action);
    json["name"] = "wait for " + peer + " to send " +
                   runtime::text(channel->name()) + number;
    json["args"]["peer"] = peer;
    return json;
  }

  Json arrow(const Profile::Event &item, bool begins, int64_t id) const {
    // An arrow is attached to the slice that encloses its time.
    int64_t time = begins ? item.event.begin_ns : item.event.end_ns;
    Json json = {{"ph", begins ? "s" : "f"},
                 {"pid", 0},
                 {"tid", item.event.device},
                 {"ts", double(time - origin) / 1e3},
                 {"id", id},
                 {"name", "transfer"},
                 {"cat", "transfer"}};
    if (!begins)
      json["bp"] = "e";
    return json;
  }

private:
  /// By the first letter of units, the names that chrome://tracing has for
  /// colours. Perfetto takes its own, by names without their numbers.
  static constexpr std::pair<char, const char *> kColours[] = {
      {'P', "grey"},          {'F', "good"},  {'B', "rail_response"},
      {'I', "rail_response"}, {'W', "olive"}, {'U', "black"}};

  /// From one time after the event's begin to another.
  Json slice(const Profile::Event &item, int64_t from, int64_t to) const {
    const runtime::ProfileEvent &event = item.event;
    return {{"ph", "X"},
            {"pid", 0},
            {"tid", event.device},
            {"ts", double(event.begin_ns + from - origin) / 1e3},
            {"dur", double(to - from) / 1e3},
            {"args", {{"step", item.run}, {"micro_batch", event.micro_batch}}}};
  }

  /// The device at the other end of a channel.
  std::string peerOf(const runtime::ProfileEvent &event,
                     const abi::ProgramAction &action) const {
    const abi::Channel *channel =
        model.plan->channels()->Get(unsigned(action.subject));
    const bool sends =
        abi::getInfo(action.kind).subject == abi::ActionSubject::sent_channel;
    return model.deviceName(
        model.mesh.device(sends ? channel->target() : channel->source(),
                          model.mesh.position(event.device)));
  }

  void describeRun(const runtime::ProfileEvent &event,
                   const abi::ProgramAction &action, Json &json,
                   Json &args) const {
    const abi::Unit *unit = runtime::programOf(*model.plan, event.device)
                                .units()
                                ->Get(unsigned(action.subject));
    const std::string name = runtime::text(unit->name());
    if (event.instruction < 0) {
      json["name"] = name + " #" + std::to_string(event.micro_batch);
      json["cat"] = "unit";
      for (auto [phase, colour] : kColours)
        if (name.front() == phase)
          json["cname"] = colour;
      if (unit->stage() >= 0 && size_t(unit->stage()) < stages.size()) {
        const abi::StageRow &stage = stages[size_t(unit->stage())];
        args["stage"] = stage.name;
        if (!stage.scopes.empty())
          args["modules"] = abi::modulesText(stage.scopes);
      }
      args["predicted_us"] = double(unit->duration_ns()) / 1e3;
      return;
    }
    json["cat"] = "instruction";
    json["name"] = name;
    const abi::Instruction *instruction =
        unit->instructions()->Get(unsigned(event.instruction));
    const std::string label = runtime::text(instruction->label());
    if (!label.empty())
      json["name"] = label;
    const int64_t duration = event.end_ns - event.begin_ns;
    args["unit"] = name;
    if (std::vector<std::string> scopes = scopesOf(*instruction);
        !scopes.empty())
      args["scopes"] = scopes;
    args["kind"] = kindOf(model, *instruction);
    args["predicted_us"] = double(instruction->duration_ns()) / 1e3;
    args["flops"] = instruction->flops();
    args["GFLOP/s"] = rate(instruction->flops(), duration);
    args["bytes"] = instruction->bytes();
    args["GB/s"] = rate(instruction->bytes(), duration);
  }

  void describeTransfer(const runtime::ProfileEvent &event,
                        const abi::ProgramAction &action, int64_t waited,
                        Json &json, Json &args) const {
    json["cat"] = abi::getInfo(action.kind).name;
    std::string number = " #" + std::to_string(event.micro_batch);
    if (action.kind == abi::ActionKind::load_input ||
        action.kind == abi::ActionKind::store_output) {
      const bool input = action.kind == abi::ActionKind::load_input;
      const std::vector<Port> &ports = input ? model.inputs : model.outputs;
      json["name"] = (input ? "load " : "store ") +
                     ports[size_t(action.subject)].name + number;
      return;
    }
    if (action.kind == abi::ActionKind::examine) {
      const abi::Check *check =
          model.plan->checks()->Get(unsigned(action.subject));
      json["name"] =
          std::string("examine ") + runtime::text(check->node()) + number;
      return;
    }
    if (abi::getInfo(action.kind).subject == abi::ActionSubject::collective) {
      const abi::Collective &collective =
          *model.plan->collectives()->Get(unsigned(action.subject));
      json["name"] = std::string(abi::getInfo(action.kind).name) + " " +
                     model.collectiveText(collective) + " of " +
                     runtime::text(collective.name()) + number;
      args["bytes"] = runtime::sentBytes(*model.plan, collective);
      args["predicted_us"] = double(collective.duration_ns()) / 1e3;
      args["reason"] = runtime::text(collective.reason());
      return;
    }
    const abi::Channel *channel =
        model.plan->channels()->Get(unsigned(action.subject));
    const std::string value = runtime::text(channel->name());
    args["bytes"] = action.slot < 0 ? 0 : channel->bytes();
    args["reason"] = runtime::text(channel->reason());
    const std::string peer = peerOf(event, action);
    args["peer"] = peer;
    switch (action.kind) {
    case abi::ActionKind::send:
      json["name"] = "send " + value + number + " to " + peer;
      break;
    case abi::ActionKind::recv:
      json["name"] = "receive " + value + number + " from " + peer;
      args["waited_us"] = double(waited) / 1e3;
      args["predicted_us"] = double(channel->duration_ns()) / 1e3;
      break;
    case abi::ActionKind::release:
      json["name"] = "release " + value + number;
      break;
    default:
      json["name"] = "wait for " + peer + " to take " + value + number;
    }
  }

  const Model &model;
  const int64_t origin;
  const std::vector<abi::StageRow> stages;
};

/// Clocks of one machine agree; those of several start when they were booted.
/// A process whose clock is far off the first one's is shifted to it.
constexpr int64_t kSameClock = 1000000000;

} // namespace

/// A device with its stages, e.g. "cpu:0: F0, F2".
static std::string rowName(const Model &model, int device) {
  std::string stages;
  const abi::Program &program = runtime::programOf(*model.plan, device);
  for (const abi::Stage &stage : runtime::each(model.plan->stages()))
    if (stage.program() >= 0 &&
        &runtime::at(model.plan->programs(), stage.program()) == &program)
      stages += std::string(stages.empty() ? ": " : ", ") +
                runtime::text(stage.name());
  return model.deviceName(device) + stages;
}

std::string kindOf(const Model &model, const abi::Instruction &instruction) {
  if (const abi::Call *call = instruction.work_as_Call())
    return abi::EnumNameCallKind(call->kind());
  if (const abi::Dispatch *dispatch = instruction.work_as_Dispatch())
    return runtime::text(
        runtime::at(model.plan->kernels(), dispatch->kernel()).name());
  return "copy";
}

void Profile::add(const std::vector<runtime::ProfileEvent> &added, int step) {
  for (const runtime::ProfileEvent &event : added)
    events.push_back({event, step});
}

std::string traceText(const Model &model, std::vector<Profile::Event> events) {
  // A unit before its instructions: earlier begin first, longer first.
  std::stable_sort(events.begin(), events.end(),
                   [](const Profile::Event &a, const Profile::Event &b) {
                     return std::tuple(a.event.begin_ns, -a.event.end_ns,
                                       a.event.instruction) <
                            std::tuple(b.event.begin_ns, -b.event.end_ns,
                                       b.event.instruction);
                   });
  const std::vector<int64_t> waits = findWaits(model, events);
  Writer writer(model, events.empty() ? 0 : events.front().event.begin_ns);
  std::string text =
      "{\"displayTimeUnit\":\"ms\",\"stages\":" + dump(legendJson(model)) +
      ",\"traceEvents\":[\n";
  text += dump({{"ph", "M"},
                {"pid", 0},
                {"name", "process_name"},
                {"args", {{"name", model.file}}}});
  for (int device = 0; device < model.devices; ++device) {
    text += ",\n" + dump({{"ph", "M"},
                          {"pid", 0},
                          {"tid", device},
                          {"name", "thread_name"},
                          {"args", {{"name", rowName(model, device)}}}});
    text += ",\n" + dump({{"ph", "M"},
                          {"pid", 0},
                          {"tid", device},
                          {"name", "thread_sort_index"},
                          {"args", {{"sort_index", device}}}});
  }
  // Sends and receives that have both ends get an arrow.
  std::map<MessageKey,
           std::pair<const Profile::Event *, const Profile::Event *>>
      transfers;
  for (size_t i = 0; i < events.size(); ++i) {
    const Profile::Event &item = events[i];
    const abi::ActionKind kind = entryOf(model, item.event).kind;
    // A wait is one as a whole.
    const int64_t waited = kind == abi::ActionKind::wait ? 0 : waits[i];
    if (waited > 0)
      text += ",\n" + dump(writer.waiting(item, waited));
    text += ",\n" + dump(writer.complete(item, waited));
    if (std::optional<MessageKey> key = messageKeyOf(model, item))
      (kind == abi::ActionKind::send ? transfers[*key].first
                                     : transfers[*key].second) = &item;
  }
  int64_t id = 0;
  for (const auto &[key, ends] : transfers) {
    if (!ends.first || !ends.second)
      continue;
    ++id;
    text += ",\n" + dump(writer.arrow(*ends.first, true, id));
    text += ",\n" + dump(writer.arrow(*ends.second, false, id));
  }
  return text + "\n]}\n";
}

std::vector<Profile::Event> Profile::gather(Job &job) const {
  // The clock's value follows a barrier, so that it means the same moment
  // everywhere.
  job.barrier();
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::steady_clock::now().time_since_epoch())
                          .count();
  const std::vector<std::vector<int64_t>> clocks =
      job.gather<int64_t>({&now, 1});
  const std::vector<std::vector<Event>> parts = job.gather<Event>(events);
  std::vector<Event> all;
  for (size_t process = 0; process < parts.size(); ++process) {
    int64_t shift = now - clocks[process].front();
    if (shift < kSameClock && shift > -kSameClock)
      shift = 0;
    for (Event item : parts[process]) {
      item.event.begin_ns += shift;
      item.event.end_ns += shift;
      all.push_back(item);
    }
  }
  return all;
}

Status checkFolderOf(const std::string &path) {
  const std::filesystem::path parent =
      std::filesystem::path(path).parent_path();
  std::error_code error;
  if (parent.empty() || std::filesystem::is_directory(parent, error))
    return Status();
  return Status::error("cannot write '" + path + "': there is no folder '" +
                       parent.string() + "'");
}

} // namespace partita::run
