//===- FunctionParser.h - Bodies of functions -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_PTX_FUNCTIONPARSER_H
#define PARTITA_TEST_GPUEMULATOR_PTX_FUNCTIONPARSER_H

#include "ptx/Lexer.h"
#include "ptx/Text.h"

namespace gpuemu {

/// Reads `.align 4 .b8 name[16]`, after the word that names its space.
Variable parseVariable(Lexer &lexer, Space space);

/// Reads a kernel or a device function, after `.entry` or `.func`.
void parseFunction(Lexer &lexer, ModuleText &module, bool isEntry);

} // namespace gpuemu

#endif // PARTITA_TEST_GPUEMULATOR_PTX_FUNCTIONPARSER_H
