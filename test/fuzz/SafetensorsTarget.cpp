//===- SafetensorsTarget.cpp - Fuzzes the reader of tensor files ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/TensorPromise.h"

#include "runtime/train/Safetensors.h"

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto read = runtime::train::parseSafetensors({data, size}, nullptr, "'x'");
  if (!read) {
    fuzz::require(!read.status().message().empty(), "an error has a message");
    return 0;
  }
  std::vector<runtime::train::TensorBytes> tensors;
  for (const runtime::NamedTensor &item : read->tensors) {
    fuzz::checkTensor(item.tensor);
    tensors.push_back({item.name, item.tensor.dtype(), item.tensor.shape(),
                       runtime::train::Content::Bytes(
                           item.tensor.data(), size_t(item.tensor.bytes()))});
  }
  std::string written;
  runtime::Status status = runtime::train::writeSafetensors(
      tensors, read->metadata,
      [&](std::span<const uint8_t> bytes) {
        written.append(reinterpret_cast<const char *>(bytes.data()),
                       bytes.size());
        return runtime::Status();
      },
      "'x'");
  fuzz::require(status.ok(), "what was read can be written");
  auto again = runtime::train::parseSafetensors(
      {reinterpret_cast<const uint8_t *>(written.data()), written.size()},
      nullptr, "'x'");
  fuzz::require(again.ok() && again->tensors.size() == tensors.size() &&
                    again->metadata == read->metadata,
                "what is written can be read");
  return 0;
}
