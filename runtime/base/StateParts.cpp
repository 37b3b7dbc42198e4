//===- StateParts.cpp - What each device has of a state -------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/StateParts.h"

#include "runtime/abi/artifact.h"
#include "runtime/base/Elements.h"
#include "runtime/base/Mesh.h"
#include "runtime/base/Slots.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

namespace partita::runtime {

bool isCut(const abi::State &state) { return length(state.cuts()) > 0; }

namespace {

std::vector<int64_t> partShape(const abi::State &state) {
  std::vector<int64_t> shape = shapeOf(state.shape());
  for (const abi::Cut &cut : each(state.cuts()))
    shape[static_cast<size_t>(cut.dim())] = cut.part();
  return shape;
}

std::vector<int64_t> stridesOf(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  return strides;
}

} // namespace

int64_t partBytes(const abi::State &state) {
  int64_t bytes = elementBytes(state.dtype());
  for (int64_t size : partShape(state))
    bytes *= size;
  return bytes;
}

size_t stateStride(const abi::State &state) {
  return (static_cast<size_t>(partBytes(state)) + abi::kSlotAlignment - 1) /
         abi::kSlotAlignment * abi::kSlotAlignment;
}

int copiesOf(const abi::Plan &plan, const abi::State &state) {
  return state.role() == abi::StateRole::carried ? plan.micro_batches() : 1;
}

int sequenceStride(const abi::Plan &plan, const abi::Program &program) {
  int64_t period = 1;
  for (const abi::Frame &frame : each(program.frames()))
    period = std::lcm(period, length(frame.copies()));
  return static_cast<int>((plan.micro_batches() + period - 1) / period *
                          period);
}

size_t countStateCopies(const abi::Plan &plan, const abi::State &state) {
  return size_t(copiesOf(plan, state)) *
         (state.role() == abi::StateRole::carried ? size_t(plan.sequences())
                                                  : 1);
}

std::vector<size_t> stateCopies(const abi::Plan &plan,
                                const abi::Program &program,
                                const abi::State &state) {
  const auto own = size_t(copiesOf(plan, state));
  const size_t sequences = countStateCopies(plan, state) / own,
               stride =
                   sequences > 1 ? size_t(sequenceStride(plan, program)) : own;
  std::vector<size_t> copies;
  for (size_t i = 0; i < sequences * stride; ++i)
    copies.push_back(i / stride * own + i % stride % own);
  return copies;
}

/// How many of a state all devices have that differ, for a sequence.
static int64_t countCopies(const abi::Plan &plan, const abi::State &state) {
  return state.role() == abi::StateRole::carried
             ? int64_t(copiesOf(plan, state)) * Mesh(plan).replicas()
             : 1;
}

std::vector<int64_t> stepShape(const abi::Plan &plan, const abi::State &state) {
  std::vector<int64_t> shape = shapeOf(state.shape());
  const int64_t copies = countCopies(plan, state);
  if (!shape.empty())
    shape.front() *= copies;
  else if (copies > 1)
    shape = {copies};
  return shape;
}

int64_t stepBytes(const abi::Plan &plan, const abi::State &state) {
  return state.bytes() * countCopies(plan, state);
}

std::vector<int64_t> shownStates(const abi::Plan &plan) {
  std::set<int64_t> places;
  for (const abi::State &state : each(plan.states()))
    places.insert(state.ring_place());
  std::vector<int64_t> shown;
  for (int64_t i = 0; i < length(plan.states()); ++i)
    if (!places.count(i))
      shown.push_back(i);
  return shown;
}

void orderRing(const abi::Plan &plan, const abi::State &state,
               const int64_t *places, uint8_t *whole) {
  const auto dim = static_cast<unsigned>(state.ring_dim());
  const int64_t size = state.shape()->Get(dim);
  int64_t entry = elementBytes(state.dtype());
  for (unsigned i = dim + 1; i < state.shape()->size(); ++i)
    entry *= state.shape()->Get(i);
  const int64_t rows = size && entry ? state.bytes() / (size * entry) : 0;
  const int64_t each =
      plan.states()->Get(unsigned(state.ring_place()))->bytes() /
      int64_t(sizeof(int64_t));
  for (int64_t copy = 0; rows && copy < countCopies(plan, state); ++copy)
    for (int64_t row = 0; row < rows; ++row) {
      uint8_t *begin = whole + copy * state.bytes() + row * size * entry;
      const int64_t place = (places[copy * each] % size + size) % size;
      std::rotate(begin, begin + place * entry, begin + size * entry);
    }
}

bool isOfSeveral(const abi::Plan &several, const abi::Plan &one) {
  auto areLike = [&](const auto *ports, const auto *single, int64_t count) {
    if (count != length(single))
      return false;
    for (unsigned i = 0; i < count; ++i) {
      const abi::Port &port = *ports->Get(i), &other = *single->Get(i);
      const int64_t rank = length(port.shape());
      if (rank != length(other.shape()) || port.dtype() != other.dtype() ||
          port.batch_axis() < 0 || port.batch_axis() >= rank ||
          port.batch_axis() != other.batch_axis())
        return false;
      for (unsigned d = 0; d < rank; ++d)
        if (const int64_t times =
                int(d) == port.batch_axis() ? several.step_sequences() : 1;
            other.shape()->Get(d) == 0 || port.shape()->Get(d) % times != 0 ||
            port.shape()->Get(d) / times != other.shape()->Get(d))
          return false;
    }
    return true;
  };
  return one.step_sequences() == 1 && one.full_steps() &&
         length(one.entry()) == 0 && length(one.inputs()) > 0 &&
         stepMicroBatches(one) == 1 &&
         int64_t(several.sequences()) * several.step_sequences() ==
             one.sequences() &&
         length(several.inputs()) > 1 &&
         areLike(several.inputs(), one.inputs(),
                 length(several.inputs()) - 1) &&
         areLike(several.outputs(), one.outputs(), length(several.outputs()));
}

std::string cutsError(const abi::Plan &plan, const abi::State &state) {
  std::set<int> axes, dims;
  for (const abi::Cut &cut : each(state.cuts())) {
    if (cut.dim() < 0 || cut.dim() >= length(state.shape()) ||
        !dims.insert(cut.dim()).second)
      return "is cut in dimension " + std::to_string(cut.dim()) +
             ", which it does not have, or twice";
    if (!length(cut.axes()))
      return "is cut along no axis";
    for (int axis : *cut.axes()) {
      if (axis < 0 || axis >= length(plan.axes()))
        return "is cut along axes that the mesh does not have";
      if (!axes.insert(axis).second)
        return "is cut along an axis twice";
    }
    const int64_t size = state.shape()->Get(static_cast<unsigned>(cut.dim())),
                  devices = groupSize(plan, *cut.axes());
    // The parts cover the blocks, and are not larger than these.
    if (cut.blocks() < 1 || size % cut.blocks() != 0 || cut.part() < 1 ||
        cut.part() % cut.blocks() != 0 || cut.part() > size ||
        cut.part() < (size + devices - 1) / devices)
      return "has " + std::to_string(size) + " elements in dimension " +
             std::to_string(cut.dim()) + ", of which " +
             std::to_string(devices) + " devices have " +
             std::to_string(cut.part()) + " each";
  }
  return "";
}

StatePart::StatePart(const abi::Plan &plan, const abi::State &state, int device)
    : element(static_cast<size_t>(elementBytes(state.dtype()))),
      part_bytes(static_cast<size_t>(partBytes(state))) {
  const std::vector<int64_t> whole = shapeOf(state.shape()),
                             part = partShape(state);
  whole_strides = stridesOf(whole);
  part_strides = stridesOf(part);
  for (int64_t size : part) {
    places.emplace_back(static_cast<size_t>(size));
    std::iota(places.back().begin(), places.back().end(), 0);
  }
  for (const abi::Cut &cut : each(state.cuts())) {
    const auto dim = static_cast<size_t>(cut.dim());
    const int64_t block = whole[dim] / cut.blocks(),
                  of_block = cut.part() / cut.blocks(),
                  begin = placeInGroup(plan, device, *cut.axes()) * of_block;
    for (int64_t index = 0; index < cut.part(); ++index) {
      const int64_t within = begin + index % of_block;
      places[dim][static_cast<size_t>(index)] =
          within < block ? index / of_block * block + within : -1;
    }
  }
}

/// Calls `visit(part, whole, count)` for each stretch of elements that lie one
/// after another in both tensors, with their first elements; `whole` is -1 for
/// those beyond the end.
template <typename Visit> void StatePart::forEachRow(Visit visit) const {
  if (part_bytes == 0)
    return;
  if (places.empty())
    return visit(int64_t(0), int64_t(0), int64_t(1));
  const size_t last = places.size() - 1;
  std::vector<size_t> index(places.size(), 0);
  while (true) {
    int64_t part = 0, whole = 0;
    for (size_t dim = 0; dim < last; ++dim) {
      const int64_t place = places[dim][index[dim]];
      part += static_cast<int64_t>(index[dim]) * part_strides[dim];
      whole = whole < 0 || place < 0 ? -1 : whole + place * whole_strides[dim];
    }
    const std::vector<int64_t> &row = places[last];
    for (size_t begin = 0, end; begin < row.size(); begin = end) {
      end = begin + 1;
      while (end < row.size() &&
             (row[begin] < 0 ? row[end] < 0 : row[end] == row[end - 1] + 1))
        ++end;
      visit(part + static_cast<int64_t>(begin),
            whole < 0 || row[begin] < 0 ? -1 : whole + row[begin],
            static_cast<int64_t>(end - begin));
    }
    size_t dim = last;
    while (dim > 0 && ++index[dim - 1] == places[dim - 1].size())
      index[--dim] = 0;
    if (dim == 0)
      return;
  }
}

void StatePart::take(const uint8_t *whole, uint8_t *part) const {
  forEachRow([&](int64_t to, int64_t from, int64_t count) {
    uint8_t *target = part + static_cast<size_t>(to) * element;
    const size_t bytes = static_cast<size_t>(count) * element;
    if (from < 0)
      std::memset(target, 0, bytes);
    else
      std::memcpy(target, whole + static_cast<size_t>(from) * element, bytes);
  });
}

void StatePart::put(const uint8_t *part, uint8_t *whole) const {
  forEachRow([&](int64_t from, int64_t to, int64_t count) {
    if (to >= 0)
      std::memcpy(whole + static_cast<size_t>(to) * element,
                  part + static_cast<size_t>(from) * element,
                  static_cast<size_t>(count) * element);
  });
}

} // namespace partita::runtime
