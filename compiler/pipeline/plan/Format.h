//===- Format.h - Numbers and tables for people -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PLAN_FORMAT_H
#define PARTITA_COMPILER_PIPELINE_PLAN_FORMAT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace partita::pipeline {

/// "1.23 M".
std::string formatCount(int64_t value);

/// "12.3 us"; the unit grows with the time.
std::string formatTime(double ns);

/// Rows under a header, the first of them; the columns that hold numbers are
/// set right.
void printRows(const std::vector<std::vector<std::string>> &rows,
               llvm::function_ref<bool(size_t)> isNumber,
               llvm::raw_ostream &os);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PLAN_FORMAT_H
