//===- infer-server.cpp - A compiled model over HTTP ----------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   infer-server MODEL.partita [--port 8000] [--host 127.0.0.1]
//                              [--batch-delay MILLISECONDS]
//
// Answers requests of the Open Inference Protocol, version 2:
//
//   GET  /v2                     its name, and the API version of partita.h
//   GET  /v2/health/ready
//   GET  /v2/models/NAME
//   POST /v2/models/NAME/infer   {"inputs": [...]}; see Tensors.h
//
// NAME is the artifact's file name without .partita. Samples of clients that
// ask at about the same time share a step; --batch-delay says how long the
// first may wait for others. A request nests 32 levels at most, and is no
// larger than the text of 16 samples (64 MiB at most). SIGINT and SIGTERM end
// the program when what was asked has been answered.
//
//===----------------------------------------------------------------------===//

#include "Tensors.h"

#include <httplib.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <unistd.h>

namespace {

// What a request may be. Each byte of a tensor is at most eight characters of
// text: "-128, " is an INT8, and 32 characters hold any FP32.
constexpr size_t kMostBytes = size_t(64) << 20;
constexpr size_t kMostSamples = 16;
constexpr size_t kCharactersPerByte = 8;
constexpr size_t kNamesBytes = size_t(64) << 10; // all that is not data
// Tensors have few axes; what walks a value recurses as deep as it is.
constexpr int kMostDepth = 32;

struct Options {
  std::string path, host = "127.0.0.1";
  int port = 8000; ///< 0: any that is free
  double batch_delay_s = 0;
};

Options readOptions(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--port" && has_value)
      options.port = std::stoi(argv[++i]);
    else if (word == "--host" && has_value)
      options.host = argv[++i];
    else if (word == "--batch-delay" && has_value)
      options.batch_delay_s = std::stod(argv[++i]) / 1e3;
    else if (options.path.empty() && word[0] != '-')
      options.path = word;
    else
      throw std::runtime_error("'" + word + "' is no option, or lacks a value");
  }
  if (options.path.empty())
    throw std::runtime_error(
        "usage: infer-server MODEL.partita [--port 8000] [--host 127.0.0.1] "
        "[--batch-delay MILLISECONDS]");
  return options;
}

void answer(httplib::Response &response, int status, const Json &body) {
  response.status = status;
  response.set_content(
      body.dump(-1, ' ', false, Json::error_handler_t::replace),
      "application/json");
}

/// The most bytes that a request to this model can need.
size_t mostBytes(const Model &model) {
  size_t tensors = 0;
  for (const partita_port &port : model.inputs)
    tensors += size_t(port.bytes);
  if (tensors > kMostBytes / (kMostSamples * kCharactersPerByte))
    return kMostBytes;
  return std::min(kMostBytes,
                  kNamesBytes + tensors * kMostSamples * kCharactersPerByte);
}

/// The value of a request's text, refused where it nests too deep.
Json parseRequest(const std::string &body) {
  const auto check = [](int depth, Json::parse_event_t event, Json &) {
    const bool opens = event == Json::parse_event_t::array_start ||
                       event == Json::parse_event_t::object_start;
    if (opens && depth >= kMostDepth)
      throw WrongRequest("the request nests deeper than " +
                         std::to_string(kMostDepth) + " levels");
    return true;
  };
  Json request = Json::parse(body, check, /*allow_exceptions=*/false);
  if (request.is_discarded())
    throw WrongRequest("the request is not JSON");
  return request;
}

/// Computes what a request asks for. The thread waits; others go on.
Json infer(Model &model, const std::string &body) {
  const Json request = parseRequest(body);
  Samples samples = readRequest(request, model);
  std::vector<const void *> inputs;
  for (const std::vector<uint8_t> &input : samples.inputs)
    inputs.push_back(input.data());
  std::vector<void *> outputs;
  for (std::vector<uint8_t> &output : samples.outputs)
    outputs.push_back(output.data());
  model.wait(model.submit(inputs, samples.count, outputs));
  Json response = {{"outputs", writeOutputs(samples, model)}};
  if (request.contains("id"))
    response["id"] = request["id"];
  return response;
}

void addRoutes(httplib::Server &server, Model &model, const std::string &name) {
  const size_t most_bytes = mostBytes(model);
  server.set_payload_max_length(most_bytes);
  // So long an idle connection keeps the program from ending.
  server.set_keep_alive_timeout(1);
  server.Get("/v2/health/ready",
             [](const httplib::Request &, httplib::Response &response) {
               answer(response, 200, {{"ready", true}});
             });
  server.Get("/v2",
             [](const httplib::Request &, httplib::Response &response) {
               answer(response, 200,
                      {{"name", "partita"},
                       {"version", std::to_string(partita_api_version())},
                       {"extensions", Json::array()}});
             });
  server.Get("/v2/models/" + name,
             [&, name](const httplib::Request &, httplib::Response &response) {
               answer(response, 200,
                      {{"name", name},
                       {"platform", "partita"},
                       {"inputs", describePorts(model.inputs)},
                       {"outputs", describePorts(model.outputs)}});
             });
  server.Post(
      "/v2/models/" + name + "/infer",
      [&, name](const httplib::Request &request, httplib::Response &response) {
        try {
          Json body = infer(model, request.body);
          body["model_name"] = name;
          answer(response, 200, body);
        } catch (const WrongRequest &error) {
          answer(response, 400, {{"error", error.what()}});
        } catch (const Json::exception &error) {
          answer(response, 400, {{"error", error.what()}});
        } catch (const std::exception &error) {
          answer(response, 500, {{"error", error.what()}});
        }
      });
  server.set_error_handler([name, most_bytes](const httplib::Request &request,
                                              httplib::Response &response) {
    if (response.body.empty())
      answer(response, response.status,
             {{"error", response.status == 413
                            ? "the request is too large: this model "
                              "takes at most " +
                                  std::to_string(most_bytes) + " bytes"
                            : "there is no " + request.method + " " +
                                  request.path + "; the model is '" + name +
                                  "'"}});
  });
}

void run(const Options &options) {
  // All threads inherit it: the signals come to the one that waits for them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  Model model(options.path, options.batch_delay_s);
  for (const auto *ports : {&model.inputs, &model.outputs})
    for (const partita_port &port : *ports)
      if (!datatypeOf(port.type))
        throw std::runtime_error(std::string("the type of '") + port.name +
                                 "' has no form in JSON");
  httplib::Server server;
  const std::string name = std::filesystem::path(options.path).stem().string();
  addRoutes(server, model, name);
  int port = options.port;
  if (port == 0)
    port = server.bind_to_any_port(options.host.c_str());
  else if (!server.bind_to_port(options.host.c_str(), port))
    port = -1;
  if (port < 0)
    throw std::runtime_error("cannot listen on " + options.host + ":" +
                             std::to_string(options.port));
  std::printf("listening on http://%s:%d/v2/models/%s\n", options.host.c_str(),
              port, name.c_str());
  std::fflush(stdout);
  std::thread stopper([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    server.stop();
  });
  server.listen_after_bind();
  // If it ended by itself, nobody has sent a signal.
  kill(getpid(), SIGTERM);
  stopper.join();
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
