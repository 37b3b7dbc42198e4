//===- Format.h - Numbers and tables for people -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_FORMAT_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_FORMAT_H

#include "runtime/abi/Text.h"

namespace partita::run {

using abi::bytesText;
using abi::countOf;
using abi::numberText;
using abi::percentText;
using abi::Table;
using abi::timeText;

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_FORMAT_H
