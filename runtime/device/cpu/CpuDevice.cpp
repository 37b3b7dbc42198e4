//===- CpuDevice.cpp - Memory, kernels and library calls of one device ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/CpuDevice.h"

#include "runtime/abi/Fusion.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/base/Elements.h"
#include "runtime/base/Slots.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <set>

namespace partita::runtime {
namespace {

/// A copy shorter than this is not worth waking another thread.
constexpr int64_t kCopyGrain = 256 << 10;

class KernelTask final : public Task {
public:
  KernelTask(partita_kernel_fn kernel, std::vector<void *> buffers,
             int64_t extent, int64_t grain, const ThreadTeam &team)
      : kernel(kernel), buffers(std::move(buffers)), extent(extent),
        grain(grain), team(team) {}
  bool run() override {
    team.split(extent, grain, runRange, this);
    return true;
  }
  void visitAddresses(const AddressVisitor &visit) override {
    for (void *&buffer : buffers)
      visit(&buffer);
  }

private:
  static void runRange(void *self, int, int64_t begin, int64_t end) {
    auto *task = static_cast<KernelTask *>(self);
    task->kernel(task->buffers.data(), begin, end);
  }
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
      team.split(bytes, kCopyGrain, runRange, this);
    return true;
  }
  void visitAddresses(const AddressVisitor &visit) override {
    visit(&to);
    visit(&from);
  }

private:
  static void runRange(void *self, int, int64_t begin, int64_t end) {
    auto *task = static_cast<CopyTask *>(self);
    std::memmove(task->to + begin, task->from + begin,
                 static_cast<size_t>(end - begin));
  }
  uint8_t *to;
  uint8_t *from;
  int64_t bytes;
  const ThreadTeam &team;
};

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

bool dropsNan(const abi::LibraryCall &call) {
  for (int64_t i = 0; i < length(call.post_ops()); ++i)
    if (abi::losesNan(call.post_ops()->Get(i)->kind()))
      return true;
  return call.kind() == abi::CallKind::pool_max || call.winograd();
}

} // namespace

void CpuInstance::move(size_t which, uint8_t *address) {
  Addresses &slot = addresses[which];
  if (address == slot.now)
    return;
  for (const Place &each : slot.places)
    each.place.set(address + each.offset);
  slot.now = address;
}

CpuDevice::CpuDevice(const abi::Plan &plan, int index,
                     const WeightPointers &weights, bool weights_are_mapped,
                     const DeviceOptions &options,
                     const std::vector<int> &cores)
    : plan(plan), device(*plan.devices()->Get(index)), weights(weights),
      weights_are_mapped(weights_are_mapped), team(options.threads, cores) {}

Expected<std::unique_ptr<CpuDevice>>
CpuDevice::create(const abi::Plan &plan, int index,
                  const WeightPointers &weights, bool weights_are_mapped,
                  std::shared_ptr<const KernelLibrary> kernels,
                  const DeviceOptions &options, const std::vector<int> &cores) {
  FlushDenormals flush;
  std::unique_ptr<CpuDevice> self(
      new CpuDevice(plan, index, weights, weights_are_mapped, options, cores));
  self->kernels = std::move(kernels);
  auto arena = Arena::map(self->device.arena_bytes(), "the arena");
  if (!arena)
    return arena.status();
  self->arena_bytes = std::move(*arena);
  auto constants =
      Arena::map(self->device.constant_bytes(), "the constant region");
  if (!constants)
    return constants.status();
  self->constants = std::move(*constants);
  auto context = OnednnContext::create({self->device.packed_bytes(),
                                        self->device.workspace_bytes(),
                                        self->largestRoom()});
  if (!context)
    return context.status();
  self->context = std::move(*context);
  // What is computed only once may well be computed by slower code.
  self->context->keepNan(&self->team);
  self->context->useTeam(self->team);
  if (Status status = self->runLoadProgram(); !status.ok())
    return status;
  if (!options.keep_nan)
    self->context->keepNan(nullptr);
  return self;
}

int64_t CpuDevice::largestRoom() const {
  int64_t largest = 0;
  auto visit = [&](const abi::Instruction &instruction) {
    const abi::LibraryCall *call = instruction.work_as_LibraryCall();
    if (!call)
      return;
    Extents operands;
    std::vector<bool> constant;
    for (const abi::View *view : *call->operands()) {
      operands.emplace_back();
      if (view->shape())
        operands.back().assign(view->shape()->begin(), view->shape()->end());
      const abi::Space space = device.slots()->Get(view->slot())->space();
      constant.push_back(space == abi::Space::weight ||
                         space == abi::Space::constant);
    }
    largest =
        std::max(largest, workspaceRoom(*call, operands,
                                        constant.size() > 1 && constant[1]));
  };
  for (int64_t i = 0; i < length(device.load()); ++i)
    visit(*device.load()->Get(i));
  for (int64_t i = 0; i < length(device.units()); ++i)
    for (int64_t k = 0; k < length(device.units()->Get(i)->instructions()); ++k)
      visit(*device.units()->Get(i)->instructions()->Get(k));
  return largest;
}

Status CpuDevice::letMove(const std::vector<int> &slots) {
  for (int slot : slots) {
    auto made = Arena::map(
        static_cast<size_t>(device.slots()->Get(slot)->bytes()), "addresses");
    if (!made)
      return made.status();
    stand_ins.emplace(slot, std::move(*made));
  }
  return Status();
}

void CpuDevice::findMovable(CpuInstance &instance) {
  for (auto &[slot, stand_in] : stand_ins) {
    Instance::Movable movable;
    movable.slot = slot;
    CpuInstance::Addresses found;
    auto visit = [&found, &stand_in = stand_in](AddressPlace place) {
      uint8_t *address = place.get();
      if (address >= stand_in.data() &&
          address < stand_in.data() + stand_in.size())
        found.places.push_back({place, address - stand_in.data()});
    };
    for (size_t i = 0; i < instance.tasks.size(); ++i) {
      size_t before = found.places.size();
      instance.tasks[i]->visitAddresses(visit);
      if (found.places.size() > before)
        movable.last_task = i;
    }
    if (found.places.empty())
      continue;
    instance.movables.push_back(movable);
    instance.addresses.push_back(std::move(found));
    instance.move(instance.movables.size() - 1,
                  arena_bytes.data() + device.slots()->Get(slot)->offset());
  }
}

uint8_t *CpuDevice::slot(int index) const {
  if (auto moved = stand_ins.find(index); moved != stand_ins.end())
    return moved->second.data();
  const abi::Slot &slot = *device.slots()->Get(index);
  switch (slot.space()) {
  case abi::Space::arena:
    return arena_bytes.data() + slot.offset();
  case abi::Space::constant:
    return constants.data() + slot.offset();
  case abi::Space::weight:
    return const_cast<uint8_t *>(weights[slot.offset()]);
  case abi::Space::argument:
    break;
  }
  return nullptr;
}

const abi::Slot &CpuDevice::boundSlot(int slot, const Bindings *bindings,
                                      int &bound) const {
  const abi::Slot *found = device.slots()->Get(slot);
  bound = slot;
  if (found->space() == abi::Space::argument) {
    bound = bindings->Get(static_cast<unsigned>(found->offset()));
    found = device.slots()->Get(bound);
  }
  return *found;
}

/// A kernel may rely on its operands being aligned to their element; the
/// library and copies do not.
Expected<void *> CpuDevice::alignedSlot(int slot, const Bindings *bindings) {
  int bound;
  const abi::Slot &found = boundSlot(slot, bindings, bound);
  uint8_t *data = this->slot(bound);
  if (reinterpret_cast<uintptr_t>(data) % elementBytes(found.dtype()) == 0)
    return static_cast<void *>(data);
  Arena &copy = aligned_weights[found.offset()];
  if (!copy.data()) {
    auto made = Arena::map(found.bytes(), "an aligned copy of a weight");
    if (!made)
      return made.status();
    copy = std::move(*made);
    std::memcpy(copy.data(), data, static_cast<size_t>(found.bytes()));
    releasePages(data, static_cast<size_t>(found.bytes()));
  }
  return static_cast<void *>(copy.data());
}

Operand CpuDevice::operand(const abi::View &view,
                           const Bindings *bindings) const {
  Operand operand;
  int bound;
  const abi::Slot &slot = boundSlot(view.slot(), bindings, bound);
  operand.type = slot.dtype();
  operand.data = reinterpret_cast<float *>(
      this->slot(bound) + view.offset() * elementBytes(operand.type));
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
CpuDevice::prepare(const abi::Instruction &instruction,
                   const Bindings *bindings, bool pack) {
  auto address = [&](int slot) {
    int bound;
    boundSlot(slot, bindings, bound);
    return this->slot(bound);
  };
  if (const abi::Dispatch *dispatch = instruction.work_as_Dispatch()) {
    std::vector<void *> buffers;
    for (int slot : *dispatch->operands()) {
      auto buffer = alignedSlot(slot, bindings);
      if (!buffer)
        return buffer.status();
      buffers.push_back(*buffer);
    }
    return std::unique_ptr<Task>(
        new KernelTask(kernels->kernel(dispatch->kernel()), std::move(buffers),
                       dispatch->extent(), dispatch->grain(), team));
  }
  if (const abi::Copy *copy = instruction.work_as_Copy())
    return std::unique_ptr<Task>(
        new CopyTask(address(copy->destination()), address(copy->source()),
                     device.slots()->Get(copy->source())->bytes(), team));
  ResolvedCall call = resolveCall(
      *instruction.work_as_LibraryCall(),
      [&](const abi::View &view) { return operand(view, bindings); });
  auto task = prepareCall(std::move(call), *context, team, pack);
  if (!task)
    return Status::error(std::string(text(device.name())) + ": '" +
                         text(instruction.label()) +
                         "': " + task.status().message());
  return task;
}

Expected<Instance *> CpuDevice::prepare(int unit, const Bindings *bindings) {
  FlushDenormals flush;
  std::vector<int> bound;
  if (bindings)
    bound.assign(bindings->begin(), bindings->end());
  std::unique_ptr<CpuInstance> &instance = instances[{unit, bound}];
  if (instance)
    return static_cast<Instance *>(instance.get());
  instance = std::make_unique<CpuInstance>();
  instance->unit = unit;
  const abi::Unit &described = *device.units()->Get(unit);
  for (int64_t i = 0; i < length(described.instructions()); ++i) {
    auto task = prepare(*described.instructions()->Get(i), bindings, true);
    if (!task)
      return task.status();
    instance->tasks.push_back(std::move(*task));
    const abi::LibraryCall *call =
        described.instructions()->Get(i)->work_as_LibraryCall();
    const bool drops = call && !context->nanTeam() && dropsNan(*call);
    instance->drops_nan.push_back(drops);
    drops_nan |= drops;
  }
  findMovable(*instance);
  return static_cast<Instance *>(instance.get());
}

Status CpuDevice::runLoadProgram() {
  CpuInstance load;
  for (int64_t i = 0; i < length(device.load()); ++i) {
    auto task = prepare(*device.load()->Get(i), nullptr, false);
    if (!task)
      return task.status();
    load.tasks.push_back(std::move(*task));
  }
  if (Status status = reserveScratch({&load}); !status.ok())
    return status;
  for (size_t i = 0; i < load.tasks.size(); ++i)
    if (!load.tasks[i]->run())
      return Status::error(std::string(text(device.name())) +
                           ": the load program failed in '" +
                           text(device.load()->Get(i)->label()) + "'");
  return Status();
}

Status CpuDevice::reserveScratch(const std::vector<CpuInstance *> &used) {
  size_t bytes = 0;
  for (CpuInstance *instance : used)
    for (auto &task : instance->tasks)
      bytes = std::max(bytes, task->scratchBytes());
  auto arena = Arena::map(bytes, "the library's scratch");
  if (!arena)
    return arena.status();
  scratch = std::move(*arena);
  for (CpuInstance *instance : used)
    for (auto &task : instance->tasks)
      task->useScratch(scratch.data());
  return Status();
}

Status CpuDevice::finish() {
  FlushDenormals flush;
  std::vector<CpuInstance *> all;
  for (auto &entry : instances)
    all.push_back(entry.second.get());
  stand_ins.clear();
  releaseUnread();
  return reserveScratch(all);
}

Expected<uint8_t *> CpuDevice::allocate(size_t bytes, const char *what) {
  auto made = Arena::map(bytes, what);
  if (!made)
    return made.status();
  allocated.push_back(std::move(*made));
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

Status CpuDevice::endStep() {
  if (drops_nan)
    met_nan |= team.metNan();
  flush.reset();
  return Status();
}

Status CpuDevice::run(Instance &prepared, TaskObserver *observer) {
  auto &instance = static_cast<CpuInstance &>(prepared);
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
                           std::string(text(device.units()
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
  memory.arena = static_cast<int64_t>(arena_bytes.size());
  memory.parameters = static_cast<int64_t>(parameters);
  memory.packed = static_cast<int64_t>(context->packedBytes());
  memory.workspace = static_cast<int64_t>(scratch.size());
  memory.planned = device.arena_bytes() + device.parameter_bytes() +
                   device.packed_bytes() +
                   device.workspace_bytes() * team.size();
  return memory;
}

/// Read is what tasks point at, whatever a call makes of its operands (it may
/// swap them), and what instructions use but for weights that were packed.
void CpuDevice::releaseUnread() {
  struct Range {
    uintptr_t end;
    bool read = false;
  };
  std::map<uintptr_t, Range> ranges; // by first byte; none overlaps another
  for (int64_t i = 0; i < length(device.slots()); ++i) {
    const abi::Slot &found = *device.slots()->Get(static_cast<unsigned>(i));
    if ((found.space() != abi::Space::weight &&
         found.space() != abi::Space::constant) ||
        found.bytes() == 0)
      continue;
    auto begin = reinterpret_cast<uintptr_t>(slot(static_cast<int>(i)));
    uintptr_t end = begin + static_cast<uintptr_t>(found.bytes());
    auto next = ranges.lower_bound(begin);
    if (next != ranges.begin() && std::prev(next)->second.end > begin)
      --next;
    for (; next != ranges.end() && next->first < end;
         next = ranges.erase(next)) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second.end);
    }
    ranges.emplace(begin, Range{end});
  }
  auto read = [&](const uint8_t *data) {
    const auto address = reinterpret_cast<uintptr_t>(data);
    auto found = ranges.upper_bound(address);
    if (found != ranges.begin() && address < std::prev(found)->second.end)
      std::prev(found)->second.read = true;
  };
  for (auto &[key, instance] : instances)
    for (auto &task : instance->tasks)
      task->visitAddresses([&](AddressPlace place) { read(place.get()); });
  auto isArgument = [&](int index) {
    return device.slots()->Get(index)->space() == abi::Space::argument;
  };
  auto readSlot = [&](int index) {
    if (!isArgument(index))
      read(slot(index));
  };
  for (int64_t i = 0; i < length(device.units()); ++i) {
    const auto *instructions = device.units()->Get(i)->instructions();
    for (int64_t k = 0; k < length(instructions); ++k) {
      const abi::Instruction *instruction = instructions->Get(k);
      const abi::LibraryCall *call = instruction->work_as_LibraryCall();
      const abi::View *packable =
          call && (call->kind() == abi::CallKind::dot ||
                   call->kind() == abi::CallKind::conv ||
                   call->kind() == abi::CallKind::recurrent)
              ? call->operands()->Get(1)
              : nullptr;
      forEachSlot(*instruction, [&](const SlotUse &use) {
        if (!packable || use.view != packable || isArgument(use.slot) ||
            context->isReadInPlace(operand(*packable, nullptr).data))
          readSlot(use.slot);
      });
    }
  }
  for (int64_t i = 0; i < length(device.program()); ++i)
    if (int index = device.program()->Get(i)->slot(); index >= 0)
      readSlot(index);
  for (const auto &[begin, range] : ranges)
    if (range.read)
      parameters += range.end - begin;
    else
      releasePages(reinterpret_cast<const void *>(begin), range.end - begin);
}

namespace {

class CpuDriver final : public Driver {
public:
  explicit CpuDriver(std::shared_ptr<const KernelLibrary> kernels)
      : kernels(std::move(kernels)) {}
  Expected<std::unique_ptr<Device>>
  create(const abi::Plan &plan, int index, const WeightPointers &weights,
         const DeviceOptions &options, const std::vector<int> &cores) override {
    auto made =
        CpuDevice::create(plan, index, weights, true, kernels, options, cores);
    if (!made)
      return made.status();
    return std::unique_ptr<Device>(std::move(*made));
  }

private:
  std::shared_ptr<const KernelLibrary> kernels;
};

} // namespace

Expected<std::unique_ptr<Driver>> loadCpuDriver(const Artifact &artifact,
                                                const DeviceOptions &options) {
  auto kernels = KernelLibrary::load(artifact, options.max_cpu_level);
  if (!kernels)
    return kernels.status();
  return std::unique_ptr<Driver>(new CpuDriver(std::move(*kernels)));
}

} // namespace partita::runtime
