//===- SampleAxes.cpp - Along which axes of inputs samples are counted ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/InputShapes.h"

#include "dialects/support/Try.h"

#include "runtime/abi/Text.h"

#include "mlir/IR/Diagnostics.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {
namespace {

/// What --samples says.
LogicalResult takeGiven(std::vector<ModelInput> &inputs,
                        const ImportOptions &options, Location loc) {
  llvm::StringSet<> names;
  for (const ModelInput &input : inputs)
    if (!input.value)
      names.insert(input.name);
  for (const auto &[name, axis] : options.samples) {
    if (!names.contains(name))
      return emitError(loc)
             << "--samples " << name << ": the model has no input '" << name
             << "'" << suggestName(name, "its inputs are", names);
    for (ModelInput &input : inputs) {
      if (input.name != name || axis < 0)
        continue;
      if (axis >= input.type.getRank())
        return emitError(loc)
               << "--samples " << name << "=" << axis << ": the input has "
               << abi::countOf(input.type.getRank(), "dimension")
               << ", numbered from 0";
      input.sampleAxis = axis;
    }
  }
  return success();
}

/// The inputs that --samples does not name have samples along dimension 0 if
/// all of them agree in it, and with an input that it names.
void takeFirstDims(std::vector<ModelInput> &inputs,
                   const ImportOptions &options) {
  std::optional<int64_t> size;
  std::optional<StringRef> name;
  bool isGiven = false;
  for (const ModelInput &input : inputs)
    if (input.sampleAxis && !size) {
      size = input.type.getDimSize(*input.sampleAxis);
      name = input.getDimName(*input.sampleAxis);
      isGiven = true;
    }
  auto isOpen = [&](const ModelInput &input) {
    return !input.value && !options.samples.contains(input.name);
  };
  auto agrees = [&](const ModelInput &input) {
    return input.type.getRank() > 0 &&
           size.value_or(input.type.getDimSize(0)) ==
               input.type.getDimSize(0) &&
           name.value_or(input.getDimName(0)) == input.getDimName(0);
  };
  for (ModelInput &input : inputs) {
    if (!isOpen(input) || (isGiven && !agrees(input)))
      continue;
    if (!agrees(input)) {
      for (ModelInput &other : inputs)
        other.sampleAxis.reset();
      return;
    }
    size = input.type.getDimSize(0);
    name = input.getDimName(0);
    input.sampleAxis = 0;
  }
}

} // namespace

LogicalResult findSampleAxes(std::vector<ModelInput> &inputs,
                             const ImportOptions &options, Location loc) {
  PARTITA_TRY(takeGiven(inputs, options, loc));
  takeFirstDims(inputs, options);
  const ModelInput *first = nullptr;
  for (ModelInput &input : inputs) {
    if (!input.sampleAxis)
      continue;
    const int64_t count = input.type.getDimSize(*input.sampleAxis);
    if (!first)
      first = &input;
    else if (const int64_t other = first->type.getDimSize(*first->sampleAxis);
             options.sampleCount == 0 && other != count)
      return emitError(loc)
             << "--samples: '" << first->name << "' has "
             << abi::countOf(other, "sample") << " along dimension "
             << *first->sampleAxis << ", and '" << input.name << "' has "
             << count << " along dimension " << *input.sampleAxis
             << ": they must be as many";
    if (options.sampleCount > 0) {
      SmallVector<int64_t> shape(input.type.getShape());
      shape[*input.sampleAxis] = options.sampleCount;
      input.type = input.type.clone(shape);
    }
  }
  return success();
}

} // namespace partita::import
