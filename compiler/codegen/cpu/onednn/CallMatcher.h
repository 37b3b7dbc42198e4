//===- CallMatcher.h - A library call put together from ops -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call is computed around one op, its root. Views lead from the operands to
// the root, and views and post-ops from the root to the result; what the root
// itself means to the library, its rule says (CallRule.h).
//
//   %v = nn.reshape %x; %d = nn.dot %v, %w; %s = nn.add %d, %b; %r = nn.relu %s
//   #plan.call<dot, operands = [x as v, w, r], post_ops = [add b, relu]>
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLMATCHER_H
#define PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLMATCHER_H

#include "compiler/codegen/StridedView.h"
#include "dialects/plan/PlanDialect.h"

namespace partita::codegen::onednn {

struct CallRule;
struct KnownFunction;

/// A post-op whose operand, if any, is still a view by values.
struct PostOpStep {
  plan::PostOpKind kind;
  double alpha = 0, beta = 0;
  std::optional<StridedView> operand;
  bool mayAccumulate = false; ///< the operand's bytes may become the result's
};

class CallMatcher {
public:
  /// `ops` in topological order; views number `inputs`, then `results`.
  CallMatcher(llvm::ArrayRef<mlir::Operation *> ops,
              llvm::ArrayRef<mlir::Value> inputs,
              llvm::ArrayRef<mlir::Value> results)
      : list(ops), set(ops.begin(), ops.end()), inputs(inputs),
        results(results) {}

  /// The call that computes all of the ops, or null.
  plan::CallAttr match();

  //===--------------------------------------------------------------------===//
  // For rules
  //===--------------------------------------------------------------------===//

  /// How an operand lies in what comes into the call; the views on the way are
  /// computed by the call. Nothing if strides cannot say it.
  std::optional<StridedView> operand(mlir::Value value);

  /// Whether the value comes into the call as it is.
  bool isInput(mlir::Value value) const {
    return llvm::is_contained(inputs, value);
  }

  plan::ViewAttr toAttr(const StridedView &view) const;

  /// Brings the result's view and those of the post-ops to another shape; false
  /// if strides cannot say it.
  bool reshapeOutput(llvm::ArrayRef<int64_t> shape);
  void permuteOutput(llvm::ArrayRef<int64_t> permutation);

  size_t getOpCount() const { return list.size(); }

  // The call so far. A rule fills in what its kind needs; `output` and `steps`
  // are there when it is asked.
  plan::CallKind kind = plan::CallKind::dot;
  llvm::SmallVector<StridedView> operands;
  StridedView output;
  llvm::SmallVector<PostOpStep> steps;
  std::optional<StridedView> bias, maskMul, maskAdd;
  llvm::SmallVector<int64_t> strides, dilations, padsLow, padsHigh, window;
  int64_t groups = 1;
  bool includePad = false, winograd = false, largest = false;
  plan::Combine combine = plan::Combine::replace;
  double scale = 1;
  plan::RecurrentAttr recurrent;

private:
  bool findRoot();
  bool followEpilogue();
  mlir::Operation *getOnlyUser(mlir::Value value);
  std::optional<KnownFunction> matchFunction(mlir::Value current);
  bool addBinary(mlir::Operation *op, mlir::Value current);
  int64_t getNumber(mlir::Value value) const;
  bool mayFuse(const PostOpStep &step) const;
  plan::CallAttr build();

  llvm::ArrayRef<mlir::Operation *> list;
  OpSet set, used;
  llvm::ArrayRef<mlir::Value> inputs, results;
  mlir::Operation *root = nullptr;
  const CallRule *rule = nullptr;
};

} // namespace partita::codegen::onednn

#endif // PARTITA_COMPILER_CODEGEN_CPU_ONEDNN_CALLMATCHER_H
