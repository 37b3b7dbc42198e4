//===- OptimizerSpec.cpp - What a person says of an optimizer -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/train/OptimizerSpec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <cmath>

using namespace llvm;

namespace partita::train {
namespace {

constexpr StringLiteral kNames[] = {"sgd", "adam", "adamw", "adagrad"};

/// A number of at least 0 that optimizers of some kinds have.
struct Setting {
  StringLiteral name;
  double OptimizerSpec::*value;
  ArrayRef<OptimizerKind> kinds;
};

constexpr OptimizerKind kAll[] = {OptimizerKind::sgd, OptimizerKind::adam,
                                  OptimizerKind::adamw, OptimizerKind::adagrad};
constexpr OptimizerKind kSgd[] = {OptimizerKind::sgd};
constexpr OptimizerKind kAdaptive[] = {
    OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::adagrad};
constexpr OptimizerKind kAdams[] = {OptimizerKind::adam, OptimizerKind::adamw};
constexpr OptimizerKind kAdagrad[] = {OptimizerKind::adagrad};

const Setting kSettings[] = {
    {"learning_rate", &OptimizerSpec::learningRate, kAll},
    {"weight_decay", &OptimizerSpec::weightDecay, kAll},
    {"momentum", &OptimizerSpec::momentum, kSgd},
    {"dampening", &OptimizerSpec::dampening, kSgd},
    {"eps", &OptimizerSpec::eps, kAdaptive},
    {"learning_rate_decay", &OptimizerSpec::learningRateDecay, kAdagrad},
    {"initial_accumulator", &OptimizerSpec::initialAccumulator, kAdagrad},
};

Error fail(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

/// `most` is excluded; 0: there is no bound.
Error readNumber(StringRef key, StringRef text, double most, double &value) {
  double number;
  if (text.getAsDouble(number) || !std::isfinite(number) || number < 0 ||
      (most > 0 && number >= most))
    return fail(key + " is '" + text + "'; it is a number of at least 0" +
                (most > 0 ? " and below " + Twine(int(most)) : Twine("")));
  value = number;
  return Error::success();
}

std::string listSettings(OptimizerKind kind) {
  std::string list;
  for (const Setting &setting : kSettings)
    if (is_contained(setting.kinds, kind))
      list += (list.empty() ? "" : ", ") + setting.name.str();
  if (is_contained(kAdams, kind))
    list += ", betas";
  if (kind == OptimizerKind::sgd)
    list += ", nesterov";
  return list;
}

Error readSetting(StringRef text, OptimizerSpec &spec) {
  auto [key, value] = text.split('=');
  if (key == "betas" && is_contained(kAdams, spec.kind)) {
    auto [first, second] = value.split(':');
    if (Error error = readNumber("the first of betas", first, 1, spec.beta1))
      return error;
    return readNumber("the second of betas", second, 1, spec.beta2);
  }
  if (key == "nesterov" && spec.kind == OptimizerKind::sgd) {
    if (value != "true" && value != "false")
      return fail("nesterov is '" + value + "'; it is true or false");
    spec.nesterov = value == "true";
    return Error::success();
  }
  for (const Setting &setting : kSettings)
    if (setting.name == key && is_contained(setting.kinds, spec.kind))
      return readNumber(key, value, 0, spec.*setting.value);
  return fail("'" + text + "' is no setting of " + getName(spec.kind) +
              "; its settings are " + listSettings(spec.kind));
}

Error readSettings(ArrayRef<StringRef> texts, OptimizerSpec &spec) {
  for (StringRef text : texts)
    if (Error error = readSetting(text, spec))
      return error;
  if (spec.nesterov && (spec.momentum == 0 || spec.dampening != 0))
    return fail("nesterov needs a momentum, and no dampening");
  return Error::success();
}

} // namespace

StringRef getName(OptimizerKind kind) { return kNames[size_t(kind)]; }

Expected<OptimizerSpec> parseOptimizer(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  const auto *name = find(kNames, parts.front());
  if (name == std::end(kNames))
    return fail("'" + parts.front() + "' is no optimizer; there are " +
                join(ArrayRef(kNames), ", "));
  OptimizerSpec spec;
  spec.kind = static_cast<OptimizerKind>(name - kNames);
  if (spec.kind == OptimizerKind::adamw)
    spec.weightDecay = 0.01;
  if (spec.kind == OptimizerKind::adagrad) {
    spec.learningRate = 0.01;
    spec.eps = 1e-10;
  }
  if (Error error = readSettings(ArrayRef(parts).drop_front(), spec))
    return std::move(error);
  return spec;
}

Expected<ParameterGroup> parseGroup(StringRef text,
                                    const OptimizerSpec &optimizer) {
  std::string commas = text.str();
  llvm::replace(commas, ';', ',');
  SmallVector<StringRef> parts, globs;
  StringRef(commas).split(parts, ',');
  parts.front().split(globs, '|', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  if (globs.empty())
    return fail("the group '" + text +
                "' names no parameters: "
                "GLOB[|GLOB...],KEY=VALUE,...");
  ParameterGroup group;
  for (StringRef glob : globs)
    group.globs.push_back(glob.str());
  group.settings = optimizer;
  if (Error error = readSettings(ArrayRef(parts).drop_front(), group.settings))
    return std::move(error);
  return group;
}

} // namespace partita::train
