//===- LevelName.h - Names of code for one processor ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For files that are compiled once for each instruction-set level.
// PARTITA_LANES is the number of floats in a vector register. Such a file
// includes no header with inline functions, because the linker could keep the
// copy that was compiled for a newer processor.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_BASE_LEVELNAME_H
#define PARTITA_RUNTIME_BASE_LEVELNAME_H

/// The name of a function at this level: PARTITA_LEVEL(f) is fV3.
#define PARTITA_LEVEL(name) PARTITA_JOIN(name, PARTITA_LEVEL_NAME)
#define PARTITA_JOIN(name, level) PARTITA_PASTE(name, level)
#define PARTITA_PASTE(name, level) name##level

#endif // PARTITA_RUNTIME_BASE_LEVELNAME_H
