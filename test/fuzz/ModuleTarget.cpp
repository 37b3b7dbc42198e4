//===- ModuleTarget.cpp - Fuzzes the reader of modules --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Target.h"

#include "compiler/driver/Compile.h"
#include "compiler/driver/ReadModule.h"

#include <filesystem>

using namespace partita;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const mlir::DialectRegistry registry = [] {
    mlir::DialectRegistry all;
    driver::registerCompilerDialects(all);
    return all;
  }();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  int errors = 0;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &given) {
    fuzz::require(!given.str().empty(), "a diagnostic has a text");
    errors += given.getSeverity() == mlir::DiagnosticSeverity::Error;
    return mlir::success();
  });
  fuzz::MemoryFile file(data, size);
  import::ImportOptions options;
  options.modelPath = std::filesystem::temp_directory_path() /
                      ("partita-fuzz-" + std::to_string(::getpid()) + ".mlir");
  fuzz::require(::symlink(file.path().c_str(), options.modelPath.c_str()) == 0,
                "a link can be made");
  auto module = driver::readModule(context, options);
  ::unlink(options.modelPath.c_str());
  fuzz::require(mlir::failed(module) == (errors > 0),
                "a failure has an error, a success none");
  return 0;
}
