//===- Timing.cpp - Where compile time goes -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Timing.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Format.h"

#include <mutex>

using namespace mlir;

namespace partita::driver {

static double secondsSince(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since)
      .count();
}

/// Passes may run in several threads.
struct Timing::PassWatch : PassInstrumentation {
  explicit PassWatch(Entries &passes) : passes(passes) {}

  void runBeforePass(Pass *pass, Operation *) override {
    const std::lock_guard lock(mutex);
    running[pass] = Clock::now();
  }
  void runAfterPass(Pass *pass, Operation *) override {
    const std::lock_guard lock(mutex);
    // What runs passes on functions has no name.
    if (pass->getArgument().empty())
      return;
    add(passes, pass->getArgument(), secondsSince(running.lookup(pass)));
  }

  Entries &passes;
  llvm::DenseMap<Pass *, Clock::time_point> running;
  std::mutex mutex;
};

void Timing::add(Entries &entries, StringRef name, double seconds) {
  auto found = llvm::find_if(
      entries, [&](const auto &entry) { return entry.first == name; });
  if (found == entries.end())
    found = entries.insert(found, {name.str(), Entry()});
  found->second.seconds += seconds;
  ++found->second.runs;
}

void Timing::begin(StringRef next) {
  end();
  part = next.str();
  since = Clock::now();
}

void Timing::end() {
  if (part.empty())
    return;
  add(parts, part, secondsSince(since));
  part.clear();
}

std::unique_ptr<PassInstrumentation> Timing::watchPasses() {
  return std::make_unique<PassWatch>(passes);
}

void Timing::print(llvm::raw_ostream &out) const {
  constexpr size_t kMostPasses = 12, kName = 36;
  double all = 0;
  for (const auto &[name, entry] : parts)
    all += entry.seconds;
  auto row = [&](StringRef name, const Entry &entry) {
    out << name;
    out.indent(name.size() < kName ? unsigned(kName - name.size()) : 1);
    out << llvm::format("%9.3f s %6.1f%% %6d\n", entry.seconds,
                        all > 0 ? 100 * entry.seconds / all : 0.0, entry.runs);
  };
  const std::string head = "  seconds   share   runs\n";
  out << "compile time";
  out.indent(kName - 12) << head;
  for (const auto &[name, entry] : parts)
    row(name, entry);
  row("all", {all, 1});
  SmallVector<std::pair<StringRef, Entry>> sorted;
  for (const auto &[name, entry] : passes)
    sorted.push_back({name, entry});
  llvm::stable_sort(sorted, [](const auto &one, const auto &other) {
    return one.second.seconds > other.second.seconds;
  });
  out << "\nof it, passes";
  out.indent(kName - 13) << head;
  for (const auto &[name, entry] : ArrayRef(sorted).take_front(kMostPasses))
    row(name, entry);
  Entry rest;
  for (const auto &[name, entry] :
       ArrayRef(sorted).drop_front(std::min(kMostPasses, sorted.size()))) {
    rest.seconds += entry.seconds;
    rest.runs += entry.runs;
  }
  if (rest.runs)
    row("others", rest);
}

} // namespace partita::driver
