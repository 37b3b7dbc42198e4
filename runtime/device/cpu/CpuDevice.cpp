//===- CpuDevice.cpp - Memory, kernels and library calls of one device ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/CpuDevice.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/base/Mesh.h"
#include "runtime/base/Programs.h"
#include "runtime/base/Slots.h"
#include "runtime/base/StateParts.h"
#include "runtime/device/cpu/onednn/rules/Fusion.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <set>

namespace partita::runtime {
namespace {

/// A copy shorter than this is not worth waking another thread.
constexpr int64_t kCopyGrain = 256 << 10;
/// Bytes of a mapped weight that are resident while a part of it is copied.
constexpr int64_t kSliceWindow = 4 << 20;

class KernelTask final : public Task {
public:
  KernelTask(partita_kernel_fn kernel, std::vector<void *> buffers,
             int64_t extent, int64_t grain, const ThreadTeam &team)
      : kernel(kernel), buffers(std::move(buffers)), extent(extent),
        grain(grain), team(team) {}
  bool run() override {
    team.split(extent, grain, [&](int, int64_t begin, int64_t end) {
      kernel(buffers.data(), begin, end);
    });
    return true;
  }
  void visitAddresses(const AddressVisitor &visit) override {
    for (void *&buffer : buffers)
      visit(&buffer);
  }

private:
  partita_kernel_fn kernel;
  std::vector<void *> buffers;
  int64_t extent, grain;
  const ThreadTeam &team;
};

class CopyTask final : public Task {
public:
  CopyTask(uint8_t *to, uint8_t *from, int64_t bytes, const ThreadTeam &team)
      : to(to), from(from), bytes(bytes), team(team) {}
  bool run() override {
    if (to != from)
      team.split(bytes, kCopyGrain, [&](int, int64_t begin, int64_t end) {
        std::memmove(to + begin, from + begin,
                     static_cast<size_t>(end - begin));
      });
    return true;
  }
  void visitAddresses(const AddressVisitor &visit) override {
    visit(&to);
    visit(&from);
  }

private:
  uint8_t *to;
  uint8_t *from;
  int64_t bytes;
  const ThreadTeam &team;
};

/// A device's own part of each row.
class SliceTask final : public Task {
public:
  struct Shape {
    int64_t rows, bytes; ///< of a part
    int64_t row;         ///< bytes of a row of the source
    int64_t place;
    /// The source is mapped from a file, and its pages are given back.
    bool is_mapped;
  };
  SliceTask(uint8_t *to, uint8_t *from, const Shape &shape,
            const ThreadTeam &team)
      : to(to), from(from), shape(shape), team(team) {}
  bool run() override {
    const int64_t grain =
        std::max<int64_t>(kCopyGrain / std::max<int64_t>(shape.bytes, 1), 1);
    team.split(shape.rows, grain,
               [&](int, int64_t begin, int64_t end) { copyRows(begin, end); });
    // What lies between the windows.
    if (shape.is_mapped)
      releasePages(from, static_cast<size_t>(shape.rows * shape.row));
    return true;
  }
  void visitAddresses(const AddressVisitor &visit) override {
    visit(&to);
    visit(&from);
  }

private:
  void copyRows(int64_t begin, int64_t end) const {
    const int64_t first = std::min(shape.place * shape.bytes, shape.row),
                  there = std::min(shape.bytes, shape.row - first);
    // Pages of the file are given back on the way, so that the device holds
    // little more than its own part of a large weight at any time.
    const uint8_t *held = from + begin * shape.row;
    auto copy = [&](uint8_t *target, const uint8_t *source, int64_t bytes) {
      std::memcpy(target, source, static_cast<size_t>(bytes));
      if (!shape.is_mapped || source + bytes - held < kSliceWindow)
        return;
      releasePages(held, static_cast<size_t>(source + bytes - held));
      held = source + bytes;
    };
    for (int64_t row = begin; row < end; ++row) {
      uint8_t *target = to + row * shape.bytes;
      const uint8_t *source = from + row * shape.row + first;
      for (int64_t at = 0; at < there; at += kSliceWindow)
        copy(target + at, source + at, std::min(kSliceWindow, there - at));
      std::memset(target + there, 0, static_cast<size_t>(shape.bytes - there));
    }
  }
  uint8_t *to;
  uint8_t *from;
  const Shape shape;
  const ThreadTeam &team;
};

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

bool dropsNan(const abi::Call &call) {
  for (const abi::PostOp &post : each(call.post_ops()))
    if (rules::losesNan(post.kind()))
      return true;
  const abi::Conv *conv = call.details_as_Conv();
  return call.kind() == abi::CallKind::pool_max || (conv && conv->winograd());
}

} // namespace

void CpuInstance::Addresses::pointTo(uint8_t *address) {
  if (address == now)
    return;
  for (const Place &each : places)
    each.place.set(address + each.offset);
  now = address;
}

void CpuInstance::move(size_t which, uint8_t *address) {
  addresses[which].pointTo(address);
}

CpuDevice::CpuDevice(const abi::Plan &plan, int index,
                     const WeightPointers &weights, bool weights_are_mapped,
                     const DeviceOptions &options,
                     const std::vector<int> &cores)
    : plan(plan), index(index), device(*plan.devices()->Get(index)),
      program(programOf(plan, index)), weights(weights),
      weights_are_mapped(weights_are_mapped),
      team(options.threads_per_device, cores),
      constant_places(static_cast<size_t>(length(program.slots()))),
      instances(static_cast<size_t>(length(program.units()))) {}

Expected<std::unique_ptr<CpuDevice>>
CpuDevice::create(const abi::Plan &plan, int index,
                  const WeightPointers &weights, bool weights_are_mapped,
                  std::shared_ptr<const KernelLibrary> kernels,
                  const DeviceOptions &options, const std::vector<int> &cores) {
  FlushDenormals flush;
  PARTITA_TRY(ThreadTeam::hasRoom(options.threads_per_device));
  std::unique_ptr<CpuDevice> self(
      new CpuDevice(plan, index, weights, weights_are_mapped, options, cores));
  self->kernels = std::move(kernels);
  self->countReaders();
  PARTITA_TRY(self->findShare(options.shared.get()));
  PARTITA_TRY(self->findStates());
  for (const abi::Frame &frame : each(self->program.frames())) {
    self->frames.emplace_back();
    for (int64_t copy : *frame.copies())
      self->frames.back().push_back(self->arena() + copy);
  }
  auto constants = PARTITA_TRY(
      Arena::map(self->program.constant_bytes(), "the constant region"));
  self->constants = std::make_shared<const Arena>(std::move(constants));
  auto context = PARTITA_TRY(OnednnContext::create(
      {self->program.packed_bytes(), self->program.workspace_bytes(),
       self->largestRoom()},
      self->share->packed));
  self->context = std::move(context);
  // What is computed only once may well be computed by slower code.
  self->context->keepNan(&self->team);
  self->context->useTeam(self->team);
  PARTITA_TRY(self->runLoadProgram());
  if (self->share->isShared)
    self->shareConstants();
  if (!options.keep_nan)
    self->context->keepNan(nullptr);
  PARTITA_TRY(self->standInForCopies());
  return self;
}

/// Its own, if there are no other plans.
Status CpuDevice::findShare(SharedDevices *shared) {
  Status status;
  auto make = [&]() -> std::shared_ptr<DeviceShare> {
    auto arena = Arena::map(shared ? shared->arenaBytes(index)
                                   : static_cast<size_t>(program.arena_bytes()),
                            "the arena");
    status = arena.status();
    return arena ? std::make_shared<CpuShare>(std::move(*arena),
                                              shared != nullptr)
                 : nullptr;
  };
  share = std::static_pointer_cast<CpuShare>(shared ? shared->of(index, make)
                                                    : make());
  return status;
}

/// States live as long as the share. The first plan that is loaded gives them
/// their initial values.
Status CpuDevice::findStates() {
  states.resize(static_cast<size_t>(length(plan.states())));
  for (const abi::Slot &slot : each(program.slots())) {
    if (slot.space() != abi::Space::state)
      continue;
    std::vector<uint8_t *> &places = states[static_cast<size_t>(slot.offset())];
    if (!places.empty())
      continue;
    const abi::State &state = at(plan.states(), slot.offset());
    const StatePart part(plan, state, index);
    const size_t copies = runtime::countStateCopies(plan, state);
    const size_t stride = stateStride(state);
    bool isNew = false;
    auto found =
        PARTITA_TRY(share->state(text(state.name()), copies * stride, isNew));
    state_bytes += copies * stride;
    for (size_t copy : runtime::stateCopies(plan, program, state))
      places.push_back(found + copy * stride);
    if (!isNew || state.weight() < 0)
      continue;
    const uint8_t *initial = weights[static_cast<size_t>(state.weight())];
    for (size_t copy = 0; copy < copies; ++copy)
      part.take(initial, found + copy * stride);
    if (weights_are_mapped)
      releasePages(const_cast<uint8_t *>(initial),
                   static_cast<size_t>(state.bytes()));
  }
  return Status();
}

int64_t CpuDevice::largestRoom() const {
  int64_t largest = 0;
  auto visit = [&](const abi::Instruction &instruction) {
    const abi::Call *call = instruction.work_as_Call();
    if (!call)
      return;
    std::vector<Operand> operands;
    for (const abi::View *view : *call->operands())
      operands.push_back(operand(*view));
    largest = std::max(largest, workspaceRoom(*call, operands));
  };
  forEachInstruction(program, /*with_load=*/true, visit);
  return largest;
}

Status CpuDevice::letMove(const std::vector<int> &slots) {
  for (int slot : slots) {
    auto made = PARTITA_TRY(Arena::map(
        static_cast<size_t>(program.slots()->Get(slot)->bytes()), "addresses"));
    stand_ins.emplace(slot, std::move(made));
  }
  return Status();
}

/// The copies that micro-batches have of the memory around a slot; null: it has
/// none.
const std::vector<uint8_t *> *CpuDevice::copiesOf(const abi::Slot &slot) const {
  if (slot.space() == abi::Space::frame)
    return &frames[static_cast<size_t>(slot.frame())];
  if (slot.space() == abi::Space::state)
    return &states[static_cast<size_t>(slot.offset())];
  return nullptr;
}

Status CpuDevice::standInForCopies() {
  auto standIn = [&](const std::vector<uint8_t *> &copies,
                     int64_t bytes) -> Status {
    if (copies.size() > 1)
      copy_stand_ins.emplace(
          &copies, PARTITA_TRY(Arena::map(size_t(bytes), "addresses")));
    return Status();
  };
  for (size_t i = 0; i < frames.size(); ++i)
    PARTITA_TRY(standIn(frames[i], at(program.frames(), i).bytes()));
  for (size_t i = 0; i < states.size(); ++i)
    PARTITA_TRY(standIn(states[i], partBytes(at(plan.states(), i))));
  return Status();
}

/// Of all tasks.
CpuInstance::Addresses CpuDevice::findAddresses(CpuInstance &instance,
                                                const Arena &stand_in) {
  CpuInstance::Addresses found;
  auto visit = [&](AddressPlace place) {
    uint8_t *address = place.get();
    if (address >= stand_in.data() &&
        address < stand_in.data() + stand_in.size())
      found.places.push_back({place, address - stand_in.data()});
  };
  for (size_t i = 0; i < instance.tasks.size(); ++i) {
    const size_t before = found.places.size();
    instance.tasks[i]->visitAddresses(visit);
    if (found.places.size() > before)
      found.last_task = i;
  }
  return found;
}

void CpuDevice::findMovable(CpuInstance &instance) {
  for (auto &[slot, stand_in] : stand_ins) {
    CpuInstance::Addresses found = findAddresses(instance, stand_in);
    if (found.places.empty())
      continue;
    found.pointTo(this->slot(slot, 0));
    instance.movables.push_back({slot, found.last_task});
    instance.addresses.push_back(std::move(found));
  }
  for (auto &[copies, stand_in] : copy_stand_ins) {
    CpuInstance::Addresses found = findAddresses(instance, stand_in);
    if (found.places.empty())
      continue;
    found.pointTo(copies->front());
    instance.copied.push_back({copies, std::move(found)});
  }
}

uint8_t *CpuDevice::slot(int index, int micro_batch) const {
  const abi::Slot &slot = *program.slots()->Get(index);
  switch (slot.space()) {
  case abi::Space::arena:
    return arena() + slot.offset();
  case abi::Space::frame:
  case abi::Space::state: {
    const std::vector<uint8_t *> &copies = *copiesOf(slot);
    return copies[static_cast<size_t>(micro_batch) % copies.size()] +
           (slot.space() == abi::Space::frame ? slot.offset() : 0);
  }
  case abi::Space::constant:
    if (uint8_t *place = constant_places[static_cast<size_t>(index)])
      return place;
    return constants->data() + slot.offset();
  case abi::Space::weight:
    break;
  }
  return const_cast<uint8_t *>(weights[slot.offset()]);
}

/// The place of a slot for an instance that is being prepared.
uint8_t *CpuDevice::preparedSlot(int index) const {
  if (auto moved = stand_ins.find(index); moved != stand_ins.end())
    return moved->second.data();
  const abi::Slot &found = *program.slots()->Get(index);
  if (auto copied = copy_stand_ins.find(copiesOf(found));
      copied != copy_stand_ins.end())
    return copied->second.data() +
           (found.space() == abi::Space::frame ? found.offset() : 0);
  return slot(index, 0);
}

/// A kernel may rely on its operands being aligned to their element; the
/// library and copies do not.
Expected<void *> CpuDevice::alignedSlot(int slot) {
  const abi::Slot &found = *program.slots()->Get(slot);
  uint8_t *data = preparedSlot(slot);
  if (reinterpret_cast<uintptr_t>(data) % elementBytes(found.dtype()) == 0)
    return static_cast<void *>(data);
  Arena &copy = aligned_weights[found.offset()];
  if (!copy.data()) {
    copy =
        PARTITA_TRY(Arena::map(found.bytes(), "an aligned copy of a weight"));
    std::memcpy(copy.data(), data, static_cast<size_t>(found.bytes()));
    releasePages(data, static_cast<size_t>(found.bytes()));
  }
  return static_cast<void *>(copy.data());
}

Operand CpuDevice::operand(const abi::View &view) const {
  Operand operand;
  const abi::Slot &slot = *program.slots()->Get(view.slot());
  operand.type = slot.dtype();
  operand.data = reinterpret_cast<float *>(
      preparedSlot(view.slot()) + view.offset() * elementBytes(operand.type));
  if (view.shape())
    operand.dims.assign(view.shape()->begin(), view.shape()->end());
  if (view.strides())
    operand.strides.assign(view.strides()->begin(), view.strides()->end());
  operand.constant = slot.space() == abi::Space::weight ||
                     slot.space() == abi::Space::constant;
  operand.mapped = slot.space() == abi::Space::weight && weights_are_mapped;
  return operand;
}

Expected<std::unique_ptr<Task>>
CpuDevice::prepare(const abi::Instruction &instruction, bool pack) {
  if (const abi::Dispatch *dispatch = instruction.work_as_Dispatch()) {
    std::vector<void *> buffers;
    for (int slot : *dispatch->operands())
      buffers.push_back(PARTITA_TRY(alignedSlot(slot)));
    return std::unique_ptr<Task>(
        new KernelTask(kernels->kernel(dispatch->kernel()), std::move(buffers),
                       dispatch->extent(), dispatch->grain(), team));
  }
  if (const abi::Copy *copy = instruction.work_as_Copy())
    return std::unique_ptr<Task>(new CopyTask(
        preparedSlot(copy->destination()), preparedSlot(copy->source()),
        program.slots()->Get(copy->source())->bytes(), team));
  if (const abi::Slice *slice = instruction.work_as_Slice()) {
    const abi::Slot &to = *program.slots()->Get(slice->destination()),
                    &from = *program.slots()->Get(slice->source());
    return std::unique_ptr<Task>(new SliceTask(
        preparedSlot(slice->destination()), preparedSlot(slice->source()),
        {slice->rows(), slice->part() * elementBytes(to.dtype()),
         slice->rows() ? from.bytes() / slice->rows() : 0,
         placeInGroup(plan, index, *slice->axes()),
         weights_are_mapped && from.space() == abi::Space::weight},
        team));
  }
  ResolvedCall call =
      resolveCall(*instruction.work_as_Call(),
                  [&](const abi::View &view) { return operand(view); });
  auto task =
      PARTITA_TRY(within(std::string(text(device.name())) + ": '" +
                             text(instruction.label()) + "': ",
                         prepareCall(std::move(call), *context, team, pack)));
  if (pack)
    releasePacked(*instruction.work_as_Call(), *task);
  return task;
}

/// What depends on weights only, and was reordered for the only call that reads
/// it: at once, or loading would hold it twice.
void CpuDevice::releasePacked(const abi::Call &call, Task &task) {
  // Other plans may pack it in another order.
  if (length(call.operands()) < 2 || share->isShared)
    return;
  const abi::View &view = *call.operands()->Get(1);
  const abi::Slot &packed = *program.slots()->Get(view.slot());
  if (packed.space() != abi::Space::constant || readers[view.slot()] != 1 ||
      !context->isPacked(operand(view).data))
    return;
  const uint8_t *begin = slot(view.slot(), 0), *end = begin + packed.bytes();
  bool isUsed = false;
  task.visitAddresses([&](AddressPlace place) {
    isUsed |= place.get() >= begin && place.get() < end;
  });
  if (!isUsed)
    releasePages(begin, static_cast<size_t>(packed.bytes()));
}

/// How often units and steps use each slot.
void CpuDevice::countReaders() {
  readers.assign(static_cast<size_t>(length(program.slots())), 0);
  forEachInstruction(
      program, /*with_load=*/false, [&](const abi::Instruction &instruction) {
        forEachSlot(instruction,
                    [&](const SlotUse &use) { ++readers[use.slot]; });
      });
  for (int64_t i = 0; i < length(program.actions()); ++i)
    if (const int used = actionOf(program, i).slot; used >= 0)
      ++readers[used];
}

Expected<Instance *> CpuDevice::prepare(int unit) {
  FlushDenormals flush;
  std::unique_ptr<CpuInstance> &instance = instances[static_cast<size_t>(unit)];
  if (instance)
    return static_cast<Instance *>(instance.get());
  instance = std::make_unique<CpuInstance>();
  instance->unit = unit;
  const abi::Unit &described = *program.units()->Get(unit);
  for (const abi::Instruction &instruction : each(described.instructions())) {
    instance->tasks.push_back(PARTITA_TRY(prepare(instruction, true)));
    const abi::Call *call = instruction.work_as_Call();
    const bool drops = call && !context->nanTeam() && dropsNan(*call);
    instance->drops_nan.push_back(drops);
    drops_nan |= drops;
  }
  findMovable(*instance);
  return static_cast<Instance *>(instance.get());
}

Status CpuDevice::runLoadProgram() {
  CpuInstance load;
  for (const abi::Instruction &instruction : each(program.load()))
    load.tasks.push_back(PARTITA_TRY(prepare(instruction, false)));
  PARTITA_TRY(reserveScratch({&load}));
  for (size_t i = 0; i < load.tasks.size(); ++i)
    if (!load.tasks[i]->run())
      return Status::error(std::string(text(device.name())) +
                           ": the load program failed in '" +
                           text(program.load()->Get(i)->label()) + "'");
  return Status();
}

/// The bytes of all slots in a kind of space.
ByteRanges CpuDevice::rangesOf(bool (*wanted)(abi::Space)) const {
  ByteRanges ranges;
  for (int64_t i = 0; i < length(program.slots()); ++i) {
    const abi::Slot &found = at(program.slots(), i);
    if (!wanted(found.space()) || found.bytes() == 0)
      continue;
    auto begin = reinterpret_cast<uintptr_t>(slot(static_cast<int>(i), 0));
    uintptr_t end = begin + static_cast<uintptr_t>(found.bytes());
    auto next = ranges.lower_bound(begin);
    if (next != ranges.begin() && std::prev(next)->second > begin)
      --next;
    for (; next != ranges.end() && next->first < end;
         next = ranges.erase(next)) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
    }
    ranges.emplace(begin, end);
  }
  return ranges;
}

/// Constants that another plan has computed, too, lie where that has them.
void CpuDevice::shareConstants() {
  constexpr uintptr_t kLeast = 4096; // less gives no page back
  std::map<uintptr_t, uint8_t *> moved;
  const ByteRanges ranges =
      rangesOf([](abi::Space space) { return space == abi::Space::constant; });
  for (auto [begin, end] : ranges) {
    if (end - begin < kLeast)
      continue;
    auto *bytes = reinterpret_cast<uint8_t *>(begin);
    uint8_t *place = share->place(bytes, end - begin, constants);
    if (place == bytes)
      continue;
    moved.emplace(begin, place);
    releasePages(bytes, end - begin);
  }
  for (int64_t i = 0; i < length(program.slots()); ++i) {
    const abi::Slot &found = at(program.slots(), i);
    if (found.space() != abi::Space::constant || found.bytes() == 0)
      continue;
    const auto begin =
        reinterpret_cast<uintptr_t>(constants->data() + found.offset());
    const auto range = std::prev(ranges.upper_bound(begin));
    if (auto to = moved.find(range->first); to != moved.end())
      constant_places[static_cast<size_t>(i)] =
          to->second + (begin - range->first);
  }
}

Status CpuDevice::reserveScratch(const std::vector<CpuInstance *> &used) {
  size_t bytes = 0;
  for (CpuInstance *instance : used)
    for (auto &task : instance->tasks)
      bytes = std::max(bytes, task->scratchBytes());
  scratch = PARTITA_TRY(Arena::map(bytes, "the library's scratch"));
  for (CpuInstance *instance : used)
    for (auto &task : instance->tasks)
      task->useScratch(scratch.data());
  return Status();
}

Status CpuDevice::finish() {
  FlushDenormals flush;
  std::vector<CpuInstance *> all;
  for (auto &instance : instances)
    if (instance)
      all.push_back(instance.get());
  stand_ins.clear();
  copy_stand_ins.clear();
  releaseUnread();
  return reserveScratch(all);
}

Expected<uint8_t *> CpuDevice::allocate(size_t bytes, const char *what) {
  allocated.push_back(PARTITA_TRY(Arena::map(bytes, what)));
  return allocated.back().data();
}

Status CpuDevice::upload(uint8_t *to, const void *from, size_t bytes) {
  if (bytes)
    std::memcpy(to, from, bytes);
  return Status();
}

Status CpuDevice::download(void *to, const uint8_t *from, size_t bytes) {
  if (bytes)
    std::memcpy(to, from, bytes);
  return Status();
}

Status CpuDevice::copyIn(uint8_t *to, const void *from, size_t bytes) {
  return upload(to, from, bytes);
}

Status CpuDevice::copyOut(void *to, const uint8_t *from, size_t bytes) {
  return download(to, from, bytes);
}

Status CpuDevice::copyFrom(Device &source, uint8_t *to, const uint8_t *from,
                           size_t bytes) {
  return source.download(to, from, bytes);
}

Status CpuDevice::wait(const Event &event) {
  return event.queue ? event.queue->synchronize(event) : Status();
}

Status CpuDevice::beginStep() {
  flush.emplace();
  team.enter();
  busy_ns = 0;
  met_nan = false;
  if (drops_nan) // what others did with NaN before does not count
    (void)team.metNan();
  return Status();
}

Event CpuDevice::closeStep() {
  if (drops_nan)
    met_nan |= team.metNan();
  flush.reset();
  return {};
}

Status CpuDevice::run(Instance &prepared, int micro_batch,
                      TaskObserver *observer) {
  auto &instance = static_cast<CpuInstance &>(prepared);
  for (CpuInstance::Copied &each : instance.copied)
    each.addresses.pointTo(
        (*each.copies)[static_cast<size_t>(micro_batch) % each.copies->size()]);
  const bool timed = observer && observer->timed;
  // Of a larger team workers may end between two tasks, and their flags with
  // them.
  const bool ask = team.size() > 2;
  const int64_t begin = now();
  int64_t task_begin = 0;
  for (size_t i = 0; i < instance.tasks.size(); ++i) {
    if (timed)
      task_begin = now();
    if (!instance.tasks[i]->run())
      return Status::error("the library failed in '" +
                           std::string(text(program.units()
                                                ->Get(instance.unit)
                                                ->instructions()
                                                ->Get(i)
                                                ->label())) +
                           "'");
    if (ask && instance.drops_nan[i])
      met_nan |= team.metNan();
    if (observer)
      observer->finished(i, task_begin, timed ? now() : 0);
  }
  busy_ns += now() - begin;
  return Status();
}

DeviceMemory CpuDevice::memory() const {
  DeviceMemory memory;
  memory.arena = program.arena_bytes();
  memory.parameters = static_cast<int64_t>(parameters + state_bytes);
  memory.packed = static_cast<int64_t>(context->packedBytes());
  memory.workspace = static_cast<int64_t>(scratch.size());
  memory.planned = program.arena_bytes() + program.parameter_bytes() +
                   program.packed_bytes() +
                   program.workspace_bytes() * team.size();
  return memory;
}

/// Read is what tasks point at, whatever a call makes of its operands (it may
/// swap them), and what instructions use but for weights that were packed.
void CpuDevice::releaseUnread() {
  const ByteRanges ranges = rangesOf([](abi::Space space) {
    return space == abi::Space::weight || space == abi::Space::constant;
  });
  std::set<uintptr_t> used; // by their begins
  auto read = [&](const uint8_t *data) {
    const auto address = reinterpret_cast<uintptr_t>(data);
    auto found = ranges.upper_bound(address);
    if (found != ranges.begin() && address < std::prev(found)->second)
      used.insert(std::prev(found)->first);
  };
  for (auto &instance : instances)
    if (instance)
      for (auto &task : instance->tasks)
        task->visitAddresses([&](AddressPlace place) { read(place.get()); });
  auto visit = [&](const abi::Instruction &instruction) {
    const abi::Call *call = instruction.work_as_Call();
    const abi::View *packable =
        call && (call->kind() == abi::CallKind::dot ||
                 call->kind() == abi::CallKind::conv ||
                 call->kind() == abi::CallKind::recurrent)
            ? call->operands()->Get(1)
            : nullptr;
    forEachSlot(instruction, [&](const SlotUse &use) {
      if (!packable || use.view != packable ||
          context->isReadInPlace(operand(*packable).data))
        read(slot(use.slot, 0));
    });
  };
  forEachInstruction(program, /*with_load=*/false, visit);
  for (int64_t i = 0; i < length(program.actions()); ++i)
    if (const int index = actionOf(program, i).slot; index >= 0)
      read(slot(index, 0));
  for (auto [begin, end] : ranges) {
    const auto *bytes = reinterpret_cast<const uint8_t *>(begin);
    if (used.count(begin)) {
      parameters += end - begin;
      share->markRead(bytes);
    } else if (!share->holds(bytes)) {
      releasePages(bytes, end - begin);
    }
  }
}

namespace {

class CpuDriver final : public Driver {
public:
  explicit CpuDriver(std::shared_ptr<const KernelLibrary> kernels)
      : kernels(std::move(kernels)) {}
  Expected<std::unique_ptr<Device>>
  create(const abi::Plan &plan, int index, const WeightPointers &weights,
         const DeviceOptions &options, const std::vector<int> &cores) override {
    auto made = PARTITA_TRY(
        CpuDevice::create(plan, index, weights, true, kernels, options, cores));
    return std::unique_ptr<Device>(std::move(made));
  }

private:
  std::shared_ptr<const KernelLibrary> kernels;
};

} // namespace

Expected<std::unique_ptr<Driver>> loadCpuDriver(const Artifact &artifact,
                                                const DeviceOptions &options) {
  auto kernels =
      PARTITA_TRY(KernelLibrary::load(artifact, options.max_cpu_level));
  return std::unique_ptr<Driver>(new CpuDriver(std::move(kernels)));
}

std::string describeCpuLibrary() {
  const dnnl_version_t &version = *dnnl_version();
  return "oneDNN " + std::to_string(version.major) + "." +
         std::to_string(version.minor) + "." + std::to_string(version.patch);
}

std::vector<std::string> describeCpuNeeds(const Artifact &artifact) {
  abi::CpuLevel least = abi::CpuLevel::none;
  for (const ObjectSection &object : artifact.objects())
    if (least == abi::CpuLevel::none || object.level < least)
      least = object.level;
  return {least == abi::CpuLevel::none
              ? "an x86-64 processor"
              : "a processor of x86-64-v" +
                    std::to_string(static_cast<uint32_t>(least)) + " or later"};
}

} // namespace partita::runtime
