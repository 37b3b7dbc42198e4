//===- Sequences.h - Which client goes on from which states -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef EXAMPLES_EMBED_SERVE_SEQUENCES_H
#define EXAMPLES_EMBED_SERVE_SEQUENCES_H

#include "Tensors.h"

#include <chrono>
#include <map>
#include <mutex>

/// There is no room for another sequence: answered with 503.
struct NoRoom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The sequences of a model with states. Clients name theirs as they like. One
/// that starts gets one of the model's, whose states are 0 then. A client that
/// is gone keeps it until another one needs it, and `idle_s` have passed.
class Sequences {
public:
  Sequences(Model &model, double idle_s);

  /// A sequence of the model, for one request.
  class Lease {
  public:
    Lease(Sequences &sequences, std::string id, int number, bool ends)
        : sequences(sequences), id(std::move(id)), number(number), ends(ends) {}
    ~Lease() { sequences.giveBack(id, ends); }
    Lease(const Lease &) = delete;

    int get() const { return number; }

  private:
    Sequences &sequences;
    const std::string id;
    const int number;
    const bool ends;
  };

  /// Throws WrongRequest if the request does not say which it is, or not
  /// rightly, and NoRoom. Null: the model has no states.
  std::unique_ptr<Lease> take(const Samples &samples);
  /// Those that clients have.
  size_t taken() const;

private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    int number = 0;
    bool busy = true; ///< with a request
    Clock::time_point since;
  };

  void makeRoom();
  void giveBack(const std::string &id, bool ends);

  Model &model;
  const std::chrono::duration<double> idle;
  mutable std::mutex mutex;
  std::map<std::string, Slot> slots; ///< by the client's name
  std::vector<int> unused;
};

#endif // EXAMPLES_EMBED_SERVE_SEQUENCES_H
