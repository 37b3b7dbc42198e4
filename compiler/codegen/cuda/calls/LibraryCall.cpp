//===- LibraryCall.cpp - Clusters that libraries of GPUs compute ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/calls/LibraryCall.h"

#include "compiler/codegen/calls/CallViews.h"
#include "runtime/device/cuda/rules/Attention.h"
#include "runtime/device/cuda/rules/Conv.h"
#include "runtime/device/cuda/rules/Matmul.h"
#include "runtime/device/cuda/rules/Pool.h"

using namespace mlir;

namespace partita::codegen::cuda {
namespace {

/// The type as the plan has it, or nothing where the library takes no such
/// numbers.
std::optional<abi::DType> getType(Value value) {
  Type type = getElementTypeOrSelf(value.getType());
  if (type.isF32())
    return abi::DType::f32;
  if (type.isF16())
    return abi::DType::f16;
  if (type.isBF16())
    return abi::DType::bf16;
  if (type.isSignlessInteger(8))
    return abi::DType::i8;
  if (type.isSignlessInteger(32))
    return abi::DType::i32;
  return std::nullopt;
}

bool isDot(Operation *op) {
  return isa<nn::DotOp>(op) && getType(op->getOperand(0));
}

/// A convolution that multiplies each pixel's channels by one matrix.
bool isPixelwise(Operation *op) {
  auto conv = dyn_cast<nn::ConvOp>(op);
  if (!conv || conv.getLayout() != nn::ImageLayout::channels_last ||
      conv.getGroups() != 1 || !getType(conv.getX()))
    return false;
  auto all = [](ArrayRef<int64_t> values, int64_t wanted) {
    return llvm::all_of(values, [&](int64_t value) { return value == wanted; });
  };
  ArrayRef<int64_t> weights = nn::getTensorType(conv.getWeights()).getShape();
  return all(weights.drop_front(2), 1) && all(conv.getStrides(), 1) &&
         all(conv.getPadsLow(), 0) && all(conv.getPadsHigh(), 0);
}

/// Pixels [N * spatial.., C] times weights [O, C], transposed.
bool matchPixelwise(CallMatcher &call, Operation *root) {
  auto conv = cast<nn::ConvOp>(root);
  call.kind = plan::CallKind::dot;
  std::optional<StridedView> x = call.operand(conv.getX()),
                             weights = call.operand(conv.getWeights());
  if (!x || !weights)
    return false;
  const int64_t outputs = weights->shape[0], inputs = weights->shape[1],
                pixels = nn::getTensorType(conv.getX()).getNumElements() /
                         std::max<int64_t>(inputs, 1);
  x = x->reshape({pixels, inputs});
  weights = weights->reshape({outputs, inputs});
  if (!x || !weights || !call.reshapeOutput({pixels, outputs}))
    return false;
  call.operands = {*x, weights->permute({1, 0})};
  return true;
}

bool isConv(Operation *op) {
  return isa<nn::ConvOp>(op) && !nn::multipliesIntegers(op) &&
         getType(op->getOperand(0));
}

/// Images in the order [N, C, spatial..].
bool matchConv(CallMatcher &call, Operation *root) {
  auto conv = cast<nn::ConvOp>(root);
  call.kind = plan::CallKind::conv;
  std::optional<StridedView> x = call.operand(conv.getX()),
                             weights = call.operand(conv.getWeights());
  if (!x || !weights)
    return false;
  SmallVector<int64_t> order =
      getChannelsFirst(conv.getType().getRank(),
                       conv.getLayout() == nn::ImageLayout::channels_last);
  call.permuteOutput(order);
  call.operands = {x->permute(order), *weights};
  call.details = describeConv(conv);
  return true;
}

bool isPool(Operation *op) {
  return isa<nn::WindowReduceOp>(op) && getType(op->getOperand(0));
}

bool isAttention(Operation *op) {
  return isa<nn::AttentionOp>(op) && getType(op->getOperand(0));
}

bool takesType(Operation *, Value value) { return getType(value).has_value(); }

const CallRule *getRule(Operation *op) {
  static constexpr CallRule rules[] = {
      {isDot, takesType, matchDotViews},
      {isPixelwise, takesType, matchPixelwise},
      {isConv, takesType, matchConv},
      {isPool, takesType, matchPoolViews},
      {isAttention, takesType, matchAttentionViews}};
  const CallRule *rule = llvm::find_if(
      rules, [&](const CallRule &known) { return known.isRoot(op); });
  return rule == std::end(rules) ? nullptr : rule;
}

rules::Tensor getTensor(const StridedView &view) {
  return {*getType(view.base), view.shape, view.strides, view.offset};
}

bool computes(const CallMatcher &call) {
  std::vector<rules::PostOp> postOps;
  for (const PostOp &postOp : call.postOps) {
    postOps.push_back({postOp.kind, postOp.alpha, postOp.beta, {}});
    if (!postOp.operand)
      continue;
    if (!getType(postOp.operand->base))
      return false;
    postOps.back().operand = getTensor(*postOp.operand);
  }
  const rules::Tensor left = getTensor(call.operands[0]),
                      result = getTensor(call.output);
  if (call.kind == plan::CallKind::pool_max ||
      call.kind == plan::CallKind::pool_avg) {
    auto window = cast<plan::PoolAttr>(call.details);
    rules::Pool pool;
    return !rules::describePool(
        {left, result, call.kind == plan::CallKind::pool_avg,
         window.getIncludePad(), window.getWindow(), window.getStrides(),
         window.getDilations(), window.getPadsLow(), window.getPadsHigh(),
         !postOps.empty()},
        pool);
  }
  const rules::Tensor right = getTensor(call.operands[1]);
  if (call.kind == plan::CallKind::attention) {
    auto mask = [](const std::optional<StridedView> &view) {
      return view ? std::optional(getTensor(*view)) : std::nullopt;
    };
    rules::Attention attention;
    return !rules::describeAttention({left, right, getTensor(call.operands[2]),
                                      result, mask(call.maskMul),
                                      mask(call.maskAdd), !postOps.empty()},
                                     attention);
  }
  if (call.kind == plan::CallKind::conv) {
    auto window = cast<plan::ConvAttr>(call.details);
    rules::Conv conv;
    return !rules::describeConv({left, right, result, window.getStrides(),
                                 window.getDilations(), window.getPadsLow(),
                                 window.getPadsHigh(), window.getGroups(),
                                 postOps},
                                conv);
  }
  rules::Matmul matmul;
  return !rules::describeMatmul({left, right, result, postOps}, matmul);
}

/// What cuBLASLt's ReLU and cuDNN's attention make of NaN is not documented. Of
/// convolutions there are engines that keep it.
bool computesKeepingNan(const CallMatcher &call) {
  return call.kind != plan::CallKind::attention &&
         (call.kind != plan::CallKind::dot ||
          llvm::none_of(call.postOps,
                        [](const PostOp &postOp) {
                          return postOp.kind == plan::PostOpKind::relu;
                        })) &&
         computes(call);
}

} // namespace

bool isCallRoot(Operation *op) { return getRule(op) != nullptr; }

plan::CallAttr matchLibraryCall(ArrayRef<Operation *> ops,
                                ArrayRef<Value> inputs,
                                ArrayRef<Value> results) {
  static constexpr CallLibrary library = {getRule, computes},
                               keeping = {getRule, computesKeepingNan};
  return CallMatcher(keepsNan(ops.front()) ? keeping : library, ops, inputs,
                     results)
      .match();
}

} // namespace partita::codegen::cuda
