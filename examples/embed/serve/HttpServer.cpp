//===- HttpServer.cpp - HTTP that no client can block ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HttpServer.h"

#include <boost/asio.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <optional>
#include <set>
#include <vector>

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

namespace {

constexpr uint32_t kMostHead = 16 << 10; // bytes of a request's head
constexpr size_t kPiece = 64 << 10;      // bytes read at a time
// Whoever moves less than this in this time is slow, and makes room first.
constexpr size_t kPace = 256 << 10; // bytes
constexpr auto kPaceTime = std::chrono::seconds(1);
// When the server is to end, whatever moves has so long.
constexpr auto kLastMoment = std::chrono::seconds(5);

/// Gives the body of a request to its exchange, piece by piece.
struct BodyToExchange {
  struct value_type {
    Exchange *exchange = nullptr; ///< null: the body is ignored
    std::optional<std::string> wrong;
  };
  class reader {
  public:
    template <bool is_request, class Fields>
    reader(http::header<is_request, Fields> &, value_type &value)
        : value(value) {}
    void init(const boost::optional<uint64_t> &, error_code &error) {
      error = {};
    }
    template <class Buffers> size_t put(const Buffers &buffers, error_code &e) {
      e = {};
      size_t all = 0;
      for (auto at = asio::buffer_sequence_begin(buffers);
           at != asio::buffer_sequence_end(buffers); ++at) {
        const asio::const_buffer piece = *at;
        all += piece.size();
        if (!value.exchange || value.wrong)
          continue;
        try {
          value.exchange->read(
              {static_cast<const char *>(piece.data()), piece.size()});
        } catch (const std::exception &error) {
          value.wrong = error.what();
        }
      }
      return all;
    }
    void finish(error_code &error) { error = {}; }

  private:
    value_type &value;
  };
};

using Parser = http::request_parser<BodyToExchange>;

struct Connection {
  enum State {
    Idle,     ///< waits for a request
    Arriving, ///< receives a request
    Working,  ///< a worker has it, or soon will
    Sending,  ///< sends an answer
    Closing   ///< waits until the client has read the answer
  };
  tcp::socket socket;
  State state = Idle;
  Clock::time_point since = Clock::now(); ///< when it came to its state
  Clock::time_point paced = since;        ///< when it last moved kPace
  size_t moved = 0;                       ///< bytes since then
  Clock::time_point deadline = Clock::time_point::max();
  bool waits = false; ///< for memory, which is not its fault
  int cut = 0;        ///< the status of the answer; 0: it is not cut
  size_t held = 0;    ///< bytes
  std::string unread;
  size_t read = 0; ///< bytes of `unread` that are done with

  explicit Connection(tcp::socket socket) : socket(std::move(socket)) {}

  void move(size_t bytes) {
    moved += bytes;
    if (moved < kPace)
      return;
    moved = 0;
    paced = Clock::now();
  }
  bool isSlow() const { return paced <= Clock::now() - kPaceTime; }

  void forgetRead() {
    unread.erase(0, read);
    read = 0;
    unread.shrink_to_fit();
  }
};

/// A request, and what has been decided about its answer.
struct Request {
  std::unique_ptr<Exchange> exchange;
  Answer answer;
  bool keep_alive = false;
  bool complete = false; ///< all of it has been read
};

/// The path of a target, without its query and its escapes.
std::string pathOf(std::string_view target) {
  target = target.substr(0, target.find('?'));
  std::string path;
  auto hex = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  for (size_t i = 0; i < target.size(); ++i) {
    const bool escape = target[i] == '%' && i + 2 < target.size() &&
                        hex(target[i + 1]) >= 0 && hex(target[i + 2]) >= 0;
    path +=
        escape ? char(hex(target[i + 1]) * 16 + hex(target[i + 2])) : target[i];
    i += escape ? 2 : 0;
  }
  return path;
}

} // namespace

class HttpServer::Impl {
public:
  Impl(const HttpOptions &options, Service &service, Metrics &metrics);
  uint16_t port() const { return acceptor.local_endpoint().port(); }
  void run();

private:
  asio::awaitable<void> acceptAll();
  asio::awaitable<void> sweep();
  asio::awaitable<void> talk(std::shared_ptr<Connection> connection);
  asio::awaitable<void> exchange(Connection &c);
  asio::awaitable<bool> readMore(Connection &c);
  asio::awaitable<void> readRequest(Connection &c, Request &request);
  asio::awaitable<bool> send(Connection &c, Answer answer, bool keep_alive);
  asio::awaitable<void> drain(Connection &c);

  void add(tcp::socket socket);
  void beginRequest(Connection &c, Parser &parser, Request &request);
  void enter(Connection &c, Connection::State state);
  void hold(Connection &c, size_t bytes);
  asio::awaitable<void> take(Connection &c, size_t bytes);
  bool roomWillCome(const Connection &c) const;
  void cut(Connection &c, int status);
  void cutOldest(bool that_hold_memory);
  void sendLastWords(Connection &c);
  void stop();
  Clock::time_point fromNow() const;
  http::response<http::string_body> response(Answer answer, bool keep_alive);
  Answer errorAnswer(int status);

  const HttpOptions options;
  Service &service;
  Metrics &metrics;
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  asio::signal_set signals{context, SIGINT, SIGTERM};
  asio::steady_timer sweeper{context};
  /// Cancelled when there may be room, for all that wait for some.
  asio::steady_timer room{context, asio::steady_timer::time_point::max()};
  size_t running = 0; ///< requests that workers have
  asio::thread_pool workers;
  std::set<Connection *> connections; ///< all, those that are cut, too
  size_t uncut = 0;                   ///< connections that are not cut
  bool stopping = false;
  std::vector<char> piece = std::vector<char>(kPiece);
};

//===----------------------------------------------------------------------===//
// What connections may take
//===----------------------------------------------------------------------===//

Clock::time_point HttpServer::Impl::fromNow() const {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(options.deadline_s));
}

void HttpServer::Impl::enter(Connection &c, Connection::State state) {
  metrics.in_work += state == Connection::Working;
  metrics.in_work -= c.state == Connection::Working;
  c.state = state;
  // Whoever waits for a worker is not to blame. Whoever leaves an answer in the
  // pipe still has the deadline of its request.
  if (state == Connection::Working) {
    c.deadline = Clock::time_point::max();
  } else if (state != Connection::Closing) {
    c.since = c.paced = Clock::now();
    c.moved = 0;
    c.deadline = fromNow();
  }
  if (stopping)
    c.deadline = std::min(c.deadline, Clock::now() + kLastMoment);
  if (stopping && state == Connection::Working)
    c.deadline = Clock::time_point::max();
}

/// The connection takes so much memory now. If all take too much, those that
/// have been moving for the longest make room.
void HttpServer::Impl::hold(Connection &c, size_t bytes) {
  if (bytes < c.held)
    room.cancel();
  metrics.held_bytes += bytes - c.held;
  c.held = bytes;
  while (metrics.held_bytes > options.memory) {
    const size_t before = metrics.held_bytes;
    cutOldest(/*that_hold_memory=*/true);
    if (metrics.held_bytes == before)
      return; // all of it is in work, and so will be gone soon
  }
}

/// Whether others give back memory soon, without being cut.
bool HttpServer::Impl::roomWillCome(const Connection &c) const {
  if (running > 0)
    return true;
  for (const Connection *other : connections)
    if (other != &c && !other->cut && other->held > 0 &&
        other->state == Connection::Sending && !other->isSlow())
      return true;
  return false;
}

/// Waits for memory, unless that would be in vain, and takes it.
asio::awaitable<void> HttpServer::Impl::take(Connection &c, size_t bytes) {
  while (!c.cut && bytes > c.held &&
         metrics.held_bytes - c.held + bytes > options.memory &&
         roomWillCome(c)) {
    error_code ignored;
    c.waits = true;
    co_await room.async_wait(
        asio::redirect_error(asio::use_awaitable, ignored));
  }
  c.waits = false;
  if (!c.cut)
    hold(c, bytes);
}

/// Ends what a connection waits for. It notices when it goes on.
void HttpServer::Impl::cut(Connection &c, int status) {
  if (c.cut)
    return;
  c.cut = status;
  --uncut;
  ++metrics.connections_cut;
  metrics.held_bytes -= c.held;
  c.held = 0;
  error_code ignored;
  c.socket.cancel(ignored);
  room.cancel();
}

/// Cuts the connection that has been moving for the longest, of those that are
/// slow if there are any. An answer that moves well soon makes room by itself.
void HttpServer::Impl::cutOldest(bool that_hold_memory) {
  Connection *oldest = nullptr;
  for (Connection *c : connections) {
    if (c->cut || c->state == Connection::Working)
      continue;
    if (that_hold_memory &&
        (c->held == 0 || (c->state == Connection::Sending && !c->isSlow())))
      continue;
    if (!oldest || std::pair(!c->isSlow(), c->since) <
                       std::pair(!oldest->isSlow(), oldest->since))
      oldest = c;
  }
  if (oldest)
    cut(*oldest, 503);
}

/// Cuts whatever is past its deadline.
asio::awaitable<void> HttpServer::Impl::sweep() {
  const auto period =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
          std::clamp(options.deadline_s / 10, 0.01, 0.1)));
  while (!stopping || !connections.empty()) {
    error_code error;
    sweeper.expires_after(period);
    co_await sweeper.async_wait(
        asio::redirect_error(asio::use_awaitable, error));
    const Clock::time_point now = Clock::now();
    for (Connection *c : connections)
      if (now > c->deadline)
        cut(*c, c->waits ? 503 : 408);
    room.cancel();
  }
}

//===----------------------------------------------------------------------===//
// A connection
//===----------------------------------------------------------------------===//

/// Reads whatever has come; waits if there is nothing. False: that was all.
asio::awaitable<bool> HttpServer::Impl::readMore(Connection &c) {
  c.forgetRead();
  while (!c.cut) {
    error_code error;
    co_await c.socket.async_wait(
        tcp::socket::wait_read,
        asio::redirect_error(asio::use_awaitable, error));
    if (error || c.cut)
      break;
    // No connection keeps memory for what may come: they all share the piece.
    const size_t bytes = c.socket.read_some(asio::buffer(piece), error);
    if (error == asio::error::would_block)
      continue;
    if (error)
      co_return false;
    c.unread.append(piece.data(), bytes);
    c.move(bytes);
    metrics.received_bytes += bytes;
    co_return true;
  }
  co_return false;
}

http::response<http::string_body> HttpServer::Impl::response(Answer answer,
                                                             bool keep_alive) {
  metrics.sent_bytes += answer.body.size();
  http::response<http::string_body> result(http::status(answer.status), 11);
  result.set(http::field::content_type, answer.type);
  if (answer.status == 503)
    result.set(http::field::retry_after, "1");
  if (answer.status == 405)
    result.set(http::field::allow, answer.allowed_method);
  result.body() = std::move(answer.body);
  result.keep_alive(keep_alive);
  result.prepare_payload();
  return result;
}

Answer HttpServer::Impl::errorAnswer(int status) {
  switch (status) {
  case 408: {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%g", options.deadline_s);
    return service.error(408,
                         std::string("the request has not arrived within ") +
                             seconds + " seconds");
  }
  case 413:
    return service.error(413,
                         "the request is too large: this model takes at most " +
                             std::to_string(options.most_body) + " bytes");
  case 431:
    return service.error(431, "the head of the request is larger than " +
                                  std::to_string(kMostHead) + " bytes");
  case 503:
    return service.error(503, stopping ? "the server is about to end"
                                       : "the server has too much to do");
  default:
    return service.error(status, "this is no request of HTTP");
  }
}

/// The head has arrived: asks the service for whom it is.
void HttpServer::Impl::beginRequest(Connection &c, Parser &parser,
                                    Request &request) {
  const auto &head = parser.get();
  request.keep_alive = head.keep_alive() && !stopping;
  Plan plan = service.begin(
      std::string(head.method_string()),
      pathOf({head.target().data(), head.target().size()}), stopping);
  request.exchange = std::move(plan.exchange);
  request.answer = std::move(plan.answer);
  parser.get().body().exchange = request.exchange.get();
  parser.eager(true);
  if (boost::beast::iequals(head[http::field::expect], "100-continue") &&
      !parser.is_done()) {
    error_code ignored;
    c.socket.write_some(asio::buffer("HTTP/1.1 100 Continue\r\n\r\n", 25),
                        ignored);
  }
}

/// Reads a request, and the answer where it is wrong or takes no work.
asio::awaitable<void> HttpServer::Impl::readRequest(Connection &c,
                                                    Request &request) {
  Parser parser;
  parser.header_limit(kMostHead);
  parser.body_limit(options.most_body);
  bool begun = false;
  auto fail = [&](int status) {
    request.exchange.reset();
    request.answer = errorAnswer(status);
    request.keep_alive = false;
  };
  while (!parser.is_done()) {
    error_code error = http::error::need_more;
    if (c.read < c.unread.size())
      c.read += parser.put(
          asio::buffer(c.unread.data() + c.read, c.unread.size() - c.read),
          error);
    const std::optional<std::string> &wrong = parser.get().body().wrong;
    if (error && error != http::error::need_more)
      co_return fail(error == http::error::body_limit     ? 413
                     : error == http::error::header_limit ? 431
                                                          : 400);
    if (!begun && parser.is_header_done()) {
      begun = true;
      beginRequest(c, parser, request);
    }
    // The rest of a wrong request is not worth waiting for.
    if (wrong) {
      request.exchange.reset();
      parser.get().body().exchange = nullptr;
      request.answer = service.error(400, *wrong);
      request.keep_alive &= parser.is_done();
      request.complete = parser.is_done();
      co_return;
    }
    if (c.read == c.unread.size())
      c.forgetRead();
    co_await take(c, c.unread.capacity() +
                         (request.exchange ? request.exchange->bytes() : 0));
    if (parser.is_done())
      break;
    // The sizes of chunks come in lines, which the parser wants to see whole.
    if (c.unread.size() - c.read > 2 * kMostHead &&
        error == http::error::need_more)
      co_return fail(400);
    if (error == http::error::need_more || c.read == c.unread.size()) {
      const bool more = co_await readMore(c);
      if (!more)
        co_return;
    }
  }
  request.complete = true;
}

/// Sends an answer. False: it did not get through.
asio::awaitable<bool> HttpServer::Impl::send(Connection &c, Answer answer,
                                             bool keep_alive) {
  enter(c, Connection::Sending);
  hold(c, answer.body.size());
  auto message = response(std::move(answer), keep_alive);
  error_code error;
  http::response_serializer<http::string_body> serializer(message);
  while (!error && !c.cut && !serializer.is_done())
    c.move(co_await http::async_write_some(
        c.socket, serializer,
        asio::redirect_error(asio::use_awaitable, error)));
  hold(c, 0);
  co_return !error && !c.cut;
}

/// Tells a connection that was cut why, if the pipe takes it.
void HttpServer::Impl::sendLastWords(Connection &c) {
  error_code ignored;
  http::write(c.socket, response(errorAnswer(c.cut), false), ignored);
  c.socket.shutdown(tcp::socket::shutdown_send, ignored);
  // What is left unread when a socket closes takes the answer with it.
  while (c.socket.read_some(asio::buffer(piece), ignored) > 0 && !ignored)
    ;
}

/// Reads, and forgets, what a client still sends that was answered already. It
/// reads the answer only then, and would lose it if the connection closed.
asio::awaitable<void> HttpServer::Impl::drain(Connection &c) {
  enter(c, Connection::Closing);
  error_code ignored;
  c.socket.shutdown(tcp::socket::shutdown_send, ignored);
  while (true) {
    const bool more = co_await readMore(c);
    if (!more)
      co_return;
    c.read = c.unread.size();
  }
}

/// Answers the requests of a connection, one after the other.
asio::awaitable<void> HttpServer::Impl::exchange(Connection &c) {
  while (true) {
    enter(c, Connection::Idle);
    if (c.read == c.unread.size()) {
      const bool more = co_await readMore(c);
      if (!more)
        co_return;
    }
    enter(c, Connection::Arriving);
    const Clock::time_point begin = c.since;
    const auto seconds = [&] {
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    Request request;
    co_await readRequest(c, request);
    if (c.cut) {
      request.exchange.reset();
      sendLastWords(c);
      metrics.count(c.cut, seconds());
      co_return;
    }
    if (request.answer.body.empty() && !request.complete)
      co_return; // the client is gone
    if (request.exchange) {
      enter(c, Connection::Working);
      co_await take(c, c.unread.capacity() + request.exchange->workBytes());
      ++running;
      auto work = [](Exchange *e) -> asio::awaitable<Answer> {
        co_return e->answer();
      };
      try {
        request.answer = co_await asio::co_spawn(
            workers, work(request.exchange.get()), asio::use_awaitable);
      } catch (const std::exception &error) {
        request.answer = service.error(500, error.what());
      }
      request.exchange.reset();
      --running;
    }
    const int status = request.answer.status;
    const bool keep_alive = request.keep_alive && !stopping;
    const bool sent = co_await send(c, std::move(request.answer), keep_alive);
    metrics.count(status, seconds());
    if (!sent)
      co_return;
    if (!keep_alive)
      co_return co_await drain(c);
  }
}

asio::awaitable<void>
HttpServer::Impl::talk(std::shared_ptr<Connection> connection) {
  Connection &c = *connection;
  try {
    co_await exchange(c);
  } catch (const std::exception &) {
    // There is no memory left for this connection, which the client sees.
  }
  enter(c, Connection::Closing);
  hold(c, 0);
  uncut -= c.cut == 0;
  connections.erase(&c);
  metrics.connections = connections.size();
  if (stopping && connections.empty())
    sweeper.cancel();
}

//===----------------------------------------------------------------------===//
// The server
//===----------------------------------------------------------------------===//

HttpServer::Impl::Impl(const HttpOptions &options, Service &service,
                       Metrics &metrics)
    : options(options), service(service), metrics(metrics),
      workers(options.workers) {
  try {
    tcp::resolver resolver(context);
    const tcp::endpoint endpoint =
        *resolver.resolve(options.host, std::to_string(options.port)).begin();
    acceptor.open(endpoint.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(endpoint);
    acceptor.listen();
    acceptor.non_blocking(true);
  } catch (const boost::system::system_error &error) {
    throw std::runtime_error("cannot listen on " + options.host + ":" +
                             std::to_string(options.port) + ": " +
                             error.code().message());
  }
}

void HttpServer::Impl::add(tcp::socket socket) {
  ++metrics.connections_accepted;
  if (uncut >= options.connections)
    cutOldest(/*that_hold_memory=*/false);
  error_code error;
  socket.non_blocking(true, error);
  socket.set_option(tcp::no_delay(true), error);
  auto connection = std::make_shared<Connection>(std::move(socket));
  if (uncut >= options.connections) {
    connection->cut = 503; // all others are in work
    return sendLastWords(*connection);
  }
  ++uncut;
  connections.insert(connection.get());
  metrics.connections = connections.size();
  try {
    asio::co_spawn(context, talk(connection), asio::detached);
  } catch (...) {
    connections.erase(connection.get());
    --uncut;
    throw;
  }
}

asio::awaitable<void> HttpServer::Impl::acceptAll() {
  while (!stopping) {
    error_code error;
    tcp::socket socket = co_await acceptor.async_accept(
        asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      try {
        add(std::move(socket));
      } catch (const std::exception &) {
        // There is no memory left for it, but others still come.
      }
    } else if (!stopping) {
      // There are no descriptors left, or no memory.
      cutOldest(/*that_hold_memory=*/false);
      asio::steady_timer pause(context, std::chrono::milliseconds(50));
      co_await pause.async_wait(asio::use_awaitable);
    }
  }
}

void HttpServer::Impl::stop() {
  // Who has connected by now is answered; nobody else is.
  error_code error;
  while (!error) {
    tcp::socket socket(context);
    acceptor.accept(socket, error);
    if (!error)
      add(std::move(socket));
  }
  stopping = true;
  acceptor.close(error);
  for (Connection *c : connections) {
    if (c->state == Connection::Closing ||
        (c->state == Connection::Idle && c->unread.empty() &&
         c->socket.available(error) == 0))
      cut(*c, 503);
    if (c->state != Connection::Working)
      c->deadline = std::min(c->deadline, Clock::now() + kLastMoment);
  }
  sweeper.cancel();
}

void HttpServer::Impl::run() {
  signals.async_wait([this](error_code error, int) {
    if (!error)
      stop();
    signals.clear(); // another signal ends the program at once
  });
  asio::co_spawn(context, acceptAll(), asio::detached);
  asio::co_spawn(context, sweep(), asio::detached);
  context.run();
  workers.join();
}

HttpServer::HttpServer(const HttpOptions &options, Service &service,
                       Metrics &metrics)
    : impl(std::make_unique<Impl>(options, service, metrics)) {}
HttpServer::~HttpServer() = default;
uint16_t HttpServer::port() const { return impl->port(); }
void HttpServer::run() { impl->run(); }
