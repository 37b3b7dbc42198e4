//===- ModelFile.cpp - An ONNX model and the bytes of its tensors ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/ModelFile.h"

#include "compiler/files/Nesting.h"
#include "compiler/files/ReadFile.h"
#include "dialects/support/Try.h"

#include "onnx/defs/parser.h"

#include "llvm/Support/Path.h"

#include <climits>

using namespace llvm;
using namespace mlir;

namespace partita::import {

bool isTextModel(StringRef path) {
  return path.ends_with(".onnxtxt") || path.ends_with(".txt");
}

/// Returns what is wrong with the text, if anything is.
static std::optional<std::string> parseText(StringRef text,
                                            onnx::ModelProto &proto) {
  if (auto deep = files::findDeepNesting(text, files::Syntax::onnx))
    return *deep;
  std::string copy = text.str();
  onnx::OnnxParser parser(copy.c_str());
  try {
    onnx::Common::Status status = parser.Parse(proto);
    if (!status.IsOK())
      return status.ErrorMessage();
  } catch (const std::exception &e) {
    return e.what();
  }
  if (!parser.EndOfInput())
    return "there is text after the end of the model";
  return std::nullopt;
}

FailureOr<std::unique_ptr<ModelFile>>
ModelFile::read(StringRef path, Location loc, bool smallFloats) {
  auto model = std::make_unique<ModelFile>();
  model->path = path.str();
  // Of a binary model only the small parts are copied into memory.
  const bool isText = isTextModel(path);
  auto buffer =
      files::readFile(path, isText ? files::kMostDataBytes : UINT64_MAX);
  if (!buffer)
    return emitError(loc) << "cannot open '" << path
                          << "': " << toString(buffer.takeError());
  model->buffer = std::move(*buffer);
  StringRef bytes = model->buffer->getBuffer();

  if (isText) {
    if (auto whyNot = parseText(bytes, model->proto))
      return emitError(loc)
             << "'" << path
             << "' is not a textual ONNX model: " << StringRef(*whyNot).trim();
    return model;
  }
  auto refuse = [&](StringRef why) -> LogicalResult {
    return emitError(loc) << "'" << path << "' is not an ONNX model: " << why;
  };
  if (bytes.empty())
    return refuse("the file is empty");
  std::string whyNot;
  std::optional<std::string> small =
      copyWithoutPayloads(bytes, smallFloats, model->spans, whyNot);
  if (!small)
    return refuse(whyNot);
  if (small->size() > INT_MAX || !model->proto.ParseFromString(*small))
    return refuse("a part of it cannot be decoded");
  if (!model->proto.has_graph())
    return refuse("it holds no graph");
  return model;
}

/// Reads the decimal number of an external-data entry.
static FailureOr<int64_t> parseEntry(const onnx::StringStringEntryProto &entry,
                                     StringRef tensor, Location loc) {
  uint64_t value;
  if (StringRef(entry.value()).getAsInteger(10, value) || value > INT64_MAX)
    return emitError(loc) << "the external data of tensor '" << tensor
                          << "' has " << entry.key() << " '" << entry.value()
                          << "', which is not a size";
  return static_cast<int64_t>(value);
}

FailureOr<std::optional<TensorBytes>>
ModelFile::getRawBytes(const onnx::TensorProto &tensor, Location loc) const {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) {
    if (!tensor.has_raw_data())
      return std::optional<TensorBytes>();
    return std::optional(TensorBytes{tensor.raw_data(), std::nullopt, nullptr});
  }
  std::string location;
  int64_t offset = 0, length = -1;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    bool isSpan = entry.key() == kSpanKey;
    if (entry.key() == "location") {
      location = entry.value();
    } else if (isSpan || entry.key() == "offset" || entry.key() == "length") {
      int64_t value = PARTITA_TRY(parseEntry(entry, tensor.name(), loc));
      if (!isSpan) {
        (entry.key() == "offset" ? offset : length) = value;
        continue;
      }
      if (static_cast<size_t>(value) >= spans.size())
        return emitError(loc) << "the external data of tensor '"
                              << tensor.name() << "' has no location";
      auto [begin, bytes] = spans[value];
      return std::optional(TensorBytes{buffer->getBuffer().substr(begin, bytes),
                                       FileSpan{path, begin, bytes}, nullptr});
    }
  }
  if (location.empty())
    return emitError(loc) << "the external data of tensor '" << tensor.name()
                          << "' has no location";
  TensorBytes bytes =
      PARTITA_TRY(openExternalData(sys::path::parent_path(path), location,
                                   offset, length, filesMayBeAbsent, loc));
  return std::optional(std::move(bytes));
}

} // namespace partita::import
