//===- Examples.cpp - Examples of all ops ---------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Examples.h"

#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <filesystem>

using namespace mlir;

namespace partita::nn::test {

ShardableOpInterface getExampleOp(func::FuncOp function) {
  Operation *last = function.getBody().front().getTerminator();
  return dyn_cast_or_null<ShardableOpInterface>(
      last->getOperand(0).getDefiningOp());
}

Examples::Examples(MLIRContext &context) {
  context.loadDialect<NNDialect, func::FuncDialect>();
  std::vector<std::string> files;
  for (const auto &entry :
       std::filesystem::directory_iterator(PARTITA_TEST_EXAMPLES))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  for (const std::string &file : files) {
    modules.push_back(parseSourceFile<ModuleOp>(file, &context));
    if (!modules.back())
      std::abort(); // the parser has said why
    for (auto function : modules.back()->getOps<func::FuncOp>())
      examples.push_back(
          {function.getName().str(), function, getExampleOp(function),
           function->getAttrOfType<StringAttr>("rule").getValue().str()});
  }
}

} // namespace partita::nn::test
