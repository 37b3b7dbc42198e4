//===- CompilePtx.cpp - From kernels to PTX -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/CompilePtx.h"

#include "compiler/codegen/cuda/Passes.h"
#include "compiler/codegen/kernels/CompileModule.h"
#include "compiler/crash/Place.h"
#include "dialects/support/Try.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"

#include <mutex>

using namespace mlir;

namespace partita::codegen::cuda {

static constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";

void registerCudaDialects(DialectRegistry &registry) {
  registerKernelDialects(registry);
  registry.insert<NVVM::NVVMDialect>();
  registerNVVMDialectTranslation(registry);
}

/// Switches one of LLVM's own flags on.
static void setFlag(StringRef name) {
  auto &options = llvm::cl::getRegisteredOptions();
  if (auto it = options.find(name); it != options.end())
    static_cast<llvm::cl::opt<bool> *>(it->second)->setValue(true);
}

/// What the target does by default, and kernels must not have. The linker of
/// the CPU's kernels sets all flags back, so this is said for each module.
static void restrainTarget() {
  // It joins loads, and also reads bytes between and behind those that are
  // asked for. Nothing says that there are any: a slot may be the last of its
  // arena. Kernels have the vectors that they want without it.
  setFlag("disable-nvptx-load-store-vectorizer");
  // Where denormal numbers of f32 are flushed, its instructions for f16 flush
  // those of f16, too: everything below 6.1e-5. So f16 is computed in f32.
  setFlag("nvptx-no-f16-math");
}

static std::unique_ptr<llvm::TargetMachine>
createTargetMachine(const Gpu &gpu, bool optimize, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  restrainTarget();
  MachineOptions options{.triple = kTriple,
                         .cpu = gpu.name,
                         .features = gpu.features,
                         .level = optimize ? llvm::CodeGenOptLevel::Aggressive
                                           : llvm::CodeGenOptLevel::Less};
  // What is written as two roundings stays two.
  options.target.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return codegen::createTargetMachine(options, error);
}

FailureOr<LlvmKernels> lowerToLlvm(ModuleOp kernels, const Gpu &gpu,
                                   bool optimize,
                                   llvm::LLVMContext &llvmContext) {
  MLIRContext *context = kernels.getContext();
  DialectRegistry registry;
  registerCudaDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();

  OwningOpRef<ModuleOp> lowered = kernels.clone();
  PassManager pm(context);
  pm.enableVerifier(false); // once, behind all passes
  addCudaPasses(pm, gpu.name);
  PARTITA_TRY(pm.run(*lowered));
  PARTITA_TRY(verify(*lowered));

  crash::AtPass at("generating PTX");
  std::string error;
  LlvmKernels made;
  made.machine = createTargetMachine(gpu, optimize, error);
  if (!made.machine)
    return kernels.emitError() << "cannot compile kernels: " << error;
  made.module = translateModuleToLLVMIR(*lowered, llvmContext, "kernels");
  if (!made.module)
    return kernels.emitError("kernels could not be translated to LLVM IR");
  made.module->setDataLayout(made.machine->createDataLayout());
  made.module->setTargetTriple(llvm::Triple(kTriple));
  improve(*made.module, *made.machine,
          optimize ? llvm::OptimizationLevel::O3 : llvm::OptimizationLevel::O1);
  return made;
}

FailureOr<std::vector<char>> compilePtx(ModuleOp kernels, const Gpu &gpu,
                                        bool optimize) {
  llvm::LLVMContext llvmContext;
  LlvmKernels made =
      PARTITA_TRY(lowerToLlvm(kernels, gpu, optimize, llvmContext));
  crash::AtPass at("generating PTX");
  std::optional<std::vector<char>> text = emitFile(
      *made.module, *made.machine, llvm::CodeGenFileType::AssemblyFile);
  if (!text)
    return kernels.emitError("the target cannot emit PTX");
  StringRef written(text->data(), text->size());
  if (size_t place = written.find(".extern"); place != StringRef::npos)
    return kernels.emitError() << "kernels need what no device provides: "
                               << written.substr(place).split(';').first;
  text->push_back('\0');
  return std::move(*text);
}

} // namespace partita::codegen::cuda
