//===- AddKernelEntries.cpp - What the runtime calls of a kernel ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace partita::codegen {

#define GEN_PASS_DEF_ADDKERNELENTRIESPASS
#include "compiler/codegen/cpu/Passes.h.inc"

namespace {

/// The entry point: takes the pointers out of the array.
void addEntryPoint(LLVM::LLVMFuncOp body) {
  Location loc = body.getLoc();
  std::string name = body.getName().str();
  body.setName(name + "_range");
  body.setLinkage(LLVM::Linkage::Internal);
  body.setAlwaysInline(true);
  body.setNoUnwind(true);
  OpBuilder b(body);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type types[] = {pointer, b.getI64Type(), b.getI64Type()};
  auto entry = LLVM::LLVMFuncOp::create(
      b, loc, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  types));
  entry.setNoUnwind(true);
  Block *block = entry.addEntryBlock(b);
  b.setInsertionPointToEnd(block);
  SmallVector<Value> arguments;
  for (unsigned i = 0; i + 2 < body.getNumArguments(); ++i) {
    Value slot =
        LLVM::GEPOp::create(b, loc, pointer, pointer, block->getArgument(0),
                            ArrayRef<LLVM::GEPArg>{int32_t(i)});
    arguments.push_back(LLVM::LoadOp::create(b, loc, pointer, slot));
  }
  arguments.push_back(block->getArgument(1));
  arguments.push_back(block->getArgument(2));
  LLVM::CallOp::create(b, loc, body, arguments);
  LLVM::ReturnOp::create(b, loc, ValueRange{});
}

class AddKernelEntriesPass
    : public impl::AddKernelEntriesPassBase<AddKernelEntriesPass> {
public:
  using AddKernelEntriesPassBase::AddKernelEntriesPassBase;

private:
  void runOnOperation() override {
    for (auto body : llvm::to_vector(getOperation().getOps<LLVM::LLVMFuncOp>()))
      if (!body.isExternal())
        addEntryPoint(body);
  }
};

} // namespace
} // namespace partita::codegen
