//===- OrdersTarget.cpp - Fuzz target: schedules that are files -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is read has all units of its stages, each once and on the rank of its
// stage.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/OrderFile.h"
#include "test/fuzz/Target.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  schedule::OrderFile file;
  if (std::optional<schedule::OrderError> error = schedule::parseOrders(
          {reinterpret_cast<const char *>(data), size}, file)) {
    fuzz::require(!error->text.empty(), "an error has a message");
    fuzz::require(error->line > 0 && error->column > 0, "an error has a place");
    return 0;
  }
  // B counts twice: it is I and W.
  size_t units = 0;
  for (size_t rank = 0; rank < file.ofRank.size(); ++rank)
    for (const schedule::OrderAction &action : file.ofRank[rank]) {
      fuzz::require(file.rankOf.at(action.stage) == static_cast<int>(rank),
                    "a stage is on one rank");
      units += action.kind == 'B' ? 2 : 1;
    }
  fuzz::require(units == file.rankOf.size() * file.microBatches *
                             (file.hasBackward ? 3 : 1),
                "every unit is there once");
  return 0;
}
