//===- Tensors.h - Tensors in requests and responses ------------*- C++ -*-===//
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

#include <nlohmann/json.hpp>

using Json = nlohmann::json;

/// A request that a client has to change: answered with 400.
struct WrongRequest : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The protocol's name of a type, e.g. "FP32"; null where JSON has none.
const char *datatypeOf(partita_type type);

/// Samples for the inputs of a model, and room for its outputs.
struct Samples {
  int64_t count = 0;
  std::vector<std::vector<uint8_t>> inputs, outputs;
};

/// What a request holds. Throws WrongRequest.
Samples readRequest(const Json &request, const Model &model);
/// The outputs, when they have been computed.
Json writeOutputs(const Samples &samples, const Model &model);
/// Name, datatype and shape of inputs or outputs, with -1 for the batch axis.
Json describePorts(const std::vector<partita_port> &ports);

#endif // EXAMPLES_EMBED_SERVE_TENSORS_H
