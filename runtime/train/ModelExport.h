//===- ModelExport.h - Trained weights in a copy of the model ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A trained model is the original ONNX file with other bytes where its weights
// are: names, ops and metadata stay as its exporter wrote them. The plan knows
// where the bytes of each weight are, so nothing here reads ONNX.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAIN_MODELEXPORT_H
#define PARTITA_RUNTIME_TRAIN_MODELEXPORT_H

#include "runtime/base/Status.h"
#include "runtime/train/Content.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace partita::runtime::train {

/// A file of the original model, and what it must be.
struct ModelPart {
  std::string file; ///< empty: the model itself; else a file of external data,
                    ///< relative to the model's folder
  uint64_t bytes = 0;
  /// contentHash of the whole file; none: nobody knows what it was, and any
  /// file is taken.
  std::optional<uint64_t> hash;
};

/// Bytes that replace those of the original.
struct ModelPatch {
  std::string file;    ///< as in ModelPart
  uint64_t offset = 0; ///< bytes, from the beginning of that file
  Content bytes;
};

/// Writes the model at `original` to `output`, and its files of external data
/// beside it under the same relative names, with the patches in them. `parts`
/// has the model and all its files of external data, patched or not. All else
/// is the original byte for byte.
///
/// Each file appears only when it is complete and on the disk, the model last.
/// A file of the original is never written: an `output` that is the model, or
/// whose folder is the model's while there are external data, is an error. So
/// are an original that has changed, and patches that overlap or lie beyond the
/// end of their file. Nothing has been written then.
Status exportModel(const std::string &original,
                   const std::vector<ModelPart> &parts,
                   const std::vector<ModelPatch> &patches,
                   const std::string &output);

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAIN_MODELEXPORT_H
