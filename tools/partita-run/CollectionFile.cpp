//===- CollectionFile.cpp - Sequences and optionals in files --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/CollectionFile.h"

#include "runtime/io/TensorProtoFile.h"

namespace partita::run {

using runtime::Expected;
using runtime::Status;
using runtime::Tensor;

Expected<std::optional<std::vector<Tensor>>>
readCollection(const Collection &collection, const std::string &path) {
  if (collection.isOptional())
    return runtime::readOptionalProto(path);
  std::vector<Tensor> tensors = PARTITA_TRY(runtime::readSequenceProto(path));
  return std::optional(std::move(tensors));
}

Expected<std::vector<Tensor>> readInputCollection(const Collection &collection,
                                                  const std::string &path) {
  std::optional<std::vector<Tensor>> tensors =
      PARTITA_TRY(readCollection(collection, path));
  int found = tensors ? int(tensors->size()) : -1;
  if (found == collection.length)
    return tensors.value_or(std::vector<Tensor>());
  Collection given = collection;
  given.length = found;
  std::string flag =
      found < 0 ? "with --absent " + collection.name
      : collection.kind == abi::CollectionKind::optional_tensor
          ? "without --absent " + collection.name
          : "with --length " + collection.name + "=" + std::to_string(found);
  return Status::error("'" + path + "' holds " + given.text() +
                       ", and the model was compiled for " + collection.text() +
                       ": compile it " + flag);
}

} // namespace partita::run
