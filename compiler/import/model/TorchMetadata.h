//===- TorchMetadata.h - What PyTorch's exporter notes ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MODEL_TORCHMETADATA_H
#define PARTITA_COMPILER_IMPORT_MODEL_TORCHMETADATA_H

#include "onnx/onnx_pb.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
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

/// The `padding_idx` of the embedding that a Gather was in PyTorch: the row of
/// its table that gets no gradient. The key is "pkg.torch.onnx.fx_node", and
/// the number the third argument in a value such as
///
///   %embedding : [num_users=1] = call_function[target=
///   torch.ops.aten.embedding.default](args = (%p_table, %ids, 0), kwargs = {})
std::optional<int64_t> getPaddingIndex(const onnx::NodeProto &node);

/// What each initializer is in the PyTorch module, as `nn.declared` has it, by
/// its name. Only parameters are trained. Of tensors that torch.onnx.export
/// writes with `dynamo=True`, it says so: the key of a tensor's metadata is
/// "pkg.torch.export.graph_signature.InputSpec.kind", and its value PARAMETER,
/// BUFFER or CONSTANT_TENSOR.
llvm::StringMap<llvm::StringRef> getTorchTensors(const onnx::GraphProto &graph);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MODEL_TORCHMETADATA_H
