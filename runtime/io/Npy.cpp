//===- Npy.cpp - NumPy's .npy files ---------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Npy.h"

#include "runtime/base/MappedFile.h"

#include <cstring>

namespace partita::runtime {

using abi::DType;

namespace {

/// How the elements of a file become elements of memory.
struct Format {
  DType dtype = DType::f32;
  bool swap = false;  ///< big-endian
  bool check = false; ///< a narrower type: values must fit
};

/// Integers below a byte come as int8 or uint8 in NumPy.
bool isNarrow(DType dtype) {
  return elementType(dtype).bits < 8 && !isFloat(dtype);
}

/// True if NumPy has no type for `dtype` and stores its bytes as they are.
bool isRawInNumpy(DType dtype) {
  return dtype == DType::bf16 || (isFloat(dtype) && elementBytes(dtype) == 1);
}

std::optional<DType> namedType(char kind, const std::string &size) {
  for (size_t i = 0; i <= size_t(DType::MAX); ++i) {
    const DType dtype = DType(i);
    const ElementType &type = kElementTypes[i];
    if (type.kind == kind && size == std::to_string(type.bytes) &&
        !isNarrow(dtype) && !isRawInNumpy(dtype))
      return dtype;
  }
  return std::nullopt;
}

Expected<Format> elementFormat(const std::string &descr,
                               std::optional<DType> expected) {
  if (descr.size() < 2 || !std::strchr("<>|=", descr[0]))
    return Status::error("its element type '" + descr + "' is not known");
  const char kind = descr[1];
  const std::string size = descr.substr(2);
  Format format;
  format.swap = descr[0] == '>' && size != "1";
  if (std::optional<DType> dtype = namedType(kind, size)) {
    format.dtype = *dtype;
    if (expected && isNarrow(*expected) &&
        *dtype == (isSigned(*expected) ? DType::i8 : DType::u8)) {
      format.dtype = *expected;
      format.check = true;
    }
    return format;
  }
  if (kind == 'V' && (size == "1" || size == "2")) {
    if (expected && size == std::to_string(elementBytes(*expected)) &&
        (isRawInNumpy(*expected) || isNarrow(*expected))) {
      format.dtype = *expected;
      format.check = isNarrow(*expected);
      return format;
    }
    const std::string text = "it holds raw bytes ('" + descr +
                             "'), as NumPy stores bfloat16 and float8";
    if (expected)
      return Status::error(text + ", but " + dtypeName(*expected) +
                           " is needed");
    return Status::error(text + "; which of them it is cannot be told");
  }
  if (kind == 'O')
    return Status::error("it holds Python objects, not numbers");
  if (kind == 'U' || kind == 'S')
    return Status::error("it holds strings; strings are not supported");
  if (kind == 'c')
    return Status::error("it holds complex numbers ('" + descr +
                         "'); they are not supported");
  return Status::error("its element type '" + descr + "' is not supported");
}

void swapBytes(uint8_t *data, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < size / 2; ++j)
      std::swap(data[i * size + j], data[i * size + size - 1 - j]);
}

/// Copies column-major `source` into row-major `destination`.
void fromFortranOrder(const uint8_t *source, uint8_t *destination,
                      const std::vector<int64_t> &shape, int64_t size) {
  std::vector<int64_t> strides(shape.size()), index(shape.size(), 0);
  int64_t count = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    strides[d] = count;
    count *= shape[d];
  }
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(destination + i * size, source + offset * size, size_t(size));
    for (size_t d = shape.size(); d-- > 0;) {
      offset += strides[d];
      if (++index[d] < shape[d])
        break;
      offset -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

/// Bytes that are no value of their type: refused for narrow integers; any true
/// byte of a bool becomes 1.
Status checkValues(const Format &format, const Tensor &tensor,
                   bool &needsNormalising) {
  const uint8_t *data = tensor.data();
  if (format.dtype == DType::boolean) {
    for (int64_t i = 0; i < tensor.elements(); ++i)
      needsNormalising |= data[i] > 1;
  } else if (format.check) {
    int bits = elementType(format.dtype).bits;
    bool withSign = isSigned(format.dtype);
    int low = withSign ? -(1 << (bits - 1)) : 0;
    int high = withSign ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      int value = withSign ? int(int8_t(data[i])) : int(data[i]);
      if (value < low || value > high)
        return Status::error("its element " + std::to_string(i) + " is " +
                             std::to_string(value) +
                             ", which does not fit into " +
                             dtypeName(format.dtype));
    }
  }
  return Status();
}

Expected<Tensor> parse(std::span<const uint8_t> bytes,
                       std::shared_ptr<const void> owner,
                       std::optional<DType> expected) {
  size_t position = 0;
  NpyHeader header = PARTITA_TRY(readNpyHeader(bytes, position));

  Format format = PARTITA_TRY(elementFormat(header.descr, expected));
  const int64_t size = elementBytes(format.dtype);
  std::optional<int64_t> count = elementCount(header.shape);
  const uint64_t available = bytes.size() - position;
  if (!count || uint64_t(*count) * uint64_t(size) != available)
    return Status::error(
        "its header says " + std::string(dtypeName(format.dtype)) + " " +
        shapeText(header.shape) +
        (count ? ", that is " + std::to_string(*count * size) + " bytes" : "") +
        ", but " + std::to_string(available) + " bytes follow");

  Tensor mapped = Tensor::refer(format.dtype, header.shape,
                                bytes.data() + position, std::move(owner));
  bool normalise = false;
  PARTITA_TRY(checkValues(format, mapped, normalise));
  const bool reorder = header.fortranOrder && header.shape.size() > 1;
  if (!reorder && !format.swap && !normalise)
    return mapped;
  Tensor owned = PARTITA_TRY(Tensor::allocate(format.dtype, header.shape));
  uint8_t *data = owned.mutableData();
  if (*count == 0)
    return owned;
  if (reorder)
    fromFortranOrder(mapped.data(), data, header.shape, size);
  else
    std::memcpy(data, mapped.data(), size_t(mapped.bytes()));
  if (format.swap)
    swapBytes(data, *count, size);
  if (normalise)
    for (int64_t i = 0; i < *count; ++i)
      data[i] = data[i] != 0;
  return owned;
}

std::string descrOf(DType dtype) {
  std::string size = std::to_string(elementBytes(dtype));
  if (isRawInNumpy(dtype))
    return "|V" + size;
  return (size == "1" ? "|" : "<") + (elementType(dtype).kind + size);
}

} // namespace

Expected<Tensor> parseNpy(std::span<const uint8_t> bytes,
                          std::shared_ptr<const void> owner,
                          const std::string &where,
                          std::optional<DType> expected) {
  return within("cannot read " + where + ": ",
                parse(bytes, std::move(owner), expected));
}

Expected<Tensor> readNpy(const std::string &path,
                         std::optional<DType> expected) {
  std::shared_ptr<const MappedFile> file = PARTITA_TRY(MappedFile::open(path));
  return parseNpy(file->span(), file, "'" + path + "'", expected);
}

std::string npyHeader(const Tensor &tensor) {
  std::string shape;
  for (int64_t dim : tensor.shape())
    shape += std::to_string(dim) + ", ";
  // "(3,)" and "(2, 3)", as Python writes them.
  if (shape.size() >= 2)
    shape.resize(shape.size() - (tensor.shape().size() == 1 ? 1 : 2));
  std::string text = "{'descr': '" + descrOf(tensor.dtype()) +
                     "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const size_t fixed = kNpyMagic.size() + 4;
  size_t total = (fixed + text.size() + 1 + 63) / 64 * 64;
  text.resize(total - fixed - 1, ' ');
  text += '\n';
  std::string header(kNpyMagic);
  header += {'\x01', '\x00', char(text.size() & 255), char(text.size() >> 8)};
  return header + text;
}

} // namespace partita::runtime
