//===- Executor.cpp - Runs one device's program ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/Executor.h"

#include "runtime/base/Elements.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>
#include <set>

namespace partita::runtime {
namespace {

/// What a byte of the arena holds that no step wrote.
constexpr uint8_t kUntouched = 0xA7;

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

std::string quoted(const flatbuffers::String *name) {
  return std::string("'") + text(name) + "'";
}

} // namespace

Executor::Executor(const abi::Plan &plan, int index,
                   const WeightPointers &weights, const SessionOptions &options,
                   Communicator &comm)
    : plan(plan), index(index), device(*plan.devices()->Get(index)),
      weights(weights), profile(options.profile),
      measure(options.measure_arena), comm(comm),
      inputs_used(length(plan.inputs())), outputs_used(length(plan.outputs())) {
}

Expected<std::unique_ptr<Executor>> Executor::create(
    const abi::Plan &plan, int index, const WeightPointers &weights,
    std::shared_ptr<const KernelLibrary> kernels, const SessionOptions &options,
    const std::vector<int> &cores, Communicator &comm) {
  std::unique_ptr<Executor> self(
      new Executor(plan, index, weights, options, comm));
  auto cpu =
      CpuDevice::create(plan, index, weights, std::move(kernels),
                        options.threads_per_device, cores, options.keep_nan);
  if (!cpu)
    return cpu.status();
  self->cpu = std::move(*cpu);
  if (Status status = self->prepare(); !status.ok())
    return status;
  return self;
}

Status Executor::prepare() {
  // The copies are what makes a step write all of its planned arena.
  std::vector<int> movable;
  if (!measure)
    for (auto [slot, port] : findDirectPorts(device)) {
      const abi::Slot &described = *device.slots()->Get(slot);
      uint8_t *own = cpu->arena() + described.offset();
      direct[slot] = {port, described.bytes(), elementBytes(described.dtype()),
                      own, own};
      movable.push_back(slot);
    }
  if (Status status = cpu->letMove(movable); !status.ok())
    return status;
  for (int64_t i = 0; i < length(device.program()); ++i) {
    const abi::Step &step = *device.program()->Get(i);
    Entry entry{step.kind(),
                step.micro_batch(),
                step.channel(),
                step.io(),
                nullptr,
                0,
                nullptr,
                {},
                {},
                nullptr};
    ++most_events;
    if (step.slot() >= 0 && step.kind() != abi::StepKind::run &&
        step.kind() != abi::StepKind::wait &&
        step.kind() != abi::StepKind::release) {
      entry.data = cpu->slot(step.slot());
      if (auto found = direct.find(step.slot()); found != direct.end()) {
        entry.direct = &found->second;
        entry.data = found->second.own;
      }
      entry.bytes = device.slots()->Get(step.slot())->bytes();
    }
    if (step.kind() == abi::StepKind::load_input)
      inputs_used[step.io()] = true;
    if (step.kind() == abi::StepKind::store_output)
      outputs_used[step.io()] = true;
    if (step.kind() == abi::StepKind::run) {
      auto instance = cpu->prepare(step.unit(), step.bindings());
      if (!instance)
        return instance.status();
      entry.instance = *instance;
      for (MovableSlot &movable : entry.instance->movable)
        entry.movable.push_back({&movable, &direct.at(movable.slot)});
      most_events += entry.instance->tasks.size();
      for (bool drops : entry.instance->drops_nan)
        drops_nan |= drops;
    }
    program.push_back(entry);
  }
  placeReleases();
  if (profile)
    recorded.reserve(most_events);
  return cpu->finish();
}

/// What is borrowed is given back as soon as nobody reads it: within the last
/// run that does.
void Executor::placeReleases() {
  using Key = std::pair<int, int>; // channel, micro-batch
  struct Borrowed {
    Entry *reader = nullptr; ///< the last run of the micro-batch, so far
    size_t task = 0;         ///< the last one there
  };
  std::map<Key, Borrowed> borrowed;
  std::map<const DirectSlot *, Key> held; ///< what a slot received last
  for (Entry &entry : program) {
    const Key key(entry.channel, entry.micro_batch);
    if (entry.kind == abi::StepKind::recv && entry.direct) {
      borrowed[key] = {};
      held[entry.direct] = key;
    }
    for (auto [movable, slot] : entry.movable) {
      auto found = held.find(slot);
      if (found != held.end() && found->second.second == entry.micro_batch)
        borrowed[found->second] = {&entry, movable->last_task};
    }
    auto found = borrowed.find(key);
    if (entry.kind != abi::StepKind::release || found == borrowed.end())
      continue; // what was copied is released already
    auto [reader, task] = found->second;
    if (reader)
      reader->releases.push_back({task, entry.channel});
    else
      entry.releases.push_back({0, entry.channel});
  }
  for (Entry &entry : program)
    std::stable_sort(
        entry.releases.begin(), entry.releases.end(),
        [](const Release &a, const Release &b) { return a.task < b.task; });
}

Status Executor::run(const StepBinding &binding) {
  cpu->threads().enter();
  recorded.clear();
  busy_ns = 0;
  met_nan = false;
  if (drops_nan) // what others did with NaN before does not count
    (void)cpu->threads().metNan();
  if (measure)
    std::fill_n(cpu->arena(), cpu->arenaBytes(), kUntouched);
  for (size_t i = 0; i < program.size(); ++i) {
    const Entry &entry = program[i];
    if (entry.micro_batch >= binding.micro_batches)
      continue;
    int64_t begin = profile ? now() : 0;
    if (Status status = execute(static_cast<int>(i), entry, binding);
        !status.ok())
      return explain(entry, status);
    if (profile)
      record(static_cast<int>(i), entry, -1, begin);
  }
  if (drops_nan)
    met_nan |= cpu->threads().metNan();
  if (measure)
    measureArena();
  return Status();
}

Status Executor::execute(int position, const Entry &entry,
                         const StepBinding &binding) {
  size_t bytes = static_cast<size_t>(entry.bytes);
  switch (entry.kind) {
  case abi::StepKind::run:
    return runInstance(position, entry, binding);
  case abi::StepKind::send:
    return comm.send(entry.channel, entry.micro_batch, entry.data, entry.bytes);
  case abi::StepKind::recv:
    if (entry.direct)
      return borrow(entry);
    return comm.recv(entry.channel, entry.micro_batch, entry.data, entry.bytes);
  case abi::StepKind::wait:
    return comm.waitSent(entry.channel, entry.micro_batch);
  case abi::StepKind::release:
    for (const Release &release : entry.releases)
      comm.release(release.channel, entry.micro_batch);
    return Status();
  case abi::StepKind::load_input:
    if (bytes && (!entry.direct || entry.direct->place(entry.micro_batch,
                                                       binding) == entry.data))
      std::memcpy(entry.data,
                  binding.inputs[entry.io] + entry.micro_batch * bytes, bytes);
    return Status();
  case abi::StepKind::store_output:
    if (bytes && (!entry.direct || entry.direct->place(entry.micro_batch,
                                                       binding) == entry.data))
      std::memcpy(binding.outputs[entry.io] + entry.micro_batch * bytes,
                  entry.data, bytes);
    return Status();
  }
  return Status();
}

Status Executor::borrow(const Entry &entry) {
  auto at =
      comm.borrow(entry.channel, entry.micro_batch, entry.data, entry.bytes);
  if (!at)
    return at.status();
  entry.direct->borrowed = const_cast<uint8_t *>(*at);
  if (reinterpret_cast<uintptr_t>(*at) % entry.direct->alignment) {
    std::memcpy(entry.data, *at, static_cast<size_t>(entry.bytes));
    entry.direct->borrowed = entry.data;
  }
  return Status();
}

uint8_t *Executor::DirectSlot::place(int micro_batch,
                                     const StepBinding &binding) const {
  if (port.kind == DirectPort::Kind::channel)
    return borrowed;
  uint8_t *base = port.kind == DirectPort::Kind::input
                      ? const_cast<uint8_t *>(binding.inputs[port.index])
                      : binding.outputs[port.index];
  if (!base || reinterpret_cast<uintptr_t>(base) % alignment)
    return own;
  return base + micro_batch * bytes;
}

Status Executor::runInstance(int position, const Entry &entry,
                             const StepBinding &binding) {
  int64_t begin = now();
  for (auto [movable, slot] : entry.movable)
    movable->moveTo(slot->place(entry.micro_batch, binding));
  const auto &tasks = entry.instance->tasks;
  // Of a larger team workers may end between two tasks, and their flags with
  // them.
  const bool ask = cpu->threads().size() > 2;
  auto release = entry.releases.begin();
  for (size_t i = 0; i < tasks.size(); ++i) {
    int64_t task_begin = profile ? now() : 0;
    if (!tasks[i]->run()) {
      const abi::Step &step = *device.program()->Get(position);
      const abi::Unit &unit = *device.units()->Get(step.unit());
      return Status::error("the library failed in " +
                           quoted(unit.instructions()->Get(i)->label()));
    }
    if (ask && entry.instance->drops_nan[i])
      met_nan |= cpu->threads().metNan();
    if (profile)
      record(position, entry, static_cast<int>(i), task_begin);
    for (; release != entry.releases.end() && release->task == i; ++release)
      comm.release(release->channel, entry.micro_batch);
  }
  busy_ns += now() - begin;
  return Status();
}

void Executor::record(int position, const Entry &entry, int instruction,
                      int64_t begin) {
  recorded.push_back(
      {index, entry.micro_batch, position, instruction, begin, now()});
}

/// Adds to a communicator's error which operation it was and for whom it waits.
Status Executor::explain(const Entry &entry, const Status &status) const {
  std::string message = std::string(text(device.name())) + ": ";
  std::string batch = "micro-batch " + std::to_string(entry.micro_batch);
  if (entry.channel < 0)
    return Status::error(message + batch + ": " + status.message());
  const abi::Channel &channel = *plan.channels()->Get(entry.channel);
  std::string what = batch + " of " + quoted(channel.name()) + " (channel " +
                     std::to_string(entry.channel) + ")";
  std::string source = text(plan.devices()->Get(channel.source())->name());
  std::string target = text(plan.devices()->Get(channel.target())->name());
  switch (entry.kind) {
  case abi::StepKind::recv:
    message += "receiving " + what + " from " + source;
    break;
  case abi::StepKind::send:
    message += "sending " + what + " to " + target;
    break;
  default:
    message += "waiting for " + target + " to take " + what;
  }
  return Status::error(message + ": " + status.message());
}

void Executor::measureArena() {
  const uint8_t *arena = cpu->arena();
  int64_t end = static_cast<int64_t>(cpu->arenaBytes());
  while (end > touched && arena[end - 1] == kUntouched)
    --end;
  touched = std::max(touched, end);
}

DeviceMemory Executor::memory() const {
  DeviceMemory memory;
  memory.arena = static_cast<int64_t>(cpu->arenaBytes());
  memory.arena_touched = touched;
  memory.parameters = static_cast<int64_t>(cpu->parameterBytes());
  memory.packed = static_cast<int64_t>(cpu->onednn().packedBytes());
  memory.workspace = static_cast<int64_t>(cpu->scratchBytes());
  memory.planned = device.arena_bytes() + device.parameter_bytes() +
                   device.packed_bytes() +
                   device.workspace_bytes() * cpu->threads().size();
  return memory;
}

} // namespace partita::runtime
