//===- LowerToLLVM.cpp - Loops and vectors to the LLVM dialect -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/CpuCodegen.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace partita::codegen {
namespace {

/// Functions with an approximation good to the last few bits. The others (sine
/// and cosine far from zero, power, ...) call the mathematics library.
bool isApproximated(StringRef name) {
  return llvm::is_contained({"math.exp", "math.tanh", "math.erf", "math.log"},
                            name);
}

/// Conversions between f64 and the narrow floats go by way of f32: processors
/// of these levels have no instruction for them.
template <typename Op> struct SplitConversion : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    Type from = op.getIn().getType(), to = op.getType();
    unsigned bits[] = {getElementTypeOrSelf(from).getIntOrFloatBitWidth(),
                       getElementTypeOrSelf(to).getIntOrFloatBitWidth()};
    if (bits[0] + bits[1] != 64 + 16)
      return failure();
    Type middle = rewriter.getF32Type();
    if (auto vector = dyn_cast<VectorType>(to))
      middle = vector.clone(middle);
    Value half = Op::create(rewriter, op.getLoc(), middle, op.getIn());
    rewriter.replaceOpWithNewOp<Op>(op, to, half);
    return success();
  }
};

/// i16, or vectors of it, for f16 and bf16; null for other types.
Type getBits(Type type) {
  Type element = getElementTypeOrSelf(type), bits;
  if (element.isF16() || element.isBF16())
    bits = IntegerType::get(type.getContext(), 16);
  auto vector = dyn_cast<VectorType>(type);
  return bits && vector ? vector.clone(bits) : bits;
}

/// Chooses between numbers of 16 bits by their bits: for them LLVM has no
/// instruction at these levels, and would convert each to f32 and back with a
/// function of the compiler's own library.
struct SelectBits : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SelectOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType(), bits = getBits(type);
    if (!bits)
      return failure();
    auto asBits = [&](Value x) {
      return arith::BitcastOp::create(rewriter, op.getLoc(), bits, x);
    };
    Value chosen = arith::SelectOp::create(
        rewriter, op.getLoc(), op.getCondition(), asBits(op.getTrueValue()),
        asBits(op.getFalseValue()));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type, chosen);
    return success();
  }
};

/// The same where a branch yields them.
struct BranchBits : OpRewritePattern<scf::IfOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(scf::IfOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumResults() != 1 || !getBits(op.getResult(0).getType()))
      return failure();
    Type type = op.getResult(0).getType(), bits = getBits(type);
    auto branch =
        scf::IfOp::create(rewriter, op.getLoc(), bits, op.getCondition(),
                          /*addThenBlock=*/false, /*addElseBlock=*/false);
    for (auto [from, to] :
         {std::pair(&op.getThenRegion(), &branch.getThenRegion()),
          std::pair(&op.getElseRegion(), &branch.getElseRegion())}) {
      rewriter.inlineRegionBefore(*from, *to, to->end());
      Operation *yield = to->front().getTerminator();
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(yield);
      rewriter.replaceOpWithNewOp<scf::YieldOp>(
          yield, arith::BitcastOp::create(rewriter, yield->getLoc(), bits,
                                          yield->getOperand(0))
                     .getResult());
    }
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type,
                                                  branch.getResult(0));
    return success();
  }
};

/// Writes functions of f16 and bf16 in f32, and approximates unless the module
/// is to be a reference.
LogicalResult approximateMath(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  patterns.add<SplitConversion<arith::ExtFOp>, SplitConversion<arith::TruncFOp>,
               SelectBits, BranchBits>(module.getContext());
  populateMathF32ExpansionPatterns(patterns, [](StringRef) { return true; });
  if (!module->hasAttr(kReferenceAttr))
    populateMathPolynomialApproximationPatterns(patterns, isApproximated);
  return applyPatternsGreedily(module, std::move(patterns));
}

/// Narrow floats are computed in f32, and every op rounds what it gives. Were
/// these conversions left out between ops of one kernel, numbers would depend
/// on what is fused, and on which values are wanted outside.
void roundEveryResult(ModuleOp module) {
  module.walk([](Operation *op) {
    if (auto widened = dyn_cast<arith::ExtFOp>(op))
      widened.removeFastmathAttr();
    else if (auto narrowed = dyn_cast<arith::TruncFOp>(op))
      narrowed.removeFastmathAttr();
  });
}

/// The entry point: takes the pointers out of the array.
void addEntryPoint(LLVM::LLVMFuncOp body) {
  Location loc = body.getLoc();
  std::string name = body.getName().str();
  body.setName(name + "_range");
  body.setLinkage(LLVM::Linkage::Internal);
  OpBuilder b(body);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type types[] = {pointer, b.getI64Type(), b.getI64Type()};
  auto entry = LLVM::LLVMFuncOp::create(
      b, loc, name,
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  types));
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

} // namespace

LogicalResult lowerToLLVM(ModuleOp module) {
  // Functions of f16 and bf16 are computed in f32.
  PassManager widen(module.getContext());
  widen.addPass(math::createMathExtendToSupportedTypes());
  if (failed(widen.run(module)))
    return failure();
  roundEveryResult(module); // before anything folds
  if (failed(approximateMath(module)))
    return module.emitError("mathematical functions could not be expanded");
  PassManager emulation(module.getContext());
  emulation.addPass(createCanonicalizerPass());
  emulation.addPass(createCSEPass());
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16", "f16"};
  emulate.targetTypeStr = "f32";
  emulation.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  if (failed(emulation.run(module)))
    return failure();
  roundEveryResult(module);
  PassManager pm(module.getContext());
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertMathToLLVMPass());
  // What LLVM has no intrinsic for; takes vectors apart.
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createArithToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions func;
  func.useBarePtrCallConv = true;
  pm.addPass(createConvertFuncToLLVMPass(func));
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
  if (failed(pm.run(module)))
    return failure();
  for (auto body : llvm::to_vector(module.getOps<LLVM::LLVMFuncOp>()))
    if (!body.isExternal())
      addEntryPoint(body);
  return success();
}

} // namespace partita::codegen
