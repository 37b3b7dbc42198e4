//===- ComparisonReport.cpp - What was compared, and how near -------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/show/ComparisonReport.h"

#include "tools/partita-run/show/Format.h"

namespace partita::run {

using Json = nlohmann::ordered_json;
using runtime::Comparison;

void ComparisonReport::add(Json tags, const Comparison &comparison) {
  if (!comparison.obstacle.empty())
    return add(std::move(tags), comparison.obstacle);
  tags.update({{"equal", comparison.equal},
               {"tolerance",
                {{"rtol", comparison.tolerance.rtol},
                 {"atol", comparison.tolerance.atol},
                 {"range", comparison.tolerance.range}}},
               {"elements", comparison.elements},
               {"mismatches", comparison.mismatches},
               {"by_range", comparison.byRange},
               {"size", comparison.size},
               {"max_absolute", comparison.maxAbsolute},
               {"max_relative", comparison.maxRelative},
               {"rms_difference", comparison.rmsDifference},
               {"rms_expected", comparison.rmsExpected},
               {"cosine", comparison.cosine}});
  if (runtime::isFloat(comparison.dtype))
    tags["max_steps"] = comparison.maxSteps;
  if (comparison.maxQuanta > 0)
    tags["quantisation"] = {{"step", comparison.quantum},
                            {"steps", comparison.maxQuanta}};
  if (!comparison.equal)
    tags["worst"] = {{"index", comparison.worstIndex},
                     {"actual", comparison.worstActual},
                     {"expected", comparison.worstExpected}};
  differing += comparison.equal ? 0 : 1;
  tensors.push_back(std::move(tags));
}

void ComparisonReport::add(Json tags, const std::string &obstacle) {
  tags["equal"] = obstacle.empty();
  if (!obstacle.empty())
    tags["obstacle"] = obstacle;
  differing += obstacle.empty() ? 0 : 1;
  tensors.push_back(std::move(tags));
}

std::string ComparisonReport::json() const {
  return dump({{"pass", differing == 0}, {"tensors", tensors}}) + "\n";
}

} // namespace partita::run
