//===- CompileObject.cpp - Machine code for one level ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/CpuCodegen.h"
#include "compiler/codegen/kernels/CompileModule.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

#include <mutex>

using namespace mlir;

namespace partita::codegen {

static constexpr llvm::StringLiteral kTriple = "x86_64-unknown-linux-gnu";

StringRef getCpuName(abi::CpuLevel level) {
  return level == abi::CpuLevel::x86_64_v4 ? "x86-64-v4" : "x86-64-v3";
}

static std::unique_ptr<llvm::TargetMachine>
createTargetMachine(abi::CpuLevel level, bool optimize, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  return codegen::createTargetMachine(
      {.triple = kTriple,
       .cpu = getCpuName(level),
       .relocation = llvm::Reloc::PIC_,
       .level = optimize ? llvm::CodeGenOptLevel::Aggressive
                         : llvm::CodeGenOptLevel::None},
      error);
}

/// `scalar`: loops stay as they are.
static void improve(llvm::Module &module, llvm::TargetMachine &machine,
                    bool scalar) {
  llvm::PipelineTuningOptions tuning;
  // Kernels come with the vectors and tiles that they need. To unroll their
  // loops again took a third to a half of the time of a compilation, and made
  // none of 15 models faster beyond the scatter of the times (Zen 3, AVX2).
  tuning.LoopUnrolling = false;
  if (scalar)
    tuning.LoopVectorization = tuning.SLPVectorization =
        tuning.LoopInterleaving = false;
  // What one round of a loop stores and the next one loads is not kept in a
  // register. Kernels of 15 models come out the same, and the compiler takes
  // 5 % less of a core (gtcrn-stream, medians of 16 pairs).
  improve(module, machine,
          scalar ? llvm::OptimizationLevel::O1 : llvm::OptimizationLevel::O3,
          tuning, "LoopLoadEliminationPass");
}

/// Defines what the target calls to round f32 to bf16 where it has no
/// instruction for it: nothing else that a kernel is linked with does. It is
/// called where a bf16 is kept across blocks, and by code that is not improved.
static void defineRoundingToBf16(llvm::Module &module, StringRef cpu) {
  auto usesBf16 = [](const llvm::Function &function) {
    return llvm::any_of(llvm::instructions(function), [](const auto &i) {
      return i.getType()->getScalarType()->isBFloatTy();
    });
  };
  if (llvm::none_of(module, usesBf16))
    return;
  llvm::LLVMContext &context = module.getContext();
  auto *type = llvm::FunctionType::get(llvm::Type::getBFloatTy(context),
                                       {llvm::Type::getFloatTy(context)},
                                       /*isVarArg=*/false);
  auto *function = llvm::Function::Create(
      type, llvm::GlobalValue::WeakODRLinkage, "__truncsfbf2", module);
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function->addFnAttr("target-cpu", cpu);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::appendToUsed(module, {function});
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "", function));
  llvm::Value *x = function->getArg(0);
  llvm::Value *bits = b.CreateBitCast(x, b.getInt32Ty());
  llvm::Value *high = b.CreateLShr(bits, 16);
  // To nearest, ties to even; NaN stays NaN, made quiet.
  llvm::Value *odd = b.CreateAnd(high, 1);
  llvm::Value *rounded =
      b.CreateLShr(b.CreateAdd(bits, b.CreateAdd(odd, b.getInt32(0x7FFF))), 16);
  llvm::Value *result =
      b.CreateSelect(b.CreateFCmpUNO(x, x), b.CreateOr(high, 0x40), rounded);
  b.CreateRet(b.CreateBitCast(b.CreateTrunc(result, b.getInt16Ty()),
                              llvm::Type::getBFloatTy(context)));
}

llvm::Expected<std::vector<char>>
compileObject(ModuleOp module, abi::CpuLevel level, bool optimize) {
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine =
      createTargetMachine(level, optimize, error);
  if (!machine)
    return llvm::createStringError(error);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated =
      translateModuleToLLVMIR(module, context, "kernels");
  if (!translated)
    return llvm::createStringError("translation to LLVM IR failed");
  translated->setDataLayout(machine->createDataLayout());
  translated->setTargetTriple(llvm::Triple(kTriple));
  translated->setPICLevel(llvm::PICLevel::BigPIC);
  defineRoundingToBf16(*translated, machine->getTargetCPU());
  if (optimize)
    improve(*translated, *machine, module->hasAttr(kReferenceAttr));
  std::optional<std::vector<char>> object =
      emitFile(*translated, *machine, llvm::CodeGenFileType::ObjectFile);
  if (!object)
    return llvm::createStringError("the target cannot emit objects");
  return std::move(*object);
}

} // namespace partita::codegen
