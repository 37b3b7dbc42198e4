//===- ConstantTarget.cpp - Fuzzes the files of --constant ----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first byte is n for a .npy file, or p for a TensorProto.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Target.h"

#include "compiler/import/model/TensorData.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <filesystem>

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  int errors = 0;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &given) {
    fuzz::require(!given.str().empty(), "a diagnostic has a text");
    ++errors;
    return mlir::success();
  });
  fuzz::MemoryFile file(data + 1, size - 1);
  std::string path = file.path();
  if (data[0] == 'n') {
    path = std::filesystem::temp_directory_path() /
           ("partita-fuzz-" + std::to_string(::getpid()) + ".npy");
    fuzz::require(::symlink(file.path().c_str(), path.c_str()) == 0,
                  "a link can be made");
  }
  auto value =
      import::readInputFile(path, "x", mlir::UnknownLoc::get(&context));
  if (data[0] == 'n')
    ::unlink(path.c_str());
  fuzz::require(mlir::failed(value) == (errors > 0),
                "a failure has an error, a success none");
  if (mlir::succeeded(value))
    fuzz::require(value->getType().hasStaticShape(), "a value has a shape");
  return 0;
}
