//===- InitSpec.cpp - How parameters are drawn at random ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/train/InitSpec.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace llvm;

namespace partita::train {
namespace {

/// A kind, and the names and defaults of its numbers.
struct Kind {
  StringLiteral name;
  StringLiteral first, second; ///< names of its numbers; empty: it has none
  double firstDefault, secondDefault;
  bool needsFans;
};

const double kSqrt2 = std::sqrt(2.0);
const Kind kKinds[] = {
    {"default", "", "", 0, 0, false},
    {"zeros", "", "", 0, 0, false},
    {"ones", "", "", 0, 0, false},
    {"constant", "value", "", 0, 0, false},
    {"uniform", "low", "high", 0, 1, false},
    {"normal", "mean", "std", 0, 1, false},
    {"xavier_uniform", "gain", "", 1, 0, true},
    {"xavier_normal", "gain", "", 1, 0, true},
    {"kaiming_uniform", "gain", "", kSqrt2, 0, true},
    {"kaiming_normal", "gain", "", kSqrt2, 0, true},
};

struct Values {
  const Kind *kind = nullptr;
  double first = 0, second = 0;
};

Expected<Values> parseValues(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, text.contains(';') ? ';' : ',');
  Values values;
  std::string names;
  for (const Kind &kind : kKinds) {
    names += (names.empty() ? "" : ", ") + kind.name.str();
    if (kind.name == parts.front())
      values = {&kind, kind.firstDefault, kind.secondDefault};
  }
  if (!values.kind)
    return createStringError("'" + parts.front() +
                             "' is no way to draw parameters; there "
                             "are " +
                             names);
  const Kind &kind = *values.kind;
  for (StringRef part : ArrayRef(parts).drop_front()) {
    auto [key, value] = part.split('=');
    double number = 0;
    const bool isFirst = !kind.first.empty() && key == kind.first;
    const bool isSecond = !kind.second.empty() && key == kind.second;
    if (!isFirst && !isSecond)
      return createStringError(
          "'" + part + "' is no setting of '" + kind.name + "'" +
          (kind.first.empty() ? "" : "; its settings are ") + kind.first +
          (kind.second.empty() ? "" : " and ") + kind.second);
    if (value.getAsDouble(number) || !std::isfinite(number))
      return createStringError(key + " is '" + value + "', and not a number");
    (isFirst ? values.first : values.second) = number;
  }
  if (kind.name == "uniform" && values.first > values.second)
    return createStringError("low is above high");
  if (kind.name == "normal" && values.second < 0)
    return createStringError("std is below 0");
  return values;
}

std::string describeValues(StringRef kind, StringRef first, double a,
                           StringRef second = "", double b = 0) {
  std::string text = formatv("{0},{1}={2:e16}", kind, first, a);
  if (!second.empty())
    text += formatv(",{0}={1:e16}", second, b);
  return text;
}

} // namespace

Error checkInit(StringRef values) { return parseValues(values).takeError(); }

Expected<InitSpec> parseInit(StringRef text) {
  auto [glob, values] = text.split('=');
  if (glob.empty() || values.empty())
    return createStringError("'" + text +
                             "' is no GLOB=KIND[,KEY=VALUE...], e.g. "
                             "'head.*=normal,std=0.02'");
  if (Error error = checkInit(values))
    return std::move(error);
  return InitSpec{glob.str(), values.str()};
}

Expected<std::string> resolveInit(StringRef text, StringRef byDefault,
                                  ArrayRef<int64_t> fans) {
  Expected<Values> values = parseValues(text);
  if (!values)
    return values.takeError();
  const StringRef kind = values->kind->name;
  if (kind == "default") {
    if (byDefault.empty())
      return createStringError(
          "no layer reads it, so it has no default: name a kind, e.g. "
          "normal,std=0.02");
    return byDefault.str();
  }
  if (kind == "zeros" || kind == "ones")
    return describeValues("constant", "value", kind == "ones");
  if (!values->kind->needsFans)
    return describeValues(kind, values->kind->first, values->first,
                          values->kind->second, values->second);
  if (fans.size() != 2)
    return createStringError(
        "'" + kind +
        "' needs to know how many numbers a layer sums, "
        "and it is no weight of a layer: name another kind");
  const auto in = static_cast<double>(fans[0]),
             out = static_cast<double>(fans[1]);
  const double gain = values->first;
  const double std = kind.starts_with("xavier")
                         ? gain * std::sqrt(2 / (in + out))
                         : gain / std::sqrt(in);
  if (kind.ends_with("normal"))
    return describeValues("normal", "mean", 0, "std", std);
  const double bound = std::sqrt(3.0) * std;
  return describeValues("uniform", "low", -std::abs(bound), "high",
                        std::abs(bound));
}

} // namespace partita::train
