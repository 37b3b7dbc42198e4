//===- CudaDevice.cpp - A GPU of NVIDIA's as a device ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaDevice.h"

#include "runtime/abi/Text.h"
#include "runtime/base/Mesh.h"
#include "runtime/base/Programs.h"
#include "runtime/base/Slots.h"
#include "runtime/base/StateParts.h"
#include "runtime/device/cuda/UnitCapture.h"
#include "runtime/device/cuda/rules/Tensor.h"

#include <algorithm>
#include <cstdlib>

namespace partita::runtime::cuda {
namespace {

size_t aligned(size_t bytes) {
  constexpr size_t to = rules::kGpuWeightAlignment;
  return (bytes + to - 1) / to * to;
}

/// Whether the driver tells errors of kernels at their launch: the user looks
/// for one that goes wrong. The launch of a graph would tell of all its
/// kernels.
bool launchesBlock() {
  const char *given = std::getenv("CUDA_LAUNCH_BLOCKING");
  return given && std::atoi(given) != 0;
}

} // namespace

CudaDevice::CudaDevice(const abi::Plan &plan, int index,
                       const WeightPointers &weights,
                       std::shared_ptr<const Gpu> gpu,
                       std::shared_ptr<const KernelModule> kernels,
                       const DeviceOptions &options,
                       const LibraryApis &libraries)
    : plan(plan), index(index), described(at(plan.devices(), index)),
      program(programOf(plan, index)), weights(weights),
      used_gpu(std::move(gpu)), kernels(std::move(kernels)),
      library_apis(libraries), keep_nan(options.keep_nan),
      use_graphs(options.graphs && !launchesBlock()),
      weight_offsets(static_cast<size_t>(length(plan.weights())), -1),
      only_loads(weight_offsets.size()),
      instances(static_cast<size_t>(length(program.units()))) {}

Status CudaDevice::make(const DeviceOptions &options) {
  PARTITA_TRY(used_gpu->use());
  placeWeights();
  placeStates();
  PARTITA_TRY(allocateAll(options));
  for (const abi::Frame &frame : each(program.frames())) {
    frames.emplace_back();
    for (int64_t copy : *frame.copies())
      frames.back().push_back(share->arena.get() +
                              static_cast<DeviceAddress>(copy));
  }
  work = PARTITA_TRY(
      CudaQueue::create(used_gpu, options.timeout_s, stepTraffic()));
  transfers = PARTITA_TRY(Transfers::create(used_gpu, options.timeout_s));
  PARTITA_TRY(loadWeights());
  PARTITA_TRY(loadStates());
  return runLoadProgram();
}

CudaDevice::~CudaDevice() {
  const bool queue_is_idle = !work || work->drain();
  const bool copies_are_idle = !transfers || transfers->drain();
  if (queue_is_idle && copies_are_idle)
    return;
  // A GPU that does not answer may still use all of it.
  (void)work.release();
  (void)transfers.release();
  constants.abandon();
  load_weights.abandon();
  for (DeviceBuffer &buffer : allocated)
    buffer.abandon();
  for (const std::unique_ptr<CudaInstance> &instance : instances)
    if (instance)
      instance->abandonGraphs();
  (void)new std::shared_ptr<CudaShare>(share);
  (void)new std::shared_ptr<const KernelModule>(kernels);
  (void)new std::shared_ptr<cublaslt::Library>(blas);
  (void)new std::shared_ptr<cudnn::Library>(dnn);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Weights that units and steps read stay on the device. Those that only the
/// load program reads are there while it runs; of those that it only cuts, the
/// parts are brought directly.
void CudaDevice::placeWeights() {
  std::vector<bool> kept(weight_offsets.size()), loaded(kept);
  auto use = [&](int slot, std::vector<bool> &users) {
    if (isWeight(slot))
      users[static_cast<size_t>(at(program.slots(), slot).offset())] = true;
  };
  forEachInstruction(
      program, /*with_load=*/false, [&](const abi::Instruction &instruction) {
        forEachSlot(instruction,
                    [&](const SlotUse &used) { use(used.slot, kept); });
      });
  for (int64_t i = 0; i < length(program.actions()); ++i)
    if (const int slot = actionOf(program, i).slot; slot >= 0)
      use(slot, kept);
  for (const abi::Instruction &instruction : each(program.load())) {
    if (!instruction.work_as_Slice())
      forEachSlot(instruction,
                  [&](const SlotUse &used) { use(used.slot, loaded); });
  }
  const auto begin = aligned(static_cast<size_t>(program.constant_bytes()));
  for (size_t i = 0; i < weight_offsets.size(); ++i) {
    if (!kept[i] && !loaded[i])
      continue;
    only_loads[i] = !kept[i];
    size_t &total = only_loads[i] ? load_bytes : kept_bytes;
    weight_offsets[i] =
        static_cast<int64_t>(total + (only_loads[i] ? 0 : begin));
    total += aligned(static_cast<size_t>(at(plan.weights(), i).bytes()));
  }
}

/// Those of the plan that the device has.
void CudaDevice::placeStates() {
  states.resize(static_cast<size_t>(length(plan.states())));
  for (const abi::Slot &slot : each(program.slots())) {
    if (slot.space() != abi::Space::state)
      continue;
    State &state = states[static_cast<size_t>(slot.offset())];
    const abi::State &described = at(plan.states(), slot.offset());
    if (state.used)
      continue;
    state.used = true;
    state.bytes = stateStride(described) * countStateCopies(plan, described);
    if (!described.on_host())
      state_bytes += state.bytes;
  }
}

bool CudaDevice::isWeight(int slot) const {
  return at(program.slots(), slot).space() == abi::Space::weight;
}

/// A plan has it also where it has no calls on GPUs.
size_t CudaDevice::workspaceBytes() const {
  bool any = false;
  forEachInstruction(program, /*with_load=*/true,
                     [&](const abi::Instruction &instruction) {
                       any |= instruction.work_as_Call() != nullptr;
                     });
  return any ? static_cast<size_t>(program.workspace_bytes()) : 0;
}

/// Of all micro-batches.
StepTraffic CudaDevice::stepTraffic() const {
  StepTraffic traffic;
  for (int64_t i = 0; i < length(program.actions()); ++i) {
    const abi::ProgramAction action = actionOf(program, i);
    const size_t bytes =
        action.slot >= 0
            ? static_cast<size_t>(at(program.slots(), action.slot).bytes())
            : 0;
    traffic.largest = std::max(traffic.largest, bytes);
    if (action.kind == abi::ActionKind::load_input)
      traffic.in.push_back(bytes);
    else if (action.kind == abi::ActionKind::store_output ||
             action.kind == abi::ActionKind::examine)
      traffic.out.push_back(bytes);
    else if (action.kind != abi::ActionKind::run)
      ++traffic.events;
  }
  return traffic;
}

/// For what a device allocates itself, and for an arena and states that it
/// allocates for all plans.
Status CudaDevice::checkMemory(size_t arena_bytes, size_t lasting) const {
  size_t free = 0, total = 0;
  PARTITA_TRY(used_gpu->api.check(used_gpu->api.memGetInfo(&free, &total),
                                  "cannot read how much memory a GPU has"));
  const size_t constant = static_cast<size_t>(program.constant_bytes()),
               scratch = share && share->hasWorkspace(workspaceBytes())
                             ? 0
                             : workspaceBytes();
  const size_t needed =
      arena_bytes + lasting + constant + kept_bytes + load_bytes + scratch;
  if (needed <= free)
    return Status();
  auto size = [](size_t bytes) {
    return abi::bytesText(static_cast<int64_t>(bytes));
  };
  return Status::error(
      "the plan needs " + size(needed) + " on " + used_gpu->name() +
      " (arena " + size(arena_bytes) + ", constants " + size(constant) +
      ", weights " + size(kept_bytes + load_bytes) +
      (lasting ? ", states " + size(lasting) : "") +
      (scratch ? ", workspace " + size(scratch) : "") + "), and " + size(free) +
      " of its " + size(total) +
      " are free: compile the model for more devices or with --memory");
}

Status CudaDevice::allocateAll(const DeviceOptions &options) {
  Status status;
  auto make = [&]() -> std::shared_ptr<DeviceShare> {
    const size_t bytes = options.shared
                             ? options.shared->arenaBytes(index)
                             : static_cast<size_t>(program.arena_bytes());
    status = checkMemory(bytes, state_bytes);
    if (!status.ok())
      return nullptr;
    auto buffer = allocateDevice(used_gpu, bytes, "the arena");
    status = buffer.status();
    return buffer ? std::make_shared<CudaShare>(used_gpu, std::move(*buffer))
                  : nullptr;
  };
  share = std::static_pointer_cast<CudaShare>(
      options.shared ? options.shared->of(index, make) : make());
  if (!share)
    return status;
  PARTITA_TRY(findStates());
  PARTITA_TRY(checkMemory(0, 0));
  constants = PARTITA_TRY(allocateDevice(
      used_gpu,
      aligned(static_cast<size_t>(program.constant_bytes())) + kept_bytes,
      "constants and weights"));
  load_weights = PARTITA_TRY(allocateDevice(
      used_gpu, load_bytes, "weights that the load program reads"));
  workspace = PARTITA_TRY(share->workspace(workspaceBytes()));
  return Status();
}

/// States live as long as the share.
Status CudaDevice::findStates() {
  for (size_t i = 0; i < states.size(); ++i) {
    State &state = states[i];
    if (!state.used)
      continue;
    const abi::State &described = at(plan.states(), i);
    auto found = PARTITA_TRY(share->state(text(described.name()), state.bytes,
                                          described.on_host(), state.is_new));
    const size_t bytes = state.bytes / countStateCopies(plan, described);
    for (size_t copy : stateCopies(plan, program, described))
      state.copies.push_back(found + copy * bytes);
  }
  return Status();
}

uint8_t *CudaDevice::arena() const { return pointerTo(share->arena.get()); }

/// What has one copy lies at a fixed place.
static CudaInstance::Operand oneOf(const CudaInstance::Copies &copies) {
  if (copies.size() == 1)
    return {copies.front(), nullptr};
  return {0, &copies};
}

CudaInstance::Operand CudaDevice::operand(int index) const {
  const abi::Slot &slot = at(program.slots(), index);
  const auto offset = static_cast<DeviceAddress>(slot.offset());
  switch (slot.space()) {
  case abi::Space::arena:
    return {share->arena.get() + offset, nullptr};
  case abi::Space::frame:
    return {offset, &frames[static_cast<size_t>(slot.frame())]};
  case abi::Space::constant:
    return {constants.get() + offset, nullptr};
  case abi::Space::state:
    return oneOf(states[static_cast<size_t>(slot.offset())].copies);
  case abi::Space::weight:
    break;
  }
  const auto weight = static_cast<size_t>(slot.offset());
  if (weight_offsets[weight] < 0)
    return {};
  return {(only_loads[weight] ? load_weights : constants).get() +
              static_cast<DeviceAddress>(weight_offsets[weight]),
          nullptr};
}

uint8_t *CudaDevice::slot(int index, int micro_batch) const {
  const CudaInstance::Operand found = operand(index);
  return pointerTo(found.copies
                       ? found.address +
                             (*found.copies)[static_cast<size_t>(micro_batch) %
                                             found.copies->size()]
                       : found.address);
}

Expected<uint8_t *> CudaDevice::allocate(size_t bytes, const char *what) {
  PARTITA_TRY(used_gpu->use());
  allocated.push_back(PARTITA_TRY(allocateDevice(used_gpu, bytes, what)));
  const DeviceAddress address = allocated.back().get();
  PARTITA_TRY(transfers->clear(address, bytes));
  return pointerTo(address);
}

Status CudaDevice::upload(uint8_t *to, const void *from, size_t bytes) {
  return transfers->upload(addressOf(to), from, bytes);
}

Status CudaDevice::download(void *to, const uint8_t *from, size_t bytes) {
  return transfers->download(to, addressOf(from), bytes);
}

DeviceMemory CudaDevice::memory() const {
  DeviceMemory memory;
  memory.arena = program.arena_bytes();
  memory.parameters =
      program.constant_bytes() + static_cast<int64_t>(kept_bytes + state_bytes);
  memory.workspace = static_cast<int64_t>(workspaceBytes());
  memory.staging = static_cast<int64_t>(work->stagingBytes());
  memory.planned = program.arena_bytes() + program.parameter_bytes() +
                   program.packed_bytes() + program.workspace_bytes();
  return memory;
}

//===----------------------------------------------------------------------===//
// Load
//===----------------------------------------------------------------------===//

Status CudaDevice::letMove(const std::vector<int> &slots) {
  return slots.empty()
             ? Status()
             : Status::error("the slots of a GPU lie in its own memory");
}

RowPart CudaDevice::rowPart(const abi::Slice &slice) const {
  const abi::Slot &from = at(program.slots(), slice.source());
  RowPart part;
  part.rows = slice.rows();
  part.bytes = slice.part() * elementBytes(from.dtype());
  part.pitch = part.rows ? from.bytes() / part.rows : 0;
  part.first = std::min(placeInGroup(plan, index, *slice.axes()) * part.bytes,
                        part.pitch);
  part.there = std::min(part.bytes, part.pitch - part.first);
  return part;
}

Status CudaDevice::add(CudaInstance &instance,
                       const abi::Instruction &instruction) {
  const char *label = text(instruction.label());
  if (const abi::Dispatch *dispatch = instruction.work_as_Dispatch()) {
    std::vector<CudaInstance::Operand> operands;
    for (int slot : *dispatch->operands())
      operands.push_back(operand(slot));
    instance.add(kernels->kernel(dispatch->kernel()), operands, label);
    return Status();
  }
  if (const abi::Copy *copy = instruction.work_as_Copy()) {
    instance.add(
        CudaInstance::Copy{at(program.slots(), copy->source()).bytes()},
        {operand(copy->destination()), operand(copy->source())}, label);
    return Status();
  }
  if (const abi::Slice *slice = instruction.work_as_Slice()) {
    instance.add(rowPart(*slice),
                 {operand(slice->destination()), operand(slice->source())},
                 label);
    return Status();
  }
  return within(std::string("'") + label + "': ",
                addCall(instance, *instruction.work_as_Call(), label));
}

Expected<Instance *> CudaDevice::prepare(int unit) {
  std::unique_ptr<CudaInstance> &instance =
      instances[static_cast<size_t>(unit)];
  if (instance)
    return static_cast<Instance *>(instance.get());
  auto made = std::make_unique<CudaInstance>();
  const abi::Unit &described_unit = at(program.units(), unit);
  made->name = text(described_unit.name());
  auto fill = [&]() -> Status {
    for (const abi::Instruction &instruction :
         each(described_unit.instructions()))
      PARTITA_TRY(add(*made, instruction));
    return made->finish();
  };
  PARTITA_TRY(within(std::string(text(described.name())) + ": ", fill()));
  instance = std::move(made);
  return static_cast<Instance *>(instance.get());
}

Status CudaDevice::finish() {
  if (!use_graphs)
    return Status();
  const std::string name = text(described.name());
  Status status = used_gpu->use();
  UnitCapture capture(used_gpu);
  for (const std::unique_ptr<CudaInstance> &instance : instances)
    if (instance && status.ok())
      status = capture.capture(
          *instance, static_cast<int>(plan.micro_batches()), work->stream());
  PARTITA_TRY(within(name + ": ", status));
  if (const std::string remark = capture.remark(); !remark.empty())
    load_remark = name + ": " + remark;
  return Status();
}

/// Unless what it brings is not needed, or will be cut.
Status CudaDevice::loadWeights() {
  for (size_t i = 0; i < weight_offsets.size(); ++i) {
    if (weight_offsets[i] < 0)
      continue;
    const abi::Weight &weight = at(plan.weights(), i);
    const DeviceAddress to = (only_loads[i] ? load_weights : constants).get() +
                             static_cast<DeviceAddress>(weight_offsets[i]);
    PARTITA_TRY(within(std::string("weight '") + text(weight.name()) + "': ",
                       transfers->upload(to, weights[i],
                                         static_cast<size_t>(weight.bytes()))));
  }
  return Status();
}

/// The first plan that is loaded gives states their initial values.
Status CudaDevice::loadStates() {
  for (size_t i = 0; i < states.size(); ++i) {
    if (!states[i].is_new)
      continue;
    const abi::State &state = at(plan.states(), i);
    const StatePart part(plan, state, index);
    const uint8_t *initial = state.weight() < 0
                                 ? nullptr
                                 : weights[static_cast<size_t>(state.weight())];
    std::vector<uint8_t> own(initial && isCut(state) ? part.bytes() : 0);
    if (!own.empty()) {
      part.take(initial, own.data());
      initial = own.data();
    }
    for (DeviceAddress copy : states[i].copies) {
      PARTITA_TRY(within(std::string("state '") + text(state.name()) + "': ",
                         initial
                             ? transfers->upload(copy, initial, part.bytes())
                             : transfers->clear(copy, part.bytes())));
    }
  }
  return Status();
}

/// Brings a device's part of a weight.
Status CudaDevice::cutWeight(const abi::Slice &slice) {
  const auto weight =
      static_cast<size_t>(at(program.slots(), slice.source()).offset());
  const RowPart part = rowPart(slice);
  if (part.rows == 0 || part.bytes == 0)
    return Status();
  return transfers->uploadRows(operand(slice.destination()).address,
                               weights[weight], part);
}

Status CudaDevice::runLoadProgram() {
  std::vector<std::unique_ptr<CudaInstance>> enqueued;
  auto await = [&](const char *label) {
    return within("the load program failed in '" + std::string(label) + "': ",
                  work->synchronize(work->record()));
  };
  for (const abi::Instruction &instruction : each(program.load())) {
    const char *label = text(instruction.label());
    const abi::Slice *slice = instruction.work_as_Slice();
    if (slice && isWeight(slice->source())) {
      // What was enqueued may use the same bytes of the arena.
      PARTITA_TRY(await(label));
      PARTITA_TRY(cutWeight(*slice));
      continue;
    }
    enqueued.push_back(std::make_unique<CudaInstance>());
    CudaInstance &instance = *enqueued.back();
    instance.name = "load";
    PARTITA_TRY(add(instance, instruction));
    PARTITA_TRY(instance.finish());
    PARTITA_TRY(work->run(instance, 0, nullptr));
  }
  PARTITA_TRY(await("its last instruction"));
  load_weights = DeviceBuffer();
  return Status();
}

Status CudaDevice::beginStep() {
  work->beginStep();
  return Status();
}

} // namespace partita::runtime::cuda
