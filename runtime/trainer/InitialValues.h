//===- InitialValues.h - What training begins with --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAINER_INITIALVALUES_H
#define PARTITA_RUNTIME_TRAINER_INITIALVALUES_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace partita::runtime::train {

/// What the elements of a tensor are drawn from, each by itself.
struct Distribution {
  enum class Kind { constant, uniform, normal };
  Kind kind = Kind::constant;
  double first = 0;  ///< the constant; the lower bound; the mean
  double second = 0; ///< the upper bound; the standard deviation
};

/// "constant,value=X", "uniform,low=X,high=Y" or "normal,mean=X,std=Y".
std::optional<Distribution> parseDistribution(const std::string &text);

/// Draws all elements. They depend on the seed, the tensor's name and their
/// place in it alone (Philox4x32-10; normal numbers by Box and Muller). T:
/// float or double.
template <typename T>
void draw(const Distribution &from, uint64_t seed, const std::string &name,
          std::span<T> elements);

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAINER_INITIALVALUES_H
