//===- Tensors.cpp - Tensors in requests and responses --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tensors.h"

#include <cstring>
#include <limits>

namespace {

/// Calls the function with a value of the C++ type that elements of `type` are.
template <typename Function> void visitType(partita_type type, Function f) {
  switch (type) {
  case PARTITA_F32:
    return f(float());
  case PARTITA_F64:
    return f(double());
  case PARTITA_I8:
    return f(int8_t());
  case PARTITA_I16:
    return f(int16_t());
  case PARTITA_I32:
    return f(int32_t());
  case PARTITA_I64:
    return f(int64_t());
  case PARTITA_U8:
    return f(uint8_t());
  case PARTITA_U16:
    return f(uint16_t());
  case PARTITA_U32:
    return f(uint32_t());
  case PARTITA_U64:
    return f(uint64_t());
  case PARTITA_BOOL:
    return f(bool());
  default:
    throw std::runtime_error("the type has no form in JSON");
  }
}

template <typename T> T readNumber(const Json &value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (value.is_boolean())
      return value.get<bool>();
  } else if constexpr (std::is_floating_point_v<T>) {
    if (value.is_number())
      return value.get<T>();
  } else if (value.is_number_unsigned()) {
    if (value.get<uint64_t>() <= uint64_t(std::numeric_limits<T>::max()))
      return static_cast<T>(value.get<uint64_t>());
  } else if (value.is_number_integer() && std::is_signed_v<T>) {
    if (value.get<int64_t>() >= int64_t(std::numeric_limits<T>::min()))
      return static_cast<T>(value.get<int64_t>());
  }
  throw WrongRequest("data: " + value.dump() + " is no value of the datatype");
}

template <typename T>
void readData(const Json &data, std::vector<uint8_t> &bytes) {
  for (const Json &each : data) {
    if (each.is_array()) {
      readData<T>(each, bytes);
      continue;
    }
    const T number = readNumber<T>(each);
    const size_t at = bytes.size();
    bytes.resize(at + sizeof number);
    std::memcpy(bytes.data() + at, &number, sizeof number);
  }
}

template <typename T> Json writeData(const std::vector<uint8_t> &bytes) {
  Json data = Json::array();
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T number;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    data.push_back(number);
  }
  return data;
}

std::string shapeText(const partita_port &port) {
  std::string text;
  for (int d = 0; d < port.rank; ++d)
    text += (d ? ", " : "") +
            (d == port.batch_axis ? "N" : std::to_string(port.shape[d]));
  return "[" + text + "]";
}

/// How many samples a tensor of that shape has.
int64_t countSamples(const Json &shape, const partita_port &port) {
  std::string wanted = std::string("'") + port.name + "' has the shape " +
                       shape.dump() + ", not " + shapeText(port);
  if (port.whole)
    wanted += std::string("; samples cannot be split: ") + port.whole;
  if (!shape.is_array() || shape.size() != size_t(port.rank))
    throw WrongRequest(wanted);
  int64_t samples = 1;
  for (int d = 0; d < port.rank; ++d) {
    const Json &size = shape[size_t(d)];
    // No request is as large.
    if (!size.is_number_unsigned() || size.get<uint64_t>() > 1u << 30)
      throw WrongRequest(wanted);
    const int64_t entries = size.get<int64_t>();
    if (d == port.batch_axis && port.shape[d] > 0 && entries > 0 &&
        entries % port.shape[d] == 0)
      samples = entries / port.shape[d];
    else if (entries != port.shape[d])
      throw WrongRequest(wanted);
  }
  return samples;
}

std::vector<uint8_t> readInput(const Json &input, const partita_port &port,
                               int64_t &samples) {
  if (input.value("datatype", "") != datatypeOf(port.type))
    throw WrongRequest(std::string("'") + port.name + "' is of the datatype " +
                       datatypeOf(port.type));
  samples = countSamples(input.value("shape", Json()), port);
  std::vector<uint8_t> bytes;
  visitType(port.type, [&](auto number) {
    readData<decltype(number)>(input.value("data", Json::array()), bytes);
  });
  if (bytes.size() != size_t(samples * port.bytes))
    throw WrongRequest(std::string("the data of '") + port.name + "' has " +
                       std::to_string(bytes.size()) + " bytes, and " +
                       std::to_string(samples * port.bytes) +
                       " belong to its shape");
  return bytes;
}

const Json &findInput(const Json &inputs, const std::string &name) {
  const Json *found = nullptr;
  for (const Json &input : inputs)
    if (input.is_object() && input.value("name", Json()) == name) {
      if (found)
        throw WrongRequest("the input '" + name + "' is given twice");
      found = &input;
    }
  if (!found)
    throw WrongRequest("the input '" + name + "' is missing");
  return *found;
}

} // namespace

const char *datatypeOf(partita_type type) {
  switch (type) {
  case PARTITA_F32:
    return "FP32";
  case PARTITA_F64:
    return "FP64";
  case PARTITA_I8:
    return "INT8";
  case PARTITA_I16:
    return "INT16";
  case PARTITA_I32:
    return "INT32";
  case PARTITA_I64:
    return "INT64";
  case PARTITA_U8:
    return "UINT8";
  case PARTITA_U16:
    return "UINT16";
  case PARTITA_U32:
    return "UINT32";
  case PARTITA_U64:
    return "UINT64";
  case PARTITA_BOOL:
    return "BOOL";
  default:
    return nullptr;
  }
}

Samples readRequest(const Json &request, const Model &model) {
  if (!request.is_object() || !request.value("inputs", Json()).is_array())
    throw WrongRequest("the request has no list 'inputs'");
  const Json &inputs = request["inputs"];
  Samples samples;
  for (const partita_port &port : model.inputs) {
    int64_t count = 0;
    samples.inputs.push_back(
        readInput(findInput(inputs, port.name), port, count));
    if (samples.count != 0 && count != samples.count)
      throw WrongRequest("the inputs have different numbers of samples: " +
                         std::to_string(samples.count) + " and " +
                         std::to_string(count));
    samples.count = count;
  }
  if (inputs.size() != model.inputs.size())
    throw WrongRequest("the model has " + std::to_string(model.inputs.size()) +
                       " inputs, and the request " +
                       std::to_string(inputs.size()));
  for (const partita_port &port : model.outputs)
    samples.outputs.emplace_back(size_t(samples.count * port.bytes));
  return samples;
}

Json writeOutputs(const Samples &samples, const Model &model) {
  Json outputs = Json::array();
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    const partita_port &port = model.outputs[i];
    std::vector<int64_t> shape(port.shape, port.shape + port.rank);
    if (port.batch_axis >= 0)
      shape[size_t(port.batch_axis)] *= samples.count;
    Json output = {{"name", port.name},
                   {"datatype", datatypeOf(port.type)},
                   {"shape", shape}};
    visitType(port.type, [&](auto number) {
      output["data"] = writeData<decltype(number)>(samples.outputs[i]);
    });
    outputs.push_back(std::move(output));
  }
  return outputs;
}

Json describePorts(const std::vector<partita_port> &ports) {
  Json result = Json::array();
  for (const partita_port &port : ports) {
    std::vector<int64_t> shape(port.shape, port.shape + port.rank);
    if (port.batch_axis >= 0)
      shape[size_t(port.batch_axis)] = -1;
    result.push_back({{"name", port.name},
                      {"datatype", datatypeOf(port.type)},
                      {"shape", shape}});
  }
  return result;
}
