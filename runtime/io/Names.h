//===- Names.h - Names that files can bear ----------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_IO_NAMES_H
#define PARTITA_RUNTIME_IO_NAMES_H

#include <string>
#include <vector>

namespace partita::runtime {

/// File names (without an extension) for `names`, one each, all different:
/// letters, digits, '.', '_' and '-' stay, everything else becomes '_'.
std::vector<std::string> fileNames(const std::vector<std::string> &names);

/// The names, all different: the second of a name gets ".1", the third ".2",
/// and so on, past those that are names already.
std::vector<std::string> uniqueNames(const std::vector<std::string> &names);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_NAMES_H
