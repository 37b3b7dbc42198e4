//===- Tokens.cpp - Windows of a text's tokens ----------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Formats.h"

#include <limits>

namespace partita::data {

using abi::DType;
using runtime::Expected;
using runtime::Status;

Expected<DatasetPointer> parseTokens(std::span<const uint8_t> bytes,
                                     std::shared_ptr<const void> owner,
                                     const TokenOptions &options,
                                     const std::string &name) {
  auto refuse = [&](const std::string &why) {
    return Status::error("cannot read " + name + ": " + why);
  };
  if (options.dtype != DType::u16 && options.dtype != DType::u32)
    return refuse("tokens are u16 or u32, not " +
                  std::string(abi::EnumNameDType(options.dtype)));
  if (options.window < 1)
    return refuse("it has tokens; say how many make a sample, e.g. "
                  "window=256");
  if (options.stride < 1)
    return refuse("the stride of its windows must be at least 1");
  const int64_t size = runtime::elementBytes(options.dtype);
  if (bytes.size() % size_t(size) != 0)
    return refuse("its " + std::to_string(bytes.size()) +
                  " bytes are not a whole number of tokens of " +
                  std::to_string(size) + " bytes (dtype=u16 or dtype=u32)");
  const int64_t tokens = int64_t(bytes.size()) / size;

  // Without overflow for any window and stride.
  Samples samples;
  samples.count = tokens > options.window
                      ? (tokens - options.window - 1) / options.stride + 1
                      : 0;
  samples.first = bytes.data();
  if (samples.count > 0) {
    samples.first += options.targets ? size : 0;
    samples.stride = samples.count > 1 ? options.stride * size : 0;
  }
  if (options.window > std::numeric_limits<int64_t>::max() / 8)
    return refuse("a window of " + std::to_string(options.window) +
                  " tokens is too large");
  samples.dtype = options.dtype;
  samples.shape = {options.window};
  samples.owner = std::move(owner);
  return std::make_shared<const Dataset>(name, std::move(samples));
}

} // namespace partita::data
