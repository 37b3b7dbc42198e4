//===- NativeKernels.cpp - Kernels for GPUs on this processor -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NativeKernels.h"

#include "Block.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/TargetSelect.h"

#include <cstring>

using namespace llvm;

namespace partita::test {
namespace {

constexpr unsigned kSharedSpace = 3;

/// Whether threads of a kernel wait for each other.
bool waits(const Function &kernel) {
  for (const BasicBlock &block : kernel)
    for (const Instruction &each : block)
      if (auto *call = dyn_cast<CallInst>(&each)) {
        const Function *callee = call->getCalledFunction();
        if (!callee ||
            (callee->isDeclaration() && !callee->isIntrinsic() &&
             !callee->getName().contains(".sreg.")) ||
            (!callee->isDeclaration() && waits(*callee)))
          return true;
      }
  return false;
}

std::string entryName(StringRef kernel) { return ("entry." + kernel).str(); }

/// A function that takes the kernel's arguments from a table of pointers.
void addEntry(Function &kernel) {
  Module &module = *kernel.getParent();
  Type *pointer = PointerType::get(module.getContext(), 0);
  Function *entry = Function::Create(
      FunctionType::get(Type::getVoidTy(module.getContext()), {pointer}, false),
      GlobalValue::ExternalLinkage, entryName(kernel.getName()), module);
  IRBuilder<> b(BasicBlock::Create(module.getContext(), "", entry));
  std::vector<Value *> arguments;
  for (Argument &argument : kernel.args())
    arguments.push_back(
        b.CreateLoad(argument.getType(),
                     b.CreateConstInBoundsGEP1_32(pointer, entry->getArg(0),
                                                  argument.getArgNo())));
  b.CreateCall(&kernel, arguments);
  b.CreateRetVoid();
}

/// Calls a function of the host in the place of an intrinsic. It has no
/// attributes, so that memory is what it is behind every such call.
void replaceIntrinsic(Function &intrinsic) {
  Function *host = Function::Create(
      intrinsic.getFunctionType(), GlobalValue::ExternalLinkage,
      intrinsic.getName().drop_front(StringRef("llvm.").size()),
      *intrinsic.getParent());
  for (User *user : make_early_inc_range(intrinsic.users())) {
    auto *call = cast<CallInst>(user);
    call->setCalledFunction(host);
    call->setAttributes({});
  }
}

} // namespace

Expected<NativeKernels>
NativeKernels::compile(std::unique_ptr<Module> module,
                       std::unique_ptr<LLVMContext> context) {
  static const bool ready = [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)ready;
  auto builder = orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  // No pass of code generation has to know of barriers, nor may it fuse.
  builder->setCodeGenOptLevel(CodeGenOptLevel::Less);
  builder->getOptions().AllowFPOpFusion = FPOpFusion::Strict;
  auto jit = orc::LLJITBuilder().setJITTargetMachineBuilder(*builder).create();
  if (!jit)
    return jit.takeError();

  NativeKernels made;
  module->setDataLayout((*jit)->getDataLayout());
  module->setTargetTriple((*jit)->getTargetTriple());
  std::vector<Function *> kernels;
  for (Function &function : make_early_inc_range(*module)) {
    if (function.getName().starts_with("llvm.nvvm.")) {
      replaceIntrinsic(function);
      function.eraseFromParent();
      continue;
    }
    if (function.isDeclaration())
      continue;
    function.setCallingConv(CallingConv::C);
    for (StringRef name : {"target-cpu", "target-features", "nvvm.reqntid"})
      function.removeFnAttr(name);
    kernels.push_back(&function);
  }
  for (Function *kernel : kernels) {
    addEntry(*kernel);
    if (waits(*kernel))
      made.waiting.insert(kernel->getName());
  }
  for (GlobalVariable &variable : module->globals())
    if (variable.getAddressSpace() == kSharedSpace) {
      variable.setLinkage(GlobalValue::ExternalLinkage);
      variable.setInitializer(Constant::getNullValue(variable.getValueType()));
      made.shared.push_back(
          {variable.getName().str(),
           module->getDataLayout().getTypeAllocSize(variable.getValueType())});
    }
  std::string wrong;
  raw_string_ostream stream(wrong);
  if (verifyModule(*module, &stream))
    return createStringError(wrong);

  orc::SymbolMap symbols;
  for (const auto &[name, address] : gpuFunctions())
    symbols[(*jit)->mangleAndIntern(name)] = {
        orc::ExecutorAddr::fromPtr(address),
        JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  if (Error error = (*jit)->getMainJITDylib().define(
          orc::absoluteSymbols(std::move(symbols))))
    return error;
  if (Error error = (*jit)->addIRModule(
          orc::ThreadSafeModule(std::move(module), std::move(context))))
    return error;
  made.jit = std::move(*jit);
  return made;
}

Error NativeKernels::run(const std::string &kernel, uint32_t blocks,
                         uint32_t threads, std::vector<void *> arguments) {
  auto entry = jit->lookup(entryName(kernel));
  if (!entry)
    return entry.takeError();
  auto *function = entry->toPtr<void (*)(void **)>();
  std::vector<std::pair<void *, size_t>> memory;
  for (const Shared &each : shared) {
    auto address = jit->lookup(each.name);
    if (!address)
      return address.takeError();
    memory.push_back({address->toPtr<void *>(), each.bytes});
  }
  for (uint32_t block = 0; block < blocks; ++block) {
    for (auto [address, bytes] : memory)
      std::memset(address, 0xff, bytes);
    std::string wrong =
        runBlock(block, blocks, threads, waiting.contains(kernel),
                 [&] { function(arguments.data()); });
    if (!wrong.empty())
      return createStringError(wrong);
  }
  return Error::success();
}

} // namespace partita::test
