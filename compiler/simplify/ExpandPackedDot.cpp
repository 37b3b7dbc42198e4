//===- ExpandPackedDot.cpp - Packed weights become floats -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "compiler/simplify/Passes.h"
#include "dialects/nn/NNDialect.h"

using namespace mlir;

namespace partita::simplify {

#define GEN_PASS_DEF_EXPANDPACKEDDOTPASS
#include "compiler/simplify/Passes.h.inc"

namespace {

struct ExpandPackedDotPass
    : impl::ExpandPackedDotPassBase<ExpandPackedDotPass> {
  using ExpandPackedDotPassBase::ExpandPackedDotPassBase;

  void runOnOperation() override {
    getOperation().walk([&](nn::PackedDotOp op) {
      auto computes = [&](const codegen::Backend &backend) {
        return backend.isCallRoot(op);
      };
      if (!libraryCalls || !codegen::allBackends(getOperation(), computes))
        nn::expand(op);
    });
  }
};

} // namespace
} // namespace partita::simplify
