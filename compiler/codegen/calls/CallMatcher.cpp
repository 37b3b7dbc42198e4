//===- CallMatcher.cpp - A library call put together from ops -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/calls/CallMatcher.h"

#include "compiler/codegen/calls/Activation.h"

using namespace mlir;

namespace partita::codegen {

plan::CallAttr CallMatcher::match() {
  if (results.size() != 1 || !findRoot() || !followEpilogue() ||
      !rule->match(*this, root) || !readsInputs() ||
      (nn::multipliesIntegers(root) && !postOps.empty()) ||
      !library.computes(*this) ||
      !llvm::all_of(list, [&](Operation *op) { return used.contains(op); }))
    return {};
  return build();
}

bool CallMatcher::readsInputs() const {
  return llvm::all_of(postOps, [&](const PostOp &postOp) {
    return !postOp.operand || getNumber(postOp.operand->base) >= 0;
  });
}

bool CallMatcher::findRoot() {
  for (Operation *op : list) {
    const CallRule *found = library.getRule(op);
    if (!found)
      continue;
    if (root)
      return false;
    root = op;
    rule = found;
  }
  if (!root)
    return false;
  used.insert(root);
  auto isUsable = [&](Value value) {
    return (!rule->takes || rule->takes(root, value)) &&
           nn::getTensorType(value).getNumElements() != 0;
  };
  return llvm::all_of(root->getOperands(), isUsable) &&
         isUsable(root->getResult(0));
}

/// Walks from the root to the result; leaves post-ops in `postOps` and the view
/// of the root's value in the result in `output`.
bool CallMatcher::followEpilogue() {
  // Equal values: a view is there once for each use of it.
  SmallVector<Value> current{root->getResult(0)};
  // And post-ops before.
  SmallVector<std::pair<nn::ViewOpInterface, size_t>> views;
  while (!llvm::is_contained(current, results[0])) {
    if (std::optional<Activation> function = matchFunction(current)) {
      postOps.push_back({function->kind, function->alpha, function->beta, {}});
      used.insert(function->used.begin(), function->used.end());
      current = {function->result};
      continue;
    }
    if (SmallVector<Value> repeated = getRepeatedViews(current);
        !repeated.empty()) {
      views.push_back({repeated.front().getDefiningOp<nn::ViewOpInterface>(),
                       postOps.size()});
      for (Value value : repeated)
        used.insert(value.getDefiningOp());
      current = repeated;
      continue;
    }
    Operation *user = getOnlyUser(current);
    if (!user)
      return false;
    auto other = dyn_cast<nn::ViewOpInterface>(user);
    if (other && other.keepsElements())
      views.push_back({other, postOps.size()});
    else if (!addBinary(user, current.front()))
      return false;
    used.insert(user);
    current = {user->getResult(0)};
  }
  // Back from the result, so that each view is undone for what came after it.
  output = StridedView::dense(results[0]);
  return llvm::all_of(llvm::reverse(views), [&](auto each) {
    auto [op, before] = each;
    return changeOutput(before, [&](const StridedView &after) {
      return after.with(op.getOperandLayout(after));
    });
  });
}

/// The one op that uses the value, if it is in the cluster.
Operation *CallMatcher::getOnlyUser(ArrayRef<Value> values) {
  Value value = values.front();
  if (values.size() != 1 || !value.hasOneUse() ||
      !set.contains(*value.user_begin()))
    return nullptr;
  return *value.user_begin();
}

/// The results of all users of the value, if they are one and the same view and
/// in the cluster; else nothing.
SmallVector<Value> CallMatcher::getRepeatedViews(ArrayRef<Value> values) {
  SmallVector<Value> seen;
  if (values.size() != 1 || values.front().hasOneUse())
    return seen;
  for (Operation *user : values.front().getUsers()) {
    auto view = dyn_cast<nn::ViewOpInterface>(user);
    if (!view || !view.keepsElements() || !set.contains(user) ||
        (!seen.empty() && !OperationEquivalence::isEquivalentTo(
                              seen.front().getDefiningOp(), user,
                              OperationEquivalence::IgnoreLocations)))
      return {};
    seen.push_back(user->getResult(0));
  }
  return seen;
}

std::optional<Activation> CallMatcher::matchFunction(ArrayRef<Value> current) {
  ArrayRef<Operation *> rest = list;
  auto isCurrent = [&](Value value) {
    return llvm::is_contained(current, value);
  };
  while (!rest.empty() && llvm::none_of(rest.front()->getOperands(), isCurrent))
    rest = rest.drop_front();
  std::optional<Activation> function = matchActivation(current, rest);
  if (!function)
    return std::nullopt;
  // Values on the way must not be wanted outside.
  for (Operation *op : function->used)
    if (op->getResult(0) != function->result &&
        llvm::is_contained(results, op->getResult(0)))
      return std::nullopt;
  if (llvm::any_of(results, isCurrent))
    return std::nullopt;
  return function;
}

bool CallMatcher::addBinary(Operation *op, Value current) {
  std::optional<plan::PostOpKind> kind = getPostOpKind(op, 2);
  if (!kind || op->getOperand(0) == op->getOperand(1))
    return false;
  bool isLeft = op->getOperand(0) == current;
  if (!isLeft && *kind == plan::PostOpKind::div)
    return false;
  if (!isLeft && *kind == plan::PostOpKind::sub) {
    postOps.push_back({plan::PostOpKind::linear, -1.0, 0.0, {}});
    kind = plan::PostOpKind::add;
  }
  std::optional<StridedView> view =
      viewOf(op->getOperand(isLeft ? 1 : 0), set, used);
  if (!view || !view->isNested())
    return false;
  if (Operation *constant = view->base.getDefiningOp<nn::ConstantOp>();
      constant && set.contains(constant))
    used.insert(constant);
  else if (getNumber(view->base) < 0)
    return false;
  postOps.push_back({*kind, 0, 0, view, op->hasAttr(nn::kAccumulateAttr)});
  return true;
}

/// The number of a view's base among operands and results, or -1.
int64_t CallMatcher::getNumber(Value value) const {
  auto it = llvm::find(inputs, value);
  if (it != inputs.end())
    return it - inputs.begin();
  return value == results[0] ? int64_t(inputs.size()) : -1;
}

plan::ViewAttr
CallMatcher::toAttr(const std::optional<StridedView> &view) const {
  if (!view)
    return {};
  return plan::ViewAttr::get(root->getContext(), getNumber(view->base),
                             view->shape, view->strides, view->offset);
}

std::optional<StridedView> CallMatcher::operand(Value value) {
  std::optional<StridedView> view = viewOf(value, set, used);
  if (view && (!view->isNested() || getNumber(view->base) < 0))
    return std::nullopt;
  return view;
}

bool CallMatcher::isAlone() const {
  return list.size() == 1 &&
         llvm::all_of(root->getOperands(),
                      [&](Value value) { return isInput(value); });
}

/// Changes the views of the result and of the operands of post-ops from `first`
/// on. Returns false if there is none for one of them.
bool CallMatcher::changeOutput(size_t first, Change change) {
  SmallVector<StridedView *> views{&output};
  for (PostOp &postOp : MutableArrayRef(postOps).drop_front(first))
    if (postOp.operand)
      views.push_back(&*postOp.operand);
  for (StridedView *view : views) {
    std::optional<StridedView> changed = change(*view);
    if (!changed)
      return false;
    *view = *changed;
  }
  return true;
}

bool CallMatcher::reshapeOutput(ArrayRef<int64_t> shape) {
  return changeOutput(
      0, [&](const StridedView &view) { return view.reshape(shape); });
}

void CallMatcher::permuteOutput(ArrayRef<int64_t> permutation) {
  changeOutput(0, [&](const StridedView &view) {
    return std::optional(view.permute(permutation));
  });
}

plan::CallAttr CallMatcher::build() {
  MLIRContext *context = root->getContext();
  SmallVector<plan::ViewAttr> views;
  for (const StridedView &view : operands)
    views.push_back(toAttr(view));
  output.base = results[0];
  views.push_back(plan::ViewAttr::get(context, inputs.size(), output.shape,
                                      output.strides, output.offset));
  SmallVector<plan::PostOpAttr> attrs;
  for (const PostOp &postOp : postOps)
    attrs.push_back(plan::PostOpAttr::get(
        context, postOp.kind, plan::Number(postOp.alpha),
        plan::Number(postOp.beta), toAttr(postOp.operand)));
  return plan::CallAttr::get(context, kind, views, details, attrs);
}

} // namespace partita::codegen
