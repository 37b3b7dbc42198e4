//===- ModelInput.h - A model made of a fuzzer's bytes ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bytes that begin with '<' are a model in ONNX's textual syntax, all others
// the encoded ModelProto.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_FUZZ_MODELINPUT_H
#define PARTITA_TEST_FUZZ_MODELINPUT_H

#include "test/fuzz/Target.h"

#include "compiler/import/graph/Import.h"

#include "mlir/IR/MLIRContext.h"

#include <optional>

namespace partita::fuzz {

class ModelInput {
public:
  ModelInput(const uint8_t *data, size_t size);
  ~ModelInput();

  /// A context in which diagnostics are counted. It serves many inputs.
  mlir::MLIRContext &context();
  const import::ImportOptions &options() const { return importOptions; }

  /// A failure must have come with an error, and only a failure.
  void checkErrors(bool failed) const;

private:
  std::optional<MemoryFile> file;
  std::string textPath;
  import::ImportOptions importOptions;
};

size_t mutateModel(uint8_t *data, size_t size, size_t most, unsigned seed);

} // namespace partita::fuzz

#endif // PARTITA_TEST_FUZZ_MODELINPUT_H
