//===- Progress.cpp - A progress bar on a terminal ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/Progress.h"

#include <cstdio>
#include <unistd.h>

namespace partita::run {

namespace {

constexpr int kWidth = 30;
constexpr auto kInterval = std::chrono::milliseconds(100);

/// There is one bar at a time.
bool drawn = false;

std::string clockText(double seconds) {
  char text[40];
  long whole = long(seconds + 0.5);
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600,
                  whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", whole / 60, whole % 60);
  return text;
}

} // namespace

Progress::Progress(std::string what, int64_t total, bool enabled)
    : what(std::move(what)), total(total),
      enabled(enabled && total > 1 && isatty(STDERR_FILENO)),
      begin(Clock::now()), last(begin) {}

Progress::~Progress() { wipe(); }

void Progress::wipe() {
  if (drawn)
    std::fputs("\r\x1b[K", stderr);
  drawn = false;
}

void Progress::update(int64_t done, const char *said) {
  if (!enabled)
    return;
  Clock::time_point now = Clock::now();
  if (now - last < kInterval)
    return;
  last = now;
  drawn = true;
  double share = double(done) / double(total);
  int full = int(share * kWidth);
  std::string bar =
      std::string(size_t(full), '#') + std::string(size_t(kWidth - full), '.');
  double passed = std::chrono::duration<double>(now - begin).count();
  std::string left =
      done > 0 ? clockText(passed * double(total - done) / double(done))
               : std::string("?");
  std::fprintf(stderr, "\r\x1b[K%s [%s] %lld/%lld  %s%s left", what.c_str(),
               bar.c_str(), static_cast<long long>(done),
               static_cast<long long>(total), said, left.c_str());
  std::fflush(stderr);
}

} // namespace partita::run
