//===- WireFormat.cpp - Parsing a model without its payloads --------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model may be larger than the 2 GiB that protobuf can parse, and nearly all
// of it is weights. This walks the encoded message, copies it, and leaves large
// payloads of tensors out. Only the fields on the way to tensors are
// understood; all others are copied as they are, for protobuf to judge.
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/ModelFile.h"
#include "compiler/import/model/WireReader.h"

using namespace llvm;

namespace partita::import {

Message getFieldMessage(Message parent, uint64_t field) {
  switch (parent) {
  case Message::model:
    return field == 7    ? Message::graph
           : field == 25 ? Message::function
                         : Message::other;
  case Message::graph:
    return field == 1   ? Message::node
           : field == 5 ? Message::tensor
                        : Message::other;
  case Message::function:
    return field == 7    ? Message::node
           : field == 11 ? Message::attribute
                         : Message::other;
  case Message::node:
    return field == 5 ? Message::attribute : Message::other;
  case Message::attribute:
    return field == 5 || field == 10   ? Message::tensor
           : field == 6 || field == 11 ? Message::graph
                                       : Message::other;
  default:
    return Message::other;
  }
}

void appendVarint(std::string &out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void appendBytesField(std::string &out, uint64_t field, StringRef bytes) {
  appendVarint(out, field << 3 | 2);
  appendVarint(out, bytes.size());
  out.append(bytes.data(), bytes.size());
}

bool WireReader::readVarint(StringRef &in, uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !in.empty(); shift += 7) {
    auto byte = static_cast<unsigned char>(in.front());
    in = in.drop_front();
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return fail(in.empty() ? "it ends in the middle of a field"
                         : "a number in it is too long");
}

bool WireReader::next(StringRef &in, Field &field) {
  const char *start = in.data();
  uint64_t key, size = 0;
  if (!readVarint(in, key))
    return false;
  field.number = key >> 3;
  field.wireType = key & 7;
  if (field.number == 0)
    return fail("a field in it has number 0");
  switch (field.wireType) {
  case 0:
    if (!readVarint(in, field.varint))
      return false;
    break;
  case 1:
    size = 8;
    break;
  case 2:
    if (!readVarint(in, size))
      return false;
    break;
  case 5:
    size = 4;
    break;
  default:
    return fail("a field in it has an unknown encoding");
  }
  if (size > in.size())
    return fail("it ends in the middle of a field");
  field.bytes = in.take_front(size);
  in = in.drop_front(size);
  field.encoded = StringRef(start, in.data() - start);
  return true;
}

namespace {

// Fields of TensorProto.
constexpr uint64_t kDataType = 2, kFloatData = 4, kRawData = 9,
                   kDoubleData = 10, kExternalData = 13, kDataLocation = 14;

class Walker {
public:
  Walker(StringRef all, bool smallFloats,
         std::vector<std::pair<int64_t, int64_t>> &spans)
      : begin(all.data()), smallFloats(smallFloats), spans(spans) {}

  bool copy(Message message, StringRef in, std::string &out, int depth) {
    if (depth > 64)
      return reader.fail("messages are nested too deeply");
    if (message == Message::tensor)
      return copyTensor(in, out);
    Field field;
    while (!in.empty()) {
      if (!reader.next(in, field))
        return false;
      Message child = getFieldMessage(message, field.number);
      if (child == Message::other || field.wireType != 2) {
        out.append(field.encoded.data(), field.encoded.size());
        continue;
      }
      std::string copied;
      if (!copy(child, field.bytes, copied, depth + 1))
        return false;
      appendBytesField(out, field.number, copied);
    }
    return true;
  }

  WireReader reader;

private:
  /// Leaves out a payload that is large and usable as it is. A payload in
  /// pieces stays: protobuf puts them together.
  bool copyTensor(StringRef in, std::string &out) {
    uint64_t dataType = 0;
    unsigned payloads = 0;
    Field field, payload;
    for (StringRef rest = in; !rest.empty();) {
      if (!reader.next(rest, field))
        return false;
      if (field.number == kDataType && field.wireType == 0)
        dataType = field.varint;
      if (field.number == kRawData || field.number == kFloatData ||
          field.number == kDoubleData) {
        payload = field;
        ++payloads;
      }
    }
    const bool isFloat = dataType == onnx::TensorProto::FLOAT ||
                         dataType == onnx::TensorProto::DOUBLE;
    const size_t least = smallFloats && isFloat
                             ? 0
                             : static_cast<size_t>(ModelFile::kMinSpanBytes);
    bool usable = payloads == 1 && payload.wireType == 2 &&
                  payload.bytes.size() > least &&
                  (payload.number == kRawData ||
                   (payload.number == kFloatData &&
                    dataType == onnx::TensorProto::FLOAT) ||
                   (payload.number == kDoubleData &&
                    dataType == onnx::TensorProto::DOUBLE));
    if (!usable) {
      out.append(in.data(), in.size());
      return true;
    }
    for (StringRef rest = in; !rest.empty();) {
      if (!reader.next(rest, field))
        return false;
      if (field.encoded.data() != payload.encoded.data() &&
          field.number != kExternalData && field.number != kDataLocation)
        out.append(field.encoded.data(), field.encoded.size());
    }
    std::string entry; // StringStringEntryProto {key = 1, value = 2}
    appendBytesField(entry, 1, ModelFile::kSpanKey);
    appendBytesField(entry, 2, std::to_string(spans.size()));
    appendBytesField(out, kExternalData, entry);
    appendVarint(out, kDataLocation << 3);
    appendVarint(out, onnx::TensorProto::EXTERNAL);
    spans.emplace_back(payload.bytes.data() - begin, payload.bytes.size());
    return true;
  }

  const char *begin;
  const bool smallFloats;
  std::vector<std::pair<int64_t, int64_t>> &spans;
};

} // namespace

std::optional<std::string>
copyWithoutPayloads(StringRef bytes, bool smallFloats,
                    std::vector<std::pair<int64_t, int64_t>> &spans,
                    std::string &whyNot) {
  Walker walker(bytes, smallFloats, spans);
  std::string out;
  if (walker.copy(Message::model, bytes, out, 0))
    return out;
  whyNot = walker.reader.whyNot;
  return std::nullopt;
}

} // namespace partita::import
