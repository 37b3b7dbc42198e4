//===- Reshards.cpp - Collectives that cut a tensor in another way --------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/shard/Reshards.h"

#include "compiler/codegen/Backend.h"
#include "compiler/model/Decision.h"
#include "compiler/model/DeviceMesh.h"
#include "dialects/nn/grad/Term.h"
#include "runtime/abi/Collectives.h"

#include <limits>

using namespace mlir;
using partita::nn::grad::Term;

namespace partita::shard {

//===----------------------------------------------------------------------===//
// The fastest sequence
//===----------------------------------------------------------------------===//

namespace {

/// Tries all sequences of moves. Every move undoes a cut or a partial sum that
/// is not wanted, or makes a cut that is; so there are few of them, and the
/// search ends.
class Search {
public:
  Search(RankedTensorType type, const Sharding &to, const Axes &axes,
         const CostModel &machine)
      : type(type), to(normalize(to)), axes(axes), machine(machine) {}

  Reshard find(const Layout &from) {
    visit({normalize(from.sharding), from.partials});
    return best;
  }

private:
  /// With a cut for each dimension; those that are whole have one block.
  Sharding normalize(Sharding sharding) const {
    sharding.resize(type.getRank());
    for (DimSharding &cut : sharding)
      if (cut.isWhole())
        cut = {};
    return sharding;
  }

  void visit(const Layout &now) {
    if (path.ns >= best.ns)
      return;
    if (now.partials.empty() && now.sharding == to) {
      best = path;
      return;
    }
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (AxisList next = getMissing(now, dim); !next.empty())
        shard(now, dim, next);
    join(now);
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      for (size_t keep = countKept(now.sharding[dim], dim);
           keep < now.sharding[dim].axes.size(); ++keep)
        if (keep == 0 || divides(now.sharding[dim], dim))
          bring(now, dim, keep);
  }

  //===--- What is wanted -------------------------------------------------===//

  /// How many of the outer axes of a dimension's cut are wanted.
  size_t countKept(const DimSharding &cut, int64_t dim) const {
    if (cut == to[dim])
      return cut.axes.size();
    if (cut.isWhole())
      return 0;
    if (cut.blocks != to[dim].blocks || !divides(cut, dim) ||
        !divides(to[dim], dim))
      return 0;
    auto [end, other] = std::mismatch(cut.axes.begin(), cut.axes.end(),
                                      to[dim].axes.begin(), to[dim].axes.end());
    return end - cut.axes.begin();
  }

  /// The axes along which a dimension is still to be cut; none if it is cut in
  /// a way that is not wanted, or if all is done.
  AxisList getMissing(const Layout &now, int64_t dim) const {
    const DimSharding &cut = now.sharding[dim];
    if (countKept(cut, dim) != cut.axes.size())
      return {};
    return AxisList(ArrayRef(to[dim].axes).drop_front(cut.axes.size()));
  }

  /// Whether a cut makes parts of equal size, so that axes can be added and
  /// removed one by one.
  bool divides(const DimSharding &cut, int64_t dim) const {
    return isEven(type.getDimSize(dim), cut, axes);
  }

  /// The first axes of what is missing that may be added alone.
  bool canAdd(int64_t dim, ArrayRef<StringAttr> list,
              ArrayRef<StringAttr> next) const {
    return next.size() >= list.size() && next.take_front(list.size()) == list &&
           (next.size() == list.size() || divides(to[dim], dim));
  }

  //===--- Moves ----------------------------------------------------------===//

  /// Axes that are free cut a dimension without communication.
  void shard(const Layout &now, int64_t dim, const AxisList &next) {
    size_t count = 0;
    while (count < next.size() && isFree(now, next[count]))
      ++count;
    if (count == 0 || (count < next.size() && !divides(to[dim], dim)))
      return;
    const AxisList list{ArrayRef(next).take_front(count)};
    Layout then = now;
    cut(then, dim, list);
    step({.axes = list, .to = dim, .toBlocks = to[dim].blocks}, 0, then);
  }

  bool isFree(const Layout &now, StringAttr axis) const {
    return llvm::none_of(now.sharding,
                         [&](const DimSharding &cut) {
                           return llvm::is_contained(cut.axes, axis);
                         }) &&
           llvm::none_of(now.partials, [&](dist::PartialAttr partial) {
             return partial.getAxis() == axis.getValue();
           });
  }

  void cut(Layout &layout, int64_t dim, const AxisList &list) const {
    layout.sharding[dim].axes.append(list.begin(), list.end());
    layout.sharding[dim].blocks = to[dim].blocks;
    layout.sharding[dim].alignment = to[dim].alignment;
  }

  /// Joins partial sums: those of one kind along all their axes, or along one.
  void join(const Layout &now) {
    for (dist::PartialAttr first : now.partials) {
      AxisList all;
      for (dist::PartialAttr partial : now.partials)
        if (partial.getReduction() == first.getReduction())
          all.push_back(StringAttr::get(first.getContext(), partial.getAxis()));
      joinAlong(now, first.getReduction(), all);
      if (all.size() > 1)
        joinAlong(now, first.getReduction(),
                  {StringAttr::get(first.getContext(), first.getAxis())});
    }
  }

  void joinAlong(const Layout &now, nn::ReduceKind reduction,
                 const AxisList &list) {
    Layout joined = now;
    llvm::erase_if(joined.partials, [&](dist::PartialAttr partial) {
      return llvm::any_of(list, [&](StringAttr axis) {
        return axis.getValue() == partial.getAxis();
      });
    });
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (!canAdd(dim, list, getMissing(now, dim)))
        continue;
      Layout then = joined;
      cut(then, dim, list);
      step({.collective = abi::CollectiveKind::reduce_scatter,
            .axes = list,
            .reduction = reduction,
            .to = dim,
            .toBlocks = to[dim].blocks},
           getBytes(then.sharding), then);
    }
    step({.collective = abi::CollectiveKind::all_reduce,
          .axes = list,
          .reduction = reduction},
         getBytes(now.sharding), joined);
  }

  /// Takes all but the first `keep` axes from a dimension: to another one, or
  /// away.
  void bring(const Layout &now, int64_t dim, size_t keep) {
    const DimSharding &old = now.sharding[dim];
    const AxisList list{ArrayRef(old.axes).drop_front(keep)};
    Layout without = now;
    without.sharding[dim].axes.truncate(keep);
    if (keep == 0)
      without.sharding[dim] = {};
    for (int64_t other = 0; other < type.getRank(); ++other) {
      if (other == dim || !canAdd(other, list, getMissing(now, other)))
        continue;
      Layout then = without;
      cut(then, other, list);
      step({.collective = abi::CollectiveKind::all_to_all,
            .axes = list,
            .from = dim,
            .to = other,
            .fromBlocks = old.blocks,
            .toBlocks = to[other].blocks},
           getBytes(then.sharding) / axes.getSize(list), then);
    }
    step({.collective = abi::CollectiveKind::all_gather,
          .axes = list,
          .from = dim,
          .fromBlocks = old.blocks},
         getBytes(now.sharding), without);
  }

  /// `bytes`: of the collective, see abi::sentBytes.
  void step(const Move &move, int64_t bytes, const Layout &then) {
    const double ns = path.ns;
    const int64_t sentBefore = path.sentBytes;
    if (move.collective) {
      const int64_t devices = axes.getSize(move.axes),
                    sent = abi::sentBytes(*move.collective, bytes, devices);
      path.sentBytes += sent;
      path.ns += machine.getCollectiveNs(sent, devices);
    }
    path.moves.push_back(move);
    auto getSize = [&](int64_t dim) {
      return dim < 0
                 ? 0
                 : getPartSize(type.getDimSize(dim), then.sharding[dim], axes);
    };
    path.moves.back().fromSize = getSize(move.from);
    path.moves.back().toSize = getSize(move.to);
    visit(then);
    path.moves.pop_back();
    path.ns = ns;
    path.sentBytes = sentBefore;
  }

  int64_t getBytes(const Sharding &sharding) const {
    return nn::getByteSize(getLocalType(type, sharding, axes));
  }

  const RankedTensorType type;
  const Sharding to;
  const Axes &axes;
  const CostModel &machine;
  Reshard path, best{{}, std::numeric_limits<double>::infinity()};
};

} // namespace

Reshard chooseReshard(RankedTensorType type, const Layout &from,
                      const Sharding &to, const Axes &axes,
                      const CostModel &machine) {
  if (from.partials.empty() && isSame(from.sharding, to))
    return {};
  return Search(type, to, axes, machine).find(from);
}

//===----------------------------------------------------------------------===//
// Its ops
//===----------------------------------------------------------------------===//

namespace {

class ReshardBuilder {
public:
  ReshardBuilder(OpBuilder &b, Location loc, const Axes &axes,
                 StringAttr reason)
      : b(loc, b), axes(axes), reason(reason) {}

  Value build(const Move &move, Value value) {
    const ArrayAttr names = b.getArrayAttr(
        SmallVector<Attribute>(move.axes.begin(), move.axes.end()));
    if (!move.collective)
      return dist::ShardOp::create(b, withSize(value, move.to, move.toSize),
                                   value, move.to, move.toBlocks, names);
    const int64_t devices = axes.getSize(move.axes);
    switch (*move.collective) {
    case abi::CollectiveKind::all_reduce:
      return dist::AllReduceOp::create(b, value.getType(), move.reduction,
                                       value, names, reason);
    case abi::CollectiveKind::reduce_scatter:
      value = resize(value, move.to, move.toBlocks, move.toSize * devices);
      return dist::ReduceScatterOp::create(
          b, withSize(value, move.to, move.toSize), move.reduction, value,
          move.to, move.toBlocks, names, reason);
    case abi::CollectiveKind::all_to_all:
      value = resize(value, move.to, move.toBlocks, move.toSize * devices);
      return exchange(move, value, names, devices);
    case abi::CollectiveKind::all_gather:
      value = dist::AllGatherOp::create(
          b, withSize(value, move.from, getSize(value, move.from) * devices),
          value, move.from, move.fromBlocks, names, reason);
      return resize(value, move.from, move.fromBlocks, move.fromSize);
    default:
      llvm_unreachable("no reshard needs another one");
    }
  }

private:
  static int64_t getSize(Value value, int64_t dim) {
    return cast<RankedTensorType>(value.getType()).getDimSize(dim);
  }

  /// The type of a value with another size of a dimension.
  static RankedTensorType withSize(Value value, int64_t dim, int64_t size) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = size;
    return type.clone(shape);
  }

  Value exchange(const Move &move, Value value, ArrayAttr names,
                 int64_t devices) {
    RankedTensorType part = withSize(value, move.to, move.toSize);
    SmallVector<int64_t> received(part.getShape());
    received.insert(received.begin(), devices);
    Term given(b,
               dist::AllToAllOp::create(b, part.clone(received), value, move.to,
                                        move.toBlocks, names, reason));
    // What the devices gave stands beside one another in `from`.
    const dist::RowsAndPart rows =
        dist::getRowsAndPart(part, move.from, move.fromBlocks);
    if (rows.rows > 1)
      given =
          given.reshape({devices, rows.rows, rows.part}).transpose({1, 0, 2});
    SmallVector<int64_t> shape(part.getShape());
    shape[move.from] *= devices;
    return resize(given.reshape(shape), move.from, move.fromBlocks,
                  move.fromSize);
  }

  /// Parts that were rounded up are together longer than the whole: adds zeros
  /// at the end of each block of a dimension, or drops what is beyond it.
  Value resize(Value value, int64_t dim, int64_t blocks, int64_t size) {
    const Term whole(b, value);
    const int64_t before = whole.shape()[dim];
    if (before == size)
      return value;
    auto lengthen = [](Term x, int64_t at, int64_t more) {
      SmallVector<int64_t> none(x.rank(), 0), high(x.rank(), 0);
      high[at] = more;
      return x.padOrCrop(none, high);
    };
    if (blocks == 1)
      return lengthen(whole, dim, size - before);
    SmallVector<int64_t> cut(whole.shape()), joined(whole.shape());
    cut[dim] = before / blocks;
    cut.insert(cut.begin() + dim, blocks);
    joined[dim] = size;
    return lengthen(whole.reshape(cut), dim + 1, size / blocks - cut[dim + 1])
        .reshape(joined);
  }

  ImplicitLocOpBuilder b;
  const Axes &axes;
  const StringAttr reason;
};

} // namespace

Value buildReshard(OpBuilder &builder, Location loc, const Reshard &reshard,
                   Value local, const Axes &axes, StringAttr reason) {
  ReshardBuilder moves(builder, loc, axes, reason);
  for (const Move &move : reshard.moves)
    local = moves.build(move, local);
  return local;
}

} // namespace partita::shard
