//===- StateList.cpp - The states of an object for C ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/StateList.h"

#include "runtime/base/Programs.h"
#include "runtime/base/StateParts.h"

namespace partita::capi {

using abi::StateRole;

static_assert(PARTITA_PARAMETER == static_cast<int>(StateRole::parameter));
static_assert(PARTITA_STATISTIC == static_cast<int>(StateRole::statistic));
static_assert(PARTITA_OPTIMIZER == static_cast<int>(StateRole::optimizer));
static_assert(PARTITA_CARRIED == static_cast<int>(StateRole::carried));

void StateList::add(const abi::Plan &plan, const abi::State &state,
                    int64_t number) {
  states.push_back({runtime::text(state.name()),
                    runtime::stepShape(plan, state), state.role(),
                    state.dtype(), runtime::stepBytes(plan, state), number});
}

Status StateList::describe(size_t index, partita_state *place) const {
  if (index >= states.size())
    return noneOf(object, states.size(), "states", static_cast<int64_t>(index));
  const Entry &state = states[index];
  return fillIn(place,
                {0, state.name.c_str(), static_cast<partita_role>(state.role),
                 static_cast<partita_type>(state.dtype),
                 static_cast<int>(state.shape.size()), state.shape.data(),
                 state.bytes},
                "partita_state");
}

Status StateList::find(const char *name, size_t *index) const {
  std::vector<const char *> names;
  for (const Entry &state : states)
    names.push_back(state.name.c_str());
  return findName(object, names, name, "state", index);
}

Status StateList::check(size_t index, const void *place, size_t bytes) const {
  if (index >= states.size())
    return noneOf(object, states.size(), "states", static_cast<int64_t>(index));
  const Entry &state = states[index];
  if (bytes != static_cast<size_t>(state.bytes))
    return Status::error("the state '" + state.name + "' has " +
                         std::to_string(state.bytes) + " bytes, and not " +
                         std::to_string(bytes));
  if (!place && state.bytes > 0)
    return Status::error("there is no place for the state '" + state.name +
                         "'");
  return Status();
}

} // namespace partita::capi
