//===- CallMatcher.h - A library call built from ops ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call has one op as its root. Views lead from the operands to the root.
// Views and post-ops lead from the root to the result. The rule of the root
// (CallRule) says how the library computes the root.
//
//   %v = nn.reshape %x; %d = nn.dot %v, %w; %s = nn.add %d, %b; %r = nn.relu %s
//   #plan.call<dot, operands = [x as v, w, r], post_ops = [add b, relu]>
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CODEGEN_CALLS_CALLMATCHER_H
#define PARTITA_COMPILER_CODEGEN_CALLS_CALLMATCHER_H

#include "compiler/codegen/Backend.h"
#include "compiler/codegen/StridedView.h"
#include "dialects/plan/PlanDialect.h"

namespace partita::codegen {

struct Activation;
class CallMatcher;

/// How an op becomes the root of a call.
struct CallRule {
  /// Whether the op may be the root of such a call.
  bool (*isRoot)(mlir::Operation *op);

  /// Whether the library takes an operand, or the result, of this type. Null if
  /// it takes any.
  bool (*takes)(mlir::Operation *root, mlir::Value value) = nullptr;

  /// Fills in the kind of the call, its operands and their views. Returns false
  /// if the library cannot compute the op.
  bool (*match)(CallMatcher &call, mlir::Operation *root);

  /// The work of the call, in terms of the tables that are measured on a
  /// machine. Null for calls that are not measured. `lanes`: floats in a
  /// vector.
  CallWork (*getWork)(mlir::Operation *root, analysis::Rates &rates,
                      int64_t lanes) = nullptr;

  bool onlyByLibrary = false; ///< no kernel can compute the op
  bool accumulates = false;   ///< see CallTuning::accumulates
  bool counts32 = true;       ///< a dimension must fit 32 bits
};

/// What is asked of a library while a call is put together.
struct CallLibrary {
  /// The rule of the op, or null.
  const CallRule *(*getRule)(mlir::Operation *op);
  /// Whether the library computes the call with its epilogue. The rule of its
  /// root has filled it in.
  bool (*computes)(const CallMatcher &call);
};

/// A post-op. Its operand, if it has one, is still a view of an MLIR value: of
/// an input of the call, or of a constant among its ops. A plan has no
/// constants: a rule that knows one removes the post-op.
struct PostOp {
  plan::PostOpKind kind;
  double alpha = 0, beta = 0;
  std::optional<StridedView> operand;
  bool mayAccumulate = false; ///< the result may overwrite the operand's bytes
};

class CallMatcher {
public:
  /// `ops` are in topological order. Views refer to `inputs`, then to
  /// `results`, by their positions.
  CallMatcher(const CallLibrary &library, llvm::ArrayRef<mlir::Operation *> ops,
              llvm::ArrayRef<mlir::Value> inputs,
              llvm::ArrayRef<mlir::Value> results)
      : library(library), list(ops), set(ops.begin(), ops.end()),
        inputs(inputs), results(results) {}

  /// The call that computes all of the ops, or null.
  plan::CallAttr match();

  //===--------------------------------------------------------------------===//
  // For rules
  //===--------------------------------------------------------------------===//

  /// The view through which an operand of the root reads an input of the call.
  /// The call computes the ops on the way. Nothing if strides cannot express
  /// the view.
  std::optional<StridedView> operand(mlir::Value value);

  /// Whether the value itself is an input of the call.
  bool isInput(mlir::Value value) const {
    return llvm::is_contained(inputs, value);
  }

  /// A view of an input as a plan has it; null for none.
  plan::ViewAttr toAttr(const std::optional<StridedView> &view) const;

  /// Reshapes the views of the result and of the post-ops' operands. Returns
  /// false if strides cannot express the shape.
  bool reshapeOutput(llvm::ArrayRef<int64_t> shape);
  void permuteOutput(llvm::ArrayRef<int64_t> permutation);

  size_t getOpCount() const { return list.size(); }
  /// Whether the call is its root alone, which reads inputs as they lie.
  bool isAlone() const;

  // The call so far. A rule fills in what its kind needs. `output` and
  // `postOps` are set before the rule is asked.
  plan::CallKind kind = plan::CallKind::dot;
  llvm::SmallVector<StridedView> operands;
  StridedView output;
  llvm::SmallVector<PostOp> postOps;
  std::optional<StridedView> maskMul, maskAdd; ///< of `details`
  mlir::Attribute details;

private:
  bool findRoot();
  bool followEpilogue();
  mlir::Operation *getOnlyUser(llvm::ArrayRef<mlir::Value> values);
  llvm::SmallVector<mlir::Value>
  getRepeatedViews(llvm::ArrayRef<mlir::Value> values);
  std::optional<Activation> matchFunction(llvm::ArrayRef<mlir::Value> current);
  bool addBinary(mlir::Operation *op, mlir::Value current);
  int64_t getNumber(mlir::Value value) const;
  using Change =
      llvm::function_ref<std::optional<StridedView>(const StridedView &)>;
  bool changeOutput(size_t first, Change change);
  bool readsInputs() const;
  plan::CallAttr build();

  const CallLibrary &library;
  llvm::ArrayRef<mlir::Operation *> list;
  OpSet set, used;
  llvm::ArrayRef<mlir::Value> inputs, results;
  mlir::Operation *root = nullptr;
  const CallRule *rule = nullptr;
};

} // namespace partita::codegen

#endif // PARTITA_COMPILER_CODEGEN_CALLS_CALLMATCHER_H
