//===- ModelInput.cpp - A model made of a fuzzer's bytes ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Before <sys/mman.h>, whose macro MAP_TYPE is the name of an enumerator here.
#include "onnx/defs/parser.h"

#include "test/fuzz/ModelInput.h"

#include "compiler/driver/Compile.h"
#include "test/fuzz/MessageMutator.h"

#include "onnx/onnx_pb.h"

#include "mlir/IR/Diagnostics.h"

#include <filesystem>

namespace partita::fuzz {
namespace {

/// A context keeps every type and attribute it has seen, so it is renewed.
constexpr int kInputsPerContext = 64;

struct SharedContext {
  SharedContext()
      : context(registry(), mlir::MLIRContext::Threading::DISABLED) {
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &given) {
      std::string message = given.str();
      require(!message.empty(), "a diagnostic has a text");
      if (std::getenv("PARTITA_FUZZ_SHOW"))
        std::fprintf(stderr, "%s\n", message.c_str());
      errors += given.getSeverity() == mlir::DiagnosticSeverity::Error;
      return mlir::success();
    });
  }
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    driver::registerCompilerDialects(registry);
    return registry;
  }
  mlir::MLIRContext context;
  int errors = 0;
};

std::optional<SharedContext> shared;
int inputs = 0;

} // namespace

ModelInput::ModelInput(const uint8_t *data, size_t size) {
  if (!shared || ++inputs % kInputsPerContext == 0)
    shared.emplace();
  shared->errors = 0;
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  file.emplace(data, size);
  importOptions.modelPath = file->path();
  if (bytes.starts_with("<")) {
    textPath = std::filesystem::temp_directory_path() /
               ("partita-fuzz-" + std::to_string(::getpid()) + ".onnxtxt");
    require(::symlink(file->path().c_str(), textPath.c_str()) == 0,
            "a link can be made");
    importOptions.modelPath = textPath;
  }
  // The one dimension that models of the corpus leave open.
  if (bytes.contains("batch"))
    importOptions.dims["batch"] = 2;
}

ModelInput::~ModelInput() {
  if (!textPath.empty())
    ::unlink(textPath.c_str());
}

mlir::MLIRContext &ModelInput::context() { return shared->context; }

void ModelInput::checkErrors(bool failed) const {
  require(failed == (shared->errors > 0),
          "a failure has an error, a success none");
}

size_t mutateModel(uint8_t *data, size_t size, size_t most, unsigned seed) {
  onnx::ModelProto model;
  if (size == 0 || data[0] != '<')
    return mutateMessage(model, data, size, most, seed);
  if (seed % 8 == 0)
    return LLVMFuzzerMutate(data, size, most);
  std::string text(reinterpret_cast<const char *>(data), size);
  onnx::OnnxParser parser(text.c_str());
  try {
    if (parser.Parse(model).IsOK())
      return mutateParsed(model, data, size, most, seed);
  } catch (const std::exception &) {
  }
  return LLVMFuzzerMutate(data, size, most);
}

} // namespace partita::fuzz
