//===- Tensors.h - Tensors in requests and answers --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// JSON tensors of the Open Inference Protocol, version 2:
//
//   {"name": "x", "datatype": "FP32", "shape": [2, 3],
//    "data": [[1, 2, 3], [4, 5, 6]]}
//
// `data` is row-major; rows may be lists of their own, or not.
//
//===----------------------------------------------------------------------===//

#ifndef EXAMPLES_EMBED_SERVE_TENSORS_H
#define EXAMPLES_EMBED_SERVE_TENSORS_H

#include "Model.h"

#include <boost/json.hpp>

#include <optional>
#include <string_view>

namespace json = boost::json;

/// A request that a client has to change: answered with 400.
struct WrongRequest : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The protocol's name of a type, e.g. "FP32"; null where JSON has none.
const char *datatypeOf(partita_type type);

/// The most characters that so many samples of these tensors take in JSON.
size_t textBytes(const std::vector<partita_port> &ports, int64_t samples);

/// About the memory of a request with so many samples, until it is answered.
size_t workBytes(const Model &model, int64_t samples);

/// A request: samples for the inputs of a model, and room for its outputs.
struct Samples {
  std::optional<std::string> id;
  /// Of `parameters`: the sequence that the samples go on with, as text;
  /// whether they are its first, and its last.
  std::optional<std::string> sequence;
  bool starts = false, ends = false;
  int64_t count = 0;
  std::vector<int64_t> sizes; ///< one for each of the model's dimensions
  std::vector<std::vector<uint8_t>> inputs, outputs;
};

/// Reads a request while it arrives. Numbers go straight into the tensors, and
/// nothing is kept of the text. The exception is data that comes before the
/// name of its tensor, where the model has several inputs.
class RequestReader {
public:
  RequestReader(const Model &model, int64_t most_samples);
  ~RequestReader();
  /// Reads more of the text. Throws WrongRequest.
  void read(std::string_view text);
  /// What the text held, when it has ended. Throws WrongRequest.
  Samples finish();
  /// The memory that the request takes so far.
  size_t bytes() const;
  /// About the memory that it will take until it is answered.
  size_t workBytes() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// The text that answers a request, when its outputs have been computed.
std::string writeAnswer(const Samples &samples, const Model &model,
                        const std::string &name);
/// Name, datatype and shape of inputs or outputs, with -1 for the batch axis
/// and where sizes may differ.
json::array describePorts(const std::vector<partita_port> &ports);

#endif // EXAMPLES_EMBED_SERVE_TENSORS_H
