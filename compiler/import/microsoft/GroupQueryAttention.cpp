//===- GroupQueryAttention.cpp - Attention of language models -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys and values of the past stand at the beginning of a cache, which has room
// for the attended words at least. The new ones are written behind them. How
// many there are is known when the model runs.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/microsoft/Microsoft.h"

using namespace llvm;
using namespace mlir;

namespace partita::import::microsoft {
namespace {

class GroupQueryAttention {
public:
  explicit GroupQueryAttention(NodeImport &n)
      : n(n), body(n), heads(n.intAttr("num_heads", 0)),
        kvHeads(n.intAttr("kv_num_heads", 0)),
        window(n.intAttr("local_window_size", -1)),
        isCausal(n.intAttr("causal", 1) != 0), isPacked(!isGiven(n, 1)),
        hasPast(isGiven(n, 3)),
        hasSink(isGiven(n, 11) || n.intAttr("smooth_softmax", 0) == 1) {}

  LogicalResult import() {
    PARTITA_TRY(checkOptions());
    PARTITA_TRY(setSizes());
    PARTITA_TRY(setCache());
    addProjections();
    addPlaces();
    PARTITA_TRY(addRotation());
    addHeads();
    addCache();
    return addResult();
  }

private:
  LogicalResult checkOptions() {
    PARTITA_TRY(checkInt(n, "sliding_window_cache", 0));
    PARTITA_TRY(checkInt(n, "qk_output", 0));
    PARTITA_TRY(checkOmitted(n, 12, "k_scale"));
    PARTITA_TRY(checkOmitted(n, 13, "v_scale"));
    PARTITA_TRY(checkOmitted(n, 16, "query_seqlens"));
    for (const char *type : {"k_quant_type", "v_quant_type"})
      if (n.stringAttr(type, "NONE") != "NONE")
        return n.error(type + Twine(" can only be NONE"));
    if (window < -1 || window == 0 || (window > 0 && !isCausal))
      return n.error(
          "local_window_size = " + Twine(window) +
          "; it can be -1, or a number of words of causal attention");
    if (isPacked != !isGiven(n, 2))
      return n.error("key and value go together");
    if (hasPast != isGiven(n, 4))
      return n.error("past_key and past_value go together");
    if (isGiven(n, 14) != isGiven(n, 15))
      return n.error("q_norm_weight and k_norm_weight go together");
    return success();
  }

  LogicalResult setSizes() {
    if (failed(checkRank(n, 0, "query", 3)) ||
        (!isPacked && (failed(checkRank(n, 1, "key", 3)) ||
                       failed(checkRank(n, 2, "value", 3)))))
      return failure();
    if (heads < 1 || kvHeads < 1 || heads % kvHeads)
      return n.error("kv_num_heads = " + Twine(kvHeads) +
                     " does not divide num_heads = " + Twine(heads));
    ArrayRef<int64_t> query = n.shapeOf(n.input(0));
    const int64_t inQuery =
        isPacked && heads <= query[2] ? heads + 2 * kvHeads : heads;
    PARTITA_TRY(checkHeads(n, inQuery, query[2]));
    samples = query[0];
    words = query[1];
    head = query[2] / inQuery;
    return success();
  }

  LogicalResult setCache() {
    Shape total = PARTITA_TRY(n.constantInts(6, "the total length"));
    if (total.size() != 1 || total.front() < words)
      return n.error("total_sequence_length must be one number of at least " +
                     Twine(words));
    isFirst = total.front() == words;
    if (!hasPast && !isFirst)
      return n.error("total_sequence_length is " + Twine(total.front()) +
                     ", and there are " + Twine(words) +
                     " words and no past_key");
    if (hasPast) {
      PARTITA_TRY(checkRank(n, 3, "past_key", 4));
      room = n.shapeOf(n.input(3))[2];
      for (unsigned i : {3, 4})
        if (n.shapeOf(n.input(i)) != ArrayRef({samples, kvHeads, room, head}))
          return n.error("past_key and past_value must have the shape " +
                         Twine(samples) + "x" + Twine(kvHeads) + "x" +
                         Twine(room) + "x" + Twine(head));
    }
    attended = std::max(room, total.front());
    return success();
  }

  /// Defines `query1`, `key1` and `value1`: what is multiplied, before it is
  /// rotated.
  void addProjections() {
    body.ints("joined", {0, 0, -1});
    if (isPacked)
      body.ints("packed", {heads * head, kvHeads * head, kvHeads * head})
          .add("query0, key0, value1 = Split <axis = -1> (query, packed)");
    else
      body.add("query0 = Identity (query) key0 = Identity (key)"
               "value1 = Identity (value)");
    if (!isGiven(n, 14)) {
      body.add("query1 = Identity (query0) key1 = Identity (key0)");
      return;
    }
    addHeadNorm("query1", "query0", "q_norm_weight", "q_norm_epsilon");
    addHeadNorm("key1", "key0", "k_norm_weight", "k_norm_epsilon");
  }

  /// Each head is normalized by its root mean square.
  void addHeadNorm(const std::string &name, const std::string &from,
                   const char *weight, const char *epsilon) {
    const double byDefault = n.floatAttr("qk_norm_epsilon", 1e-6);
    body.ints(name + "ByHead", {0, 0, -1, head})
        .add(name + "Heads = Reshape (" + from + ", " + name + "ByHead)")
        .add(name + "Normal = RMSNormalization (" + name + "Heads, " + weight +
             ")")
        .attribute("epsilon", asFloat(n.floatAttr(epsilon, byDefault)))
        .add(name + " = Reshape (" + name + "Normal, joined)");
  }

  /// Defines `begins`, where the first of the new words of a sample stands;
  /// `places`, where each of them does; and `last`, where the last of all does.
  void addPlaces() {
    body.ints("samples", {samples})
        .ints("steps", to_vector(seq<int64_t>(words)))
        .ints("newColumn", {1})
        .scalar("lead", int64_t(1 - words))
        .scalar("none", int64_t(0))
        .add("lengths = Cast <to = 7> (seqlens_k)"
             "last = Reshape (lengths, samples)")
        .add(isFirst ? "begins = Mul (last, none)"
                     : "begins = Add (last, lead)")
        .add("beginColumn = Unsqueeze (begins, newColumn)"
             "places = Add (beginColumn, steps)");
  }

  /// Defines `query2` and `key2`.
  LogicalResult addRotation() {
    if (n.intAttr("do_rotary", 0) != 1) {
      body.add("query2 = Identity (query1) key2 = Identity (key1)");
      return success();
    }
    if (!isGiven(n, 7) || !isGiven(n, 8))
      return n.error("do_rotary needs cos_cache and sin_cache");
    PARTITA_TRY(checkRank(n, 7, "cos_cache", 2));
    const int64_t rotated = 2 * n.shapeOf(n.input(7))[1];
    for (auto [from, to, count] :
         {std::tuple("query1", "query2", heads), {"key1", "key2", kvHeads}})
      body.add(Twine(to) +
               " = RotaryEmbedding <interleaved: int = @rotary_interleaved> (" +
               from + ", cos_cache, sin_cache, " +
               (isGiven(n, 9) ? "position_ids)" : "places)"))
          .attribute("num_heads", count)
          .attribute("rotary_embedding_dim", rotated == head ? 0 : rotated);
    return success();
  }

  /// Defines `q`, `newKey` and `newValue`, in which the words of a head follow
  /// one another.
  void addHeads() {
    for (auto [from, to, count] : {std::tuple("query2", "q", heads),
                                   {"key2", "newKey", kvHeads},
                                   {"value1", "newValue", kvHeads}})
      body.ints(std::string(to) + "ByHead", {0, 0, count, head})
          .add(Twine(to) + "Heads = Reshape (" + from + ", " + to + "ByHead)")
          .add(Twine(to) + " = Transpose <perm = [0, 2, 1, 3]> (" + to +
               "Heads)");
  }

  /// Defines the results `present_key` and `present_value`.
  void addCache() {
    if (attended == words)
      body.add("present_key = Identity (newKey)"
               "present_value = Identity (newValue)");
    else
      body.ints("padding", {0, attended - room})
          .ints("along", {2})
          .add("keys = Pad (past_key, padding, , along)"
               "values = Pad (past_value, padding, , along)"
               "present_key = TensorScatter <axis = 2> (keys, newKey, begins)"
               "present_value = TensorScatter <axis = 2> (values, newValue, "
               "begins)");
  }

  /// Adds which words a word may attend to, and what is added there. Returns
  /// its name.
  std::string addMask() {
    body.ints("targets", to_vector(seq<int64_t>(attended)))
        .ints("ofSource", {1, 3})
        .ints("ofSample", {1, 2, 3})
        .add("sources = Unsqueeze (places, ofSource)"
             "ends = Unsqueeze (last, ofSample)")
        .add(isCausal ? "seen = LessOrEqual (targets, sources)"
                      : "seen = LessOrEqual (targets, ends)");
    if (window > 0)
      body.scalar("window", window)
          .add("horizon = Sub (sources, window)"
               "isNear = Greater (targets, horizon)"
               "kept = And (seen, isNear)");
    else
      body.add("kept = Identity (seen)");
    if (!isGiven(n, 10))
      return "kept";
    body.scalar("lowest32", std::numeric_limits<float>::lowest())
        .add("lowest = CastLike (lowest32, attention_bias)"
             "mask = Where (kept, attention_bias, lowest)");
    return "mask";
  }

  /// Defines `k` and `v` with one word more, of zeros, and their mask, of which
  /// it returns the name. The word takes a share of the attention, by what the
  /// mask has for it, and gives nothing.
  std::string addSink(const std::string &mask) {
    body.ints("sinkWord", {samples, kvHeads, 1, head})
        .ints("perHead", {1, heads, 1, 1})
        .ints("column", {samples, heads, words, 1})
        .ints("whole", {samples, heads, words, attended})
        .scalar("zero32", float(0))
        .add("zero = CastLike (zero32, q)"
             "zeros = Expand (zero, sinkWord)"
             "k = Concat <axis = 2> (present_key, zeros)"
             "v = Concat <axis = 2> (present_value, zeros)")
        .add(isGiven(n, 11) ? "sinks = Reshape (head_sink, perHead)"
                            : "sinks = Identity (zero)");
    if (isGiven(n, 10))
      body.add("summands = Identity (" + mask + ")");
    else
      body.scalar("least32", std::numeric_limits<float>::lowest())
          .add("least = CastLike (least32, q)"
               "summands = Where (" +
               mask + ", zero, least)");
    body.add("ofWords = Expand (summands, whole)"
             "ofSinks = Expand (sinks, column)"
             "withSink = Concat <axis = -1> (ofWords, ofSinks)");
    return "withSink";
  }

  LogicalResult addResult() {
    // Without a window, words of a first prompt see all before them.
    const bool isPlain =
        attended == words && isCausal && window < 0 && !hasSink;
    std::string mask = !isPlain         ? addMask()
                       : isGiven(n, 10) ? "attention_bias"
                                        : "";
    if (hasSink)
      mask = addSink(mask);
    else
      body.add("k = Identity (present_key) v = Identity (present_value)");
    addAttention(n, body, "byHead", mask, /*hasPast=*/false, isPlain);
    if (double softcap = n.floatAttr("softcap", 0); softcap > 0)
      body.attribute("softcap", asFloat(softcap));
    return body
        .add("byWord = Transpose <perm = [0, 2, 1, 3]> (byHead)"
             "output = Reshape (byWord, joined)")
        .expand();
  }

  NodeImport &n;
  Body body;
  const int64_t heads, kvHeads, window;
  const bool isCausal, isPacked, hasPast, hasSink;
  int64_t samples = 0, words = 0, head = 0;
  int64_t room = 0, attended = 0; ///< words of the cache, before and after
  /// The words of a first prompt begin at 0, however many are padding.
  bool isFirst = false;
};

} // namespace

LogicalResult importGroupQueryAttention(NodeImport &n) {
  return GroupQueryAttention(n).import();
}

} // namespace partita::import::microsoft
