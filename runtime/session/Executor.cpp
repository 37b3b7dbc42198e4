//===- Executor.cpp - Runs one device's program ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/Executor.h"

#include "runtime/base/Programs.h"
#include "runtime/base/Slots.h"
#include "runtime/base/StateParts.h"
#include "runtime/session/Links.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>
#include <numeric>
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

/// Records what a run does, and gives back on the way what it borrowed.
class Executor::EntryObserver final : public TaskObserver {
public:
  EntryObserver(Executor &executor, Step &step, int position, bool profile)
      : TaskObserver(profile), executor(executor), step(step),
        position(position) {}

  void finished(size_t task, int64_t begin, int64_t end) override {
    const Entry &entry = executor.entries[position];
    if (timed) {
      auto &events =
          executor.device->isHost() ? step.recorded : step.recorded_there;
      events.push_back({executor.index, entry.fed, position,
                        static_cast<int>(task), begin, end});
    }
    if (executor.search)
      executor.search->finished(task);
    if (task == 0)
      next = 0;
    for (; next < entry.releases.size() && entry.releases[next].task == task;
         ++next)
      entry.releases[next].receiver->release(entry.micro_batch);
  }

private:
  Executor &executor;
  Step &step;
  const int position;
  size_t next = 0; ///< of the entry's releases
};

Executor::Executor(const abi::Plan &plan, int index,
                   const SessionOptions &options, Communicator &comm,
                   const Mesh &mesh)
    : plan(plan), index(index), described(*plan.devices()->Get(index)),
      program(programOf(plan, index)), profile(options.profile),
      measure(options.measure_arena), sought(options.search), comm(comm),
      mesh(mesh), position(mesh.position(index)), stores(mesh.stores(index)),
      inputs_used(length(plan.inputs())), outputs_used(length(plan.outputs())) {
}

Executor::~Executor() {
  if (device && !comm.detach(index))
    (void)device.release(); // something may still use its memory
}

Expected<std::unique_ptr<Executor>>
Executor::create(const abi::Plan &plan, int index,
                 const WeightPointers &weights, Driver &driver,
                 const SessionOptions &options, const std::vector<int> &cores,
                 Communicator &comm, const Mesh &mesh) {
  std::unique_ptr<Executor> self(
      new Executor(plan, index, options, comm, mesh));
  self->device =
      PARTITA_TRY(driver.create(plan, index, weights, options, cores));
  comm.attach(index, *self->device);
  PARTITA_TRY(self->prepare());
  return self;
}

Status Executor::prepare() {
  if (sought != Search::none && canBeSearched(plan, index))
    search = std::make_unique<NanSearch>(plan, index, *device, sought);
  // A step writes all of its planned arena only if ports are copied there. A
  // search looks for them there.
  std::vector<int> movable;
  if (!measure && !search && device->isHost())
    for (auto [slot, port] : findDirectPorts(program)) {
      // A stage that reads where the one before has its bytes keeps that one
      // from its next step, which is another sequence's.
      if (port.kind == DirectPort::Kind::channel
              ? !sendsFromHost(port.index) || plan.sequences() > 1
              : (port.kind == DirectPort::Kind::output &&
                 !storesOutput(port.index)) ||
                    !lastsAsLong(slot, port))
        continue;
      direct[slot] = directSlot(slot, port);
      movable.push_back(slot);
    }
  PARTITA_TRY(device->letMove(movable));
  steps.resize(device->isHost() ? 1 : Device::kMostSteps);
  last = steps.data();
  entries.resize(static_cast<size_t>(length(program.actions())));
  for (size_t i = 0; i < entries.size(); ++i) {
    Entry &entry = entries[i];
    static_cast<abi::ProgramAction &>(entry) =
        actionOf(program, static_cast<int64_t>(i));
    PARTITA_TRY(prepareEntry(entry));
    most_events += 1;
    if (entry.kind == abi::ActionKind::run)
      most_events += static_cast<size_t>(
          length(at(program.units(), entry.subject).instructions()));
  }
  for (Step &step : steps)
    step.told.resize(told);
  matchCollectives();
  placeReleases();
  carryWaits();
  for (size_t i = 0; i < entries.size(); ++i)
    if (Entry &entry = entries[i];
        entry.instance && (profile || search || !entry.releases.empty()))
      for (Step &step : steps)
        entry.observers.push_back(std::make_unique<EntryObserver>(
            *this, step, static_cast<int>(i), profile));
  if (profile)
    for (Step &step : steps) {
      step.recorded.reserve(most_events);
      if (!device->isHost())
        step.recorded_there.reserve(most_events);
    }
  if (measure)
    image.resize(static_cast<size_t>(program.arena_bytes()));
  prepareSequences();
  return device->finish();
}

void Executor::prepareSequences() {
  if (plan.sequences() > 1)
    stride = sequenceStride(plan, program);
  if (device->isHost())
    return;
  for (const abi::Slot &slot : each(program.slots()))
    if (slot.space() == abi::Space::state &&
        at(plan.states(), slot.offset()).role() == abi::StateRole::carried)
      zeros.resize(std::max(zeros.size(), static_cast<size_t>(slot.bytes())));
}

/// Whether the memory of the device that sends on a channel is the host's.
bool Executor::sendsFromHost(int channel) const {
  const int sender =
      mesh.device(at(plan.channels(), channel).source(), position);
  const DeviceType *type = findDeviceType(at(plan.devices(), sender).kind());
  return type && type->is_host;
}

int Executor::copiesOf(int slot) const {
  const abi::Slot &found = at(program.slots(), slot);
  return found.space() != abi::Space::frame
             ? 1
             : static_cast<int>(
                   length(at(program.frames(), found.frame()).copies()));
}

/// Whether a port has one tensor for all micro-batches of a step.
bool Executor::isPerStep(const DirectPort &port) const {
  if (port.kind == DirectPort::Kind::channel)
    return false;
  return (port.kind == DirectPort::Kind::input ? plan.inputs() : plan.outputs())
      ->Get(static_cast<unsigned>(port.index))
      ->per_step();
}

/// Whether a slot has one value where its input or output has one tensor. What
/// is the same in all of a step may also be read by each micro-batch.
bool Executor::lastsAsLong(int slot, const DirectPort &port) const {
  const bool lasts = at(program.slots(), slot).span() != abi::Span::micro_batch;
  return isPerStep(port) == lasts ||
         (!lasts && port.kind == DirectPort::Kind::input);
}

Executor::DirectSlot Executor::directSlot(int slot,
                                          const DirectPort &port) const {
  const abi::Slot &found = at(program.slots(), slot);
  DirectSlot made{
      port, found.bytes(), elementBytes(found.dtype()), isPerStep(port), {},
      {}};
  for (int copy = 0; copy < copiesOf(slot); ++copy)
    made.own.push_back(device->slot(slot, copy));
  made.borrowed = made.own;
  return made;
}

/// Of what all replicas have in common, the first one stores it.
bool Executor::storesOutput(int output) const {
  return stores && (mesh.replica(index) == 0 ||
                    !isPerStep({DirectPort::Kind::output, output}));
}

Status Executor::prepareEntry(Entry &entry) {
  entry.fed = entry.micro_batch * mesh.replicas() + mesh.replica(index);
  entry.at = entry.fed;
  if (entry.kind == abi::ActionKind::load_input) {
    inputs_used[entry.subject] = true;
    if (isPerStep({DirectPort::Kind::input, entry.subject}))
      entry.at = 0;
  }
  if (entry.kind == abi::ActionKind::store_output) {
    entry.stores = storesOutput(entry.subject);
    outputs_used[entry.subject] = entry.stores;
    if (isPerStep({DirectPort::Kind::output, entry.subject}))
      entry.at = 0;
  }
  if (entry.kind == abi::ActionKind::examine) {
    entry.told = told;
    told += 2 * static_cast<size_t>(at(plan.checks(), entry.subject).rows());
  }
  if (entry.slot >= 0) {
    entry.data = device->slot(entry.slot, entry.micro_batch);
    if (auto found = direct.find(entry.slot); found != direct.end())
      entry.direct = &found->second;
    entry.bytes = at(program.slots(), entry.slot).bytes();
  }
  makeEnd(entry);
  if (entry.kind != abi::ActionKind::run)
    return Status();
  entry.instance = PARTITA_TRY(device->prepare(entry.subject));
  for (size_t i = 0; i < entry.instance->movable().size(); ++i)
    entry.movable.push_back({i, &direct.at(entry.instance->movable()[i].slot)});
  return Status();
}

/// The way that messages of a channel take is chosen here, once.
void Executor::makeEnd(Entry &entry) {
  if (!abi::usesChannel(entry.kind))
    return;
  const int link = linkOf(mesh, entry.subject, position);
  EndMemory memory{device.get(), 1, entry.bytes};
  if (entry.slot >= 0)
    memory.copies = copiesOf(entry.slot);
  if (entry.kind == abi::ActionKind::send ||
      entry.kind == abi::ActionKind::wait) {
    std::unique_ptr<Sender> &end = senders[entry.subject];
    if (!end)
      end = comm.sender(link, memory);
    entry.sender = end.get();
  } else {
    std::unique_ptr<Receiver> &end = receivers[entry.subject];
    if (!end)
      end = comm.receiver(link, memory);
    entry.receiver = end.get();
  }
}

/// The plan has been verified: each start has a finish after it.
void Executor::matchCollectives() {
  std::map<std::pair<int, int>, size_t> started; // collective, micro-batch
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::pair key(entries[i].subject, entries[i].micro_batch);
    if (entries[i].kind == abi::ActionKind::start)
      started[key] = i;
    if (entries[i].kind != abi::ActionKind::finish)
      continue;
    Entry &start = entries[started.at(key)];
    start.finish = i;
    std::unique_ptr<Participant> &part = participants[start.subject];
    if (!part)
      part = comm.participant(start.subject, index,
                              {device.get(), 1, start.bytes, entries[i].bytes});
    start.participant = entries[i].participant = part.get();
  }
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
  /// What a copy of a slot received last.
  std::map<std::pair<const DirectSlot *, size_t>, Key> held;
  for (Entry &entry : entries) {
    const Key key(entry.subject, entry.micro_batch);
    if (entry.kind == abi::ActionKind::recv && entry.direct) {
      borrowed[key] = {};
      held[{entry.direct, entry.direct->copyOf(entry.micro_batch)}] = key;
    }
    for (auto [which, slot] : entry.movable) {
      auto found = held.find({slot, slot->copyOf(entry.micro_batch)});
      if (found != held.end() && found->second.second == entry.micro_batch)
        borrowed[found->second] = {&entry,
                                   entry.instance->movable()[which].last_task};
    }
    auto found = borrowed.find(key);
    if (entry.kind != abi::ActionKind::release || found == borrowed.end())
      continue; // what was copied is released already
    auto [reader, task] = found->second;
    if (reader)
      reader->releases.push_back({task, entry.receiver});
    else
      entry.releases.push_back({0, entry.receiver});
  }
  for (Entry &entry : entries)
    std::stable_sort(
        entry.releases.begin(), entry.releases.end(),
        [](const Release &a, const Release &b) { return a.task < b.task; });
}

namespace {

/// Bytes of the arena.
struct Range {
  int64_t begin = 0, end = 0;

  bool overlaps(const Range &other) const {
    return begin < other.end && other.begin < end;
  }
};

/// Where a program's slots lie in its arena.
class ArenaRanges {
public:
  ArenaRanges(const abi::Program &program, int micro_batches)
      : program(program), period(1) {
    // A step has no more micro-batches to tell apart than that.
    const auto most = static_cast<size_t>(micro_batches);
    for (int64_t i = 0; i < length(program.frames()) && period < most; ++i)
      period = std::lcm(period, copies(static_cast<int>(i)).size());
  }

  /// Nothing for a slot that no action writes.
  Range of(int slot, int micro_batch) const {
    const abi::Slot &found = at(program.slots(), slot);
    int64_t begin = found.offset();
    if (found.space() == abi::Space::frame) {
      const auto &list = copies(found.frame());
      begin += list.Get(static_cast<unsigned>(micro_batch) % list.size());
    } else if (found.space() != abi::Space::arena) {
      return {};
    }
    return {begin, begin + found.bytes()};
  }

  /// Actions that write the same bytes have the same key: the unit or, below 0,
  /// the slot; and the micro-batch, as far as frames tell it apart.
  using Key = std::pair<int, size_t>;
  Key keyOf(const abi::ProgramAction &action) const {
    return {action.kind == abi::ActionKind::run ? action.subject
                                                : -1 - action.slot,
            static_cast<size_t>(action.micro_batch) % period};
  }

  /// All that an action writes.
  std::vector<Range> written(const abi::ProgramAction &action) const {
    std::vector<Range> ranges;
    if (getInfo(action.kind).access == abi::SlotAccess::written &&
        action.slot >= 0)
      ranges.push_back(of(action.slot, action.micro_batch));
    if (action.kind != abi::ActionKind::run)
      return ranges;
    const abi::Unit &unit = at(program.units(), action.subject);
    for (const abi::Instruction &instruction : each(unit.instructions()))
      forEachSlot(instruction, [&](const SlotUse &use) {
        if (use.written)
          ranges.push_back(of(use.slot, action.micro_batch));
      });
    return ranges;
  }

private:
  const flatbuffers::Vector<int64_t> &copies(int frame) const {
    return *at(program.frames(), frame).copies();
  }

  const abi::Program &program;
  size_t period; ///< after so many micro-batches frames have the same copies
};

} // namespace

/// At the end of a program nothing would be written before the next step, so
/// what was sent need not be awaited there.
void Executor::carryWaits() {
  const ArenaRanges ranges(program, plan.micro_batches());
  // What an entry writes: from the start of a collective on, other devices
  // write the slot of its finish.
  auto writerAt = [&](size_t i) -> const Entry & {
    return entries[entries[i].kind == abi::ActionKind::start ? entries[i].finish
                                                             : i];
  };
  auto writes = [](const Entry &entry) {
    return entry.kind == abi::ActionKind::run ||
           getInfo(entry.kind).access == abi::SlotAccess::written;
  };
  std::map<std::pair<int, int>, size_t> sends; // by channel and micro-batch
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].kind == abi::ActionKind::send)
      sends[{entries[i].subject, entries[i].micro_batch}] = i;
  auto sendOf = [&](const Entry &wait) {
    return sends.at({wait.subject, wait.micro_batch});
  };
  auto sentBy = [&](const Entry &wait) {
    const Entry &send = entries[sendOf(wait)];
    return send.slot < 0 ? Range() : ranges.of(send.slot, send.micro_batch);
  };
  auto overlapsAny = [](const std::vector<Range> &list, const Range &range) {
    return std::any_of(list.begin(), list.end(),
                       [&](const Range &each) { return each.overlaps(range); });
  };

  // From the end on: what is written later than a wait.
  std::vector<Range> later;
  std::set<ArenaRanges::Key> known;
  for (size_t i = entries.size(); i-- > 0;) {
    Entry &entry = entries[i];
    if (entry.kind == abi::ActionKind::wait &&
        !overlapsAny(later, sentBy(entry))) {
      entry.carried = static_cast<int>(carried.size());
      carried.push_back({i});
    }
    const Entry &writer = writerAt(i);
    if (!writes(writer) || !known.insert(ranges.keyOf(writer)).second)
      continue;
    const std::vector<Range> more = ranges.written(writer);
    later.insert(later.end(), more.begin(), more.end());
  }
  if (carried.empty())
    return;

  // Each carried wait comes before everything that writes its bytes.
  std::map<ArenaRanges::Key, std::vector<int>> before;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry &writer = writerAt(i);
    if (!writes(writer))
      continue;
    auto [it, isNew] = before.try_emplace(ranges.keyOf(writer));
    if (isNew) {
      const std::vector<Range> written = ranges.written(writer);
      for (size_t c = 0; c < carried.size(); ++c)
        if (overlapsAny(written, sentBy(entries[carried[c].entry])))
          it->second.push_back(static_cast<int>(c));
    }
    entries[i].before = it->second;
  }
  // Bytes that nothing writes, and tokens, are sent again.
  for (size_t c = 0; c < carried.size(); ++c)
    entries[sendOf(entries[carried[c].entry])].before.push_back(
        static_cast<int>(c));
}

Status Executor::finish(CarriedWait &wait) {
  if (!wait.pending)
    return Status();
  const Entry &entry = entries[wait.entry];
  if (Status status = entry.sender->wait(entry.micro_batch); !status.ok())
    return explain(entry, status);
  wait.pending = false;
  return Status();
}

Status Executor::finishSends() {
  for (CarriedWait &wait : carried)
    PARTITA_TRY(finish(wait));
  Queue &queue = device->queue();
  return queue.synchronize(queue.record());
}

Status Executor::run(const StepBinding &binding) {
  current = &steps[run_count++ % steps.size()];
  current->recorded.clear();
  current->recorded_there.clear();
  current->fed = binding.micro_batches;
  Status status = device->beginStep();
  if (status.ok())
    status = runSteps(binding);
  current->ran = status.ok();
  current->end = device->closeStep();
  return status;
}

/// Whatever failed: nothing may be at work when the step has ended.
Status Executor::awaitStep() {
  last = &steps[awaited_count++ % steps.size()];
  bad.clear();
  const Status status = device->awaitStep(last->end);
  last->recorded.insert(last->recorded.end(), last->recorded_there.begin(),
                        last->recorded_there.end());
  if (!status.ok())
    return Status::error(std::string(text(described.name())) + ": " +
                         status.message());
  if (measure && last->ran)
    measureArena();
  if (told && last->ran)
    findBadIndices();
  return status;
}

Status Executor::runSteps(const StepBinding &binding) {
  if (search)
    search->clear();
  if (measure) {
    PARTITA_TRY(finishSends());
    std::fill(image.begin(), image.end(), kUntouched);
    PARTITA_TRY(
        device->queue().copyIn(device->arena(), image.data(), image.size()));
  }
  if (binding.begins)
    PARTITA_TRY(beginSequences(binding));
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry &entry = entries[i];
    if (entry.fed >= binding.micro_batches)
      continue;
    int64_t begin = profile ? now() : 0;
    for (int wait : entry.before)
      PARTITA_TRY(finish(carried[static_cast<size_t>(wait)]));
    if (Status status = execute(entry, binding); !status.ok())
      return explain(entry, status);
    if (profile)
      current->recorded.push_back(
          {index, entry.fed, static_cast<int>(i), -1, begin, now()});
  }
  return Status();
}

/// Makes the carried states of those that begin 0.
Status Executor::beginSequences(const StepBinding &binding) {
  for (int64_t i = 0; i < length(plan.states()); ++i) {
    const auto state = static_cast<int>(i);
    const abi::State &described = *plan.states()->Get(unsigned(i));
    const int slot =
        described.role() == abi::StateRole::carried ? slotOfState(state) : -1;
    if (slot < 0)
      continue;
    const int sequences = plan.step_sequences();
    const size_t bytes =
        static_cast<size_t>(at(program.slots(), slot).bytes() / sequences);
    auto clear = [&](uint8_t *place) {
      if (!device->isHost())
        return device->queue().copyIn(place, zeros.data(), bytes);
      std::memset(place, 0, bytes);
      return Status();
    };
    auto clearEach = [&](uint8_t *place, int64_t) {
      Status status;
      for (int i = 0; i < sequences && status.ok(); ++i, place += bytes)
        if (binding.begins >> i & 1)
          status = clear(place);
      return status;
    };
    PARTITA_TRY(forEachCopy(state, binding.sequence, clearEach));
  }
  return Status();
}

Status Executor::execute(const Entry &entry, const StepBinding &binding) {
  size_t bytes = static_cast<size_t>(entry.bytes);
  switch (entry.kind) {
  case abi::ActionKind::run:
    return runInstance(entry, binding);
  case abi::ActionKind::send:
    return entry.sender->send(entry.micro_batch, entry.data, entry.bytes);
  case abi::ActionKind::recv:
    return entry.direct ? borrow(entry)
                        : entry.receiver->receive(entry.micro_batch, entry.data,
                                                  entry.bytes);
  case abi::ActionKind::wait:
    if (entry.carried >= 0) {
      carried[static_cast<size_t>(entry.carried)].pending = true;
      return Status();
    }
    return entry.sender->wait(entry.micro_batch);
  case abi::ActionKind::release:
    for (const Release &release : entry.releases)
      release.receiver->release(entry.micro_batch);
    return Status();
  case abi::ActionKind::start:
    return entry.participant->start(entry.micro_batch, entry.data,
                                    entries[entry.finish].data);
  case abi::ActionKind::finish:
    return entry.participant->finish(entry.micro_batch);
  case abi::ActionKind::load_input:
    if (bytes &&
        (!entry.direct || entry.direct->place(entry, binding) == entry.data))
      return device->queue().copyIn(
          entry.data, binding.inputs[entry.subject] + entry.at * bytes, bytes);
    return Status();
  case abi::ActionKind::examine:
    return stores ? device->queue().tell(current->told.data() + entry.told,
                                         entry.data, bytes)
                  : Status();
  case abi::ActionKind::store_output:
    if (bytes && entry.stores &&
        (!entry.direct || entry.direct->place(entry, binding) == entry.data))
      return device->queue().copyOut(
          binding.outputs[entry.subject] + entry.at * bytes, entry.data, bytes);
    return Status();
  }
  return Status();
}

Status Executor::borrow(const Entry &entry) {
  auto at = PARTITA_TRY(
      entry.receiver->borrow(entry.micro_batch, entry.data, entry.bytes));
  uint8_t *&borrowed =
      entry.direct->borrowed[entry.direct->copyOf(entry.micro_batch)];
  borrowed = const_cast<uint8_t *>(at);
  if (reinterpret_cast<uintptr_t>(at) % entry.direct->alignment) {
    std::memcpy(entry.data, at, static_cast<size_t>(entry.bytes));
    borrowed = entry.data;
  }
  return Status();
}

uint8_t *Executor::DirectSlot::place(const Entry &entry,
                                     const StepBinding &binding) const {
  if (port.kind == DirectPort::Kind::channel)
    return borrowed[copyOf(entry.micro_batch)];
  uint8_t *base = port.kind == DirectPort::Kind::input
                      ? const_cast<uint8_t *>(binding.inputs[port.index])
                      : binding.outputs[port.index];
  if (!base || reinterpret_cast<uintptr_t>(base) % alignment)
    return own[copyOf(entry.micro_batch)];
  return per_step ? base : base + entry.fed * bytes;
}

Status Executor::runInstance(const Entry &entry, const StepBinding &binding) {
  for (auto [which, slot] : entry.movable)
    entry.instance->move(which, slot->place(entry, binding));
  const int micro_batch = binding.sequence * stride + entry.micro_batch;
  if (search) {
    Queue &queue = device->queue();
    PARTITA_TRY(queue.synchronize(queue.record()));
    search->begin(static_cast<int>(&entry - entries.data()), micro_batch,
                  entry.fed);
  }
  return device->queue().run(
      *entry.instance, micro_batch,
      entry.observers.empty() ? nullptr : entry.observers[place()].get());
}

/// Adds to a communicator's error which operation it was and for whom it waits.
Status Executor::explain(const Entry &entry, const Status &status) const {
  std::string message = std::string(text(described.name())) + ": ";
  std::string batch = "micro-batch " + std::to_string(entry.fed);
  if (getInfo(entry.kind).subject == abi::ActionSubject::collective) {
    const abi::Collective &collective = at(plan.collectives(), entry.subject);
    return Status::error(
        message + abi::EnumNameCollectiveKind(collective.kind()) + " of " +
        batch + " of " + quoted(collective.name()) + " (collective " +
        std::to_string(entry.subject) + "): " + status.message());
  }
  if (!abi::usesChannel(entry.kind))
    return Status::error(message + batch + ": " + status.message());
  const abi::Channel &channel = at(plan.channels(), entry.subject);
  std::string what = batch + " of " + quoted(channel.name()) + " (channel " +
                     std::to_string(entry.subject) + ")";
  auto nameOf = [&](int program) -> std::string {
    const int device = mesh.device(program, position);
    return text(at(plan.devices(), device).name());
  };
  const std::string source = nameOf(channel.source()),
                    target = nameOf(channel.target());
  switch (entry.kind) {
  case abi::ActionKind::recv:
    message += "receiving " + what + " from " + source;
    break;
  case abi::ActionKind::send:
    message += "sending " + what + " to " + target;
    break;
  default:
    message += "waiting for " + target + " to take " + what;
  }
  return Status::error(message + ": " + status.message());
}

/// Of the devices that compute the same, one looks.
void Executor::findBadIndices() {
  for (const Entry &entry : entries)
    if (entry.kind == abi::ActionKind::examine && stores &&
        entry.fed < last->fed)
      collectBadIndices(at(plan.checks(), entry.subject), entry.subject,
                        entry.fed, last->told.data() + entry.told, bad);
}

void Executor::measureArena() {
  if (!device->download(image.data(), device->arena(), image.size()).ok())
    return;
  int64_t end = static_cast<int64_t>(image.size());
  while (end > touched && image[end - 1] == kUntouched)
    --end;
  touched = std::max(touched, end);
}

int Executor::slotOfState(int state) const {
  for (int64_t i = 0; i < length(program.slots()); ++i)
    if (const abi::Slot &slot = at(program.slots(), i);
        slot.space() == abi::Space::state && slot.offset() == state)
      return static_cast<int>(i);
  return -1;
}

/// Calls `visit(bytes on the device, offset in the tensor of all
/// micro-batches)` for each of the device's copies of a state.
template <typename Visit>
Status Executor::forEachCopy(int state, int sequence, Visit visit) const {
  const auto &described = at(plan.states(), state);
  const int copies = runtime::copiesOf(plan, described),
            slot = slotOfState(state);
  const bool differ = described.role() == abi::StateRole::carried;
  for (int copy = 0; copy < copies; ++copy) {
    const int fed = copy * mesh.replicas() + mesh.replica(index);
    PARTITA_TRY(visit(device->slot(slot, sequence * stride + copy),
                      differ ? fed * described.bytes() : 0));
  }
  return Status();
}

Status Executor::readState(int state, void *to, int sequence) const {
  const auto &described = at(plan.states(), state);
  const StatePart part(plan, described, index);
  std::vector<uint8_t> own(isCut(described) ? part.bytes() : 0);
  return forEachCopy(
      state, sequence, [&](const uint8_t *place, int64_t offset) {
        uint8_t *whole = static_cast<uint8_t *>(to) + offset;
        if (!isCut(described))
          return device->download(whole, place, part.bytes());
        Status status = device->download(own.data(), place, own.size());
        if (status.ok())
          part.put(own.data(), whole);
        return status;
      });
}

Status Executor::writeState(int state, const void *from, int sequence) {
  const auto &described = at(plan.states(), state);
  const StatePart part(plan, described, index);
  std::vector<uint8_t> own(isCut(described) ? part.bytes() : 0);
  return forEachCopy(state, sequence, [&](uint8_t *place, int64_t offset) {
    const uint8_t *whole = static_cast<const uint8_t *>(from) + offset;
    if (!isCut(described))
      return device->upload(place, whole, part.bytes());
    part.take(whole, own.data());
    return device->upload(place, own.data(), own.size());
  });
}

DeviceMemory Executor::memory() const {
  DeviceMemory memory = device->memory();
  memory.arena_touched = touched;
  return memory;
}

} // namespace partita::runtime
