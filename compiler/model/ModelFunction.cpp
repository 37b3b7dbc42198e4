//===- ModelFunction.cpp - What a module computes -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/model/ModelFunction.h"

#include "compiler/analysis/Rates.h"
#include "dialects/nn/NNDialect.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace partita {

FailureOr<func::FuncOp> getModelFunction(ModuleOp module) {
  func::FuncOp found;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    if (found)
      return function.emitError("the module has several functions; a model is "
                                "one function");
    found = function;
  }
  if (!found)
    return module.emitError("the module has no function with a body");
  if (!llvm::hasSingleElement(found.getBody()))
    return found.emitError("the model's function must be one block");
  return found;
}

SmallVector<Operation *> getActiveOps(Block &block) {
  SmallVector<Operation *> active;
  analysis::Rates rates;
  for (Operation &op : block.without_terminator())
    if (!rates.isLoad(&op) && !isa<nn::ParameterOp>(op))
      active.push_back(&op);
  return active;
}

void setResults(func::FuncOp function, ValueRange values,
                ArrayRef<DictionaryAttr> attributes) {
  function.getBody().front().getTerminator()->setOperands(values);
  function.removeResAttrsAttr();
  function.setFunctionType(
      FunctionType::get(function.getContext(), function.getArgumentTypes(),
                        llvm::to_vector(values.getTypes())));
  function.setAllResultAttrs(attributes);
}

int64_t getWeightBytes(func::FuncOp function) {
  int64_t bytes = 0;
  llvm::DenseSet<Attribute> counted;
  function.walk([&](nn::ParameterOp parameter) {
    if (counted.insert(parameter.getWeightAttr()).second)
      bytes += nn::getByteSize(parameter.getType());
  });
  return bytes;
}

} // namespace partita
