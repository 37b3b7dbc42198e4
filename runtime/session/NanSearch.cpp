//===- NanSearch.cpp - Which instruction made NaN -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/NanSearch.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/base/Mesh.h"
#include "runtime/base/Programs.h"
#include "runtime/base/Slots.h"
#include "runtime/device/Driver.h"

#include <algorithm>
#include <set>

namespace partita::runtime {
namespace {

bool isSearched(const abi::Slot &slot) {
  return hasNan(slot.dtype()) && (slot.space() == abi::Space::arena ||
                                  slot.space() == abi::Space::frame);
}

const abi::Instruction &instructionOf(const abi::Plan &plan,
                                      const NanOrigin &origin) {
  const abi::Program &program = programOf(plan, origin.device);
  const int unit = actionOf(program, origin.action).subject;
  return at(at(program.units(), unit).instructions(), origin.instruction);
}

/// Whether elements of a view, from dimension `dim` on, are looked for. Its
/// first one is number `offset` of `data`.
bool isSoughtIn(Search search, abi::DType type, const uint8_t *data,
                const abi::View &view, unsigned dim, int64_t offset) {
  const int64_t rank = length(view.shape());
  if (dim == rank)
    return findFirst(search, type, data + offset * elementBytes(type), 1)
        .has_value();
  const int64_t stride = view.strides()->Get(dim);
  // All elements along a dimension that is broadcast are one.
  const int64_t count = stride ? view.shape()->Get(dim)
                               : std::min<int64_t>(1, view.shape()->Get(dim));
  if (stride == 1 && dim + 1 == rank)
    return findFirst(search, type, data + offset * elementBytes(type), count)
        .has_value();
  for (int64_t i = 0; i < count; ++i)
    if (isSoughtIn(search, type, data, view, dim + 1, offset + i * stride))
      return true;
  return false;
}

/// Adds the weights that an instruction reads, and those of which the load
/// program made what it reads.
void addWeights(const abi::Program &program,
                const abi::Instruction &instruction, std::set<int> &weights,
                std::set<int64_t> &visited) {
  forEachSlot(instruction, [&](const SlotUse &use) {
    const abi::Slot &slot = at(program.slots(), use.slot);
    if (use.written)
      return;
    if (slot.space() == abi::Space::weight)
      weights.insert(static_cast<int>(slot.offset()));
    if (slot.space() != abi::Space::constant)
      return;
    for (int64_t i = 0; i < length(program.load()); ++i) {
      const abi::Instruction &load = at(program.load(), i);
      bool makes = false;
      forEachSlot(load, [&](const SlotUse &made) {
        const abi::Slot &other = at(program.slots(), made.slot);
        makes |= made.written && other.space() == abi::Space::constant &&
                 other.offset() < slot.offset() + slot.bytes() &&
                 slot.offset() < other.offset() + other.bytes();
      });
      if (makes && visited.insert(i).second)
        addWeights(program, load, weights, visited);
    }
  });
}

} // namespace

std::string describe(const abi::Plan &plan, const NanOrigin &origin) {
  return std::string("'") + text(instructionOf(plan, origin).label()) +
         "' on " + text(at(plan.devices(), origin.device).name());
}

std::optional<int> findInParameters(Search search, const Artifact &artifact,
                                    const NanOrigin &origin) {
  const abi::Plan &plan = artifact.plan();
  std::set<int> weights;
  std::set<int64_t> visited;
  addWeights(programOf(plan, origin.device), instructionOf(plan, origin),
             weights, visited);
  for (int weight : weights) {
    const abi::Weight &found = at(plan.weights(), weight);
    if (findFirst(search, found.dtype(), artifact.weight(weight),
                  elementCount(found.shape())))
      return weight;
  }
  return std::nullopt;
}

bool canBeSearched(const abi::Plan &plan, int device) {
  const DeviceType *type = findDeviceType(at(plan.devices(), device).kind());
  return type && type->shows_tasks;
}

NanSearch::NanSearch(const abi::Plan &plan, int index, Device &device,
                     Search search)
    : plan(plan), index(index), program(programOf(plan, index)), device(device),
      search(search), found(static_cast<size_t>(stepMicroBatches(plan))) {
  int64_t most = 0;
  for (const abi::Slot &slot : each(program.slots()))
    if (isSearched(slot))
      most = std::max(most, slot.bytes());
  bytes.resize(static_cast<size_t>(most));
}

void NanSearch::clear() { std::fill(found.begin(), found.end(), std::nullopt); }

bool NanSearch::isSought(int slot, const abi::View *view) {
  const abi::Slot &used = at(program.slots(), slot);
  if (!isSearched(used) || used.bytes() == 0 ||
      !device
           .download(bytes.data(), device.slot(slot, micro_batch),
                     static_cast<size_t>(used.bytes()))
           .ok())
    return false;
  if (view)
    return isSoughtIn(search, used.dtype(), bytes.data(), *view, 0,
                      view->offset());
  // A slot may have more bytes than elements.
  return findFirst(search, used.dtype(), bytes.data(),
                   elementCount(used.shape()))
      .has_value();
}

bool NanSearch::uses(const abi::Instruction &instruction, bool written) {
  bool any = false;
  forEachSlot(instruction, [&](const SlotUse &use) {
    if (!any && use.written == written)
      any = isSought(use.slot, use.view);
  });
  return any;
}

void NanSearch::begin(int which, int micro_batch_of_replica,
                      int micro_batch_of_step) {
  action = which;
  micro_batch = micro_batch_of_replica;
  fed = micro_batch_of_step;
  unit = program.units()->Get(
      static_cast<unsigned>(actionOf(program, action).subject));
  if (length(unit->instructions()) && !found[static_cast<size_t>(fed)])
    given = uses(*unit->instructions()->Get(0), false);
}

void NanSearch::finished(size_t instruction) {
  std::optional<NanOrigin> &first = found[static_cast<size_t>(fed)];
  if (first)
    return;
  const auto &all = *unit->instructions();
  const auto next = static_cast<unsigned>(instruction + 1);
  if (!given && uses(*all.Get(next - 1), true))
    first = {fed, unit->stage(), action, static_cast<int>(instruction), index};
  else if (next < all.size())
    given = uses(*all.Get(next), false);
}

} // namespace partita::runtime
