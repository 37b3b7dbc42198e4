//===- InputCheck.h - Indices that are wrong before a step ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step that meets a wrong index or label is computed to its end, and has then
// changed the states. So inputs that the plan checks are looked at before.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAINER_INPUTCHECK_H
#define PARTITA_RUNTIME_TRAINER_INPUTCHECK_H

#include "runtime/session/BadIndex.h"
#include "runtime/trainer/Setup.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace partita::runtime::train {

/// Which of the plan's checks are of an input, by its name, type and shape. In
/// a function of the model some other value may have them, too, so what is
/// found is a suspicion. Labels of a loss within the model are not looked at:
/// the plan does not say which of them are ignored.
class InputCheck {
public:
  /// `inputs`: the names of the inputs in the order of their data. Other inputs
  /// are not looked at. `loss`: that of the training.
  InputCheck(const abi::Plan &plan, const std::vector<std::string> &inputs,
             const LossNames &loss);

  /// The first index of each micro-batch that a check does not allow, sorted.
  /// `data`: for each input all micro-batches; null: it is not looked at.
  std::vector<BadIndex> find(std::span<const uint8_t *const> data) const;

private:
  struct Checked {
    int check = 0; ///< Plan.checks
    size_t input = 0;
    abi::DType dtype = abi::DType::i64;
    std::optional<int64_t> ignored;
  };

  const abi::Plan &plan;
  std::vector<Checked> checked;
};

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAINER_INPUTCHECK_H
