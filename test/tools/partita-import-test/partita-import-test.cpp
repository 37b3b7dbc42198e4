//===- partita-import-test.cpp - What the importer makes of a model -------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// partita-import-test MODEL [--shape x=2x3] [--dim n=4] [--length x=2]
//                     [--absent x] [--constant x=FILE]...
//
// For tests only: prints the imported module, or the diagnostics to standard
// error and exits with 1.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/Import.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace mlir;

static cl::opt<std::string> model(cl::Positional, cl::Required,
                                  cl::desc("MODEL"));
static cl::list<std::string> shapes("shape"), dims("dim"), lengths("length"),
    absent("absent"), constants("constant");
static cl::opt<int64_t> replicas("replicas", cl::init(1));
static cl::opt<bool> withLocations("locations");

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  registerAsmPrinterCLOptions();
  cl::ParseCommandLineOptions(argc, argv);
  partita::import::ImportOptions options;
  options.modelPath = model;
  for (StringRef text : shapes) {
    auto [name, sizes] = text.rsplit('=');
    SmallVector<StringRef> parts;
    if (!sizes.empty())
      sizes.split(parts, 'x');
    SmallVector<int64_t> &shape = options.shapes[name];
    for (StringRef part : parts)
      if (part.getAsInteger(10, shape.emplace_back()))
        return 2;
  }
  for (StringRef text : dims) {
    auto [name, size] = text.rsplit('=');
    if (size.getAsInteger(10, options.dims[name]))
      return 2;
  }
  for (StringRef text : lengths) {
    auto [name, length] = text.rsplit('=');
    if (length.getAsInteger(10, options.lengths[name]))
      return 2;
  }
  options.replicas = replicas;
  options.absent.assign(absent.begin(), absent.end());
  for (StringRef text : constants) {
    auto [name, file] = text.split('=');
    options.constants[name.str()] = file.str();
  }

  MLIRContext context;
  context.getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
    StringRef kind = diagnostic.getSeverity() == DiagnosticSeverity::Error
                         ? "error: "
                         : "remark: ";
    if (auto name = dyn_cast<NameLoc>(diagnostic.getLocation()))
      errs() << "node '" << name.getName().getValue() << "': ";
    errs() << kind << diagnostic << "\n";
  });
  auto module = partita::import::importOnnxModel(context, options);
  if (failed(module))
    return 1;
  OpPrintingFlags flags;
  if (withLocations)
    flags.enableDebugInfo(true, /*prettyForm=*/false);
  (*module)->print(outs(), flags);
  outs() << "\n";
  return 0;
}
