//===- CollectionFile.h - Sequences and optionals in files ------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_COLLECTIONFILE_H
#define PARTITA_TOOLS_PARTITA_RUN_COLLECTIONFILE_H

#include "runtime/feed/Model.h"

#include "runtime/io/Tensor.h"

#include <optional>

namespace partita::run {

using namespace feed;

/// Reads the SequenceProto or OptionalProto (.pb) of a collection. Nothing for
/// an optional without a value.
runtime::Expected<std::optional<std::vector<runtime::Tensor>>>
readCollection(const Collection &collection, const std::string &path);

/// Reads the file of an input and checks that it has as many tensors as the
/// model was compiled for. The error names the flag of partita-compile.
runtime::Expected<std::vector<runtime::Tensor>>
readInputCollection(const Collection &collection, const std::string &path);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_COLLECTIONFILE_H
