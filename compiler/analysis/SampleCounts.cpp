//===- SampleCounts.cpp - The same model for other numbers of samples -----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/Samples.h"

#include "dialects/nn/CheckAttr.h"
#include "dialects/nn/fold/ConstantElements.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

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
    // What only moves numbers that are the same for all samples is compared
    // where it is read: how it is written may depend on its size.
    SmallVector<Operation *> mine, others;
    for (Operation *op : getOutputOps(a))
      if (!isMoved(op, samples))
        mine.push_back(op);
    for (Operation *op : getOutputOps(b))
      if (!isMoved(op, other))
        others.push_back(op);
    const auto *it = others.begin();
    for (Operation *op : mine) {
      if (it == others.end() || !isSame(op, *it))
        return describe(op);
      ++it;
    }
    for (auto [x, y] : llvm::zip(getOutputs(a), getOutputs(b)))
      if (!isSameOperand(x, y))
        return describe(x.getDefiningOp());
    return "";
  }

private:
  std::string describe(Operation *op) const {
    return "'" + nn::getNodeName(op) + "' (" +
           op->getName().getStringRef().str() +
           ") computes with the number of entries of " + samples.dimension();
  }

  static SmallVector<Value> getOutputs(func::FuncOp function) {
    SmallVector<Value> outputs;
    for (OpOperand &result :
         function.getBody().front().getTerminator()->getOpOperands())
      if (result.get().getDefiningOp() &&
          !function.getResultAttr(result.getOperandNumber(), nn::kCheckAttr))
        outputs.push_back(result.get());
    return outputs;
  }

  /// Whether an op moves elements of which no sample goes into any.
  static bool isMoved(Operation *op, const Samples &of) {
    return isa<nn::ConstantOp, nn::BroadcastOp, nn::ReshapeOp, nn::TransposeOp,
               nn::SliceOp>(op) &&
           !of.find(op->getResult(0));
  }

  /// Where an element comes from: a value that is not moved, or a constant, and
  /// its number there.
  static std::pair<Value, int64_t> findSource(Value value, int64_t number,
                                              const Samples &of) {
    for (Operation *op = value.getDefiningOp();
         op && isMoved(op, of) && !isa<nn::ConstantOp>(op);
         op = value.getDefiningOp()) {
      const Value from = op->getOperand(0);
      ArrayRef<int64_t> to = nn::getTensorType(value).getShape(),
                        shape = nn::getTensorType(from).getShape();
      value = from;
      if (isa<nn::ReshapeOp>(op))
        continue; // it has the same number there
      const SmallVector<int64_t> index =
          delinearize(number, computeStrides(to));
      SmallVector<int64_t> source(shape.size());
      if (auto broadcast = dyn_cast<nn::BroadcastOp>(op)) {
        for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
          source[i] = shape[i] == 1 ? 0 : index[dim];
      } else if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
        for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
          source[dim] = index[i];
      } else if (auto slice = dyn_cast<nn::SliceOp>(op)) {
        for (size_t i = 0; i < index.size(); ++i)
          source[i] = slice.getStarts()[i] + index[i] * slice.getStrides()[i];
      }
      number = linearize(source, computeStrides(shape));
    }
    return {value, number};
  }

  bool isSameOperand(Value x, Value y) {
    if (partner.lookup(x) == y)
      return true;
    if (samples.find(x) || other.find(y) || other.count() == 0)
      return false;
    const bool isSame = isMadeAlike(x, y) || hasSameElements(x, y);
    if (isSame)
      partner[x] = y;
    return isSame;
  }

  /// Whether both are the same constant, or moved in the same way from what is
  /// the same.
  bool isMadeAlike(Value x, Value y) {
    Operation *mine = x.getDefiningOp(), *others = y.getDefiningOp();
    if (!mine || !others || mine->getName() != others->getName() ||
        !isMoved(mine, samples) || !isMoved(others, other) || !isSameType(x, y))
      return false;
    if (auto constant = dyn_cast<nn::ConstantOp>(mine))
      return isSameConstant(constant.getValue(),
                            cast<nn::ConstantOp>(others).getValue());
    return isSameValue(mine, others) && haveSameFactors(mine, others) &&
           isSameOperand(mine->getOperand(0), others->getOperand(0));
  }

  bool hasSameElements(Value x, Value y) const {
    ArrayRef<int64_t> mine = nn::getTensorType(x).getShape(),
                      others = nn::getTensorType(y).getShape();
    if (mine.size() != others.size() ||
        nn::getTensorType(x).getElementType() !=
            nn::getTensorType(y).getElementType())
      return false;
    // How many entries of each dimension belong to a sample; those of the
    // first one are compared.
    SmallVector<int64_t> each(mine);
    int64_t count = 1;
    for (auto [dim, size] : llvm::enumerate(others)) {
      count *= size;
      if (size == mine[dim])
        continue;
      if (mine[dim] * other.count() != size * samples.count())
        return false;
      each[dim] = size / other.count();
    }
    constexpr int64_t kMostElements = 1 << 22;
    if (count > kMostElements)
      return false;
    for (int64_t number = 0; number < count; ++number)
      if (!isSameElement(x, y, number, each))
        return false;
    return true;
  }

  bool isSameElement(Value x, Value y, int64_t number,
                     ArrayRef<int64_t> each) const {
    ArrayRef<int64_t> mine = nn::getTensorType(x).getShape(),
                      others = nn::getTensorType(y).getShape();
    int64_t own = 0, rest = number, stride = 1;
    for (size_t dim = mine.size(); dim-- > 0; stride *= mine[dim]) {
      own += rest % others[dim] % each[dim] * stride;
      rest /= others[dim];
    }
    const auto [from, i] = findSource(x, own, samples);
    const auto [otherFrom, k] = findSource(y, number, other);
    auto a = from.getDefiningOp<nn::ConstantOp>(),
         b = otherFrom.getDefiningOp<nn::ConstantOp>();
    if (!a || !b)
      return partner.lookup(from) == otherFrom && i == k;
    auto values = dyn_cast<DenseElementsAttr>(a.getValue()),
         otherValues = dyn_cast<DenseElementsAttr>(b.getValue());
    if (!values || !otherValues)
      return a.getValue() == b.getValue() && i == k;
    auto at = [](DenseElementsAttr all, int64_t place) {
      return all.isSplat() ? all.getSplatValue<Attribute>()
                           : all.getValues<Attribute>()[place];
    };
    return at(values, i) == at(otherValues, k);
  }

  bool isSame(Operation *x, Operation *y) {
    if (x->getName() != y->getName() ||
        x->getNumOperands() != y->getNumOperands() ||
        x->getNumResults() != y->getNumResults())
      return false;
    for (auto [mine, others] : llvm::zip(x->getOperands(), y->getOperands()))
      if (!isSameOperand(mine, others))
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
    const SmallVector<int64_t> strides = computeStrides(other);
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
