//===- Normalization.cpp - Normalizations of com.microsoft ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/microsoft/Microsoft.h"

using namespace llvm;
using namespace mlir;

namespace partita::import::microsoft {
namespace {

/// Defines `input_skip_bias_sum`.
void addSum(NodeImport &n, Body &body, unsigned bias) {
  if (isGiven(n, bias))
    body.add("skipped = Add (input, skip)"
             "input_skip_bias_sum = Add (skipped, bias)");
  else
    body.add("input_skip_bias_sum = Add (input, skip)");
}

LogicalResult importSkipLayerNorm(NodeImport &n) {
  Body body(n);
  addSum(n, body, 4);
  return body
      .add("output, mean, inv_std_var = LayerNormalization "
           "<epsilon: float = @epsilon> (input_skip_bias_sum, gamma, beta)")
      .expand();
}

LogicalResult importSkipRootMeanSquare(NodeImport &n) {
  Body body(n);
  addSum(n, body, 3);
  return body
      .add("output = RMSNormalization <epsilon: float = @epsilon> "
           "(input_skip_bias_sum, gamma)")
      .expand();
}

/// The embeddings of BERT: of words, of positions and of segments.
LogicalResult importEmbedLayerNorm(NodeImport &n) {
  const bool hasSegments = isGiven(n, 1), hasMask = isGiven(n, 7),
             hasPositions = isGiven(n, 8);
  if (hasSegments != isGiven(n, 4))
    return n.error("segment_ids and segment_embedding go together");
  ArrayRef<int64_t> ids = n.shapeOf(n.input(0)),
                    positions = n.shapeOf(n.input(3));
  if (ids.size() != 2 || positions.size() != 2)
    return n.error("input_ids and position_embedding must have rank 2");
  if (!hasPositions && ids[1] > positions[0])
    return n.error("the sequence has " + Twine(ids[1]) +
                   " words, and position_embedding " + Twine(positions[0]) +
                   " positions");
  Body body(n);
  body.add("words = Gather (word_embedding, input_ids)");
  if (hasPositions)
    body.add("positions = Gather (position_embedding, position_ids)");
  else
    body.ints("begin", {0})
        .ints("end", {ids[1]})
        .add("positions = Slice (position_embedding, begin, end)");
  if (hasSegments)
    body.add("placed = Add (words, positions)"
             "segments = Gather (segment_embedding, segment_ids)"
             "embedding_sum = Add (placed, segments)");
  else
    body.add("embedding_sum = Add (words, positions)");
  body.add("output = LayerNormalization <epsilon: float = @epsilon> "
           "(embedding_sum, gamma, beta)");
  // The number of words that the mask has.
  body.scalar("one", int64_t(1)).ints("along", {1});
  if (hasMask)
    body.add("mask64 = Cast <to = 7> (mask)"
             "isWord = Equal (mask64, one)"
             "counted = Cast <to = 6> (isWord)"
             "mask_index = ReduceSum <keepdims = 0> (counted, along)");
  else
    body.add("ids = Cast <to = 6> (input_ids)"
             "nothing = Sub (ids, ids)"
             "mask_index = ReduceSum <keepdims = 0> (nothing, along)");
  return body.expand();
}

const ForeignOp normalizationOps[] = {
    {"EmbedLayerNormalization",
     "input_ids, segment_ids?, word_embedding, position_embedding, "
     "segment_embedding?, gamma, beta, mask?, position_ids?",
     "output, mask_index?, embedding_sum?",
     "epsilon: float = 1e-12, mask_index_type: int = 1", importEmbedLayerNorm},
    // In models of before ONNX had it.
    {"LayerNormalization", "X, scale, B?", "Y, mean?, inv_std_var?",
     "axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1",
     importAs<"Y, mean, inv_std_var = LayerNormalization "
              "<axis: int = @axis, epsilon: float = @epsilon, "
              "stash_type: int = @stash_type> (X, scale, B)">},
    {"SimplifiedLayerNormalization", "X, scale", "Y, inv_std_var?",
     "axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1",
     importAs<
         "Y = RMSNormalization <axis: int = @axis, epsilon: float = @epsilon, "
         "stash_type: int = @stash_type> (X, scale)">},
    {"SkipLayerNormalization", "input, skip, gamma, beta?, bias?",
     "output, mean?, inv_std_var?, input_skip_bias_sum?",
     "epsilon: float = 1e-12", importSkipLayerNorm},
    {"SkipSimplifiedLayerNormalization", "input, skip, gamma, bias?",
     "output, mean?, inv_std_var?, input_skip_bias_sum?",
     "epsilon: float = 1e-12", importSkipRootMeanSquare},
};

} // namespace

ArrayRef<ForeignOp> getNormalizationOps() { return normalizationOps; }

} // namespace partita::import::microsoft
