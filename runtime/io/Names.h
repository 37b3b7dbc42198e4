//===- Names.h - Names that people type and files can bear ------*- C++ -*-===//
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

/// The candidate nearest to `word` by edit distance, or empty if none is near
/// enough to be what was meant. The first of several equally near.
std::string nearestName(const std::string &word,
                        const std::vector<std::string> &candidates);

/// "no WHAT 'word'; did you mean 'near'?", or with all candidates listed if
/// none is near.
std::string unknownName(const std::string &what, const std::string &word,
                        const std::vector<std::string> &candidates);

/// File names (without an extension) for `names`, one each, all different:
/// letters, digits, '.', '_' and '-' stay, everything else becomes '_'.
std::vector<std::string> fileNames(const std::vector<std::string> &names);

/// The names, all different: the second of a name gets ".1", the third ".2",
/// and so on, past those that are names already.
std::vector<std::string> uniqueNames(const std::vector<std::string> &names);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_IO_NAMES_H
