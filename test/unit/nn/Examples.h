//===- Examples.h - Examples of all ops -------------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_UNIT_NN_EXAMPLES_H
#define PARTITA_TEST_UNIT_NN_EXAMPLES_H

#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace partita::nn::test {

/// A function of a file in examples/: an example of the op whose result it
/// returns. Other ops of the function make operands.
struct Example {
  std::string name;
  mlir::func::FuncOp function;
  ShardableOpInterface op;
  std::string rule; ///< the op's sharding rule, as the file says
};

/// The op whose result a function returns; null if the op has no sharding rule.
ShardableOpInterface getExampleOp(mlir::func::FuncOp function);

/// All examples, in the order of the files' names. The modules own them.
class Examples {
public:
  explicit Examples(mlir::MLIRContext &context);
  const std::vector<Example> &all() const { return examples; }

private:
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  std::vector<Example> examples;
};

} // namespace partita::nn::test

#endif // PARTITA_TEST_UNIT_NN_EXAMPLES_H
