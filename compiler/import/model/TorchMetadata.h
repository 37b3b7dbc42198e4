//===- ModuleScope.h - The module that made a node --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MODEL_MODULESCOPE_H
#define PARTITA_COMPILER_IMPORT_MODEL_MODULESCOPE_H

#include "onnx/onnx_pb.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace partita::import {

/// The path of the module that made a node, e.g. "encoder.layer.0.output", as
/// torch.onnx.export writes it into the node's metadata; `around` if nothing
/// does, or if that is the model itself.
///
/// The key is "pkg.torch.onnx.name_scopes", and its value a list in Python's
/// notation: the paths of the modules around the node, outermost first, each
/// with those around it, and then the node's name in the traced graph.
///
///   ['', 'encoder', 'encoder.layer.0', 'encoder.layer.0.output', 'add_3']
std::string getModuleScope(const onnx::NodeProto &node, llvm::StringRef around);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MODEL_MODULESCOPE_H
