//===- LossSpec.cpp - What a person says of a loss ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/LossSpec.h"

#include "llvm/ADT/StringExtras.h"

#include <cmath>

using namespace llvm;

namespace partita::autodiff {

static constexpr LossKind kKinds[] = {
    {"cross_entropy", Target::labels},
    {"nll", Target::labels},
    {"mse", Target::values},
    {"l1", Target::values},
    {"huber", Target::values},
    {"bce", Target::values},
    {"bce_logits", Target::values},
    {"output", Target::none},
    {"sum", Target::none},
};

ArrayRef<LossKind> getLossKinds() { return kKinds; }

static Error fail(StringRef text, const Twine &message) {
  return createStringError("--loss " + text + ": " + message);
}

/// Sets the option; false if there is no such option, or no such value of it.
static bool setOption(LossSpec &spec, StringRef name, StringRef value) {
  const bool hasLabels = spec.kind->target == Target::labels;
  if (name == "reduction" && spec.kind->name != "output" &&
      spec.kind->name != "sum") {
    spec.mean = value == "mean";
    return value == "mean" || value == "sum";
  }
  if (name == "axis" && hasLabels) {
    int64_t axis;
    if (value.getAsInteger(10, axis))
      return false;
    spec.axis = axis;
    return true;
  }
  if (name == "ignore_index" && hasLabels)
    return !value.getAsInteger(10, spec.ignoreIndex);
  if (name == "label_smoothing" && spec.kind->name == "cross_entropy")
    return !value.getAsDouble(spec.labelSmoothing) &&
           spec.labelSmoothing >= 0 && spec.labelSmoothing <= 1;
  if (name == "delta" && spec.kind->name == "huber")
    return !value.getAsDouble(spec.delta) && spec.delta > 0 &&
           std::isfinite(spec.delta);
  return false;
}

/// The options that a kind has, for messages.
static std::string describeOptions(const LossKind &kind) {
  if (kind.target == Target::none)
    return "it has no options";
  std::string text = "its options are reduction=mean or sum";
  if (kind.target == Target::labels)
    text += ", axis=DIMENSION of the classes, ignore_index=LABEL";
  if (kind.name == "cross_entropy")
    text += ", label_smoothing=0 to 1";
  if (kind.name == "huber")
    text += ", delta=a positive number";
  return text;
}

Expected<LossSpec> parseLoss(StringRef text) {
  LossSpec spec;
  auto [kind, rest] = text.split(':');
  for (const LossKind &known : kKinds)
    if (known.name == kind)
      spec.kind = &known;
  if (!spec.kind) {
    std::string names;
    for (const LossKind &known : kKinds)
      names += (names.empty() ? "" : ", ") + known.name.str();
    return fail(text, "there is no loss '" + kind +
                          "'; write it as KIND:OUTPUT "
                          "where KIND is one of " +
                          names);
  }
  SmallVector<StringRef> parts;
  rest.split(parts, ',');
  // Names may hold commas: options are the last parts that look like some.
  size_t named = parts.size();
  while (named > 1 && parts[named - 1].contains('='))
    --named;
  for (StringRef part : ArrayRef(parts).drop_front(named)) {
    auto [name, value] = part.split('=');
    if (!setOption(spec, name, value))
      return fail(text, "'" + part + "' is no option of " + kind + "; " +
                            describeOptions(*spec.kind));
  }
  spec.names = join(parts.begin(), parts.begin() + named, ",");
  if (spec.names.empty())
    return fail(text, "it names no output of the model; write it as " + kind +
                          ":OUTPUT");
  return spec;
}

} // namespace partita::autodiff
