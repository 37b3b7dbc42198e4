//===- EmitBody.cpp - The ops of a stage at a point or a vector of points -===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/kernels/EmitBody.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace partita::codegen {

int64_t getCoefficient(AffineExpr expr, unsigned loop) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dim.getPosition() == loop;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return 0;
  int64_t left = getCoefficient(binary.getLHS(), loop),
          right = getCoefficient(binary.getRHS(), loop);
  if (binary.getKind() == AffineExprKind::Add)
    return left + right;
  if (auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS()))
    return left * factor.getValue();
  if (auto factor = dyn_cast<AffineConstantExpr>(binary.getLHS()))
    return right * factor.getValue();
  return 0;
}

int64_t getAddressStep(ArrayRef<int64_t> strides, AffineMap map,
                       unsigned loop) {
  int64_t step = 0;
  for (auto [expr, stride] : llvm::zip_equal(map.getResults(), strides))
    step += getCoefficient(expr, loop) * stride;
  return step;
}

static Value emitSum(OpBuilder &b, Location loc, ArrayRef<Value> indices,
                     ArrayRef<int64_t> strides) {
  Value sum;
  for (auto [index, stride] : llvm::zip_equal(indices, strides)) {
    Value part = index;
    if (stride != 1) {
      Value factor = arith::ConstantIndexOp::create(b, loc, stride);
      part = arith::MulIOp::create(b, loc, index, factor);
    }
    sum = sum ? arith::AddIOp::create(b, loc, sum, part).getResult() : part;
  }
  return sum ? sum : arith::ConstantIndexOp::create(b, loc, 0).getResult();
}

Value emitAddress(OpBuilder &b, Location loc, const KernelBuffer &buffer,
                  AffineMap map, const EmitPoint &point) {
  SmallVector<Value> indices;
  for (auto [expr, row] : llvm::zip_equal(map.getResults(), buffer.rows))
    indices.push_back(affine::expandAffineExpr(
        b, loc, expr, row < 0 ? point.positions : point.inTile, {}));
  Value sum = emitSum(b, loc, indices, buffer.strides);
  return buffer.base
             ? arith::AddIOp::create(b, loc, buffer.base, sum).getResult()
             : sum;
}

Value toVector(OpBuilder &b, Location loc, Value x, int64_t width) {
  if (width == 1 || isa<VectorType>(x.getType()))
    return x;
  return vector::BroadcastOp::create(b, loc,
                                     VectorType::get({width}, x.getType()), x);
}

void emitStore(OpBuilder &b, linalg::GenericOp op, const KernelBuffer &target,
               Value x, const EmitPoint &point) {
  Location loc = op.getLoc();
  AffineMap map = op.getIndexingMapsArray().back();
  Value address = emitAddress(b, loc, target, map, point);
  x = toVector(b, loc, x, point.width);
  if (isa<VectorType>(x.getType()))
    vector::StoreOp::create(b, loc, x, target.memref, address);
  else
    memref::StoreOp::create(b, loc, x, target.memref, address);
}

Operation *findCombiner(linalg::GenericOp op) {
  BlockArgument all = op.getRegionOutputArgs()[0];
  Operation *def = op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  if (!def || !all.hasOneUse() || *all.user_begin() != def ||
      def->getNumOperands() != 2)
    return nullptr;
  return linalg::getCombinerOpKind(def) ? def : nullptr;
}

Value emitCombined(OpBuilder &b, Operation *combiner, Value all, Value x) {
  OperationState state(combiner->getLoc(), combiner->getName());
  state.addOperands({all, x});
  state.addTypes(all.getType());
  state.addAttributes(combiner->getAttrs());
  return b.create(state)->getResult(0);
}

Value emitNeutral(OpBuilder &b, linalg::GenericOp op) {
  Value init = skipViews(op.getDpsInits()[0]);
  Value value = init.getDefiningOp<linalg::FillOp>().getInputs()[0];
  return b.clone(*value.getDefiningOp())->getResult(0);
}

SmallVector<Value> emitDigits(OpBuilder &b, Location loc, Value number,
                              ArrayRef<int64_t> counts) {
  SmallVector<Value> digits(counts.size(), number);
  for (size_t i = counts.size(); i-- > 1;) {
    Value count = arith::ConstantOp::create(
        b, loc, b.getIntegerAttr(number.getType(), counts[i]));
    digits[i] = arith::RemUIOp::create(b, loc, number, count);
    number = arith::DivUIOp::create(b, loc, number, count);
  }
  if (!digits.empty())
    digits.front() = number;
  return digits;
}

/// Whether a value in the body changes with a loop.
static bool variesWith(Value value, unsigned loop) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return true; // an element
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return index.getDim() == loop;
  if (op->getNumRegions() != 0 || isa<tensor::ExtractOp>(op))
    return true;
  return llvm::any_of(op->getOperands(),
                      [&](Value operand) { return variesWith(operand, loop); });
}

static std::optional<int64_t> getConstant(Value value) {
  auto constant = value.getDefiningOp<arith::ConstantIndexOp>();
  return constant ? std::optional(constant.value()) : std::nullopt;
}

/// The positions of the loop for which a condition holds, if they are a range:
/// `index - a < b`, unsigned.
static std::optional<std::pair<int64_t, int64_t>> getRange(Value condition,
                                                           unsigned loop) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::ult)
    return std::nullopt;
  std::optional<int64_t> size = getConstant(compare.getRhs());
  Value position = compare.getLhs();
  int64_t low = 0;
  if (auto minus = position.getDefiningOp<arith::SubIOp>()) {
    std::optional<int64_t> start = getConstant(minus.getRhs());
    if (!start)
      return std::nullopt;
    low = *start;
    position = minus.getLhs();
  }
  auto index = position.getDefiningOp<linalg::IndexOp>();
  if (!size || !index || index.getDim() != loop)
    return std::nullopt;
  return std::pair(low, low + *size);
}

/// The parts of a condition that must all hold.
static SmallVector<Value> getParts(Value condition) {
  SmallVector<Value> parts, rest{condition};
  while (!rest.empty()) {
    Value next = rest.pop_back_val();
    if (auto both = next.getDefiningOp<arith::AndIOp>())
      rest.append({both.getLhs(), both.getRhs()});
    else
      parts.push_back(next);
  }
  return parts;
}

std::optional<SmallVector<int64_t>> findBreaks(linalg::GenericOp op,
                                               unsigned loop) {
  SmallVector<int64_t> breaks;
  bool fixed = true;
  op.getBody()->walk([&](scf::IfOp branch) {
    for (Value part : getParts(branch.getCondition())) {
      if (auto range = getRange(part, loop)) {
        breaks.push_back(range->first);
        breaks.push_back(range->second);
      } else {
        fixed &= !variesWith(part, loop);
      }
    }
  });
  if (!fixed)
    return std::nullopt;
  llvm::sort(breaks);
  breaks.erase(llvm::unique(breaks), breaks.end());
  return breaks;
}

bool isVectorizable(EmitContext &context, const StageSchedule &stage,
                    unsigned loop) {
  linalg::GenericOp op = stage.op;
  bool costly = false, strided = false;
  if (!findBreaks(op, loop))
    return false;
  bool elementwise = true;
  op.getBody()->walk([&](Operation *inner) {
    costly |= inner->getDialect()->getNamespace() == "math";
    elementwise &= isa<linalg::IndexOp, linalg::YieldOp, arith::ConstantOp,
                       tensor::ExtractOp, scf::IfOp, scf::YieldOp>(inner) ||
                   (inner->getNumRegions() == 0 &&
                    OpTrait::hasElementwiseMappableTraits(inner));
  });
  if (!elementwise)
    return false;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    if (op.getMatchingBlockArgument(operand).use_empty())
      continue;
    int64_t step = getAddressStep(context.getBuffer(operand->get()).strides,
                                  op.getMatchingIndexingMap(operand), loop);
    strided |= step != 0 && step != 1;
  }
  // Gathering costs as much as scalar loads: it must pay elsewhere.
  if (strided && !costly)
    return false;
  AffineMap written = op.getIndexingMapsArray().back();
  int64_t step =
      getAddressStep(context.getBuffer(op.getResult(0)).strides, written, loop);
  bool parallel =
      op.getIteratorTypesArray()[loop] == utils::IteratorType::parallel;
  return step == (parallel ? 1 : 0);
}

namespace {

class BodyEmitter {
public:
  BodyEmitter(OpBuilder &b, EmitContext &context, linalg::GenericOp op,
              const EmitPoint &point)
      : b(b), context(context), op(op), point(point) {}

  Value emit(Value accumulated) {
    for (OpOperand *operand : op.getDpsInputOperands()) {
      BlockArgument element = op.getMatchingBlockArgument(operand);
      unsigned number = operand->getOperandNumber();
      if (number < point.loaded.size() && point.loaded[number])
        values.map(element, point.loaded[number]);
      else if (!element.use_empty())
        values.map(element, load(*operand));
    }
    if (accumulated)
      values.map(op.getRegionOutputArgs()[0], accumulated);
    for (Operation &inner : op.getBody()->without_terminator())
      emitOp(inner);
    return values.lookup(op.getBody()->getTerminator()->getOperand(0));
  }

  Value load(OpOperand &operand) {
    KernelBuffer buffer = context.getBuffer(operand.get());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    Location loc = op.getLoc();
    int64_t step = getAddressStep(buffer.strides, map, point.vectorLoop);
    Value address = emitAddress(b, loc, buffer, map, point);
    if (point.width == 1 || step == 0)
      return memref::LoadOp::create(b, loc, buffer.memref, address);
    if (step == 1)
      return vector::LoadOp::create(b, loc, vectorOf(getElementType(buffer)),
                                    buffer.memref, address);
    Value lanes = vector::StepOp::create(b, loc, vectorOf(b.getIndexType()));
    Value factor = toVector(
        b, loc, arith::ConstantIndexOp::create(b, loc, step), point.width);
    return gather(buffer, address,
                  arith::MulIOp::create(b, loc, lanes, factor));
  }

private:
  VectorType vectorOf(Type type) {
    return VectorType::get({point.width}, type);
  }

  static Type getElementType(const KernelBuffer &buffer) {
    return cast<MemRefType>(buffer.memref.getType()).getElementType();
  }

  Value gather(const KernelBuffer &buffer, Value base, Value offsets) {
    Location loc = op.getLoc();
    VectorType type = vectorOf(getElementType(buffer));
    auto mask = DenseElementsAttr::get(vectorOf(b.getI1Type()), true);
    Value all = arith::ConstantOp::create(b, loc, mask);
    Value none = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    return vector::GatherOp::create(b, loc, type, buffer.memref, base, offsets,
                                    all, none);
  }

  void emitOp(Operation &inner) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner))
      return emitIndex(index);
    if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      values.map(extract.getResult(), emitExtract(extract));
      return;
    }
    if (auto branch = dyn_cast<scf::IfOp>(inner); branch && point.width != 1)
      return emitBranch(branch);
    bool scalar = llvm::none_of(inner.getOperands(), [&](Value operand) {
      return isa<VectorType>(values.lookupOrDefault(operand).getType());
    });
    if (scalar) {
      Operation *copy = b.clone(inner, values);
      if (inner.getNumRegions() != 0)
        lowerExtracts(copy);
      return;
    }
    if (isa<arith::MaxNumFOp>(inner) &&
        inner.getOperand(0) == op.getRegionOutputArgs()[0])
      return emitMaxNum(inner);
    OperationState state(inner.getLoc(), inner.getName());
    for (Value operand : inner.getOperands())
      state.addOperands(
          toVector(b, inner.getLoc(), values.lookup(operand), point.width));
    for (Type type : inner.getResultTypes())
      state.addTypes(vectorOf(type));
    state.addAttributes(inner.getAttrs());
    Operation *wide = b.create(state);
    values.map(inner.getResults(), wide->getResults());
    followLanes(inner);
  }

  /// Takes the one arm that all lanes take, which is known where the condition
  /// is about the vector loop.
  void emitBranch(scf::IfOp branch) {
    Location loc = branch.getLoc();
    Value uniform;
    for (Value part : getParts(branch.getCondition())) {
      if (auto range = getRange(part, point.vectorLoop)) {
        if (point.high <= range->first || point.low >= range->second) {
          values.map(branch.getResult(0), emitArm(branch.elseBlock()));
          return;
        }
        continue;
      }
      Value mapped = values.lookup(part);
      uniform = uniform
                    ? arith::AndIOp::create(b, loc, uniform, mapped).getResult()
                    : mapped;
    }
    if (!uniform) {
      values.map(branch.getResult(0), emitArm(branch.thenBlock()));
      return;
    }
    auto wide = scf::IfOp::create(
        b, loc, TypeRange{vectorOf(branch.getResult(0).getType())}, uniform,
        /*addThenBlock=*/true, /*addElseBlock=*/true);
    for (auto [from, to] : {std::pair(branch.thenBlock(), wide.thenBlock()),
                            std::pair(branch.elseBlock(), wide.elseBlock())}) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(to);
      Value value = emitArm(from);
      scf::YieldOp::create(b, loc, value);
    }
    values.map(branch.getResult(0), wide.getResult(0));
  }

  Value emitArm(Block *arm) {
    for (Operation &inner : arm->without_terminator())
      emitOp(inner);
    return toVector(b, arm->getParentOp()->getLoc(),
                    values.lookupOrDefault(arm->getTerminator()->getOperand(0)),
                    point.width);
  }

  /// The accumulator of a maximum is never a NaN, so that one comparison does.
  void emitMaxNum(Operation &inner) {
    Location loc = inner.getLoc();
    Value all =
        toVector(b, loc, values.lookup(inner.getOperand(0)), point.width);
    Value x = toVector(b, loc, values.lookup(inner.getOperand(1)), point.width);
    Value larger =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, all);
    values.map(inner.getResult(0),
               arith::SelectOp::create(b, loc, larger, x, all).getResult());
  }

  void emitIndex(linalg::IndexOp index) {
    Location loc = index.getLoc();
    Value first = point.positions[index.getDim()];
    if (point.width == 1 || index.getDim() != point.vectorLoop) {
      values.map(index.getResult(), first);
      return;
    }
    Value lanes = vector::StepOp::create(b, loc, vectorOf(b.getIndexType()));
    Value base = toVector(b, loc, first, point.width);
    values.map(index.getResult(), arith::AddIOp::create(b, loc, base, lanes));
    firstLanes.map(index.getResult(), first);
  }

  /// Remembers the first lane of an index whose lanes count up by one.
  void followLanes(Operation &inner) {
    if (!isa<arith::AddIOp, arith::SubIOp>(inner) ||
        !inner.getResult(0).getType().isIndex())
      return;
    Value left = inner.getOperand(0), right = inner.getOperand(1);
    Value lane = firstLanes.lookupOrNull(left);
    Value other = values.lookupOrDefault(right);
    if (!lane && isa<arith::AddIOp>(inner)) {
      lane = firstLanes.lookupOrNull(right);
      other = values.lookupOrDefault(left);
    }
    if (!lane || isa<VectorType>(other.getType()))
      return;
    Value first =
        isa<arith::AddIOp>(inner)
            ? arith::AddIOp::create(b, inner.getLoc(), lane, other).getResult()
            : arith::SubIOp::create(b, inner.getLoc(), lane, other).getResult();
    firstLanes.map(inner.getResult(0), first);
  }

  Value emitExtract(tensor::ExtractOp extract) {
    Location loc = extract.getLoc();
    KernelBuffer buffer = context.getBuffer(extract.getTensor());
    SmallVector<Value> indices, firsts;
    bool vector = false, consecutive = true;
    for (auto [i, index] : llvm::enumerate(extract.getIndices())) {
      Value mapped = values.lookupOrDefault(index);
      indices.push_back(mapped);
      firsts.push_back(mapped);
      if (!isa<VectorType>(mapped.getType()))
        continue;
      vector = true;
      Value lane = firstLanes.lookupOrNull(index);
      consecutive &= lane && buffer.strides[i] == 1;
      if (lane)
        firsts.back() = lane;
    }
    if (!vector)
      return memref::LoadOp::create(b, loc, buffer.memref,
                                    emitSum(b, loc, indices, buffer.strides));
    if (consecutive)
      return vector::LoadOp::create(b, loc, vectorOf(getElementType(buffer)),
                                    buffer.memref,
                                    emitSum(b, loc, firsts, buffer.strides));
    Value sum = toVector(b, loc, arith::ConstantIndexOp::create(b, loc, 0),
                         point.width);
    for (auto [index, stride] : llvm::zip_equal(indices, buffer.strides)) {
      Value factor = arith::ConstantIndexOp::create(b, loc, stride);
      Value part =
          arith::MulIOp::create(b, loc, toVector(b, loc, index, point.width),
                                toVector(b, loc, factor, point.width));
      sum = arith::AddIOp::create(b, loc, sum, part);
    }
    return gather(buffer, arith::ConstantIndexOp::create(b, loc, 0), sum);
  }

  /// Reads of tensors inside the branches and loops of a cloned op.
  void lowerExtracts(Operation *copy) {
    copy->walk([&](tensor::ExtractOp extract) {
      OpBuilder at(extract);
      KernelBuffer buffer = context.getBuffer(extract.getTensor());
      SmallVector<Value> indices(extract.getIndices());
      Value address = emitSum(at, extract.getLoc(), indices, buffer.strides);
      Value loaded =
          memref::LoadOp::create(at, extract.getLoc(), buffer.memref, address);
      extract.replaceAllUsesWith(loaded);
      extract.erase();
    });
  }

  OpBuilder &b;
  EmitContext &context;
  linalg::GenericOp op;
  const EmitPoint &point;
  IRMapping values, firstLanes;
};

} // namespace

Value emitLoad(OpBuilder &b, EmitContext &context, OpOperand &operand,
               const EmitPoint &point) {
  auto op = cast<linalg::GenericOp>(operand.getOwner());
  return BodyEmitter(b, context, op, point).load(operand);
}

Value emitBody(OpBuilder &b, EmitContext &context, const StageSchedule &stage,
               const EmitPoint &point, Value accumulated) {
  return BodyEmitter(b, context, stage.op, point).emit(accumulated);
}

} // namespace partita::codegen
