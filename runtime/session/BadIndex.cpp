//===- BadIndex.cpp - Indices that the model does not allow ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/session/BadIndex.h"

#include "runtime/base/Elements.h"
#include "runtime/base/Programs.h"

namespace partita::runtime {

/// The indices in a row.
static int64_t rowLength(const abi::Check &check) {
  return elementCount(check.shape()) / check.rows();
}

void collectBadIndices(const abi::Check &check, int number, int micro_batch,
                       const int64_t *told, std::vector<BadIndex> &found) {
  const int64_t length = rowLength(check);
  for (int64_t row = 0; row < check.rows(); ++row)
    if (told[2 * row] < length)
      found.push_back(
          {micro_batch, number, row, told[2 * row], told[2 * row + 1]});
}

std::optional<int64_t> sampleOf(const abi::Plan &plan, const BadIndex &bad) {
  const abi::Check &check = *plan.checks()->Get(unsigned(bad.check));
  for (int64_t i = 0; i < length(plan.inputs()); ++i) {
    const abi::Port &port = *plan.inputs()->Get(unsigned(i));
    if (port.batch_axis() < 0)
      continue;
    // The rows of a check lie along dimension 0.
    if (port.batch_axis() != 0)
      return std::nullopt;
    const int64_t samples = port.shape()->Get(unsigned(port.batch_axis()));
    if (check.rows() != samples || check.shape()->Get(0) != samples)
      return std::nullopt;
    return bad.micro_batch * samples + bad.row;
  }
  return std::nullopt;
}

std::string describe(const abi::Plan &plan, const BadIndex &bad,
                     std::optional<int64_t> sample) {
  const abi::Check &check = *plan.checks()->Get(unsigned(bad.check));
  const std::optional<int64_t> inStep = sampleOf(plan, bad);
  if (inStep && !sample)
    sample = inStep;
  int64_t rest = bad.row * rowLength(check) + bad.place;
  std::string position;
  for (int64_t dim = length(check.shape()); dim-- > 0;) {
    const int64_t size = check.shape()->Get(unsigned(dim));
    // Whoever runs the model counts its samples along the first dimension.
    const int64_t at = dim == 0 && inStep ? *sample : rest % size;
    rest /= size;
    position = std::to_string(at) + (position.empty() ? "" : ", ") + position;
  }
  const auto bound =
      unsigned((bad.row * rowLength(check) + bad.place) % length(check.low()));
  const std::string tensor = text(check.tensor());
  std::string where = "micro-batch " + std::to_string(bad.micro_batch);
  if (sample)
    where = "sample " + std::to_string(*sample) + ", " + where;
  return std::string(text(check.op())) + " '" + text(check.node()) +
         "': " + std::to_string(bad.value) +
         (position.empty() ? "" : " at [" + position + "]") + " of its " +
         text(check.operand()) + (tensor.empty() ? "" : " '" + tensor + "'") +
         " is out of range: " + std::to_string(check.low()->Get(bound)) +
         " to " + std::to_string(check.high()->Get(bound)) + " are allowed (" +
         where + ")";
}

} // namespace partita::runtime
