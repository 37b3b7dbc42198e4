//===- ModelFile.h - An ONNX model and the bytes of its tensors -*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MODEL_MODELFILE_H
#define PARTITA_COMPILER_IMPORT_MODEL_MODELFILE_H

#include "onnx/onnx_pb.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace partita::import {

/// Bytes of a file.
struct FileSpan {
  std::string file; ///< path as the compiler opens it
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// Where the raw little-endian bytes of a tensor are. `data` is valid but for
/// those of a file that is not there. `span` is set if the bytes are in a file.
struct TensorBytes {
  llvm::StringRef data;
  std::optional<FileSpan> span;
  std::shared_ptr<llvm::MemoryBuffer> keepAlive;
  bool isAbsent = false;
};

/// Whether the name of a model's file says that it is in ONNX's textual syntax.
bool isTextModel(llvm::StringRef path);

/// A model without the bytes of its large tensors, which stay in the mapped
/// file. Such a tensor has an external-data entry with the key `kSpanKey`
/// instead of its payload; the entry's value is an index into `spans`.
class ModelFile {
public:
  /// Payloads larger than this stay in the file.
  static constexpr int64_t kMinSpanBytes = 1024;
  static constexpr const char *kSpanKey = "partita.span";

  /// Reads and parses `path`. A file whose name ends in `.onnxtxt` or `.txt` is
  /// in ONNX's textual syntax. With `smallFloats`, payloads of f32 and f64 stay
  /// in the file however small they are: their places are wanted. Emits an
  /// error at `loc` on failure.
  static mlir::FailureOr<std::unique_ptr<ModelFile>>
  read(llvm::StringRef path, mlir::Location loc, bool smallFloats = false);

  /// The raw bytes of a tensor: in the model's file, in the tensor itself, or
  /// in an external file. Returns nothing if its values are in typed fields.
  mlir::FailureOr<std::optional<TensorBytes>>
  getRawBytes(const onnx::TensorProto &tensor, mlir::Location loc) const;

  onnx::ModelProto proto;
  std::string path;
  /// Whether external data may be in a file that is not there: its bytes are
  /// absent then.
  bool filesMayBeAbsent = false;

private:
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::vector<std::pair<int64_t, int64_t>> spans; // offset, bytes
};

/// Copies the protobuf message `bytes` (a ModelProto) without large payloads,
/// and, if `smallFloats`, without any of f32 and f64.
/// For each of those, `spans` gets its offset in `bytes` and its length. If
/// `bytes` cannot be such a message, returns nothing, and `whyNot` says why.
std::optional<std::string>
copyWithoutPayloads(llvm::StringRef bytes, bool smallFloats,
                    std::vector<std::pair<int64_t, int64_t>> &spans,
                    std::string &whyNot);

/// Opens the external data `location` of a model in `directory`. `location`
/// must be a relative path without `..` that passes through no link, and must
/// name a regular file that has no other hard link. `length` < 0 means up to
/// the end of the file. Only with a length may the file be absent.
mlir::FailureOr<TensorBytes> openExternalData(llvm::StringRef directory,
                                              llvm::StringRef location,
                                              int64_t offset, int64_t length,
                                              bool mayBeAbsent,
                                              mlir::Location loc);

} // namespace partita::import

#endif // PARTITA_COMPILER_IMPORT_MODEL_MODELFILE_H
