//===- TensorData.cpp - Types and values of ONNX tensors ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/TensorData.h"

#include "dialects/support/Try.h"

#include "mlir/IR/Builders.h"

using namespace llvm;
using namespace mlir;
using onnx::TensorProto;

namespace partita::import {

/// Types of elements and what ONNX calls them.
static std::array<std::pair<int32_t, Type>, 23> getTypes(MLIRContext *context) {
  Builder b(context);
  auto unsignedInt = [&](unsigned width) -> Type {
    return b.getIntegerType(width, /*isSigned=*/false);
  };
  return {{
      {TensorProto::BOOL, b.getI1Type()},
      {TensorProto::INT2, b.getIntegerType(2)},
      {TensorProto::INT4, b.getIntegerType(4)},
      {TensorProto::INT8, b.getI8Type()},
      {TensorProto::INT16, b.getI16Type()},
      {TensorProto::INT32, b.getI32Type()},
      {TensorProto::INT64, b.getI64Type()},
      {TensorProto::UINT2, unsignedInt(2)},
      {TensorProto::UINT4, unsignedInt(4)},
      {TensorProto::UINT8, unsignedInt(8)},
      {TensorProto::UINT16, unsignedInt(16)},
      {TensorProto::UINT32, unsignedInt(32)},
      {TensorProto::UINT64, unsignedInt(64)},
      {TensorProto::FLOAT, b.getF32Type()},
      {TensorProto::DOUBLE, b.getF64Type()},
      {TensorProto::FLOAT16, b.getF16Type()},
      {TensorProto::BFLOAT16, b.getBF16Type()},
      {TensorProto::FLOAT8E4M3FN, Float8E4M3FNType::get(context)},
      {TensorProto::FLOAT8E4M3FNUZ, Float8E4M3FNUZType::get(context)},
      {TensorProto::FLOAT8E5M2, Float8E5M2Type::get(context)},
      {TensorProto::FLOAT8E5M2FNUZ, Float8E5M2FNUZType::get(context)},
      {TensorProto::FLOAT8E8M0, Float8E8M0FNUType::get(context)},
      {TensorProto::FLOAT4E2M1, Float4E2M1FNType::get(context)},
  }};
}

Type getElementType(MLIRContext *context, int32_t onnxType) {
  for (auto [known, type] : getTypes(context))
    if (known == onnxType)
      return type;
  return {};
}

int32_t getOnnxType(Type elementType) {
  for (auto [known, type] : getTypes(elementType.getContext()))
    if (type == elementType)
      return known;
  return TensorProto::UNDEFINED;
}

std::string getOnnxTypeName(int32_t onnxType) {
  if (!TensorProto::DataType_IsValid(onnxType))
    return "type " + std::to_string(onnxType);
  return StringRef(TensorProto::DataType_Name(
                       static_cast<TensorProto::DataType>(onnxType)))
      .lower();
}

std::optional<int64_t> countElements(ArrayRef<int64_t> shape) {
  // Even at eight bytes an element this is more than any machine has.
  constexpr int64_t limit = int64_t(1) << 44;
  int64_t count = 1;
  for (int64_t size : shape) {
    // An extent of 0 must not hide an overflow of the others.
    if (size < 0 || size > limit / count)
      return std::nullopt;
    count *= std::max<int64_t>(size, 1);
  }
  return is_contained(shape, 0) ? 0 : count;
}

FailureOr<RankedTensorType> getTensorType(const TensorProto &tensor,
                                          Location loc) {
  Type element = getElementType(loc.getContext(), tensor.data_type());
  if (!element)
    return emitError(loc) << "tensor '" << tensor.name() << "' is of "
                          << getOnnxTypeName(tensor.data_type())
                          << ", which is not supported";
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  if (!countElements(shape))
    return emitError(loc) << "tensor '" << tensor.name()
                          << "' has a shape that no tensor can have: [" << shape
                          << "]";
  return RankedTensorType::get(shape, element);
}

static unsigned getBits(Type element) {
  return element.getIntOrFloatBitWidth();
}

/// Bytes of an element in memory.
static int64_t getStoredBytes(Type element) {
  return std::max(1u, getBits(element) / 8);
}

template <typename Stored, typename Field>
static void appendAs(const Field &field, std::string &out) {
  for (auto value : field) {
    auto stored = static_cast<Stored>(value);
    out.append(reinterpret_cast<const char *>(&stored), sizeof(stored));
  }
}

/// Collects the values of the typed fields as the bytes that raw_data would
/// hold.
static std::string encodeTypedFields(const TensorProto &tensor, Type element) {
  std::string out;
  switch (tensor.data_type()) {
  case TensorProto::FLOAT:
    appendAs<float>(tensor.float_data(), out);
    break;
  case TensorProto::DOUBLE:
    appendAs<double>(tensor.double_data(), out);
    break;
  case TensorProto::INT64:
    appendAs<int64_t>(tensor.int64_data(), out);
    break;
  case TensorProto::UINT64:
    appendAs<uint64_t>(tensor.uint64_data(), out);
    break;
  case TensorProto::UINT32:
    appendAs<uint32_t>(tensor.uint64_data(), out);
    break;
  case TensorProto::INT32:
    appendAs<int32_t>(tensor.int32_data(), out);
    break;
  default:
    if (getBits(element) == 16)
      appendAs<uint16_t>(tensor.int32_data(), out);
    else
      appendAs<uint8_t>(tensor.int32_data(), out);
  }
  return out;
}

/// Spreads packed elements of 2 or 4 bits, lowest bits first, to one a byte.
static std::string unpack(StringRef packed, unsigned bits, int64_t count) {
  std::string out(count, '\0');
  unsigned perByte = 8 / bits;
  for (int64_t i = 0; i < count; ++i)
    out[i] =
        static_cast<char>((static_cast<unsigned char>(packed[i / perByte]) >>
                           (i % perByte * bits)) &
                          ((1 << bits) - 1));
  return out;
}

LogicalResult reportAbsent(const TensorProto &tensor, const TensorBytes &bytes,
                           Location loc) {
  return emitError(loc) << "a plan depends on the values of '" << tensor.name()
                        << "', and its file '" << bytes.span->file
                        << "' is not there";
}

FailureOr<TensorBytes> getElementBytes(const ModelFile &file,
                                       const TensorProto &tensor,
                                       RankedTensorType type,
                                       std::string &storage, Location loc) {
  Type element = type.getElementType();
  int64_t count = *countElements(type.getShape());
  unsigned bits = getBits(element);
  bool packed = bits == 2 || bits == 4;
  int64_t expected =
      packed ? divideCeil(count * bits, 8) : count * getStoredBytes(element);

  auto raw = PARTITA_TRY(file.getRawBytes(tensor, loc));
  TensorBytes bytes;
  if (raw) {
    bytes = std::move(*raw);
  } else {
    storage = encodeTypedFields(tensor, element);
    bytes.data = storage;
  }
  const int64_t size = bytes.isAbsent ? bytes.span->bytes
                                      : static_cast<int64_t>(bytes.data.size());
  if (size != expected)
    return emitError(loc) << "tensor '" << tensor.name() << "' of type " << type
                          << " needs " << expected << " bytes of data and has "
                          << size;
  if (bytes.isAbsent && packed)
    return reportAbsent(tensor, bytes, loc);
  if (packed) {
    storage = unpack(bytes.data, bits, count);
    return TensorBytes{storage, std::nullopt, nullptr};
  }
  return bytes;
}

DenseElementsAttr makeElements(RankedTensorType type, StringRef bytes) {
  if (type.getNumElements() == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> values;
    for (char byte : bytes)
      values.push_back(byte != 0);
    return DenseElementsAttr::get(type, values);
  }
  return DenseElementsAttr::getFromRawBuffer(
      type, ArrayRef(bytes.data(), bytes.size()));
}

FailureOr<DenseElementsAttr>
readElements(const ModelFile &file, const TensorProto &tensor, Location loc) {
  RankedTensorType type = PARTITA_TRY(getTensorType(tensor, loc));
  std::string storage;
  TensorBytes bytes =
      PARTITA_TRY(getElementBytes(file, tensor, type, storage, loc));
  if (bytes.isAbsent)
    return reportAbsent(tensor, bytes, loc);
  return makeElements(type, bytes.data);
}

} // namespace partita::import
