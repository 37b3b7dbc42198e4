//===- ExpandCalls.cpp - Ops that no library computes become others -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "compiler/simplify/Passes.h"
#include "dialects/nn/NNDialect.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace partita::simplify {

#define GEN_PASS_DEF_EXPANDCALLSPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

struct ExpandCallsPass : impl::ExpandCallsPassBase<ExpandCallsPass> {
  using ExpandCallsPassBase::ExpandCallsPassBase;

  void runOnOperation() override {
    auto stays = [&](Operation *op) {
      auto computes = [&](const codegen::Backend &backend) {
        return backend.isCallRoot(op);
      };
      if (keepDifferentiable && isa<nn::DifferentiableOpInterface>(op))
        return true;
      return libraryCalls && codegen::allBackends(getOperation(), computes);
    };
    // Packed weights of experts become floats of experts.
    expandAll<nn::PackedDotOp, nn::UpdateSliceOp>(stays);
    expandAll<nn::ExpertDotOp, nn::ExpertOuterOp>(stays);
  }

private:
  template <typename... Ops>
  void expandAll(llvm::function_ref<bool(Operation *)> stays) {
    getOperation().walk([&](Operation *op) {
      if (isa<Ops...>(op) && !stays(op))
        llvm::TypeSwitch<Operation *>(op).Case<Ops...>(
            [](auto whole) { nn::expand(whole); });
    });
  }
};

} // namespace
} // namespace partita::simplify
