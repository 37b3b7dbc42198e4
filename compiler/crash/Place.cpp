//===- Place.cpp - Where the compiler is at the moment --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/crash/Place.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/TypeSwitch.h"

#include <csignal>
#include <memory>

using namespace mlir;

namespace partita::crash {

namespace {
/// A stack for handlers, for what happens when a thread's own is full.
class SignalStack {
public:
  SignalStack() {
    stack_t known = {};
    if (::sigaltstack(nullptr, &known) == 0 && !(known.ss_flags & SS_DISABLE))
      return;
    bytes = std::make_unique<char[]>(kBytes);
    stack_t own = {};
    own.ss_sp = bytes.get();
    own.ss_size = kBytes;
    ::sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    if (!bytes)
      return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }

private:
  static constexpr size_t kBytes = 1 << 16;
  std::unique_ptr<char[]> bytes;
};

} // namespace

static thread_local Place place;

const Place &getPlace() { return place; }

AtPass::AtPass(llvm::StringRef pass) : outer(place) {
  static thread_local SignalStack stack;
  place = {pass, {}};
  provokeCrash(pass);
}

AtPass::~AtPass() { place = outer; }

/// The first name in a location, as the context keeps it.
static llvm::StringRef findName(LocationAttr loc) {
  return llvm::TypeSwitch<LocationAttr, llvm::StringRef>(loc)
      .Case([](NameLoc name) { return name.getName().getValue(); })
      .Case([](FusedLoc fused) {
        for (Location part : fused.getLocations())
          if (llvm::StringRef name = findName(part); !name.empty())
            return name;
        return llvm::StringRef();
      })
      .Case([](CallSiteLoc call) { return findName(call.getCallee()); })
      .Default([](LocationAttr) { return llvm::StringRef(); });
}

AtNode::AtNode(Location loc) : outer(place.node) {
  llvm::StringRef name = findName(loc);
  if (name.empty())
    return;
  place.node = name;
  provokeCrash(name);
}

AtNode::~AtNode() { place.node = outer; }

} // namespace partita::crash
