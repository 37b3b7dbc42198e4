//===- HttpServer.h - HTTP that no client can block -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One thread moves the bytes of all connections, and never waits for one of
// them. Workers compute the answers of requests that have arrived completely.
// So a slow client costs a connection and the bytes that it has sent, and
// nothing else:
//
//   * A request that has not arrived by its deadline is answered with 408. The
//     same time is given for taking the answer, and for the next request.
//   * Requests, and answers, take no more memory together than is given. Where
//     that is used up, others wait while a worker computes or an answer is
//     sent at a good pace. After that, slow connections make room, and then
//     those that have been sending for the longest. They are answered with 503.
//   * Where there are too many connections, the same ones make room.
//
//===----------------------------------------------------------------------===//

#ifndef EXAMPLES_EMBED_SERVE_HTTPSERVER_H
#define EXAMPLES_EMBED_SERVE_HTTPSERVER_H

#include "Metrics.h"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

struct Answer {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::string allowed_method = {}; ///< beside 405
};

/// A request whose body is read, and then answered.
class Exchange {
public:
  virtual ~Exchange() = default;
  /// Takes more of the body. What it throws is the error of the request.
  virtual void read(std::string_view text) = 0;
  /// The memory that the request takes so far.
  virtual size_t bytes() const = 0;
  /// About the memory that it will take until it is answered.
  virtual size_t workBytes() const = 0;
  /// Called by a worker when the body has ended.
  virtual Answer answer() = 0;
};

/// How a request is answered: by an exchange, or at once if there is none.
struct Plan {
  std::unique_ptr<Exchange> exchange;
  Answer answer;
};

/// What the server is for. Its thread calls all functions.
class Service {
public:
  virtual ~Service() = default;
  /// The head of a request has arrived. `stopping`: the server ends soon.
  virtual Plan begin(const std::string &method, const std::string &path,
                     bool stopping) = 0;
  /// The text of an answer that says what is wrong.
  virtual Answer error(int status, const std::string &words) = 0;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;   ///< 0: any that is free
  double deadline_s = 30; ///< for a request, and for taking its answer
  size_t connections = 1000;
  size_t workers = 8;
  size_t most_body = 0; ///< bytes
  size_t memory = 0;    ///< bytes of requests and answers
};

class HttpServer {
public:
  /// Listens. Throws if that is not possible.
  HttpServer(const HttpOptions &options, Service &service, Metrics &metrics);
  ~HttpServer();
  uint16_t port() const;
  /// Serves until SIGINT or SIGTERM. What has been asked by then is answered.
  void run();

private:
  class Impl;
  std::unique_ptr<Impl> impl;
};

#endif // EXAMPLES_EMBED_SERVE_HTTPSERVER_H
