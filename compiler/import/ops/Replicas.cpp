//===- Replicas.cpp - The domain ai.partita: what crosses replicas --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// docs/replicas.md describes the ops. With one replica they are identities.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"
#include "dialects/dist/DistDialect.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

namespace {

//===----------------------------------------------------------------------===//
// Placeholders
//===----------------------------------------------------------------------===//

/// Samples of different replicas meet, so none of them may be made up.
void markCrossing(NodeImport &n) {
  auto module =
      n.b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  module->setAttr(dist::kFullMicroBatchesAttr, n.b.getUnitAttr());
}

using Combination = dist::PlaceholderReduceKind;

FailureOr<Combination> getReplicaReduction(NodeImport &n) {
  const std::string name = n.stringAttr("reduction", "sum");
  if (auto kind = dist::symbolizePlaceholderReduceKind(name))
    return *kind;
  return n.error("the reduction '" + name +
                 "' is not known; there are sum, prod, max, min and mean");
}

/// Whether tensors of a type have a reduction.
LogicalResult checkReduction(NodeImport &n, Combination kind, Type element) {
  if (!element.isIntOrFloat() || element.getIntOrFloatBitWidth() == 4 ||
      element.getIntOrFloatBitWidth() == 2 ||
      (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 16))
    return n.error("elements of its type cannot be combined: cast them before");
  if (kind == Combination::mean && !isa<FloatType>(element))
    return n.error("a mean is one of floats: cast the integers before");
  if (element.isInteger(1) && kind != Combination::max &&
      kind != Combination::min)
    return n.error("booleans have only the reductions max (or) and min (and)");
  return success();
}

/// Whether a tensor crosses nothing: there is one replica, or there are no
/// elements.
bool staysHere(NodeImport &n, Value x) {
  return n.source.replicas == 1 || n.typeOf(x).getNumElements() == 0;
}

/// What takes the place of a tensor that crosses nothing. It has the same
/// elements.
Value keep(NodeImport &n, Value x, RankedTensorType type) {
  if (x.getType() == type)
    return x;
  return n.splat(0, type.getShape(), type.getElementType());
}

Value allReduce(NodeImport &n, Value x, Combination kind) {
  if (!x || staysHere(n, x))
    return x;
  return dist::ReplicaAllReduceOp::create(n.b, n.loc, x.getType(), kind, x);
}

Value allGather(NodeImport &n, Value x, int64_t dim) {
  if (!x)
    return {};
  Shape shape(n.shapeOf(x));
  shape[dim] *= n.source.replicas;
  RankedTensorType type = n.tensor(shape, n.elementOf(x));
  if (!type || staysHere(n, x))
    return type ? keep(n, x, type) : Value();
  return dist::ReplicaAllGatherOp::create(n.b, n.loc, type, x, dim);
}

/// `dim` must divide.
Value shard(NodeImport &n, Value x, int64_t dim) {
  if (!x)
    return {};
  Shape shape(n.shapeOf(x));
  shape[dim] /= n.source.replicas;
  RankedTensorType type = n.typeOf(x).clone(shape);
  if (staysHere(n, x))
    return keep(n, x, type);
  return dist::ReplicaShardOp::create(n.b, n.loc, type, x, dim);
}

FailureOr<int64_t> getAxis(NodeImport &n, StringRef name) {
  return n.axisAttr(0, n.typeOf(n.input(0)).getRank(), name);
}

LogicalResult checkDivides(NodeImport &n, int64_t dim) {
  const int64_t size = n.shapeOf(n.input(0))[dim];
  if (size % n.source.replicas == 0)
    return success();
  return n.error("dimension " + Twine(dim) + " has the size " + Twine(size) +
                 ", which cannot be dealt out to " + Twine(n.source.replicas) +
                 " replicas in equal parts");
}

/// A sum if nothing else is said.
LogicalResult importAllReduce(NodeImport &n) {
  Combination kind = PARTITA_TRY(getReplicaReduction(n));
  PARTITA_TRY(checkReduction(n, kind, n.elementOf(n.input(0))));
  markCrossing(n);
  return n.result(0, allReduce(n, n.input(0), kind));
}

LogicalResult importAllGather(NodeImport &n) {
  int64_t dim = PARTITA_TRY(getAxis(n, "axis"));
  markCrossing(n);
  return n.result(0, allGather(n, n.input(0), dim));
}

LogicalResult importAllToAll(NodeImport &n) {
  FailureOr<int64_t> split = getAxis(n, "split_axis"),
                     concat = getAxis(n, "concat_axis");
  if (failed(split) || failed(concat) || failed(checkDivides(n, *split)))
    return failure();
  markCrossing(n);
  Value x = n.input(0);
  const int64_t replicas = n.source.replicas;
  Shape shape(n.shapeOf(x));
  shape[*split] /= replicas;
  shape[*concat] *= replicas;
  RankedTensorType type = PARTITA_TRY(n.tensor(shape, n.elementOf(x)));
  if (staysHere(n, x))
    return n.result(0, keep(n, x, type));
  return n.result(0, Value(dist::ReplicaAllToAllOp::create(
                         n.b, n.loc, type, x, *split, *concat, replicas)));
}

LogicalResult importBroadcast(NodeImport &n) {
  const int64_t root = n.intAttr("root", 0);
  if (root < 0 || root >= n.source.replicas)
    return n.error("root is replica " + Twine(root) + "; there are " +
                   Twine(n.source.replicas) + ", counted from 0");
  markCrossing(n);
  if (staysHere(n, n.input(0)))
    return n.result(0, n.input(0));
  return n.result(0, Value(dist::ReplicaBroadcastOp::create(
                         n.b, n.loc, n.input(0).getType(), n.input(0), root)));
}

LogicalResult importShard(NodeImport &n) {
  int64_t dim = PARTITA_TRY(getAxis(n, "axis"));
  PARTITA_TRY(checkDivides(n, dim));
  return n.result(0, shard(n, n.input(0), dim));
}

LogicalResult importReplicaId(NodeImport &n) {
  Shape ids = to_vector(seq<int64_t>(0, n.source.replicas));
  return n.result(0, n.reshape(shard(n, n.indices(ids), 0), {}));
}

LogicalResult importReplicaCount(NodeImport &n) {
  return n.result(0, n.reshape(n.indices({n.source.replicas}), {}));
}

//===----------------------------------------------------------------------===//
// A function of all elements, dealt out to the replicas
//===----------------------------------------------------------------------===//

/// Each replica computes the same number of elements; the last of them again
/// where there are not enough.
class MapImport {
public:
  explicit MapImport(NodeImport &n) : n(n), body(n.attr("body")->g()) {}

  LogicalResult gather() {
    PARTITA_TRY(computeOwn());
    for (auto [i, value] : enumerate(results))
      PARTITA_TRY(n.result(i, n.part(allGather(n, value, 0), 0, 0, elements)));
    return success();
  }

  LogicalResult reduce() {
    Combination kind = PARTITA_TRY(getReplicaReduction(n));
    PARTITA_TRY(computeOwn());
    for (auto [i, value] : enumerate(results)) {
      PARTITA_TRY(checkReduction(n, kind, n.elementOf(value)));
      PARTITA_TRY(n.result(i, combine(value, kind)));
    }
    return success();
  }

private:
  /// Computes this replica's elements. The results of each output of the body
  /// stand in one tensor.
  LogicalResult computeOwn() {
    SmallVector<Value> lists;
    for (auto [i, list] : enumerate(n.inputs)) {
      if (n.typeOf(list).getRank() == 0 || n.shapeOf(list)[0] == 0)
        return n.error("input " + Twine(i) +
                       " has no elements along its "
                       "dimension 0");
      if (i > 0 && n.shapeOf(list)[0] != elements)
        return n.error(
            "input " + Twine(i) + " has " + Twine(n.shapeOf(list)[0]) +
            " elements along dimension 0, and input 0 has " + Twine(elements));
      elements = n.shapeOf(list)[0];
    }
    each = divideCeil(elements, n.source.replicas);
    if (each > kMostElements)
      return n.error("a replica has " + Twine(each) + " elements; at most " +
                     Twine(kMostElements) + " are computed one by one");
    markCrossing(n);
    for (Value list : n.inputs)
      lists.push_back(shard(n, fillUp(list), 0));
    SmallVector<SmallVector<Value>> rows(body.output_size());
    for (int64_t element = 0; element < each; ++element)
      PARTITA_TRY(compute(lists, element, rows));
    for (ArrayRef<Value> values : rows)
      results.push_back(PARTITA_TRY(n.stack(values, 0)));
    return success();
  }

  LogicalResult compute(ArrayRef<Value> lists, int64_t element,
                        MutableArrayRef<SmallVector<Value>> rows) {
    SmallVector<ModelValue> arguments;
    for (Value list : lists)
      arguments.push_back(n.at(list, 0, element));
    auto made = PARTITA_TRY(
        n.source.importBody(body, arguments, std::to_string(element)));
    for (auto [k, value] : enumerate(made)) {
      if (!value.tensor())
        return n.error("'" + body.output(static_cast<int>(k)).name() +
                       "' is no tensor");
      rows[k].push_back(value.tensor());
    }
    return success();
  }

  Value fillUp(Value list) {
    SmallVector<Value> parts = {list};
    parts.append(each * n.source.replicas - elements,
                 n.part(list, 0, elements - 1, elements));
    return parts.size() == 1 ? list : n.concat(parts, 0);
  }

  /// The results of all elements, combined. Elements that were computed again
  /// change no maximum; in a sum they do not count.
  Value combine(Value value, Combination kind) {
    const bool isMean = kind == Combination::mean;
    if (kind != Combination::max && kind != Combination::min)
      value = leaveOutRepeated(value, kind == Combination::prod ? 1 : 0);
    Value own = n.reduce(isMean ? nn::ReduceKind::sum
                                : static_cast<nn::ReduceKind>(kind),
                         value, {0}, /*keep=*/false);
    Value all = allReduce(n, own, isMean ? Combination::sum : kind);
    return isMean ? n.div(all, elements) : all;
  }

  Value leaveOutRepeated(Value value, double neutral) {
    const int64_t replicas = n.source.replicas;
    if (each * replicas == elements)
      return value;
    SmallVector<bool> counts(each * replicas, true);
    std::fill(counts.begin() + elements, counts.end(), false);
    Value own = shard(
        n,
        n.constant(DenseElementsAttr::get(
            RankedTensorType::get({each * replicas}, n.b.getI1Type()), counts)),
        0);
    return n.select(n.broadcastDims(own, {0}, n.shapeOf(value)), value,
                    neutral);
  }

  static constexpr int64_t kMostElements = 4096;
  NodeImport &n;
  const onnx::GraphProto &body;
  int64_t elements = 0, each = 0; ///< of all replicas, of one
  SmallVector<Value> results;
};

LogicalResult importMapGather(NodeImport &n) { return MapImport(n).gather(); }

LogicalResult importMapReduce(NodeImport &n) { return MapImport(n).reduce(); }

const ForeignOp replicaOps[] = {
    {"AllGather", "x", "y", "axis: int = 0", importAllGather},
    {"AllReduce", "x", "y", "reduction: string", importAllReduce},
    {"AllSum", "x", "y", "", importAllReduce},
    {"AllToAll", "x", "y", "split_axis: int = 0, concat_axis: int = 0",
     importAllToAll},
    {"Broadcast", "x", "y", "root: int = 0", importBroadcast},
    {"MapGather", "lists*", "results*", "body: graph", importMapGather},
    {"MapReduce", "lists*", "results*", "body: graph, reduction: string",
     importMapReduce},
    {"ReplicaCount", "", "y", "", importReplicaCount},
    {"ReplicaId", "", "y", "", importReplicaId},
    {"Shard", "x", "y", "axis: int = 0", importShard},
};

} // namespace

ArrayRef<OpRow> getReplicaOps() {
  static const std::vector<OpRow> rows =
      registerOps(kReplicaDomain, {replicaOps});
  return rows;
}

} // namespace partita::import
