//===- Microsoft.h - The ops that ONNX Runtime adds to ONNX -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tools that prepare models for ONNX Runtime (its optimizer, its quantizer, its
// builder of language models) write ops of the domain `com.microsoft`. Each of
// them is imported as a function of ONNX's own ops, which `Body` writes.
//
// To support another one, write a row with its signature, in the file of its
// family, and a function that makes its body, or the body itself in the row.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_IMPORT_MICROSOFT_MICROSOFT_H
#define PARTITA_COMPILER_IMPORT_MICROSOFT_MICROSOFT_H

#include "compiler/import/graph/NodeImport.h"
#include "compiler/import/graph/OpTable.h"

#include "onnx/defs/function.h"

namespace partita::import::microsoft {

/// A function of ONNX's ops that takes the place of a node. Its inputs and
/// outputs have the names of the signature; of several inputs of one name, the
/// k-th has the name and k. An input that the node omits is omitted where a
/// node of the body reads it.
class Body {
public:
  explicit Body(NodeImport &n);

  /// Adds nodes that are written in ONNX's syntax. `@name` is the op's
  /// attribute of this name.
  Body &add(const llvm::Twine &nodes);
  /// Sets an attribute of the node that was added last.
  template <typename T> Body &attribute(const char *name, const T &value) {
    builder.AddAttributeToNode(name, value);
    return *this;
  }
  /// Defines a scalar.
  template <typename T> Body &scalar(const std::string &name, T value) {
    builder.Const(name, value);
    return *this;
  }
  Body &byte(const std::string &name, uint8_t value);
  /// Defines a vector of int64.
  Body &ints(const std::string &name, llvm::ArrayRef<int64_t> values);

  /// Imports the function in the place of the node.
  llvm::LogicalResult expand();

private:
  NodeImport &n;
  onnx::FunctionProto function;
  onnx::FunctionBuilder builder;
};

/// A text that a template can have as an argument.
template <size_t size> struct Text {
  constexpr Text(const char (&text)[size]) { std::copy_n(text, size, chars); }
  char chars[size];
};

/// Imports a node as these nodes, as `Body::add` takes them.
template <Text nodes> llvm::LogicalResult importAs(NodeImport &n) {
  return Body(n).add(nodes.chars).expand();
}

/// A float of any value for an attribute.
inline float asFloat(double value) { return static_cast<float>(value); }

inline bool isGiven(const NodeImport &n, unsigned input) {
  return static_cast<bool>(n.value(input));
}

/// Emits an error if an attribute has a value that is not imported.
llvm::LogicalResult checkInt(NodeImport &n, llvm::StringRef attribute,
                             int64_t supported);
/// Likewise for an input that is given.
llvm::LogicalResult checkOmitted(NodeImport &n, unsigned input,
                                 llvm::StringRef name);

/// Emits an error if an input does not have this rank.
llvm::LogicalResult checkRank(NodeImport &n, unsigned input,
                              llvm::StringRef name, int64_t rank);
/// Emits an error if the number of heads does not divide the numbers that there
/// are for each word.
llvm::LogicalResult checkHeads(NodeImport &n, int64_t heads, int64_t numbers);

/// Adds ONNX's attention of `q`, `k` and `v`, with the node's scale; and of
/// `past_key` and `past_value`. `mask` may be empty.
Body &addAttention(NodeImport &n, Body &body, const llvm::Twine &results,
                   const std::string &mask, bool hasPast, bool isCausal);

/// Emits an error if weights of so many bits, or of so large blocks, are not
/// imported.
llvm::LogicalResult checkBlocks(NodeImport &n, int64_t bits, int64_t block);
/// The zero points of rows of packed weights, unpacked from bytes if they are
/// packed. `blocks`: their shape [N, B], as N rows have B blocks each.
mlir::FailureOr<mlir::Value> getZeros(NodeImport &n, mlir::Value given,
                                      llvm::ArrayRef<int64_t> blocks,
                                      int64_t bits, mlir::Type element);

/// Attention whose keys and values serve several heads each.
llvm::LogicalResult importGroupQueryAttention(NodeImport &n);

// The families.
llvm::ArrayRef<ForeignOp> getAttentionOps();
llvm::ArrayRef<ForeignOp> getExpertOps();
llvm::ArrayRef<ForeignOp> getFusedOps();
llvm::ArrayRef<ForeignOp> getNormalizationOps();
llvm::ArrayRef<ForeignOp> getPackedOps();
llvm::ArrayRef<ForeignOp> getQuantizedOps();

} // namespace partita::import::microsoft

#endif // PARTITA_COMPILER_IMPORT_MICROSOFT_MICROSOFT_H
