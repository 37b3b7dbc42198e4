//===- InitSpec.h - How parameters are drawn at random ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_TRAIN_INITSPEC_H
#define PARTITA_COMPILER_TRAIN_INITSPEC_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace partita::train {

/// Parameters whose first values are not the model's, by a glob over their
/// names, and the values: KIND[,KEY=VALUE...].
struct InitSpec {
  std::string glob, values;
};

/// GLOB=KIND[,KEY=VALUE...]. The error says what is wrong, and what could stand
/// there. A semicolon may stand for a comma, as lists of options need it.
llvm::Expected<InitSpec> parseInit(llvm::StringRef text);

/// What is wrong with KIND[,KEY=VALUE...].
llvm::Error checkInit(llvm::StringRef values);

/// What a parameter is drawn from, as text: "constant,value=X",
/// "uniform,low=X,high=Y" or "normal,mean=X,std=Y". `byDefault` is that of its
/// layer, and `fans` has its fan-in and fan-out; both are empty if the layer is
/// not known.
llvm::Expected<std::string> resolveInit(llvm::StringRef values,
                                        llvm::StringRef byDefault,
                                        llvm::ArrayRef<int64_t> fans);

} // namespace partita::train

#endif // PARTITA_COMPILER_TRAIN_INITSPEC_H
