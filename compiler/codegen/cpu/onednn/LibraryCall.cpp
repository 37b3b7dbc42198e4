//===- LibraryCall.cpp - Clusters that the library computes whole ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/onednn/LibraryCall.h"

#include "compiler/codegen/StridedView.h"
#include "compiler/codegen/cpu/onednn/KnownFunction.h"
#include "runtime/device/cpu/onednn/rules/Fusion.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/Sequence.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace partita::codegen::onednn {
namespace {

// The plan's numbers are the runtime's.
static_assert(static_cast<int>(plan::PostOpKind::sum) ==
                  static_cast<int>(abi::PostOpKind::sum) &&
              static_cast<int>(plan::CallKind::scatter) ==
                  static_cast<int>(abi::CallKind::scatter));

RankedTensorType getType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// A post-op whose operand, if any, is still a view by values.
struct Step {
  plan::PostOpKind kind;
  double alpha = 0, beta = 0;
  std::optional<StridedView> operand;
  bool mayAccumulate = false; ///< the operand's bytes may become the result's
};

bool isOrdered(Operation *op) {
  return isa<nn::TopKOp, nn::ScanOp, nn::ScatterOp>(op);
}

class Matcher {
public:
  Matcher(ArrayRef<Operation *> ops, ArrayRef<Value> inputs,
          ArrayRef<Value> results)
      : list(ops), set(ops.begin(), ops.end()), inputs(inputs),
        results(results) {}

  plan::CallAttr match() {
    if (results.size() != 1 || !findRoot() || !followEpilogue())
      return {};
    Operation *contraction = root;
    bool understood = false;
    if (auto dot = dyn_cast<nn::DotOp>(contraction))
      understood = matchDot(dot);
    else if (auto conv = dyn_cast<nn::ConvOp>(contraction))
      understood = matchConv(conv);
    else if (auto attention = dyn_cast<nn::AttentionOp>(contraction))
      understood = matchAttention(attention);
    else if (auto window = dyn_cast<nn::WindowReduceOp>(contraction))
      understood = matchPool(window);
    else if (auto layer = dyn_cast<nn::RecurrentOp>(contraction))
      understood = matchRecurrent(layer);
    else if (isOrdered(contraction))
      understood = matchOrdered();
    if (!understood || (nn::multipliesIntegers(root) && !steps.empty()) ||
        !llvm::all_of(steps, [&](const Step &step) { return mayFuse(step); }))
      return {};
    for (Operation *op : list)
      if (!used.contains(op))
        return {};
    return build();
  }

private:
  bool findRoot() {
    for (Operation *op : list) {
      if (!isCallRoot(op))
        continue;
      if (root)
        return false;
      root = op;
    }
    if (!root)
      return false;
    used.insert(root);
    auto lengths = isa<nn::RecurrentOp>(root)
                       ? cast<nn::RecurrentOp>(root).getLengths()
                       : TypedValue<RankedTensorType>();
    auto isUsable = [&](Value value) {
      return (value == lengths || isOrdered(root) ||
              nn::multipliesIntegers(root) ||
              getType(value).getElementType().isF32()) &&
             getType(value).getNumElements() != 0;
    };
    return llvm::all_of(root->getOperands(), isUsable) &&
           isUsable(root->getResult(0));
  }

  /// Walks from the root to the result; leaves post-ops in `steps` and the view
  /// of the root's value in the result in `output`.
  bool followEpilogue() {
    Value current = root->getResult(0);
    SmallVector<std::pair<nn::ViewOpInterface, size_t>>
        views; // and steps before
    while (current != results[0]) {
      if (std::optional<KnownFunction> function = matchFunction(current)) {
        steps.push_back({function->kind, function->alpha, function->beta, {}});
        used.insert(function->used.begin(), function->used.end());
        current = function->result;
        continue;
      }
      Operation *user = getOnlyUser(current);
      if (!user)
        return false;
      auto other = dyn_cast<nn::ViewOpInterface>(user);
      if (other && other.keepsElements())
        views.push_back({other, steps.size()});
      else if (!addBinary(user, current))
        return false;
      used.insert(user);
      current = user->getResult(0);
    }
    // Back from the result, so that each view is undone for what came after it.
    std::optional<StridedView> view = StridedView::dense(current);
    for (auto [op, before] : llvm::reverse(views)) {
      view = viewBefore(op, *view);
      if (!view)
        return false;
      for (Step &step : MutableArrayRef(steps).drop_front(before))
        if (step.operand) {
          step.operand = viewBefore(op, *step.operand);
          if (!step.operand)
            return false;
        }
    }
    output = *view;
    return true;
  }

  /// The one op that uses the value, if it is in the cluster.
  Operation *getOnlyUser(Value value) {
    if (!value.hasOneUse() || !set.contains(*value.user_begin()))
      return nullptr;
    return *value.user_begin();
  }

  std::optional<KnownFunction> matchFunction(Value current) {
    ArrayRef<Operation *> rest = list;
    while (!rest.empty() &&
           !llvm::is_contained(rest.front()->getOperands(), current))
      rest = rest.drop_front();
    std::optional<KnownFunction> function = matchKnownFunction(current, rest);
    if (!function)
      return std::nullopt;
    // Values on the way must not be wanted outside.
    for (Operation *op : function->used)
      if (op->getResult(0) != function->result &&
          llvm::is_contained(results, op->getResult(0)))
        return std::nullopt;
    if (llvm::is_contained(results, current))
      return std::nullopt;
    return function;
  }

  bool addBinary(Operation *op, Value current) {
    std::optional<plan::PostOpKind> kind = getPostOpKind(op, 2);
    if (!kind || op->getOperand(0) == op->getOperand(1))
      return false;
    bool isLeft = op->getOperand(0) == current;
    if (!isLeft && *kind == plan::PostOpKind::div)
      return false;
    if (!isLeft && *kind == plan::PostOpKind::sub) {
      steps.push_back({plan::PostOpKind::linear, -1.0, 0.0, {}});
      kind = plan::PostOpKind::add;
    }
    std::optional<StridedView> view =
        viewOf(op->getOperand(isLeft ? 1 : 0), set, used);
    if (!view || !view->isNested() || getNumber(view->base) < 0)
      return false;
    steps.push_back({*kind, 0, 0, view, op->hasAttr(nn::kAccumulateAttr)});
    return true;
  }

  /// The number of a view's base among operands and results, or -1.
  int64_t getNumber(Value value) {
    auto it = llvm::find(inputs, value);
    if (it != inputs.end())
      return it - inputs.begin();
    return value == results[0] ? int64_t(inputs.size()) : -1;
  }

  plan::ViewAttr toAttr(const StridedView &view) {
    return plan::ViewAttr::get(root->getContext(), getNumber(view.base),
                               view.shape, view.strides, view.offset);
  }

  std::optional<StridedView> operand(Value value) {
    std::optional<StridedView> view = viewOf(value, set, used);
    if (view && (!view->isNested() || getNumber(view->base) < 0))
      return std::nullopt;
    return view;
  }

  /// Brings the result's view and those of the post-ops to another shape.
  bool reshapeOutput(ArrayRef<int64_t> shape) {
    std::optional<StridedView> view = output.reshape(shape);
    if (!view)
      return false;
    output = *view;
    for (Step &step : steps)
      if (step.operand) {
        step.operand = step.operand->reshape(shape);
        if (!step.operand)
          return false;
      }
    return true;
  }

  void permuteOutput(ArrayRef<int64_t> permutation) {
    output = output.permute(permutation);
    for (Step &step : steps)
      if (step.operand)
        step.operand = step.operand->permute(permutation);
  }

  bool matchDot(nn::DotOp dot) {
    kind = plan::CallKind::dot;
    std::optional<StridedView> lhs = operand(dot.getLhs()),
                               rhs = operand(dot.getRhs());
    if (!lhs || !rhs)
      return false;
    SmallVector<int64_t> result;
    for (int64_t dim : dot.getLhsBatch())
      result.push_back(lhs->shape[dim]);
    int64_t m = 1, n = 1, k = 1;
    SmallVector<int64_t> left(dot.getLhsBatch()), right(dot.getRhsBatch());
    for (int64_t dim = 0; dim < int64_t(lhs->shape.size()); ++dim)
      if (!llvm::is_contained(dot.getLhsBatch(), dim) &&
          !llvm::is_contained(dot.getLhsContract(), dim)) {
        left.push_back(dim);
        m *= lhs->shape[dim];
      }
    llvm::append_range(left, dot.getLhsContract());
    llvm::append_range(right, dot.getRhsContract());
    for (int64_t dim : dot.getLhsContract())
      k *= lhs->shape[dim];
    for (int64_t dim = 0; dim < int64_t(rhs->shape.size()); ++dim)
      if (!llvm::is_contained(dot.getRhsBatch(), dim) &&
          !llvm::is_contained(dot.getRhsContract(), dim)) {
        right.push_back(dim);
        n *= rhs->shape[dim];
      }
    SmallVector<int64_t> leftShape(result), rightShape(result);
    leftShape.append({m, k});
    rightShape.append({k, n});
    result.append({m, n});
    lhs = lhs->permute(left).reshape(leftShape);
    rhs = rhs->permute(right).reshape(rightShape);
    if (!lhs || !rhs || !reshapeOutput(result) ||
        !(hasDense(*lhs, -1) || hasDense(*lhs, -2)) ||
        !(hasDense(*rhs, -1) || hasDense(*rhs, -2)))
      return false;
    if (!hasDense(output, -1)) {
      // Columns side by side: the product of the transposed matrices, the other
      // way round, has rows.
      if (!hasDense(output, -2) || getType(dot.getLhs()).getElementType() !=
                                       getType(dot.getRhs()).getElementType())
        return false;
      auto swap = llvm::to_vector(llvm::seq<int64_t>(0, result.size()));
      std::swap(swap[result.size() - 2], swap[result.size() - 1]);
      std::swap(lhs, rhs);
      lhs = lhs->permute(swap);
      rhs = rhs->permute(swap);
      permuteOutput(swap);
    }
    operands = {*lhs, *rhs};
    return true;
  }

  /// Whether the elements along a dimension, counted from the end, lie side by
  /// side. A matrix with gaps in both dimensions is computed by the library's
  /// reference code, thousands of times slower.
  static bool hasDense(const StridedView &matrix, int64_t dim) {
    const size_t i = matrix.shape.size() + dim;
    return matrix.shape[i] == 1 || matrix.strides[i] == 1;
  }

  /// Logical order [N, C, spatial..] of an image's dimensions.
  static SmallVector<int64_t> getChannelsFirst(int64_t rank, bool last) {
    SmallVector<int64_t> order{0};
    if (last)
      order.push_back(rank - 1);
    for (int64_t dim = 1; dim < (last ? rank - 1 : rank); ++dim)
      order.push_back(dim);
    return order;
  }

  /// Whether a view is the tensor as the op itself would lay it out. The
  /// library is slow where input and result of an image op lie in different
  /// orders.
  static bool isDense(const StridedView &view) {
    int64_t stride = 1;
    for (size_t dim = view.shape.size(); dim-- > 0;) {
      if (view.shape[dim] != 1 && view.strides[dim] != stride)
        return false;
      stride *= view.shape[dim];
    }
    return true;
  }

  /// Whether an element stands for several: the library takes no such filter.
  static bool repeats(const StridedView &view) {
    for (auto [size, stride] : llvm::zip(view.shape, view.strides))
      if (stride == 0 && size > 1)
        return true;
    return false;
  }

  /// Whether the library is as fast, or faster, where the planes of the image
  /// lie one after another: a few of them, and a result whose channels are one
  /// vector, which it can write with the channels innermost.
  static bool readsPlanes(nn::ConvOp conv) {
    constexpr int64_t kMostPlanes = 3, kVector = 16;
    RankedTensorType weights = getType(conv.getWeights());
    return conv.getLayout() == nn::ImageLayout::channels_last &&
           conv.getGroups() == 1 && weights.getRank() == 4 &&
           weights.getElementType().isF32() &&
           weights.getDimSize(0) == kVector &&
           weights.getDimSize(1) <= kMostPlanes;
  }

  bool matchConv(nn::ConvOp conv) {
    kind = plan::CallKind::conv;
    int64_t rank = conv.getType().getRank();
    std::optional<StridedView> x = operand(conv.getX()),
                               weights = operand(conv.getWeights());
    if (!x || !weights || rank > 5 || !isDense(output) || repeats(*weights))
      return false;
    SmallVector<int64_t> order = getChannelsFirst(
        rank, conv.getLayout() == nn::ImageLayout::channels_last);
    if (!isDense(*x) && !(readsPlanes(conv) && isDense(x->permute(order))))
      return false;
    permuteOutput(order);
    operands = {x->permute(order), *weights};
    llvm::append_range(strides, conv.getStrides());
    llvm::append_range(dilations, conv.getDilations());
    llvm::append_range(padsLow, conv.getPadsLow());
    llvm::append_range(padsHigh, conv.getPadsHigh());
    groups = conv.getGroups();
    takeBias();
    takeSum();
    winograd = conv->hasAttr(nn::kWinogradAttr) &&
               llvm::none_of(steps, [](const Step &step) {
                 return step.operand.has_value();
               });
    return true;
  }

  /// A first addition of one number a channel is the bias.
  void takeBias() {
    if (steps.empty() || steps[0].kind != plan::PostOpKind::add ||
        !steps[0].operand)
      return;
    const StridedView &view = *steps[0].operand;
    for (auto [dim, stride] : llvm::enumerate(view.strides))
      if (dim != 1 && view.shape[dim] != 1 && stride != 0)
        return;
    if (view.strides[1] == 0 && view.shape[1] != 1)
      return;
    bias = StridedView(view.base,
                       {{view.shape[1]}, {view.strides[1]}, view.offset});
    steps.erase(steps.begin());
  }

  /// A first addition of a tensor that lies as the result does becomes a sum
  /// upon the result's bytes.
  void takeSum() {
    if (steps.empty() || steps[0].kind != plan::PostOpKind::add ||
        !steps[0].mayAccumulate)
      return;
    const StridedView &view = *steps[0].operand;
    auto isSame = [&](const StridedView &other) {
      return other.base == view.base;
    };
    if (view.shape == output.shape && view.strides == output.strides &&
        view.offset == output.offset && llvm::none_of(operands, isSame))
      steps[0].kind = plan::PostOpKind::sum;
  }

  /// Whether the library is known to compute the step rightly.
  bool mayFuse(const Step &step) const {
    const auto call = static_cast<abi::CallKind>(kind);
    const auto post = static_cast<abi::PostOpKind>(step.kind);
    auto form = rules::OperandForm::one;
    if (step.operand)
      form =
          rules::getOperandForm(call, {output.shape, output.strides},
                                {step.operand->shape, step.operand->strides});
    return rules::mayFuse(call, post, form);
  }

  bool matchAttention(nn::AttentionOp attention) {
    kind = plan::CallKind::attention;
    if (!steps.empty())
      return false;
    for (Value value : {attention.getQ(), attention.getK(), attention.getV()}) {
      std::optional<StridedView> view = operand(value);
      if (!view)
        return false;
      operands.push_back(*view);
    }
    SmallVector<int64_t> scores(getType(attention.getQ()).getShape());
    scores[3] = getType(attention.getK()).getDimSize(2);
    auto mask = [&](Value value, std::optional<StridedView> &to) {
      if (!value)
        return true;
      to = operand(value);
      if (!to)
        return false;
      for (size_t dim = 0; dim < 4; ++dim)
        if (to->shape[dim] != scores[dim])
          to->strides[dim] = 0;
      to->shape = scores;
      return true;
    };
    scale = attention.getScale().convertToDouble();
    return mask(attention.getMaskMul(), maskMul) &&
           mask(attention.getMaskAdd(), maskAdd);
  }

  bool matchRecurrent(nn::RecurrentOp layer) {
    kind = plan::CallKind::recurrent;
    if (!steps.empty())
      return false;
    for (Value value : {layer.getX(), layer.getWeights()}) {
      std::optional<StridedView> view = operand(value);
      if (!view)
        return false;
      operands.push_back(*view);
    }
    bool understood = true;
    auto optional = [&](Value value) -> plan::ViewAttr {
      if (!value)
        return {};
      std::optional<StridedView> view = operand(value);
      understood &= view.has_value();
      return view ? toAttr(*view) : plan::ViewAttr();
    };
    MLIRContext *context = layer.getContext();
    SmallVector<int64_t> reversed(layer.getReversed().begin(),
                                  layer.getReversed().end());
    SmallVector<plan::GateFunctionAttr> functions;
    for (auto function :
         layer.getFunctions().getAsRange<nn::GateFunctionAttr>())
      functions.push_back(plan::GateFunctionAttr::get(
          context,
          *plan::symbolizeGateFunctionKind(
              nn::stringifyGateFunctionKind(function.getKind())),
          function.getAlpha(), function.getBeta()));
    plan::ViewAttr lengths = optional(layer.getLengths()),
                   initial = optional(layer.getInitial()),
                   initialCell = optional(layer.getInitialCell()),
                   peepholes = optional(layer.getPeepholes()),
                   hiddenBias = optional(layer.getHiddenBias());
    recurrent = plan::RecurrentAttr::get(
        context, *plan::symbolizeCell(nn::stringifyCell(layer.getCell())),
        reversed, layer.getCoupled(), layer.getClip().convertToDouble(),
        functions, lengths, initial, initialCell, peepholes, hiddenBias);
    return understood;
  }

  /// Takes operands as they lie, and gives the result so.
  bool matchOrdered() {
    if (list.size() != 1)
      return false;
    for (Value value : root->getOperands()) {
      operands.push_back(StridedView::dense(value));
      if (getNumber(value) < 0)
        return false;
    }
    if (auto topK = dyn_cast<nn::TopKOp>(root)) {
      kind = plan::CallKind::top_k;
      largest = topK.getLargest();
    } else if (auto scan = dyn_cast<nn::ScanOp>(root)) {
      kind = plan::CallKind::scan;
      combine = getCombine(scan.getKind());
      ArrayRef<int64_t> shape = scan.getType().getShape();
      int64_t dim = scan.getDim();
      const int64_t grouped[] = {llvm::product_of(shape.take_front(dim)),
                                 shape[dim],
                                 llvm::product_of(shape.drop_front(dim + 1))};
      operands[0] = *operands[0].reshape(grouped);
      output = *output.reshape(grouped);
    } else {
      kind = plan::CallKind::scatter;
      if (auto found = cast<nn::ScatterOp>(root).getCombine())
        combine = getCombine(*found);
    }
    return true;
  }

  static plan::Combine getCombine(nn::ReduceKind kind) {
    return *plan::symbolizeCombine(nn::stringifyReduceKind(kind));
  }

  bool matchPool(nn::WindowReduceOp window) {
    int64_t rank = getType(window.getX()).getRank();
    if (rank < 3 || rank > 5)
      return false;
    auto isPlain = [&](int64_t dim) {
      return window.getWindow()[dim] == 1 && window.getStrides()[dim] == 1 &&
             window.getPadsLow()[dim] == 0 && window.getPadsHigh()[dim] == 0;
    };
    bool last = !isPlain(1) && isPlain(rank - 1);
    if (!isPlain(0) || !(last || isPlain(1)))
      return false;
    // With channels outside the library goes from element to element.
    constexpr int64_t kMostLooped = 25;
    if (!last && llvm::product_of(window.getWindow()) <= kMostLooped)
      return false;
    SmallVector<int64_t> order = getChannelsFirst(rank, last);
    int64_t elements = 1;
    for (int64_t dim : ArrayRef(order).drop_front(2)) {
      if (window.getDilations()[dim] != 1 ||
          window.getPadsLow()[dim] >= window.getWindow()[dim] ||
          window.getPadsHigh()[dim] >= window.getWindow()[dim])
        return false;
      this->window.push_back(window.getWindow()[dim]);
      elements *= window.getWindow()[dim];
      strides.push_back(window.getStrides()[dim]);
      dilations.push_back(1);
      padsLow.push_back(window.getPadsLow()[dim]);
      padsHigh.push_back(window.getPadsHigh()[dim]);
    }
    if (window.getKind() == nn::ReduceKind::max) {
      kind = plan::CallKind::pool_max;
      if (!steps.empty())
        return false;
    } else if (window.getKind() == nn::ReduceKind::sum) {
      // The sum divided by the number of elements, border included.
      kind = plan::CallKind::pool_avg;
      if (steps.size() != 1 || steps[0].kind != plan::PostOpKind::linear ||
          steps[0].beta != 0 || std::abs(steps[0].alpha * elements - 1) > 1e-6)
        return false;
      steps.clear();
      includePad = true;
    } else {
      return false;
    }
    std::optional<StridedView> x = operand(window.getX());
    if (!x || !isDense(*x) || !isDense(output))
      return false;
    permuteOutput(order);
    operands = {x->permute(order)};
    return true;
  }

  plan::CallAttr build() {
    MLIRContext *context = root->getContext();
    SmallVector<plan::ViewAttr> views;
    for (const StridedView &view : operands)
      views.push_back(toAttr(view));
    output.base = results[0];
    views.push_back(plan::ViewAttr::get(context, inputs.size(), output.shape,
                                        output.strides, output.offset));
    auto optional = [&](const std::optional<StridedView> &view) {
      return view ? toAttr(*view) : plan::ViewAttr();
    };
    SmallVector<plan::PostOpAttr> postOps;
    for (const Step &step : steps)
      postOps.push_back(plan::PostOpAttr::get(
          context, step.kind, step.alpha, step.beta, optional(step.operand)));
    return plan::CallAttr::get(context, kind, views, optional(bias),
                               optional(maskMul), optional(maskAdd), strides,
                               dilations, padsLow, padsHigh, window, groups,
                               includePad, scale, postOps, recurrent, winograd,
                               combine, largest);
  }

  ArrayRef<Operation *> list;
  OpSet set, used;
  ArrayRef<Value> inputs, results;
  Operation *root = nullptr;

  plan::CallKind kind;
  SmallVector<StridedView> operands;
  StridedView output;
  std::optional<StridedView> bias, maskMul, maskAdd;
  SmallVector<int64_t> strides, dilations, padsLow, padsHigh, window;
  int64_t groups = 1;
  bool includePad = false, winograd = false, largest = false;
  plan::Combine combine = plan::Combine::replace;
  double scale = 1;
  SmallVector<Step> steps;
  plan::RecurrentAttr recurrent;
};

} // namespace

bool isCallRoot(Operation *op) {
  return isOrdered(op) || isa<nn::DotOp, nn::ConvOp, nn::AttentionOp,
                              nn::WindowReduceOp, nn::RecurrentOp>(op);
}

bool needsLibrary(Operation *op) {
  return isOrdered(op) || isa<nn::RecurrentOp>(op);
}

plan::CallAttr matchLibraryCall(ArrayRef<Operation *> ops,
                                ArrayRef<Value> inputs,
                                ArrayRef<Value> results) {
  return Matcher(ops, inputs, results).match();
}

/// The library counts rows, columns and positions in 32 bits; a call beyond
/// that would only fail when the artifact is loaded.
LogicalResult checkExtents(nn::ClusterOp cluster) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  for (Operation &op : cluster.getBody().front().without_terminator()) {
    if (!isa<nn::DotOp, nn::ConvOp, nn::AttentionOp, nn::WindowReduceOp>(op))
      continue;
    auto isTooLong = [&](Value value) {
      return llvm::any_of(cast<RankedTensorType>(value.getType()).getShape(),
                          [&](int64_t size) { return size > most; });
    };
    for (Value value : op.getOperands())
      if (isTooLong(value))
        return op.emitError()
               << "a dimension of its operand " << value.getType()
               << " is longer than " << most
               << ", the most that can be computed with: use a smaller batch, "
                  "or split the operand in the model";
  }
  return success();
}

} // namespace partita::codegen::onednn
