//===- SampleCounts.cpp - The same model for other numbers of samples -----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Samples.h"

#include "dialects/nn/fold/ConstantElements.h"

using namespace mlir;

namespace partita::analysis {
namespace {

/// Walks over both functions at once.
class Comparison {
public:
  Comparison(func::FuncOp a, const Samples &samples, func::FuncOp b)
      : a(a), b(b), samples(samples), other(b) {}

  std::string run() {
    for (auto [x, y] : llvm::zip_equal(a.getArguments(), b.getArguments()))
      partner[x] = y;
    SmallVector<Operation *> mine = getOutputOps(a), others = getOutputOps(b);
    const auto *it = others.begin();
    for (Operation *op : mine) {
      if (it == others.end() || !isSame(op, *it))
        return "'" + nn::getNodeName(op) + "' (" +
               op->getName().getStringRef().str() +
               ") computes with the number of entries of " +
               samples.dimension();
      ++it;
    }
    return "";
  }

private:
  bool isSame(Operation *x, Operation *y) {
    if (x->getName() != y->getName() ||
        x->getNumOperands() != y->getNumOperands() ||
        x->getNumResults() != y->getNumResults())
      return false;
    for (auto [mine, others] : llvm::zip(x->getOperands(), y->getOperands()))
      if (partner.lookup(mine) != others)
        return false;
    for (auto [mine, others] : llvm::zip(x->getResults(), y->getResults())) {
      partner[mine] = others;
      if (!isSameType(mine, others))
        return false;
    }
    return isSameValue(x, y) && haveSameFactors(x, y);
  }

  /// Sizes differ only where there are samples.
  bool isSameType(Value x, Value y) const {
    RankedTensorType mine = nn::getTensorType(x), others = nn::getTensorType(y);
    if (mine.getElementType() != others.getElementType() ||
        mine.getRank() != others.getRank())
      return false;
    const std::optional<DimPart> part = samples.find(x);
    if (!part)
      return true;
    for (int64_t dim = 0; dim < mine.getRank(); ++dim)
      if (dim == part->dim ? mine.getDimSize(dim) * other.count() !=
                                 others.getDimSize(dim) * samples.count()
                           : mine.getDimSize(dim) != others.getDimSize(dim))
        return false;
    return true;
  }

  /// Whether the attributes are the same, but for what lies along samples.
  bool isSameValue(Operation *x, Operation *y) const {
    if (auto constant = dyn_cast<nn::ConstantOp>(x))
      return isSameConstant(constant.getValue(),
                            cast<nn::ConstantOp>(y).getValue());
    if (auto parameter = dyn_cast<nn::ParameterOp>(x))
      return isSameWeight(parameter, cast<nn::ParameterOp>(y));
    if (auto slice = dyn_cast<nn::SliceOp>(x))
      return isSameSlice(slice, cast<nn::SliceOp>(y));
    return x->getAttrDictionary() == y->getAttrDictionary();
  }

  static bool isSameWeight(nn::ParameterOp x, nn::ParameterOp y) {
    auto mine = SymbolTable::lookupNearestSymbolFrom<nn::WeightOp>(
        x, x.getWeightAttr());
    auto others = SymbolTable::lookupNearestSymbolFrom<nn::WeightOp>(
        y, y.getWeightAttr());
    if (!mine || !others)
      return false;
    if (mine.getValueAttr() && others.getValueAttr())
      return isSameConstant(mine.getValueAttr(), others.getValueAttr());
    return mine->getAttrDictionary() == others->getAttrDictionary();
  }

  /// Dimensions may differ in which all entries are the same.
  static bool isSameConstant(Attribute x, Attribute y) {
    if (x == y)
      return true;
    auto mine = dyn_cast<DenseElementsAttr>(x),
         others = dyn_cast<DenseElementsAttr>(y);
    constexpr int64_t kMostElements = 1 << 20;
    if (!mine || !others || mine.getType() == others.getType() ||
        mine.getElementType() != others.getElementType() ||
        mine.getType().getRank() != others.getType().getRank())
      return false;
    if (mine.isSplat() && others.isSplat())
      return mine.getSplatValue<Attribute>() ==
             others.getSplatValue<Attribute>();
    if (std::max(mine.getNumElements(), others.getNumElements()) >
        kMostElements)
      return false;
    return repeats(mine, others) && repeats(others, mine);
  }

  /// Whether elements of `x` are those of `y` at the begin of the dimensions in
  /// which they differ.
  static bool repeats(DenseElementsAttr x, DenseElementsAttr y) {
    const ArrayRef<int64_t> shape = x.getType().getShape(),
                            other = y.getType().getShape();
    const SmallVector<int64_t> strides = nn::getRowMajorStrides(other);
    if (y.getNumElements() == 0)
      return x.getNumElements() == 0;
    auto elements = x.getValues<Attribute>(), base = y.getValues<Attribute>();
    int64_t next = 0;
    bool same = true;
    nn::forEachIndex(shape, [&](ArrayRef<int64_t> index) {
      int64_t place = 0;
      for (size_t dim = 0; dim < shape.size(); ++dim)
        if (shape[dim] == other[dim])
          place += index[dim] * strides[dim];
      same = same && elements[next++] == base[place];
    });
    return same;
  }

  /// What is taken may differ where samples are, and then all is taken, or one
  /// of several blocks.
  bool isSameSlice(nn::SliceOp x, nn::SliceOp y) const {
    const std::optional<DimPart> part = samples.find(x.getX());
    for (int64_t dim = 0; dim < x.getType().getRank(); ++dim) {
      const bool scales = part && part->dim == dim;
      const int64_t mine = scales ? other.count() : 1,
                    others = scales ? samples.count() : 1;
      if (x.getStarts()[dim] * mine != y.getStarts()[dim] * others ||
          x.getLimits()[dim] * mine != y.getLimits()[dim] * others ||
          x.getStrides()[dim] != y.getStrides()[dim])
        return false;
    }
    return true;
  }

  /// Only what passes through may have another size. A reshape has its own
  /// factors for each size.
  static bool haveSameFactors(Operation *x, Operation *y) {
    auto mine = dyn_cast<nn::ShardableOpInterface>(x),
         others = dyn_cast<nn::ShardableOpInterface>(y);
    if (!mine || !others || isa<nn::ReshapeOp>(x) || isa<nn::ConstantOp>(x))
      return true;
    const nn::ShardingRule a = mine.getShardingRule(),
                           b = others.getShardingRule();
    return a.factors.size() == b.factors.size() &&
           llvm::all_of(llvm::zip(a.factors, b.factors), [](auto both) {
             auto &[f, g] = both;
             return f.kind == g.kind &&
                    (f.size == g.size ||
                     f.kind == nn::FactorKind::pass_through);
           });
  }

  func::FuncOp a, b;
  const Samples &samples;
  const Samples other; ///< of `b`
  llvm::DenseMap<Value, Value> partner;
};

} // namespace

std::string compareSampleCounts(func::FuncOp a, const Samples &samples,
                                func::FuncOp b) {
  return Comparison(a, samples, b).run();
}

} // namespace partita::analysis
