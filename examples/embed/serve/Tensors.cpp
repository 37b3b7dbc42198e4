//===- Tensors.cpp - Tensors in requests and answers ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tensors.h"

#include <boost/json/basic_parser_impl.hpp>
// The library itself, so that nothing has to be linked.
#include <boost/json/src.hpp>

#include <charconv>
#include <cmath>
#include <cstring>

namespace {

// Tensors have few axes.
constexpr size_t kMostDepth = 32;
// Names and identifiers are short, and so are the digits of a number.
constexpr size_t kMostText = size_t(64) << 10;
constexpr size_t kMostDigits = 1000;
// So much that it is given back to the system.
constexpr size_t kEarlyText = size_t(256) << 10;

/// Calls the function with a value of the C++ type that elements of `type` are.
template <typename Function> auto visitType(partita_type type, Function f) {
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

/// The most characters of an element, with what separates it from the next.
template <typename T> constexpr size_t mostCharacters() {
  if (std::is_floating_point_v<T>)
    return 32; // "-0.12345678901234567e-100, "
  if (sizeof(T) == 8)
    return 24; // "-9223372036854775808, "
  return sizeof(T) == 4 ? 16 : 8;
}

[[noreturn]] void noValue(std::string_view text) {
  throw WrongRequest("data: " + std::string(text.substr(0, 100)) +
                     " is no value of the datatype");
}

/// Adds a number, or true or false, to the bytes of a tensor.
template <typename T>
void addValue(std::string_view text, std::vector<uint8_t> &bytes) {
  T value = {};
  if constexpr (std::is_same_v<T, bool>) {
    if (text != "true" && text != "false")
      noValue(text);
    value = text == "true";
  } else {
    const char *end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if constexpr (std::is_floating_point_v<T>) {
      // Of a number that is too small, zero is left; too large is wrong.
      if (error == std::errc::result_out_of_range)
        value = T(std::strtod(std::string(text).c_str(), nullptr));
      else if (error != std::errc())
        noValue(text);
      if (!std::isfinite(value))
        noValue(text);
    } else if (error != std::errc()) {
      noValue(text);
    }
    if (stopped != end)
      noValue(text);
  }
  const auto *raw = reinterpret_cast<const uint8_t *>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof value);
}

std::string shapeText(const partita_port &port) {
  std::string text;
  for (int d = 0; d < port.rank; ++d)
    text += (d ? ", " : "") + (d == port.batch_axis
                                   ? "N"
                                   : (port.dimensions[d] < 0 ? "" : "up to ") +
                                         std::to_string(port.shape[d]));
  return "[" + text + "]";
}

/// An input of a request, as far as it has been read.
struct Input {
  std::optional<std::string> name, datatype;
  std::optional<std::vector<int64_t>> shape;
  bool has_data = false;
  std::optional<size_t> port; ///< of the model, once that is known
  /// Values before the port is known, each with a comma. Several texts, since
  /// a long one would be copied when it grows.
  std::vector<std::string> early;
  size_t early_bytes = 0;
};

/// How many samples a tensor of that shape has.
int64_t countSamples(const std::vector<int64_t> &shape,
                     const partita_port &port,
                     std::vector<int64_t> *sizes = nullptr) {
  int64_t samples = 1;
  bool fits = shape.size() == size_t(port.rank);
  for (int d = 0; fits && d < port.rank; ++d) {
    const int64_t entries = shape[size_t(d)], size = entries - port.extra[d];
    if (d == port.batch_axis && port.shape[d] > 0 && entries > 0 &&
        entries % port.shape[d] == 0) {
      samples = entries / port.shape[d];
    } else if (const int dimension = port.dimensions[d]; dimension >= 0) {
      // The port's own is the largest.
      fits = size >= 0 && entries <= port.shape[d];
      if (!fits || !sizes)
        continue;
      int64_t &known = (*sizes)[size_t(dimension)];
      if (known >= 0 && known != size)
        throw WrongRequest(std::string("'") + port.name +
                           "' and another input have different sizes: " +
                           std::to_string(size) + " and " +
                           std::to_string(known));
      known = size;
    } else {
      fits = entries == port.shape[d];
    }
  }
  if (fits)
    return samples;
  std::string text = std::string("'") + port.name + "' has the shape " +
                     json::serialize(json::value_from(shape)) + ", not " +
                     shapeText(port);
  if (port.whole)
    text += std::string("; samples cannot be split: ") + port.whole;
  throw WrongRequest(text);
}

/// The shape of so many samples of the given sizes.
std::vector<int64_t> shapeOf(const partita_port &port, const Samples &samples) {
  std::vector<int64_t> shape(port.shape, port.shape + port.rank);
  for (int d = 0; d < port.rank; ++d)
    if (port.dimensions[d] >= 0)
      shape[size_t(d)] =
          samples.sizes[size_t(port.dimensions[d])] + port.extra[d];
  if (port.batch_axis >= 0)
    shape[size_t(port.batch_axis)] *= samples.count;
  return shape;
}

/// Bytes of a tensor of this shape.
size_t bytesOf(const partita_port &port, const std::vector<int64_t> &shape) {
  size_t bytes = visitType(port.type, [](auto type) { return sizeof type; });
  for (int64_t size : shape)
    bytes *= size_t(size);
  return bytes;
}

/// What the parser tells of a request, in the order of the text.
class Events {
public:
  static constexpr size_t max_array_size = size_t(-1);
  static constexpr size_t max_object_size = size_t(-1);
  static constexpr size_t max_string_size = kMostText;
  static constexpr size_t max_key_size = kMostText;

  Events(const Model &model, int64_t most_samples)
      : model(model), most_samples(most_samples) {
    samples.inputs.resize(model.inputs.size());
    samples.sizes.resize(model.dimensions.size(), -1);
    counts.resize(model.inputs.size());
  }

  Samples finish();
  int64_t count() const { return counts.empty() ? 1 : counts[0].value_or(0); }
  size_t bytes() const {
    size_t all = input.early_bytes;
    for (const std::vector<uint8_t> &tensor : samples.inputs)
      all += tensor.size();
    return all;
  }

  // The names below are those that boost::json::basic_parser calls.
  using Error = json::error_code;
  bool on_document_begin(Error &) { return true; }
  bool on_document_end(Error &) { return true; }
  bool on_array_begin(Error &) { return open(/*is_list=*/true); }
  bool on_array_end(size_t, Error &) { return close(); }
  bool on_object_begin(Error &) { return open(/*is_list=*/false); }
  bool on_object_end(size_t, Error &) { return close(); }
  bool on_string_part(json::string_view part, size_t, Error &) {
    text += part;
    return true;
  }
  bool on_string(json::string_view part, size_t, Error &) {
    text += part;
    string();
    text.clear();
    return true;
  }
  bool on_key_part(json::string_view part, size_t, Error &) {
    text += part;
    return true;
  }
  bool on_key(json::string_view part, size_t, Error &) {
    key.assign(text).append(part);
    text.clear();
    return true;
  }
  bool on_number_part(json::string_view part, Error &) {
    text += part;
    if (text.size() > kMostDigits)
      throw WrongRequest("a number has more than " +
                         std::to_string(kMostDigits) + " digits");
    return true;
  }
  bool on_int64(int64_t, json::string_view part, Error &) {
    return number(part);
  }
  bool on_uint64(uint64_t, json::string_view part, Error &) {
    return number(part);
  }
  bool on_double(double, json::string_view part, Error &) {
    return number(part);
  }
  bool on_bool(bool value, Error &) { return plain(value ? "true" : "false"); }
  bool on_null(Error &) { return plain("null"); }
  bool on_comment_part(json::string_view, Error &) { return true; }
  bool on_comment(json::string_view, Error &) { return true; }

private:
  enum class Place { Request, Parameters, Inputs, Input, Shape, Data, Ignored };

  bool open(bool is_list);
  bool close();
  void string();
  bool number(json::string_view last);
  bool plain(std::string_view value);
  Place placeOf(bool is_list);
  void beginData();
  void choosePort(const std::string &name);
  void addData(std::string_view value);
  void endInput();
  [[noreturn]] void wrongKind() const;

  const Model &model;
  const int64_t most_samples;
  Samples samples;
  std::vector<std::optional<int64_t>> counts; ///< samples, by port
  bool has_inputs = false;
  std::vector<Place> places; ///< from the outermost to the innermost
  std::string key, text;
  Input input;
};

/// The error of a value that is not of the kind that its key asks for.
void Events::wrongKind() const {
  if (places.empty() || (places.back() == Place::Request && key == "inputs"))
    throw WrongRequest("the request has no list 'inputs'");
  if (places.back() == Place::Inputs)
    throw WrongRequest("an element of 'inputs' is no object");
  if (places.back() == Place::Shape || key == "shape")
    throw WrongRequest("'shape' is no list of numbers");
  if (places.back() == Place::Request && key == "parameters")
    throw WrongRequest("'parameters' is no object");
  if (places.back() == Place::Parameters)
    throw WrongRequest("'" + key +
                       (key == "sequence_id" ? "' is no text or whole number"
                                             : "' is neither true nor false"));
  throw WrongRequest(
      "'" + key + (key == "data" ? "' is no list of values" : "' is no text"));
}

Events::Place Events::placeOf(bool is_list) {
  const Place outer = places.empty() ? Place::Ignored : places.back();
  if (places.empty() && !is_list)
    return Place::Request;
  if (outer == Place::Request && key == "inputs" && is_list && !has_inputs)
    return Place::Inputs;
  if (outer == Place::Request && key == "parameters" && !is_list)
    return Place::Parameters;
  if (outer == Place::Request && key == "inputs" && has_inputs)
    throw WrongRequest("'inputs' is given twice");
  if (outer == Place::Inputs && !is_list)
    return Place::Input;
  if (outer == Place::Input && key == "shape" && is_list && !input.shape)
    return Place::Shape;
  if (outer == Place::Input && key == "data" && is_list && !input.has_data)
    return Place::Data;
  if (outer == Place::Data && is_list)
    return Place::Data;
  const bool known =
      outer == Place::Request
          ? key == "inputs" || key == "id" || key == "parameters"
          : outer == Place::Input && (key == "name" || key == "datatype" ||
                                      key == "shape" || key == "data");
  if (places.empty() || known || outer == Place::Inputs ||
      outer == Place::Shape || outer == Place::Data)
    wrongKind();
  return Place::Ignored;
}

bool Events::open(bool is_list) {
  const Place place = placeOf(is_list);
  if (place == Place::Inputs)
    has_inputs = true;
  else if (place == Place::Input)
    input = Input();
  else if (place == Place::Shape)
    input.shape.emplace();
  else if (place == Place::Data && places.back() == Place::Input)
    beginData();
  places.push_back(place);
  return true;
}

bool Events::close() {
  const Place place = places.back();
  places.pop_back();
  if (place == Place::Input)
    endInput();
  return true;
}

void Events::string() {
  const Place place = places.empty() ? Place::Ignored : places.back();
  if (place == Place::Request && key == "id")
    samples.id = text;
  else if (place == Place::Parameters && key == "sequence_id")
    samples.sequence = text;
  else if (place == Place::Input && key == "name" && !input.name)
    input.name = text;
  else if (place == Place::Input && key == "datatype" && !input.datatype)
    input.datatype = text;
  else
    plain('"' + text + '"');
}

bool Events::number(json::string_view last) {
  // Most numbers come in one piece.
  if (text.empty())
    return plain({last.data(), last.size()});
  text += last;
  plain(text);
  text.clear();
  return true;
}

/// A value that is neither a list nor an object, nor a text where one belongs.
bool Events::plain(std::string_view value) {
  const Place place = places.empty() ? Place::Inputs : places.back();
  switch (place) {
  case Place::Ignored:
    return true;
  case Place::Data:
    addData(value);
    return true;
  case Place::Shape: {
    int64_t size = 0;
    const char *end = value.data() + value.size();
    const auto [stopped, error] = std::from_chars(value.data(), end, size);
    if (error != std::errc() || stopped != end ||
        input.shape->size() >= kMostDepth)
      wrongKind();
    input.shape->push_back(size);
    return true;
  }
  case Place::Request:
    if (key == "inputs" || key == "id" || key == "parameters")
      wrongKind();
    return true;
  case Place::Parameters:
    if (key == "sequence_id") {
      if (value.find_first_not_of("-0123456789") != value.npos)
        wrongKind();
      samples.sequence = value;
    } else if (key == "sequence_start" || key == "sequence_end") {
      if (value != "true" && value != "false")
        wrongKind();
      (key == "sequence_start" ? samples.starts : samples.ends) =
          value == "true";
    }
    return true;
  case Place::Input:
    if (key == "name" || key == "datatype" || key == "shape" || key == "data")
      wrongKind();
    return true;
  case Place::Inputs:
    wrongKind();
  }
  return true;
}

void Events::choosePort(const std::string &name) {
  for (size_t i = 0; i < model.inputs.size(); ++i)
    if (name == model.inputs[i].name) {
      if (counts[i])
        throw WrongRequest("the input '" + name + "' is given twice");
      input.port = i;
      return;
    }
  throw WrongRequest("the model has no input '" + name + "'");
}

void Events::beginData() {
  input.has_data = true;
  if (input.name)
    choosePort(*input.name);
  else if (model.inputs.size() == 1 && !counts[0])
    input.port = 0; // its name is compared when it has come
  if (!input.port)
    return;
  const partita_port &port = model.inputs[*input.port];
  const int64_t count =
      input.shape ? countSamples(*input.shape, port) : most_samples;
  // Memory that nothing has been written to costs nothing.
  samples.inputs[*input.port].reserve(
      size_t(std::min(count, most_samples) * port.bytes));
}

void Events::addData(std::string_view value) {
  if (!input.port) {
    if (input.early.empty() ||
        input.early.back().size() + value.size() >= kEarlyText) {
      input.early.emplace_back();
      input.early.back().reserve(kEarlyText);
    }
    input.early.back().append(value) += ',';
    input.early_bytes += value.size() + 1;
    return;
  }
  const partita_port &port = model.inputs[*input.port];
  std::vector<uint8_t> &bytes = samples.inputs[*input.port];
  if (bytes.size() >= size_t(most_samples * port.bytes))
    throw WrongRequest(std::string("the data of '") + port.name +
                       "' is more than " + std::to_string(most_samples) +
                       " samples, and a request takes no more");
  visitType(port.type,
            [&](auto type) { addValue<decltype(type)>(value, bytes); });
}

void Events::endInput() {
  if (!input.name)
    throw WrongRequest("an input has no name");
  choosePort(*input.name);
  const partita_port &port = model.inputs[*input.port];
  if (input.datatype.value_or("") != datatypeOf(port.type))
    throw WrongRequest(std::string("'") + port.name + "' is of the datatype " +
                       datatypeOf(port.type));
  const int64_t count = countSamples(
      input.shape.value_or(std::vector<int64_t>()), port, &samples.sizes);
  if (count > most_samples)
    throw WrongRequest(std::string("'") + port.name + "' has " +
                       std::to_string(count) +
                       " samples, and a request takes at most " +
                       std::to_string(most_samples));
  std::vector<uint8_t> &bytes = samples.inputs[*input.port];
  for (std::string &early : input.early) {
    for (size_t at = 0; at < early.size();) {
      const size_t end = early.find(',', at);
      addData(std::string_view(early).substr(at, end - at));
      at = end + 1;
    }
    input.early_bytes -= early.size();
    early = std::string();
  }
  const size_t wanted =
      bytesOf(port, input.shape.value_or(std::vector<int64_t>()));
  if (bytes.size() != wanted)
    throw WrongRequest(std::string("the data of '") + port.name + "' has " +
                       std::to_string(bytes.size()) + " bytes, and " +
                       std::to_string(wanted) + " belong to its shape");
  counts[*input.port] = count;
}

Samples Events::finish() {
  if (!has_inputs)
    throw WrongRequest("the request has no list 'inputs'");
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!counts[i])
      throw WrongRequest(std::string("the input '") + model.inputs[i].name +
                         "' is missing");
    if (*counts[i] != *counts[0])
      throw WrongRequest("the inputs have different numbers of samples: " +
                         std::to_string(*counts[0]) + " and " +
                         std::to_string(*counts[i]));
  }
  samples.count = counts.empty() ? 1 : *counts[0];
  // What no input says is the largest.
  for (size_t i = 0; i < samples.sizes.size(); ++i)
    if (const partita_dimension &dimension = model.dimensions[i];
        samples.sizes[i] < 0)
      samples.sizes[i] = dimension.sizes[dimension.count - 1];
  return std::move(samples);
}

json::parse_options parseOptions() {
  json::parse_options options;
  options.max_depth = kMostDepth;
  return options;
}

template <typename T>
void writeData(const std::vector<uint8_t> &bytes, std::string &text) {
  // Memory that nothing is written to costs nothing.
  text.reserve(text.size() + bytes.size() / sizeof(T) * mostCharacters<T>());
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    char digits[32];
    if (at > 0)
      text += ',';
    if constexpr (std::is_same_v<T, bool>) {
      text += value ? "true" : "false";
    } else if constexpr (std::is_floating_point_v<T>) {
      // As a double, so that whoever reads doubles has the very number. JSON
      // has no infinity.
      if (std::isfinite(value))
        text.append(digits,
                    std::to_chars(digits, std::end(digits), double(value)).ptr);
      else
        text += "null";
    } else {
      text.append(digits, std::to_chars(digits, std::end(digits), value).ptr);
    }
  }
}

std::string quoted(std::string_view text) {
  return json::serialize(json::string(text.data(), text.size()));
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

size_t textBytes(const std::vector<partita_port> &ports, int64_t samples) {
  size_t all = 0;
  for (const partita_port &port : ports)
    all += visitType(port.type, [&](auto type) {
      return size_t(port.bytes) / sizeof type *
             mostCharacters<decltype(type)>();
    });
  return all * size_t(samples);
}

struct RequestReader::Impl {
  json::basic_parser<Events> parser;
  const Model &model;
};

RequestReader::RequestReader(const Model &model, int64_t most_samples)
    : impl(new Impl{
          json::basic_parser<Events>(parseOptions(), model, most_samples),
          model}) {}
RequestReader::~RequestReader() = default;

size_t workBytes(const Model &model, int64_t samples) {
  size_t inputs = 0, outputs = 0;
  for (const partita_port &port : model.inputs)
    inputs += size_t(port.bytes * samples);
  for (const partita_port &port : model.outputs)
    outputs += size_t(port.bytes * samples);
  // Inputs are gone when the text is written, in which most numbers are shorter
  // than they could be.
  return outputs + std::max(inputs, textBytes(model.outputs, samples) * 5 / 8);
}

size_t RequestReader::workBytes() const {
  return ::workBytes(impl->model, impl->parser.handler().count());
}

size_t RequestReader::bytes() const { return impl->parser.handler().bytes(); }

void RequestReader::read(std::string_view text) {
  json::error_code error;
  const size_t used =
      impl->parser.write_some(/*more=*/true, text.data(), text.size(), error);
  if (!error && used < text.size())
    error = json::error::extra_data;
  if (error == json::error::too_deep)
    throw WrongRequest("the request nests deeper than " +
                       std::to_string(kMostDepth) + " levels");
  if (error)
    throw WrongRequest("the request is not JSON: " + error.message());
}

Samples RequestReader::finish() {
  json::error_code error;
  impl->parser.write_some(/*more=*/false, nullptr, 0, error);
  if (!error && !impl->parser.done())
    error = json::error::incomplete;
  if (error)
    throw WrongRequest("the request is not JSON: " + error.message());
  Samples samples = impl->parser.handler().finish();
  for (const partita_port &port : impl->model.outputs)
    samples.outputs.emplace_back(bytesOf(port, shapeOf(port, samples)));
  return samples;
}

std::string writeAnswer(const Samples &samples, const Model &model,
                        const std::string &name) {
  std::string text = "{\"model_name\":" + quoted(name);
  if (samples.id)
    text += ",\"id\":" + quoted(*samples.id);
  text += ",\"outputs\":[";
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    const partita_port &port = model.outputs[i];
    const std::vector<int64_t> shape = shapeOf(port, samples);
    text += std::string(i ? "," : "") + "{\"name\":" + quoted(port.name) +
            ",\"datatype\":\"" + datatypeOf(port.type) +
            "\",\"shape\":" + json::serialize(json::value_from(shape)) +
            ",\"data\":[";
    visitType(port.type, [&](auto type) {
      writeData<decltype(type)>(samples.outputs[i], text);
    });
    text += "]}";
  }
  text += "]}";
  return text;
}

json::array describePorts(const std::vector<partita_port> &ports) {
  json::array result;
  for (const partita_port &port : ports) {
    std::vector<int64_t> shape(port.shape, port.shape + port.rank);
    for (int d = 0; d < port.rank; ++d)
      if (d == port.batch_axis || port.dimensions[d] >= 0)
        shape[size_t(d)] = -1;
    result.push_back({{"name", port.name},
                      {"datatype", datatypeOf(port.type)},
                      {"shape", json::value_from(shape)}});
  }
  return result;
}
