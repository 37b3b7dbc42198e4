//===- InputFile.cpp - Values of inputs that are fixed when compiling -----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/files/ReadFile.h"
#include "compiler/import/model/TensorData.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace mlir;
using onnx::TensorProto;

namespace partita::import {

/// The text after `'key':` in the header of a .npy file.
static StringRef getNpyField(StringRef header, StringRef key) {
  std::string quoted = ("'" + key + "':").str();
  size_t at = header.find(quoted);
  return at == StringRef::npos ? StringRef()
                               : header.substr(at + quoted.size()).ltrim();
}

static int32_t getNpyType(StringRef descr) {
  return llvm::StringSwitch<int32_t>(descr)
      .Case("<f4", TensorProto::FLOAT)
      .Case("<f8", TensorProto::DOUBLE)
      .Case("<f2", TensorProto::FLOAT16)
      .Case("<i8", TensorProto::INT64)
      .Case("<i4", TensorProto::INT32)
      .Case("<i2", TensorProto::INT16)
      .Case("|i1", TensorProto::INT8)
      .Case("<u8", TensorProto::UINT64)
      .Case("<u4", TensorProto::UINT32)
      .Case("<u2", TensorProto::UINT16)
      .Case("|u1", TensorProto::UINT8)
      .Case("|b1", TensorProto::BOOL)
      .Default(TensorProto::UNDEFINED);
}

static FailureOr<DenseElementsAttr> readNpy(StringRef bytes, StringRef path,
                                            Location loc) {
  auto refuse = [&](const Twine &why) -> LogicalResult {
    return emitError(loc) << "cannot read '" << path << "': " << why;
  };
  if (bytes.size() < 10 || !bytes.starts_with("\x93NUMPY"))
    return refuse("it is not a .npy file");
  auto byteAt = [&](size_t i) {
    return static_cast<size_t>(static_cast<unsigned char>(bytes[i]));
  };
  size_t start = bytes[6] == 1 ? 10 : 12;
  if (bytes.size() < start)
    return refuse("it is truncated");
  size_t size = byteAt(8) | byteAt(9) << 8;
  if (start == 12)
    size |= byteAt(10) << 16 | byteAt(11) << 24;
  if (size > bytes.size() - start)
    return refuse("it is truncated");
  StringRef header = bytes.substr(start, size);
  StringRef data = bytes.substr(start + size);

  StringRef descr = getNpyField(header, "descr");
  descr = descr.drop_front(descr.starts_with("'")).take_until([](char c) {
    return c == '\'';
  });
  Type element = getElementType(loc.getContext(), getNpyType(descr));
  if (!element)
    return refuse("its element type '" + descr + "' is not supported");
  if (!getNpyField(header, "fortran_order").starts_with("False"))
    return refuse("it is in column-major order; save it in row-major order");
  StringRef text = getNpyField(header, "shape");
  if (!text.consume_front("("))
    return refuse("its header has no shape");
  SmallVector<StringRef> parts;
  text.take_until([](char c) { return c == ')'; })
      .split(parts, ',', -1, /*KeepEmpty=*/false);
  SmallVector<int64_t> shape;
  for (StringRef part : parts) {
    if (part.trim().empty())
      continue;
    if (part.trim().getAsInteger(10, shape.emplace_back()))
      return refuse("its header has no shape");
  }
  std::optional<int64_t> count = countElements(shape);
  if (!count)
    return refuse("its shape is one that no tensor can have");
  auto type = RankedTensorType::get(shape, element);
  size_t wanted = *count * std::max(1u, element.getIntOrFloatBitWidth() / 8);
  if (data.size() != wanted)
    return refuse("its data has " + Twine(data.size()) + " bytes, and " +
                  Twine(wanted) + " are needed");
  return makeElements(type, data);
}

FailureOr<DenseElementsAttr> readInputFile(StringRef path, StringRef inputName,
                                           Location loc) {
  auto buffer = files::readFile(path, files::kMostDataBytes);
  if (!buffer)
    return emitError(loc) << "cannot open '" << path << "' for the input '"
                          << inputName << "': " << toString(buffer.takeError());
  StringRef bytes = (*buffer)->getBuffer();
  if (path.ends_with(".npy"))
    return readNpy(bytes, path, loc);
  TensorProto tensor;
  if (!tensor.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return emitError(loc) << "cannot read '" << path << "' for the input '"
                          << inputName << "': it is not an ONNX tensor";
  ModelFile file;
  file.path = path.str();
  return readElements(file, tensor, loc);
}

} // namespace partita::import
