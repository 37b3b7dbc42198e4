//===- Partita.cpp - Partita's runtime for C ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/capi/partita.h"

#include "runtime/base/Cores.h"
#include "runtime/feed/Stream.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <new>

using partita::feed::Model;
using partita::feed::Port;
using partita::feed::Stream;
using partita::runtime::Expected;
using partita::runtime::Status;
using partita::runtime::Tensor;

static_assert(PARTITA_U2 == static_cast<int>(partita::abi::DType::MAX));
static_assert(PARTITA_BOOL == static_cast<int>(partita::abi::DType::boolean));
static_assert(PARTITA_F4E2M1 == static_cast<int>(partita::abi::DType::f4e2m1));

namespace {

/// A port with what partita_port points to.
struct PortInfo {
  const Port *port = nullptr;
  std::vector<int64_t> shape; ///< of one sample
  int64_t bytes = 0;

  PortInfo(const Port &port, int64_t entries)
      : port(&port), shape(port.shape), bytes(port.bytes()) {
    if (port.batchAxis < 0)
      return;
    int64_t &axis = shape[static_cast<size_t>(port.batchAxis)];
    bytes = bytes / axis * entries;
    axis = entries;
  }

  /// Of so many samples.
  std::vector<int64_t> shapeOf(int64_t samples) const {
    std::vector<int64_t> all = shape;
    if (port->batchAxis >= 0)
      all[static_cast<size_t>(port->batchAxis)] *= samples;
    return all;
  }
};

thread_local std::string last_error;

partita_status done(const Status &status) {
  if (status.ok())
    last_error.clear();
  else
    last_error = status.message();
  return status.ok() ? PARTITA_OK : PARTITA_ERROR;
}

/// No exception leaves the library.
template <typename Function> partita_status guard(Function function) {
  try {
    return done(function());
  } catch (const std::bad_alloc &) {
    return done(Status::error("there is no memory left"));
  } catch (const std::exception &error) {
    return done(Status::error(error.what()));
  }
}

/// What a caller of an older or newer interface knows of a structure.
template <typename T>
Status readStruct(const T *given, T &known, const char *name) {
  if (given->size < sizeof(size_t) || given->size > sizeof(T))
    return Status::error(std::string(name) + ".size is " +
                         std::to_string(given->size) + ": set it to sizeof(" +
                         name + ")");
  std::memcpy(&known, given, given->size);
  return Status();
}

} // namespace

struct partita_model {
  std::unique_ptr<Model> model;
  std::unique_ptr<Stream> stream;
  std::vector<PortInfo> inputs, outputs;

  Expected<uint64_t> submit(const void *const *in, int64_t samples,
                            void *const *out) {
    if (samples < 1)
      return Status::error("there are " + std::to_string(samples) +
                           " samples: give at least 1");
    int64_t largest = 1;
    for (const auto *ports : {&inputs, &outputs})
      for (const PortInfo &info : *ports)
        largest = std::max(largest, info.bytes);
    if (samples > std::numeric_limits<int64_t>::max() / largest)
      return Status::error("there are too many samples: " +
                           std::to_string(samples));
    if ((!in && !inputs.empty()) || (!out && !outputs.empty()))
      return Status::error("there is no list of inputs, or of outputs");
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const PortInfo &info = inputs[i];
      if (samples > 1 && info.port->batchAxis < 0)
        return Status::error("'" + info.port->name +
                             "' has no axis for samples: give one at a time");
      if (!in[i] && info.bytes > 0)
        return Status::error("the input '" + info.port->name +
                             "' is not given");
      tensors.push_back(Tensor::refer(info.port->dtype, info.shapeOf(samples),
                                      static_cast<const uint8_t *>(in[i]),
                                      nullptr));
    }
    std::vector<uint8_t *> places;
    for (size_t i = 0; i < outputs.size(); ++i)
      places.push_back(static_cast<uint8_t *>(out[i]));
    return stream->submit(tensors, places);
  }
};

namespace {

Status openModel(const char *path, const partita_options *given,
                 partita_model **result) {
  if (!path || !result)
    return Status::error("there is no path, or no place for the model");
  *result = nullptr;
  partita_options options;
  partita_default_options(&options);
  if (given)
    if (Status status = readStruct(given, options, "partita_options");
        !status.ok())
      return status;
  constexpr double kLongest = 1e6; // seconds
  for (auto [seconds, name] :
       {std::pair(options.timeout_s, "timeout_s"),
        std::pair(options.batch_delay_s, "batch_delay_s")})
    if (!(seconds >= 0 && seconds <= kLongest))
      return Status::error(std::string("partita_options.") + name + " is " +
                           std::to_string(seconds) +
                           ": give seconds from 0 to 1000000");
  auto artifact = partita::runtime::Artifact::open(path);
  if (!artifact)
    return artifact.status();
  auto made = std::make_unique<partita_model>();
  made->model = std::make_unique<Model>(*artifact);
  partita::runtime::SessionOptions session;
  const int cores = static_cast<int>(partita::runtime::availableCores().size());
  session.threads_per_device =
      options.threads > 0
          ? options.threads
          : std::max(1, cores / std::max(1, made->model->devices));
  session.pin = options.pin != 0;
  session.keep_nan = options.strict_nan != 0;
  session.trust_weights = options.trust_weights != 0;
  session.timeout_s = options.timeout_s;
  auto stream = Stream::create(*made->model, session,
                               {.delay_s = options.batch_delay_s,
                                .queued_samples = options.queued_samples});
  if (!stream)
    return stream.status();
  made->stream = std::move(*stream);
  for (size_t i = 0; i < made->model->inputs.size(); ++i)
    made->inputs.emplace_back(made->model->inputs[i],
                              made->stream->inputEntries(i));
  for (size_t i = 0; i < made->model->outputs.size(); ++i)
    made->outputs.emplace_back(made->model->outputs[i],
                               made->stream->outputEntries(i));
  *result = made.release();
  return Status();
}

Status describe(const std::vector<PortInfo> &ports, size_t index,
                const char *what, partita_port *port) {
  if (index >= ports.size())
    return Status::error(std::string("the model has ") +
                         std::to_string(ports.size()) + " " + what +
                         ": there is none of index " + std::to_string(index));
  if (!port)
    return Status::error("there is no place for the port");
  partita_port known;
  if (Status status = readStruct(port, known, "partita_port"); !status.ok())
    return status;
  const PortInfo &info = ports[index];
  known = {port->size,
           info.port->name.c_str(),
           static_cast<partita_type>(info.port->dtype),
           static_cast<int>(info.shape.size()),
           info.shape.data(),
           info.port->batchAxis,
           info.bytes};
  std::memcpy(port, &known, port->size);
  return Status();
}

Status find(const std::vector<PortInfo> &ports, const char *name,
            const char *what, size_t *index) {
  if (!index)
    return Status::error("there is no place for the index");
  std::string names;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (name && ports[i].port->name == name) {
      *index = i;
      return Status();
    }
    names += (i ? ", '" : " '") + ports[i].port->name + "'";
  }
  return Status::error(std::string("the model has no ") + what + " '" +
                       (name ? name : "") + "'; it has" +
                       (names.empty() ? " none" : names));
}

} // namespace

extern "C" {

int partita_api_version(void) { return PARTITA_API_VERSION; }

const char *partita_last_error(void) { return last_error.c_str(); }

void partita_default_options(partita_options *options) {
  *options = {sizeof(partita_options), 0, 1, 0, 0, 60, 0, 0};
}

partita_status partita_open(const char *path, const partita_options *options,
                            partita_model **model) {
  return guard([&] { return openModel(path, options, model); });
}

void partita_close(partita_model *model) { delete model; }

size_t partita_input_count(const partita_model *model) {
  return model->inputs.size();
}
size_t partita_output_count(const partita_model *model) {
  return model->outputs.size();
}

partita_status partita_input(const partita_model *model, size_t index,
                             partita_port *port) {
  return guard([&] { return describe(model->inputs, index, "inputs", port); });
}
partita_status partita_output(const partita_model *model, size_t index,
                              partita_port *port) {
  return guard(
      [&] { return describe(model->outputs, index, "outputs", port); });
}

partita_status partita_find_input(const partita_model *model, const char *name,
                                  size_t *index) {
  return guard([&] { return find(model->inputs, name, "input", index); });
}
partita_status partita_find_output(const partita_model *model, const char *name,
                                   size_t *index) {
  return guard([&] { return find(model->outputs, name, "output", index); });
}

int64_t partita_step_samples(const partita_model *model) {
  return model->stream->stepSamples();
}

partita_status partita_run(partita_model *model, const void *const *inputs,
                           int64_t samples, void *const *outputs) {
  return guard([&] {
    Expected<uint64_t> ticket = model->submit(inputs, samples, outputs);
    return ticket ? model->stream->wait(*ticket).status() : ticket.status();
  });
}

partita_status partita_submit(partita_model *model, const void *const *inputs,
                              int64_t samples, void *const *outputs,
                              uint64_t *ticket) {
  return guard([&] {
    if (!ticket)
      return Status::error("there is no place for the ticket");
    Expected<uint64_t> given = model->submit(inputs, samples, outputs);
    if (given)
      *ticket = *given;
    return given.status();
  });
}

partita_status partita_wait(partita_model *model, uint64_t ticket) {
  return guard([&] { return model->stream->wait(ticket).status(); });
}
}
