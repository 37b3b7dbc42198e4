//===- TrainerTarget.cpp - Fuzzes the reader of trainer.json --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Target.h"

#include "runtime/train/TrainerFile.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using runtime::train::TrainerFile;
  auto file = TrainerFile::parse(
      std::string_view(reinterpret_cast<const char *>(data), size));
  if (!file) {
    fuzz::require(!file.status().message().empty(), "an error has a message");
    return 0;
  }
  auto text = file->json();
  // Written with other spaces it may be too long.
  if (!text) {
    fuzz::require(size > runtime::train::kMostTrainerBytes / 8,
                  "what was read can be written");
    return 0;
  }
  auto again = TrainerFile::parse(*text);
  fuzz::require(again.ok() && again->files == file->files &&
                    *again->json() == *text,
                "what is written can be read");
  return 0;
}
