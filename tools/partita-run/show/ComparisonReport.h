//===- ComparisonReport.h - Results of a comparison as JSON -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With --json, --test-data and --compare print this object:
//
//   {"pass": false,
//    "tensors": [{"set": "test_data_set_0", "name": "y", "node": "/fc/Gemm",
//                 "type": "float32 [2, 10]", "equal": false,
//                 "tolerance": {"rtol": 1e-3, "atol": 1e-7, "range": 1e-5},
//                 "elements": 20,
//                 "mismatches": 1, "by_range": 0, "size": 0.8,
//                 "max_absolute": 2.0, "max_relative": 0.7,
//                 "max_steps": 1.7e7,
//                 "rms_difference": 0.4, "rms_expected": 0.9, "cosine": 0.97,
//                 "quantisation": {"step": 1, "steps": 2},
//                 "worst": {"index": [0, 7], "actual": 3, "expected": 1}}]}
//
// `set` is there with --test-data, and `node` for inner tensors. `worst` is
// there if an element differs, `quantisation` if all that do are whole steps of
// it apart (`steps`: the most), `max_steps` for floats (steps of the type, see
// Compare.h), and `obstacle` if shapes or types differ. NaN
// and infinities are null.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_COMPARISONREPORT_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_COMPARISONREPORT_H

#include "runtime/io/Compare.h"

#include <nlohmann/json.hpp>
#include <string>

namespace partita::run {

class ComparisonReport {
public:
  /// Adds a comparison. `tags` come first in the object of the tensor.
  void add(nlohmann::ordered_json tags, const runtime::Comparison &comparison);
  /// Adds a value that is no tensor or is missing. It differs if `obstacle` is
  /// not empty.
  void add(nlohmann::ordered_json tags, const std::string &obstacle);

  int compared() const { return int(tensors.size()); }
  int different() const { return differing; }
  /// The report as one line.
  std::string json() const;

private:
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  int differing = 0;
};

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_COMPARISONREPORT_H
