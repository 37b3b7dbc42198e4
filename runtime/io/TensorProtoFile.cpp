//===- TensorProtoFile.cpp - ONNX TensorProto files (.pb) -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/TensorProtoFile.h"

#include "runtime/base/MappedFile.h"
#include "runtime/io/tensor.pb.h"

#include <cstring>
#include <limits>

namespace partita::runtime {

using abi::DType;

namespace {

/// Values of TensorProto.DataType that no element type has.
constexpr int kString = 8;
constexpr int kComplex64 = 14;
constexpr int kComplex128 = 15;

constexpr int kExternal = 1; ///< in TensorProto.DataLocation

Expected<DType> dtypeOf(int number) {
  for (size_t i = 0; i <= size_t(DType::MAX); ++i)
    if (kElementTypes[i].onnx == number)
      return DType(i);
  if (number == kString)
    return Status::error("it holds strings; strings are not supported");
  if (number == kComplex64 || number == kComplex128)
    return Status::error("it holds complex numbers; they are not supported");
  return Status::error("its element type, number " + std::to_string(number) +
                       ", is not one of ONNX's numeric types");
}

/// Elements in a byte of a file; 1 for the types that are not packed.
int64_t perByte(DType dtype) {
  return std::max(1, 8 / elementType(dtype).bits);
}

/// Element `i` of packed bytes, the first in the lowest bits, extended to a
/// byte by its sign.
uint8_t unpack(DType dtype, const uint8_t *bytes, int64_t i) {
  const int64_t each = perByte(dtype);
  const int bits = int(8 / each);
  const int value =
      (bytes[i / each] >> (bits * int(i % each))) & ((1 << bits) - 1);
  const bool negative =
      dtype != DType::f4e2m1 && isSigned(dtype) && (value >> (bits - 1)) != 0;
  return uint8_t(negative ? value - (1 << bits) : value);
}

Status wrongCount(const Tensor &tensor, int64_t expected, int64_t found,
                  const char *what) {
  std::string text = "it says " + tensor.typeText() + ", which needs " +
                     std::to_string(expected) + " " + what + ", but holds " +
                     std::to_string(found);
  if (found == 0)
    text += " (is it a SequenceProto or an OptionalProto?)";
  return Status::error(text);
}

/// `raw`: the bytes of the elements, of which one may hold several. `what`:
/// what messages call them.
Status fillFromRaw(const std::string &raw, Tensor &tensor, const char *what) {
  const int64_t each = perByte(tensor.dtype());
  const int64_t needed =
      each == 1 ? tensor.bytes() : (tensor.elements() + each - 1) / each;
  if (int64_t(raw.size()) != needed)
    return wrongCount(tensor, needed, int64_t(raw.size()), what);
  const auto *bytes = reinterpret_cast<const uint8_t *>(raw.data());
  if (each > 1)
    for (int64_t i = 0; i < tensor.elements(); ++i)
      tensor.mutableData()[i] = unpack(tensor.dtype(), bytes, i);
  else if (needed > 0)
    std::memcpy(tensor.mutableData(), bytes, size_t(needed));
  return Status();
}

/// Copies a typed field, each value narrowed to the element's size.
template <typename Element, typename Field>
Status fillFromField(const Field &field, Tensor &tensor) {
  if (field.size() != tensor.elements())
    return wrongCount(tensor, tensor.elements(), field.size(), "values");
  for (int i = 0; i < field.size(); ++i) {
    Element value = static_cast<Element>(field.Get(i));
    std::memcpy(tensor.mutableData() + size_t(i) * sizeof(Element), &value,
                sizeof(Element));
  }
  return Status();
}

Status fillFromFields(const io::TensorFile &file, Tensor &tensor) {
  switch (tensor.dtype()) {
  case DType::f32:
    return fillFromField<float>(file.float_data(), tensor);
  case DType::f64:
    return fillFromField<double>(file.double_data(), tensor);
  case DType::i64:
    return fillFromField<int64_t>(file.int64_data(), tensor);
  case DType::u64:
    return fillFromField<uint64_t>(file.uint64_data(), tensor);
  case DType::u32:
    return fillFromField<uint32_t>(file.uint64_data(), tensor);
  case DType::i32:
    return fillFromField<int32_t>(file.int32_data(), tensor);
  default:
    break;
  }
  if (elementBytes(tensor.dtype()) == 2)
    return fillFromField<uint16_t>(file.int32_data(), tensor);
  // Each int32 holds one byte.
  const std::string bytes(file.int32_data().begin(), file.int32_data().end());
  return fillFromRaw(bytes, tensor, "values");
}

Expected<NamedTensor> convert(const io::TensorFile &file) {
  if (file.segment_size() > 0)
    return Status::error("it is a SequenceProto, an OptionalProto or a piece "
                         "of a tensor; only whole tensors are supported");
  if (!file.has_data_type())
    return Status::error("it has no element type");
  DType dtype = PARTITA_TRY(dtypeOf(file.data_type()));
  if (file.data_location() == kExternal)
    return Status::error("its data are in another file; only tensors that "
                         "hold their data are supported here");
  std::vector<int64_t> shape(file.dims().begin(), file.dims().end());
  std::optional<int64_t> count = elementCount(shape);
  if (!count)
    return Status::error("its shape " + shapeText(shape) + " is impossible");
  // The file holds at least two bits an element, so this bounds what a wrong
  // shape can make us allocate.
  if (uint64_t(*count) / 8 > file.ByteSizeLong())
    return Status::error("its shape " + shapeText(shape) +
                         " has more elements than the file holds");
  Tensor tensor = PARTITA_TRY(Tensor::allocate(dtype, std::move(shape)));
  PARTITA_TRY(file.has_raw_data()
                  ? fillFromRaw(file.raw_data(), tensor, "bytes")
                  : fillFromFields(file, tensor));
  if (dtype == DType::boolean)
    for (int64_t i = 0; i < tensor.elements(); ++i)
      tensor.mutableData()[i] = tensor.data()[i] != 0;
  return NamedTensor{file.name(), tensor};
}

/// Fields that the message does not have: it is a message of another kind.
bool hasForeignFields(const google::protobuf::Message &file) {
  return !file.GetReflection()->GetUnknownFields(file).empty();
}

Expected<std::vector<Tensor>> convert(const io::SequenceFile &file) {
  if (hasForeignFields(file))
    return Status::error("it is not a SequenceProto (is it a TensorProto?)");
  if (file.sparse_tensor_values_size() > 0 || file.sequence_values_size() > 0 ||
      file.map_values_size() > 0 || file.optional_values_size() > 0 ||
      (file.elem_type() > 1 && file.tensor_values_size() == 0))
    return Status::error("it is a sequence of what are no tensors; only "
                         "tensors are supported");
  std::vector<Tensor> tensors;
  for (const io::TensorFile &element : file.tensor_values()) {
    NamedTensor item = PARTITA_TRY(within(
        "element " + std::to_string(tensors.size()) + ": ", convert(element)));
    tensors.push_back(std::move(item.tensor));
  }
  return tensors;
}

Expected<std::optional<std::vector<Tensor>>>
convert(const io::OptionalFile &file) {
  using Value = std::optional<std::vector<Tensor>>;
  if (hasForeignFields(file))
    return Status::error("it is not an OptionalProto (is it a TensorProto?)");
  if (file.has_tensor_value()) {
    NamedTensor tensor = PARTITA_TRY(convert(file.tensor_value()));
    return Value(std::vector<Tensor>{tensor.tensor});
  }
  if (file.has_sequence_value()) {
    std::vector<Tensor> tensors = PARTITA_TRY(convert(file.sequence_value()));
    return Value(std::move(tensors));
  }
  if (file.has_sparse_tensor_value() || file.has_map_value() ||
      file.has_optional_value())
    return Status::error("its value is neither a tensor nor a sequence of "
                         "tensors");
  // A sequence without elements may be written as nothing at all.
  constexpr int kSequence = 3;
  if (file.elem_type() == kSequence)
    return Value(std::vector<Tensor>());
  return Value();
}

/// Parses bytes as a message and converts it; `where` names the bytes.
template <typename File>
auto parse(std::span<const uint8_t> bytes, const std::string &where,
           const char *kind) -> decltype(convert(std::declval<File>())) {
  const std::string cannotRead = "cannot read " + where + ": ";
  if (bytes.size() > size_t(std::numeric_limits<int>::max()))
    return Status::error(cannotRead +
                         "it is larger than 2 GiB, protobuf's limit");
  File file;
  if (!file.ParseFromArray(bytes.data(), int(bytes.size())))
    return Status::error(cannotRead + "it is not " + kind +
                         ", or it is cut off");
  return within(cannotRead, convert(file));
}

template <typename File>
auto read(const std::string &path, const char *kind)
    -> decltype(convert(std::declval<File>())) {
  std::shared_ptr<const MappedFile> file = PARTITA_TRY(MappedFile::open(path));
  return parse<File>(file->span(), "'" + path + "'", kind);
}

} // namespace

Expected<NamedTensor> parseTensorProto(std::span<const uint8_t> bytes,
                                       const std::string &where) {
  if (bytes.empty())
    return Status::error("cannot read " + where + ": it is empty");
  return parse<io::TensorFile>(bytes, where, "a TensorProto");
}

Expected<NamedTensor> readTensorProto(const std::string &path) {
  std::shared_ptr<const MappedFile> file = PARTITA_TRY(MappedFile::open(path));
  return parseTensorProto(file->span(), "'" + path + "'");
}

Expected<std::vector<Tensor>> readSequenceProto(const std::string &path) {
  return read<io::SequenceFile>(path, "a SequenceProto");
}

Expected<std::optional<std::vector<Tensor>>>
readOptionalProto(const std::string &path) {
  return read<io::OptionalFile>(path, "an OptionalProto");
}

} // namespace partita::runtime
