//===- NodeNumbers.cpp - Which node of a file is which --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/annotations/NodeNumbers.h"

namespace partita::import {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

static void number(const Nodes &nodes, int64_t &next, int64_t step,
                   NodeNumbers &numbers) {
  for (const onnx::NodeProto &node : nodes) {
    numbers[&node] = next;
    next += step;
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        number(attribute.g().node(), next, step, numbers);
      for (const onnx::GraphProto &graph : attribute.graphs())
        number(graph.node(), next, step, numbers);
    }
  }
}

NodeNumbers numberNodes(const onnx::ModelProto &model) {
  NodeNumbers numbers;
  int64_t next = 0;
  number(model.graph().node(), next, 1, numbers);
  next = -1;
  for (const onnx::FunctionProto &function : model.functions())
    number(function.node(), next, -1, numbers);
  return numbers;
}

} // namespace partita::import
