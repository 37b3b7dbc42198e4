//===- Attention.cpp - Attention of com.microsoft -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In comments: B samples, S words, T words that they attend to (P of the past
// and those of the key), N heads of H numbers.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/microsoft/Microsoft.h"

using namespace llvm;
using namespace mlir;

namespace partita::import::microsoft {

LogicalResult checkHeads(NodeImport &n, int64_t heads, int64_t numbers) {
  if (heads > 0 && heads <= numbers && numbers % heads == 0)
    return success();
  return n.error("num_heads = " + Twine(heads) + " does not divide the " +
                 Twine(numbers) + " numbers of a word");
}

LogicalResult checkRank(NodeImport &n, unsigned input, StringRef name,
                        int64_t rank) {
  if (n.typeOf(n.input(input)).getRank() == rank)
    return success();
  return n.error("input " + Twine(input) + " (" + name + ") must have rank " +
                 Twine(rank));
}

Body &addAttention(NodeImport &n, Body &body, const Twine &results,
                   const std::string &mask, bool hasPast, bool isCausal) {
  body.add(results + " = Attention (q, k, v, " + mask +
           (hasPast ? ", past_key, past_value)" : ")"))
      .attribute("is_causal", int64_t(isCausal));
  if (double scale = n.floatAttr("scale", 0))
    body.attribute("scale", asFloat(scale));
  return body;
}

namespace {

/// The sizes that a mask depends on.
struct Sizes {
  int64_t samples, words, attended;
};

/// Defines `padding` of an input that says which words are none: 0 for those
/// that may be attended to, else `mask_filter_value`. The input has the shape
///   (B): how many words there are,
///   (2B): where they end, then where they begin,
///   (B, T) or (B, S, T): whether it is one.
LogicalResult addPadding(NodeImport &n, Body &body, unsigned input,
                         const std::string &name, const Sizes &sizes) {
  const Shape shape(n.shapeOf(n.input(input)));
  const auto [samples, words, attended] = sizes;
  body.add("mask64 = Cast <to = 7> (" + name + ")");
  if (shape == Shape{samples} || shape == Shape{2 * samples}) {
    body.ints("places", to_vector(seq<int64_t>(attended)))
        .ints("bySample", {-1, samples, 1, 1, 1})
        .scalar("first", int64_t(0))
        .scalar("second", int64_t(1))
        .add("edges = Reshape (mask64, bySample)"
             "end = Gather <axis = 0> (edges, first)"
             "before = Less (places, end)")
        .add(shape[0] == samples ? "kept = Identity (before)"
                                 : "begin = Gather <axis = 0> (edges, second)"
                                   "behind = GreaterOrEqual (places, begin)"
                                   "kept = And (before, behind)");
  } else if (shape == Shape{samples, attended} ||
             shape == Shape{samples, words, attended}) {
    body.ints("newAxes", shape.size() == 2 ? Shape{1, 2} : Shape{1})
        .scalar("none64", int64_t(0))
        .add("isWord = Greater (mask64, none64)"
             "kept = Unsqueeze (isWord, newAxes)");
  } else {
    return n.error("input " + Twine(input) + " (" + name +
                   ") must have the shape " + Twine(samples) + ", " +
                   Twine(2 * samples) + ", " + Twine(samples) + "x" +
                   Twine(attended) + " or " + Twine(samples) + "x" +
                   Twine(words) + "x" + Twine(attended));
  }
  body.scalar("none32", float(0))
      .scalar("filter32", asFloat(n.floatAttr("mask_filter_value", -10000)))
      .add("padding32 = Where (kept, none32, filter32)"
           "padding = CastLike (padding32, q)");
  return success();
}

/// Adds what the padding mask and the input `attention_bias` are together.
/// Returns its name, or nothing if none is given.
FailureOr<std::string> addMask(NodeImport &n, Body &body, unsigned padding,
                               const std::string &name, unsigned bias,
                               const Sizes &sizes) {
  const bool hasPadding = isGiven(n, padding), hasBias = isGiven(n, bias);
  if (hasPadding)
    PARTITA_TRY(addPadding(n, body, padding, name, sizes));
  if (hasPadding && hasBias)
    body.add("mask = Add (padding, attention_bias)");
  return std::string(hasPadding && hasBias ? "mask"
                     : hasPadding          ? "padding"
                     : hasBias             ? "attention_bias"
                                           : "");
}

//===----------------------------------------------------------------------===//
// Attention, QAttention: with the products that make query, key and value
//===----------------------------------------------------------------------===//

/// Goes on from `projected`, in which query, key and value of a word stand side
/// by side, each with `hidden` numbers.
LogicalResult expandProjected(NodeImport &n, Body &body,
                              ArrayRef<int64_t> hidden, unsigned mask,
                              unsigned past, unsigned bias) {
  const int64_t heads = n.intAttr("num_heads", 0);
  PARTITA_TRY(checkRank(n, 0, "input", 3));
  PARTITA_TRY(checkInt(n, "do_rotary", 0));
  PARTITA_TRY(checkInt(n, "past_present_share_buffer", 0));
  for (int64_t numbers : hidden)
    PARTITA_TRY(checkHeads(n, heads, numbers));
  ArrayRef<int64_t> shape = n.shapeOf(n.input(0));
  Sizes sizes{shape[0], shape[1], shape[1]};
  const bool hasPast = isGiven(n, past);
  if (hasPast) {
    PARTITA_TRY(checkRank(n, past, "past", 5));
    sizes.attended += n.shapeOf(n.input(past))[3];
  }

  body.ints("hidden", hidden)
      .add("q, k, v = Split <axis = -1> (projected, hidden)");
  if (hasPast)
    body.scalar("keys", int64_t(0))
        .scalar("values", int64_t(1))
        .add("past_key = Gather <axis = 0> (past, keys)"
             "past_value = Gather <axis = 0> (past, values)");
  std::string name =
      PARTITA_TRY(addMask(n, body, mask, "mask_index", bias, sizes));
  addAttention(n, body, "output, present_key, present_value", name, hasPast,
               n.intAttr("unidirectional", 0) == 1)
      .attribute("q_num_heads", heads)
      .attribute("kv_num_heads", heads);
  if (n.wantsOutput(1))
    body.ints("front", {0})
        .add("theKeys = Unsqueeze (present_key, front)"
             "theValues = Unsqueeze (present_value, front)"
             "present = Concat <axis = 0> "
             "(theKeys, theValues)");
  return body.expand();
}

/// The numbers of query, key and value, of all that weights make.
FailureOr<Shape> getHidden(NodeImport &n, unsigned weights) {
  PARTITA_TRY(checkRank(n, weights, "weights", 2));
  const int64_t all = n.shapeOf(n.input(weights))[1];
  Shape hidden = n.intsAttr("qkv_hidden_sizes").value_or(Shape());
  if (hidden.empty() && all % 3 == 0)
    hidden.assign(3, all / 3);
  if (hidden.size() != 3 || hidden[0] != hidden[1] || hidden[0] < 1 ||
      hidden[2] < 1 || hidden[2] != all - hidden[0] - hidden[1])
    return n.error("query, key and value must be " + Twine(all) +
                   " numbers, as the weights say, and query as many as key");
  return hidden;
}

LogicalResult importAttention(NodeImport &n) {
  Shape hidden = PARTITA_TRY(getHidden(n, 1));
  PARTITA_TRY(checkOmitted(n, 6, "past_sequence_length"));
  Body body(n);
  body.add(isGiven(n, 2) ? "product = MatMul (input, weights)"
                           "projected = Add (product, bias)"
                         : "projected = MatMul (input, weights)");
  return expandProjected(n, body, hidden, 3, 4, 5);
}

LogicalResult importQAttention(NodeImport &n) {
  Shape hidden = PARTITA_TRY(getHidden(n, 1));
  Body body(n);
  body.add("product = MatMulInteger "
           "(input, weight, input_zero_point, weight_zero_point)"
           "projectionScale = Mul (input_scale, weight_scale)"
           "floats = CastLike (product, projectionScale)"
           "scaled = Mul (floats, projectionScale)"
           "projected = Add (scaled, bias)");
  return expandProjected(n, body, hidden, 5, 8, /*none*/ 9);
}

//===----------------------------------------------------------------------===//
// MultiHeadAttention
//===----------------------------------------------------------------------===//

LogicalResult importMultiHeadAttention(NodeImport &n) {
  const int64_t heads = n.intAttr("num_heads", 0);
  PARTITA_TRY(checkOmitted(n, 8, "past_sequence_length"));
  PARTITA_TRY(checkOmitted(n, 9, "cache_indirection"));
  const Shape query(n.shapeOf(n.input(0)));
  const Shape key(n.input(1) ? n.shapeOf(n.input(1)) : ArrayRef<int64_t>());
  const bool isAllPacked = query.size() == 5 && key.empty() && query[3] == 3;
  const bool isPacked = query.size() == 3 && key.size() == 5 && key[3] == 2;
  const bool isSplit = query.size() == 3 && isGiven(n, 2) &&
                       (key.size() == 3 || key.size() == 4) &&
                       n.shapeOf(n.input(2)).size() == key.size();
  if (!isAllPacked && !isPacked && !isSplit)
    return n.error("it needs query, key and value of rank 3, or key and value "
                   "of rank 4, or key and value packed in a tensor of rank 5, "
                   "or all three packed in one");
  Body body(n);
  body.ints("joined", {0, 0, -1});
  Sizes sizes{query[0], query[1], query[1]};
  if (isAllPacked) {
    body.add("query5, key5, value5 = Split <axis = 3, num_outputs = 3> (query)"
             "query3 = Reshape (query5, joined)"
             "key3 = Reshape (key5, joined)"
             "value3 = Reshape (value5, joined)");
  } else if (isPacked) {
    sizes.attended = key[1];
    body.add("query3 = Identity (query)"
             "key5, value5 = Split <axis = 3, num_outputs = 2> (key)"
             "key3 = Reshape (key5, joined)"
             "value3 = Reshape (value5, joined)");
  } else if (key.size() == 4) {
    sizes.attended = key[2];
    body.add("query3 = Identity (query)"
             "key4 = Transpose <perm = [0, 2, 1, 3]> (key)"
             "key3 = Reshape (key4, joined)"
             "value4 = Transpose <perm = [0, 2, 1, 3]> (value)"
             "value3 = Reshape (value4, joined)");
  } else {
    sizes.attended = key[1];
    body.add("query3 = Identity (query) key3 = Identity (key)"
             "value3 = Identity (value)");
  }
  const int64_t hidden = isAllPacked ? query[2] * query[4] : query[2];
  PARTITA_TRY(checkHeads(n, heads, hidden));
  const int64_t hiddenValue =
      isSplit ? (key.size() == 4 ? heads * n.shapeOf(n.input(2))[3]
                                 : n.shapeOf(n.input(2))[2])
              : hidden;
  PARTITA_TRY(checkHeads(n, heads, hiddenValue));
  if (isGiven(n, 3)) {
    body.ints("biases", {hidden, hidden, hiddenValue})
        .add("queryBias, keyBias, valueBias = Split <axis = 0> (bias, biases)"
             "q = Add (query3, queryBias)");
    // A key of rank 4 is one of the past, which has its bias.
    body.add(key.size() == 4
                 ? "k = Identity (key3) v = Identity (value3)"
                 : "k = Add (key3, keyBias) v = Add (value3, valueBias)");
  } else {
    body.add("q = Identity (query3) k = Identity (key3) v = Identity (value3)");
  }
  const bool hasPast = isGiven(n, 6);
  if (hasPast != isGiven(n, 7))
    return n.error("past_key and past_value go together");
  if (hasPast) {
    PARTITA_TRY(checkRank(n, 6, "past_key", 4));
    sizes.attended += n.shapeOf(n.input(6))[2];
  }
  std::string mask =
      PARTITA_TRY(addMask(n, body, 4, "key_padding_mask", 5, sizes));
  return addAttention(n, body, "output, present_key, present_value", mask,
                      hasPast, n.intAttr("unidirectional", 0) == 1)
      .attribute("q_num_heads", heads)
      .attribute("kv_num_heads", heads)
      .expand();
}

//===----------------------------------------------------------------------===//
// RotaryEmbedding
//===----------------------------------------------------------------------===//

/// The positions of a sample's words, or that of the first word of all.
LogicalResult importRotaryEmbedding(NodeImport &n) {
  const Shape input(n.shapeOf(n.input(0))), positions(n.shapeOf(n.input(1)));
  PARTITA_TRY(checkInt(n, "is_packed_batching", 0));
  PARTITA_TRY(checkRank(n, 2, "cos_cache", 2));
  if (n.floatAttr("scale", 1) != 1)
    return n.error("a scale other than 1 is not supported");
  if (input.size() != 3 && input.size() != 4)
    return n.error("input must have rank 3 or 4");
  const int64_t words = input[input.size() - 2];
  const int64_t width = 2 * n.shapeOf(n.input(2))[1];
  const int64_t rotated = n.intAttr("rotary_embedding_dim", 0);
  int64_t heads = n.intAttr("num_heads", 0);
  if (input.size() == 3 && heads == 0) {
    if (width < 1 || input[2] % width)
      return n.error("cos_cache has " + Twine(width / 2) +
                     " numbers a position, which do not fit the " +
                     Twine(input[2]) + " numbers of a word");
    heads = input[2] / width;
  }
  Body body(n);
  if (positions == Shape{1})
    body.ints("steps", to_vector(seq<int64_t>(words)))
        .ints("shape", {input[0], words})
        .add("each = Add (position_ids, steps)"
             "places = Expand (each, shape)");
  else
    body.add("places = Identity (position_ids)");
  return body
      .add("output = RotaryEmbedding <interleaved: int = @interleaved> "
           "(input, cos_cache, sin_cache, places)")
      .attribute("num_heads", heads)
      .attribute("rotary_embedding_dim", rotated)
      .expand();
}

const ForeignOp attentionOps[] = {
    {"Attention",
     "input, weights, bias?, mask_index?, past?, attention_bias?, "
     "past_sequence_length?",
     "output, present?",
     "num_heads: int, unidirectional: int = 0, scale: float, "
     "mask_filter_value: float, qkv_hidden_sizes: ints, do_rotary: int = 0, "
     "rotary_embedding_dim: int, past_present_share_buffer: int = 0",
     importAttention},
    {"GroupQueryAttention",
     "query, key?, value?, past_key?, past_value?, seqlens_k, "
     "total_sequence_length, cos_cache?, sin_cache?, position_ids?, "
     "attention_bias?, head_sink?, k_scale?, v_scale?, q_norm_weight?, "
     "k_norm_weight?, query_seqlens?",
     "output, present_key?, present_value?, output_qk?",
     "num_heads: int, kv_num_heads: int, scale: float, softcap: float, "
     "local_window_size: int = -1, do_rotary: int = 0, "
     "rotary_interleaved: int = 0, smooth_softmax: int = -1, causal: int = 1, "
     "qk_output: int = 0, k_quant_type: string, v_quant_type: string, "
     "kv_cache_bit_width: int, sliding_window_cache: int = 0, "
     "qk_norm_epsilon: float, q_norm_epsilon: float, k_norm_epsilon: float",
     importGroupQueryAttention},
    {"MultiHeadAttention",
     "query, key?, value?, bias?, key_padding_mask?, attention_bias?, "
     "past_key?, past_value?, past_sequence_length?, cache_indirection?",
     "output, present_key?, present_value?, qk?",
     "num_heads: int, unidirectional: int = 0, scale: float, "
     "mask_filter_value: float",
     importMultiHeadAttention},
    {"QAttention",
     "input, weight, bias, input_scale, weight_scale, mask_index?, "
     "input_zero_point?, weight_zero_point?, past?",
     "output, present?",
     "num_heads: int, unidirectional: int = 0, scale: float, "
     "mask_filter_value: float, do_rotary: int = 0, "
     "past_present_share_buffer: int = 0",
     importQAttention},
    {"RotaryEmbedding", "input, position_ids, cos_cache, sin_cache", "output",
     "interleaved: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0, "
     "scale: float = 1, is_packed_batching: int = 0",
     importRotaryEmbedding},
};

} // namespace

ArrayRef<ForeignOp> getAttentionOps() { return attentionOps; }

} // namespace partita::import::microsoft
