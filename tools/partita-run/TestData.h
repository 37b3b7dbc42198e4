//===- TestData.h - Running test vectors ------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_TESTDATA_H
#define PARTITA_TOOLS_PARTITA_RUN_TESTDATA_H

#include "tools/partita-run/Run.h"

namespace partita::run {

/// Runs --test-data: the folder itself if it holds vectors, else each of its
/// folders that does. input_K.pb belongs to the model's input number K; those
/// of inputs fixed at compile time are left out. One line an output, then PASS
/// or FAIL; the exit status is 1 if something differs.
int runTestData(Context &context);

/// Whether all input vectors are there and fit, before anything is loaded.
runtime::Status checkTestData(const Options &options, const Model &model);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_TESTDATA_H
