//===- Ports.cpp - Results of the model's function ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/Ports.h"

#include "dialects/nn/CheckAttr.h"
#include "dialects/support/Try.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace partita::autodiff {

func::FuncOp getModelFunction(ModuleOp module) {
  auto functions = module.getOps<func::FuncOp>();
  if (llvm::hasSingleElement(functions))
    return *functions.begin();
  module.emitError() << "a model is one function, and this module has "
                     << llvm::range_size(functions);
  return {};
}

void addCheck(func::FuncOp function, Value value, DictionaryAttr description) {
  Operation *end = function.getBody().front().getTerminator();
  const unsigned number = function.getNumResults();
  end->insertOperands(number, value);
  (void)function.insertResult(number, value.getType(), nullptr);
  function.setResultAttr(number, nn::kCheckAttr, description);
}

FailureOr<BlockArgument> addInput(func::FuncOp function, StringRef name,
                                  RankedTensorType type) {
  Builder b(function.getContext());
  int64_t port = 0;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto other = function.getArgAttrOfType<IntegerAttr>(i, "nn.port"))
      port = std::max(port, other.getInt() + 1);
  // A constant input has a port, too.
  if (auto bound =
          function->getParentOfType<ModuleOp>()->getAttrOfType<ArrayAttr>(
              "nn.bound_inputs"))
    for (Attribute entry : bound)
      if (auto other = cast<DictionaryAttr>(entry).getAs<IntegerAttr>("port"))
        port = std::max(port, other.getInt() + 1);
  NamedAttrList attributes;
  attributes.set(nn::kNameAttr, b.getStringAttr(name));
  attributes.set("nn.port", b.getI64IntegerAttr(port));
  const unsigned number = function.getNumArguments();
  PARTITA_TRY(function.insertArgument(number, type,
                                      attributes.getDictionary(b.getContext()),
                                      NameLoc::get(b.getStringAttr(name))));
  return function.getArgument(number);
}

void setResults(func::FuncOp function, ArrayRef<Result> results) {
  Builder b(function.getContext());
  SmallVector<Value> values;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  Operation *end = function.getBody().front().getTerminator();
  SmallVector<std::pair<Value, DictionaryAttr>> kept;
  for (OpOperand &operand : end->getOpOperands())
    if (unsigned i = operand.getOperandNumber();
        function.getResultAttr(i, nn::kCheckAttr) ||
        function.getResultAttr(i, nn::kStateAttr))
      kept.push_back({operand.get(), function.getResultAttrDict(i)});
  for (auto [port, result] : llvm::enumerate(results)) {
    NamedAttrList own;
    own.set(nn::kNameAttr, b.getStringAttr(result.name));
    own.set("nn.port", b.getI64IntegerAttr(static_cast<int64_t>(port)));
    values.push_back(result.value);
    types.push_back(result.value.getType());
    attributes.push_back(own.getDictionary(b.getContext()));
  }
  for (auto [value, attribute] : kept) {
    values.push_back(value);
    types.push_back(value.getType());
    attributes.push_back(attribute);
  }
  end->setOperands(values);
  function.removeResAttrsAttr();
  function.setFunctionType(
      b.getFunctionType(function.getArgumentTypes(), types));
  function.setAllResultAttrs(attributes);
  // From the end, so that an op is seen after all of its readers.
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

} // namespace partita::autodiff
