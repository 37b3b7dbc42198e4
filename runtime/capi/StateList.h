//===- StateList.h - The states of an object for C --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_CAPI_STATELIST_H
#define PARTITA_RUNTIME_CAPI_STATELIST_H

#include "runtime/abi/plan_generated.h"
#include "runtime/capi/Calls.h"

namespace partita::capi {

/// The states that a plan has, as functions for C show them.
class StateList {
public:
  /// `object`: what people call that which has them.
  explicit StateList(const char *object) : object(object) {}

  /// `number`: of the state in Plan.states, or in the trainer.
  void add(const abi::Plan &plan, const abi::State &state, int64_t number);
  int64_t number(size_t index) const { return states[index].number; }
  size_t size() const { return states.size(); }

  Status describe(size_t index, partita_state *place) const;
  Status find(const char *name, size_t *index) const;
  /// Whether there is such a state, of so many bytes, and a `place` for them.
  Status check(size_t index, const void *place, size_t bytes) const;

private:
  struct Entry {
    std::string name;
    std::vector<int64_t> shape;
    abi::StateRole role;
    abi::DType dtype;
    int64_t bytes, number;
  };

  const char *object;
  std::vector<Entry> states;
};

} // namespace partita::capi

#endif // PARTITA_RUNTIME_CAPI_STATELIST_H
