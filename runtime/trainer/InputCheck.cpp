//===- InputCheck.cpp - Indices that are wrong before a step --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/trainer/InputCheck.h"

#include "runtime/base/Mesh.h"

#include "runtime/base/Elements.h"
#include "runtime/base/Programs.h"
#include "runtime/base/Slots.h"
#include "runtime/io/DType.h"

#include <algorithm>

namespace partita::runtime::train {

namespace {

/// The importer's name of what a loss of ONNX compares with.
bool isLabelsOfModel(const abi::Check &check) {
  const std::string op = text(check.op());
  return op == "SoftmaxCrossEntropyLoss" || op == "NegativeLogLikelihoodLoss";
}

bool hasShapeOf(const abi::Check &check, const abi::Port &port) {
  return length(port.shape()) == length(check.shape()) &&
         std::equal(port.shape()->begin(), port.shape()->end(),
                    check.shape()->begin());
}

} // namespace

InputCheck::InputCheck(const abi::Plan &plan,
                       const std::vector<std::string> &inputs,
                       const LossNames &loss)
    : plan(plan) {
  for (int64_t c = 0; c < length(plan.checks()); ++c) {
    const abi::Check &check = at(plan.checks(), c);
    const std::string name = text(check.tensor());
    const auto found = std::find(inputs.begin(), inputs.end(), name);
    if (found == inputs.end() || length(check.shape()) == 0 ||
        isLabelsOfModel(check))
      continue;
    for (const abi::Port &port : each(plan.inputs()))
      if (text(port.name()) == name && !isFloat(port.dtype()) &&
          hasShapeOf(check, port))
        checked.push_back({static_cast<int>(c),
                           static_cast<size_t>(found - inputs.begin()),
                           port.dtype(),
                           name == loss.target ? std::optional(loss.ignoreIndex)
                                               : std::nullopt});
  }
}

std::vector<BadIndex>
InputCheck::find(std::span<const uint8_t *const> data) const {
  std::vector<BadIndex> bad;
  for (const Checked &each : checked) {
    const abi::Check &check = at(plan.checks(), each.check);
    const int64_t count = elementCount(check.shape()),
                  bounds = length(check.low()),
                  row = std::max<int64_t>(count / check.rows(), 1);
    const uint8_t *element = data[each.input];
    for (int m = 0; element && m < stepMicroBatches(plan); ++m) {
      bool isFirst = true;
      for (int64_t i = 0; i < count; ++i, element += elementBytes(each.dtype)) {
        const int64_t value = toInteger(each.dtype, element);
        const auto bound = static_cast<unsigned>(i % bounds);
        if (!isFirst || value == each.ignored ||
            (value >= check.low()->Get(bound) &&
             value <= check.high()->Get(bound)))
          continue;
        bad.push_back({m, each.check, i / row, i % row, value});
        isFirst = false;
      }
    }
  }
  std::sort(bad.begin(), bad.end());
  return bad;
}

} // namespace partita::runtime::train
