//===- TrainingMode.cpp - Layers that compute otherwise in training -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/training/TrainingMode.h"

#include "compiler/import/graph/GraphImport.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

ValueSource::NodeMode GraphImport::getMode(StringRef node) {
  const bool isKept = modeGlobs.match(node);
  return {isKept ? TrainingMode::evaluate : training.mode, isKept};
}

Value GraphImport::addInput(NodeImport &n, StringRef name,
                            RankedTensorType type) {
  if (any_of(arguments, [&](auto *input) { return input->name == name; }))
    return n.refuse("the model has an input '" + name +
                    "', which is a name of an input of training: rename it in "
                    "the model");
  int64_t port = file.proto.graph().input_size();
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (auto other = main.getArgAttrOfType<IntegerAttr>(i, kPortAttr))
      port = std::max(port, other.getInt() + 1);
  const unsigned number = main.getNumArguments();
  const DictionaryAttr attributes = b.getDictionaryAttr(
      {b.getNamedAttr(nn::kNameAttr, b.getStringAttr(name)),
       b.getNamedAttr(kPortAttr, b.getI64IntegerAttr(port))});
  PARTITA_TRY(main.insertArgument(number, type, attributes,
                                  getNodeLoc(b.getContext(), name)));
  return main.getArgument(number);
}

Value GraphImport::getSampleNumbers(NodeImport &n) {
  if (sampleNumbers)
    return sampleNumbers;
  for (BlockArgument argument : main.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    if (type.getRank() == 0 || type.getDimSize(0) == 0)
      continue;
    sampleNumbers =
        addInput(n, kSampleNumberInput,
                 RankedTensorType::get({type.getDimSize(0)}, b.getI64Type()));
    // They are dealt out as samples are.
    if (sampleNumbers)
      main.setArgAttr(cast<BlockArgument>(sampleNumbers).getArgNumber(),
                      nn::kBatchAxisAttr, b.getI64IntegerAttr(0));
    return sampleNumbers;
  }
  return n.refuse("it computes otherwise for each sample in training, and the "
                  "model has no input of samples; --eval-mode leaves it as at "
                  "inference");
}

Value GraphImport::getSeed(NodeImport &n) {
  if (!seed)
    if ((seed = addInput(n, kSeedInput,
                         RankedTensorType::get({}, b.getI64Type()))))
      main.setArgAttr(cast<BlockArgument>(seed).getArgNumber(),
                      nn::kPerStepAttr, b.getUnitAttr());
  return seed;
}

void GraphImport::makeState(nn::ParameterOp parameter) {
  const FlatSymbolRefAttr symbol = parameter.getWeightAttr();
  weights.find(symbol.getValue()).setState(true);
  main.walk([&](nn::ParameterOp other) {
    if (other.getWeightAttr() == symbol)
      other.setState(true);
  });
}

} // namespace partita::import
