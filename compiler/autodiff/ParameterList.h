//===- ParameterList.h - The parameters of a model, for people --*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_AUTODIFF_PARAMETERLIST_H
#define PARTITA_COMPILER_AUTODIFF_PARAMETERLIST_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace partita::autodiff {

/// A tensor of the model.
struct Parameter {
  std::string name, type; ///< e.g. "f32"
  std::vector<int64_t> shape;
  std::string untrained; ///< why not; empty: it is trained
};

/// The weights of a module on which `--nn-choose-parameters` has decided, in
/// order.
std::vector<Parameter> listParameters(mlir::ModuleOp module);

/// A table, and the number of elements that are trained.
void printParameters(const std::vector<Parameter> &parameters,
                     llvm::raw_ostream &out);

/// [{"name", "type", "shape", "trained", "reason"}], the last one of those that
/// are not.
llvm::json::Value toJson(const std::vector<Parameter> &parameters);

} // namespace partita::autodiff

#endif // PARTITA_COMPILER_AUTODIFF_PARAMETERLIST_H
