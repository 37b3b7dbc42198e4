//===- ScheduleModel.cpp - A plan as the schedule check sees it -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/PlanVerifier.h"
#include "runtime/base/Slots.h"

namespace partita::runtime {
namespace {

class DeviceModel {
public:
  DeviceModel(const abi::Plan &plan, const abi::Device &device)
      : plan(plan), device(device) {
    checked.name = text(device.name());
    checked.arena_bytes = device.arena_bytes() + device.constant_bytes();
  }

  abi::CheckedDevice build() {
    for (int64_t i = 0; i < length(device.load()); ++i)
      add(*device.load()->Get(i), "load", 0, nullptr);
    for (int64_t i = 0; i < length(device.program()); ++i)
      add(*device.program()->Get(i));
    return std::move(checked);
  }

private:
  /// A value is a slot on a micro-batch; constants are the same for all.
  static int64_t valueOf(int slot, int64_t micro_batch) {
    return (int64_t(slot) << 32) + micro_batch + 1;
  }

  void add(const abi::Step &step) {
    abi::CheckedStep entry;
    entry.micro_batch = step.micro_batch();
    switch (step.kind()) {
    case abi::StepKind::run: {
      const abi::Unit &unit = *device.units()->Get(step.unit());
      for (int64_t i = 0; i < length(unit.instructions()); ++i)
        add(*unit.instructions()->Get(i), text(unit.name()),
            step.micro_batch(), &step);
      return;
    }
    case abi::StepKind::send:
      entry.kind = abi::CheckedStep::Kind::send;
      use(entry.reads, step.slot(), step.micro_batch());
      break;
    case abi::StepKind::recv:
      entry.kind = abi::CheckedStep::Kind::recv;
      use(entry.writes, step.slot(), step.micro_batch());
      break;
    case abi::StepKind::wait:
      entry.kind = abi::CheckedStep::Kind::wait;
      break;
    case abi::StepKind::release:
      entry.kind = abi::CheckedStep::Kind::release;
      break;
    case abi::StepKind::load_input:
      entry.name =
          std::string("input ") + text(plan.inputs()->Get(step.io())->name());
      use(entry.writes, step.slot(), step.micro_batch());
      break;
    case abi::StepKind::store_output:
      entry.name =
          std::string("output ") + text(plan.outputs()->Get(step.io())->name());
      use(entry.reads, step.slot(), step.micro_batch());
      break;
    }
    if (entry.kind != abi::CheckedStep::Kind::local) {
      entry.channel = step.channel();
      entry.name = text(plan.channels()->Get(step.channel())->name());
    }
    checked.steps.push_back(std::move(entry));
  }

  void add(const abi::Instruction &instruction, const char *unit,
           int micro_batch, const abi::Step *step) {
    abi::CheckedStep entry;
    entry.micro_batch = micro_batch;
    entry.name = unit;
    if (length(instruction.label()))
      entry.name += std::string(": ") + text(instruction.label());
    forEachSlot(instruction, [&](const SlotUse &used) {
      int slot = used.slot;
      if (device.slots()->Get(slot)->space() == abi::Space::argument)
        slot = step->bindings()->Get(device.slots()->Get(slot)->offset());
      int64_t begin = 0, end = device.slots()->Get(used.slot)->bytes();
      if (used.view)
        hull(*used.view, begin, end);
      use(used.written ? entry.writes : entry.reads, slot, micro_batch, begin,
          end);
    });
    checked.steps.push_back(std::move(entry));
  }

  /// The bytes from a view's first to its last element.
  void hull(const abi::View &view, int64_t &begin, int64_t &end) const {
    int64_t bytes = elementBytes(device.slots()->Get(view.slot())->dtype());
    int64_t last = view.offset();
    for (int64_t i = 0; i < length(view.shape()); ++i)
      last += (view.shape()->Get(i) - 1) * view.strides()->Get(i);
    begin = view.offset() * bytes;
    end = (last + 1) * bytes;
  }

  void use(std::vector<abi::CheckedRange> &ranges, int slot, int micro_batch) {
    if (slot >= 0)
      use(ranges, slot, micro_batch, 0, device.slots()->Get(slot)->bytes());
  }

  void use(std::vector<abi::CheckedRange> &ranges, int index, int micro_batch,
           int64_t begin, int64_t end) {
    const abi::Slot &slot = *device.slots()->Get(index);
    int64_t base = slot.offset(), value = valueOf(index, micro_batch);
    if (slot.space() == abi::Space::constant) {
      base += device.arena_bytes();
      value = valueOf(index, -1);
    } else if (slot.space() != abi::Space::arena) {
      return;
    }
    ranges.push_back({base + begin, base + end, value});
  }

  const abi::Plan &plan;
  const abi::Device &device;
  abi::CheckedDevice checked;
};

} // namespace

std::vector<abi::CheckedDevice> scheduleModel(const abi::Plan &plan) {
  std::vector<abi::CheckedDevice> devices;
  for (int64_t i = 0; i < length(plan.devices()); ++i)
    devices.push_back(DeviceModel(plan, *plan.devices()->Get(i)).build());
  return devices;
}

} // namespace partita::runtime
