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

/// Runs --test-data. The test vectors are in the folder itself, or else in each
/// of its folders that has any. input_K.pb is for the model's input number K.
/// The files of inputs that were fixed at compile time are left out. Prints a
/// line for each output, then PASS or FAIL. The exit status is 1 if something
/// differs.
int runTestData(Context &context);

/// Fails unless all input vectors are there and fit. Called before anything is
/// loaded.
runtime::Status checkTestData(const Options &options, const Model &model);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_TESTDATA_H
