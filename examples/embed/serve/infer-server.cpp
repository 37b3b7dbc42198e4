//===- infer-server.cpp - A compiled model over HTTP ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   infer-server MODEL.partita [--port 8000] [--host 127.0.0.1]
//                [--batch-delay MILLISECONDS] [--deadline SECONDS]
//                [--samples N] [--connections N] [--workers N] [--memory MIB]
//                [--sequence-idle SECONDS]
//
// Answers requests of the Open Inference Protocol, version 2:
//
//   GET  /v2                     its name, and the API version of partita.h
//   GET  /v2/health/live
//   GET  /v2/health/ready        503 when the program is about to end
//   GET  /v2/models/NAME
//   GET  /v2/models/NAME/ready
//   POST /v2/models/NAME/infer   {"inputs": [...]}; see Tensors.h
//   GET  /metrics                in Prometheus' text format
//
// NAME is the artifact's file name without .partita. Samples of clients that
// ask at about the same time share a step; --batch-delay says how long the
// first may wait for others.
//
// Of a model with states (partita-compile --state) each request names its
// sequence, in `parameters`: see Sequences.h.
//
// A request may be cut off or malicious, and a client slow; see HttpServer.h.
// A request has at most --samples samples (those of a step, and at least 64; if
// their text has more than 64 MiB, fewer), and its text no more than so many
// samples can take. It nests 32 levels at most. It has to arrive within
// --deadline (30 s). --workers (8) compute that many requests at a time.
// --connections (1000) and --memory (8 MiB, or more for large samples) bound
// what clients take together.
//
// SIGINT and SIGTERM end the program when what was asked has been answered.
//
//===----------------------------------------------------------------------===//

#include "HttpServer.h"
#include "Sequences.h"
#include "Tensors.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace {

constexpr size_t kMostText = size_t(64) << 20;  // of more than one sample
constexpr size_t kOtherText = size_t(64) << 10; // all that is not data
constexpr size_t kLeastMemory = size_t(8) << 20;
constexpr int64_t kLeastSamples = 64;

struct Options {
  std::string path;
  double batch_delay_s = 0;
  int64_t samples = 0; ///< 0: chosen by the model
  double sequence_idle_s = 60;
  HttpOptions http;
};

double readNumber(const std::string &word, const char *text, double least,
                  double most) {
  char *end = nullptr;
  const double number = std::strtod(text, &end);
  if (end == text || *end != 0 || !(number >= least && number <= most))
    throw std::runtime_error(word + " is '" + text + "': give " +
                             std::to_string(int64_t(std::ceil(least))) +
                             " to " + std::to_string(int64_t(most)));
  return number;
}

Options readOptions(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    auto value = [&](double least, double most) {
      return readNumber(word, argv[++i], least, most);
    };
    if (word == "--port" && has_value)
      options.http.port = uint16_t(value(0, 65535));
    else if (word == "--host" && has_value)
      options.http.host = argv[++i];
    else if (word == "--batch-delay" && has_value)
      options.batch_delay_s = value(0, 1e6) / 1e3;
    else if (word == "--deadline" && has_value)
      options.http.deadline_s = value(0.1, 1e6);
    else if (word == "--samples" && has_value)
      options.samples = int64_t(value(1, 1e6));
    else if (word == "--connections" && has_value)
      options.http.connections = size_t(value(1, 1e6));
    else if (word == "--workers" && has_value)
      options.http.workers = size_t(value(1, 1000));
    else if (word == "--memory" && has_value)
      options.http.memory = size_t(value(1, 1e6)) << 20;
    else if (word == "--sequence-idle" && has_value)
      options.sequence_idle_s = value(0, 1e6);
    else if (options.path.empty() && word[0] != '-')
      options.path = word;
    else
      throw std::runtime_error("'" + word + "' is no option, or lacks a value");
  }
  if (options.path.empty())
    throw std::runtime_error(
        "usage: infer-server MODEL.partita [--port 8000] [--host 127.0.0.1] "
        "[--batch-delay MILLISECONDS] [--deadline SECONDS] [--samples N] "
        "[--connections N] [--workers N] [--memory MIB] "
        "[--sequence-idle SECONDS]");
  return options;
}

Answer answer(const json::value &body, int status = 200) {
  return {status, json::serialize(body)};
}

/// A request for inference.
class Inference : public Exchange {
public:
  Inference(Model &model, Sequences &sequences, const std::string &name,
            int64_t most_samples)
      : model(model), sequences(sequences), name(name),
        reader(model, most_samples) {}

  void read(std::string_view text) override { reader.read(text); }
  size_t bytes() const override { return reader.bytes(); }
  size_t workBytes() const override { return reader.workBytes(); }

  /// The worker waits for the model; others go on.
  Answer answer() override {
    try {
      Samples samples = reader.finish();
      std::vector<const void *> inputs;
      for (const std::vector<uint8_t> &input : samples.inputs)
        inputs.push_back(input.data());
      std::vector<void *> outputs;
      for (std::vector<uint8_t> &output : samples.outputs)
        outputs.push_back(output.data());
      {
        const auto sequence = sequences.take(samples);
        model.wait(model.submit(inputs, samples.count, outputs, samples.sizes,
                                sequence ? sequence->get() : 0));
      }
      samples.inputs.clear();
      return {200, writeAnswer(samples, model, name)};
    } catch (const WrongRequest &error) {
      return ::answer({{"error", error.what()}}, 400);
    } catch (const WrongInput &error) {
      return ::answer({{"error", error.what()}}, 400);
    } catch (const NoRoom &error) {
      return ::answer({{"error", error.what()}}, 503);
    } catch (const std::exception &error) {
      return ::answer({{"error", error.what()}}, 500);
    }
  }

private:
  Model &model;
  Sequences &sequences;
  const std::string &name;
  RequestReader reader;
};

class InferService : public Service {
public:
  InferService(Model &model, Sequences &sequences, std::string name,
               int64_t most_samples, const Metrics &metrics)
      : model(model), sequences(sequences), name(std::move(name)),
        most_samples(most_samples), metrics(metrics) {}

  Plan begin(const std::string &method, const std::string &path,
             bool stopping) override {
    const std::string of_model = "/v2/models/" + name;
    const bool infers = path == of_model + "/infer";
    std::optional<Answer> known;
    if (path == "/v2/health/live")
      known = answer({{"live", true}});
    else if (path == "/v2/health/ready")
      known = answer({{"ready", !stopping}}, stopping ? 503 : 200);
    else if (path == "/v2")
      known = answer({{"name", "partita"},
                      {"version", std::to_string(partita_api_version())},
                      {"extensions", extensions()}});
    else if (path == of_model)
      known = answer({{"name", name},
                      {"platform", "partita"},
                      {"inputs", describePorts(model.inputs)},
                      {"outputs", describePorts(model.outputs)}});
    else if (path == of_model + "/ready")
      known =
          answer({{"name", name}, {"ready", !stopping}}, stopping ? 503 : 200);
    else if (path == "/metrics")
      known = Answer{200, metricsText(), "text/plain; version=0.0.4"};
    if (!known && !infers)
      return {nullptr, error(404, "there is no " + method + " " + path +
                                      "; the model is '" + name + "'")};
    const char *allowed = infers ? "POST" : "GET";
    if (method != allowed) {
      Answer wrong = error(405, "there is no " + method + " " + path +
                                    ", only " + allowed);
      wrong.allowed_method = allowed;
      return {nullptr, std::move(wrong)};
    }
    if (infers)
      return {std::make_unique<Inference>(model, sequences, name, most_samples),
              {}};
    return {nullptr, std::move(*known)};
  }

  Answer error(int status, const std::string &words) override {
    return answer({{"error", words}}, status);
  }

private:
  json::array extensions() const {
    json::array result;
    if (model.hasStates())
      result.emplace_back("sequence");
    return result;
  }

  std::string metricsText() const {
    const partita_profile profile = model.profile();
    std::string text = metrics.text();
    Metrics::add(text, "partita_model_steps_total", "counter",
                 "Steps that the model has computed.", double(profile.steps));
    Metrics::add(text, "partita_model_samples_total", "counter",
                 "Samples in these steps.", double(profile.samples));
    if (model.hasStates())
      Metrics::add(text, "partita_model_sequences", "gauge",
                   "Sequences that clients have.", double(sequences.taken()));
    return text;
  }

  Model &model;
  Sequences &sequences;
  const std::string name;
  const int64_t most_samples;
  const Metrics &metrics;
};

/// The most samples of a request, if the user leaves that to the model.
int64_t chooseSamples(const Model &model) {
  for (const auto *ports : {&model.inputs, &model.outputs})
    for (const partita_port &port : *ports)
      if (port.batch_axis < 0)
        return 1;
  const size_t text = std::max(
      {size_t(1), textBytes(model.inputs, 1), textBytes(model.outputs, 1)});
  return std::clamp(int64_t(kMostText / text), int64_t(1),
                    std::max(kLeastSamples, model.stepSamples()));
}

/// As many descriptors as the system allows, and no more connections than that.
void limitConnections(HttpOptions &http) {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0)
    return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  constexpr size_t kOthers = 64;
  if (files.rlim_cur > 2 * kOthers)
    http.connections =
        std::min(http.connections, size_t(files.rlim_cur) - kOthers);
}

void run(Options options) {
#ifdef __GLIBC__
  // Tensors and texts are given back to the system when they are freed. By
  // itself, the library learns to keep them, once for each thread.
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
  Model model(options.path, options.batch_delay_s);
  for (const auto *ports : {&model.inputs, &model.outputs})
    for (const partita_port &port : *ports)
      if (!datatypeOf(port.type))
        throw std::runtime_error(std::string("the type of '") + port.name +
                                 "' has no form in JSON");
  if (options.samples == 0)
    options.samples = chooseSamples(model);
  HttpOptions &http = options.http;
  http.most_body = kOtherText + textBytes(model.inputs, options.samples);
  if (http.memory == 0) {
    // Two of the largest requests. Where the model has several inputs, the
    // text may have to be kept; see RequestReader.
    size_t inputs = 0;
    for (const partita_port &port : model.inputs)
      inputs += size_t(port.bytes * options.samples);
    const size_t text = model.inputs.size() > 1 ? http.most_body : 0;
    http.memory = std::max({kLeastMemory, 2 * workBytes(model, options.samples),
                            inputs + text + kLeastMemory});
  }
  limitConnections(http);
  Metrics metrics;
  const std::string name = std::filesystem::path(options.path).stem().string();
  Sequences sequences(model, options.sequence_idle_s);
  InferService service(model, sequences, name, options.samples, metrics);
  HttpServer server(http, service, metrics);
  std::printf("listening on http://%s:%d/v2/models/%s\n", http.host.c_str(),
              int(server.port()), name.c_str());
  std::fflush(stdout);
  server.run();
  std::printf("stopped\n");
}

} // namespace

int main(int argc, char **argv) {
  try {
    run(readOptions(argc, argv));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "infer-server: error: %s\n", error.what());
    return 1;
  }
  return 0;
}
