//===- Idx.cpp - The files of MNIST ---------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Formats.h"

#include "runtime/data/GzipReader.h"

#include <array>
#include <optional>

namespace partita::data {

using abi::DType;
using runtime::Expected;
using runtime::Status;
using runtime::Tensor;

namespace {

constexpr size_t kMagicBytes = 4;

std::optional<DType> typeOf(uint8_t code) {
  constexpr std::pair<uint8_t, DType> kTypes[] = {
      {0x08, DType::u8},  {0x09, DType::i8},  {0x0b, DType::i16},
      {0x0c, DType::i32}, {0x0d, DType::f32}, {0x0e, DType::f64}};
  for (const auto &[known, dtype] : kTypes)
    if (code == known)
      return dtype;
  return std::nullopt;
}

struct Header {
  DType dtype = DType::u8;
  std::vector<int64_t> shape;
  int64_t bytes = 0; ///< of all elements
};

/// The number of dimensions that the first four bytes say.
Expected<size_t> readMagic(std::span<const uint8_t> magic) {
  if (magic.size() < kMagicBytes || magic[0] != 0 || magic[1] != 0)
    return Status::error("it is not an IDX file, which begins with two zeros");
  if (!typeOf(magic[2]))
    return Status::error("its element type " + std::to_string(magic[2]) +
                         " is not one of IDX (8, 9, 11 to 14)");
  if (magic[3] == 0)
    return Status::error("it has no dimensions, and so no samples");
  return size_t(magic[3]);
}

/// `dims`: 4 bytes for each dimension.
Expected<Header> readHeader(uint8_t type, std::span<const uint8_t> dims) {
  Header header;
  header.dtype = *typeOf(type);
  for (size_t at = 0; at < dims.size(); at += 4)
    header.shape.push_back(int64_t(dims[at]) << 24 | dims[at + 1] << 16 |
                           dims[at + 2] << 8 | dims[at + 3]);
  std::optional<int64_t> count = runtime::elementCount(header.shape);
  if (!count)
    return Status::error("its header says the shape " +
                         runtime::shapeText(header.shape) +
                         ", which is too large for any file");
  header.bytes = *count * runtime::elementBytes(header.dtype);
  return header;
}

std::string claim(const Header &header) {
  return "its header says " + std::string(runtime::dtypeName(header.dtype)) +
         " " + runtime::shapeText(header.shape) + ", that is " +
         std::to_string(header.bytes) + " bytes";
}

Expected<DatasetPointer> makeDataset(const Header &header,
                                     const uint8_t *elements,
                                     std::shared_ptr<const void> owner,
                                     const std::string &name) {
  return samplesOf(
      Tensor::refer(header.dtype, header.shape, elements, std::move(owner)),
      name, /*bigEndian=*/true);
}

Expected<DatasetPointer> parse(std::span<const uint8_t> bytes,
                               std::shared_ptr<const void> owner,
                               const std::string &name) {
  const size_t rank =
      PARTITA_TRY(readMagic(bytes.first(std::min(bytes.size(), kMagicBytes))));
  const size_t begin = kMagicBytes + 4 * rank;
  if (bytes.size() < begin)
    return Status::error("it ends within its header");
  Header header =
      PARTITA_TRY(readHeader(bytes[2], bytes.subspan(kMagicBytes, 4 * rank)));
  if (uint64_t(header.bytes) != bytes.size() - begin)
    return Status::error(claim(header) + ", but " +
                         std::to_string(bytes.size() - begin) +
                         " bytes follow");
  return makeDataset(header, bytes.data() + begin, std::move(owner), name);
}

Expected<DatasetPointer> parseGzipped(std::span<const uint8_t> compressed,
                                      const std::string &name) {
  GzipReader reader(compressed);
  std::array<uint8_t, kMagicBytes> magic = {};
  PARTITA_TRY(reader.read(magic));
  const size_t rank = PARTITA_TRY(within("decompressed, ", readMagic(magic)));
  std::array<uint8_t, 4 * 255> room = {};
  std::span<uint8_t> dims = std::span(room).first(4 * rank);
  PARTITA_TRY(reader.read(dims));
  Header header = PARTITA_TRY(readHeader(magic[2], dims));
  if (uint64_t(header.bytes) > GzipReader::mostBytes(compressed.size()))
    return Status::error(claim(header) + ", which " +
                         std::to_string(compressed.size()) +
                         " compressed bytes cannot hold");
  Tensor elements = PARTITA_TRY(Tensor::allocate(DType::u8, {header.bytes}));
  PARTITA_TRY(reader.read({elements.mutableData(), size_t(elements.bytes())}));
  PARTITA_TRY(reader.finish());
  return makeDataset(header, elements.data(),
                     std::make_shared<Tensor>(elements), name);
}

} // namespace

bool isIdx(std::span<const uint8_t> bytes) {
  return bytes.size() >= kMagicBytes && bytes[0] == 0 && bytes[1] == 0 &&
         typeOf(bytes[2]);
}

Expected<DatasetPointer> parseIdx(std::span<const uint8_t> bytes,
                                  std::shared_ptr<const void> owner,
                                  const std::string &name) {
  return within("cannot read " + name + ": ",
                parse(bytes, std::move(owner), name));
}

Expected<DatasetPointer> parseGzippedIdx(std::span<const uint8_t> compressed,
                                         const std::string &name) {
  return within("cannot read " + name + ": ", parseGzipped(compressed, name));
}

} // namespace partita::data
