//===- OrderedCalls.cpp - What depends on the order of elements -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/LibraryCalls.h"

#include <algorithm>
#include <numeric>
#include <type_traits>

namespace partita::runtime {
namespace {

template <typename T> bool isNan(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x != x;
  return false;
}

/// NaN is larger than all numbers.
template <typename T> bool isLess(T a, T b) {
  return a < b || (isNan(b) && !isNan(a));
}

/// Integers wrap around; NaN stays.
template <abi::Combine combine, typename T> T combined(T a, T b) {
  constexpr bool isSum = combine == abi::Combine::sum,
                 isProduct = combine == abi::Combine::prod;
  if constexpr ((isSum || isProduct) && std::is_integral_v<T>) {
    auto x = static_cast<std::make_unsigned_t<T>>(a),
         y = static_cast<std::make_unsigned_t<T>>(b);
    return static_cast<T>(isSum ? x + y : x * y);
  } else if constexpr (isSum) {
    return a + b;
  } else if constexpr (isProduct) {
    return a * b;
  } else if constexpr (combine == abi::Combine::max) {
    return isLess(a, b) ? b : a;
  } else if constexpr (combine == abi::Combine::min) {
    return isNan(a) || a < b ? a : b;
  } else {
    return b;
  }
}

/// Runs parts of [0, extent), which the team shares.
class OrderedTask : public CallTask {
public:
  OrderedTask(ResolvedCall resolved, const ThreadTeam &team)
      : CallTask(std::move(resolved)), team(team) {}

  bool run() override {
    team.split(extent, grain,
               [&](int, int64_t begin, int64_t end) { runPart(begin, end); });
    return true;
  }

protected:
  virtual void runPart(int64_t begin, int64_t end) = 0;

  int64_t dim(size_t operand, int axis) const {
    return call.operands[operand].dims[axis];
  }
  template <typename T> T *data(size_t operand) const {
    return reinterpret_cast<T *>(call.operands[operand].data);
  }

  /// Fewer elements than this are not worth waking another thread.
  static constexpr int64_t kGrain = 16 << 10;

  const ThreadTeam &team;
  int64_t extent = 0, grain = 1;
};

template <typename T> class TopK final : public OrderedTask {
public:
  TopK(ResolvedCall resolved, const ThreadTeam &team)
      : OrderedTask(std::move(resolved), team) {
    extent = dim(0, 0);
    grain = std::max<int64_t>(kGrain / std::max<int64_t>(dim(0, 1), 1), 1);
  }

private:
  static constexpr int64_t kAtOnce = 16;

  void runPart(int64_t begin, int64_t end) override {
    for (int64_t row = begin; row < end; ++row) {
      const T *x = data<T>(0) + row * dim(0, 1);
      int64_t *places = data<int64_t>(1) + row * dim(1, 1);
      if (call.call->details_as_TopK()->largest())
        choose(
            x, places, [](T a, T b) { return isLess(b, a); },
            [](T a, T b) { return !(a <= b); });
      else
        choose(
            x, places, [](T a, T b) { return isLess(a, b); },
            [](T a, T b) { return !(a >= b); });
    }
  }

  /// The result is a heap while it comes about: the last one is on top, and
  /// leaves for each that comes before it. Most do not, and many are passed at
  /// a time: `mayBeBefore` is true for all that are before, and simple.
  template <typename Before, typename MayBeBefore>
  void choose(const T *x, int64_t *places, Before isBefore,
              MayBeBefore mayBeBefore) {
    const int64_t size = dim(0, 1), count = dim(1, 1);
    auto comesFirst = [&](int64_t i, int64_t j) {
      return isBefore(x[i], x[j]) || (!isBefore(x[j], x[i]) && i < j);
    };
    int64_t *end = places + count;
    std::iota(places, end, int64_t(0));
    if (count == size)
      return std::sort(places, end, comesFirst);
    std::make_heap(places, end, comesFirst);
    T last = x[places[0]];
    auto visit = [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        if (!isBefore(x[i], last))
          continue;
        std::pop_heap(places, end, comesFirst);
        end[-1] = i;
        std::push_heap(places, end, comesFirst);
        last = x[places[0]];
      }
    };
    // At first, many are among the first ones yet.
    int64_t i = std::min(count * kAtOnce, size);
    visit(count, i);
    for (; i + kAtOnce <= size; i += kAtOnce) {
      int any = 0;
      for (int64_t k = 0; k < kAtOnce; ++k)
        any |= mayBeBefore(x[i + k], last);
      if (any)
        visit(i, i + kAtOnce);
    }
    visit(i, size);
    std::sort_heap(places, end, comesFirst);
  }
};

template <typename T, abi::Combine combine>
class Scan final : public OrderedTask {
public:
  Scan(ResolvedCall resolved, const ThreadTeam &team)
      : OrderedTask(std::move(resolved), team),
        blocks((dim(0, 2) + kBlock - 1) / kBlock) {
    extent = dim(0, 0) * blocks;
    int64_t elements = dim(0, 1) * std::min(dim(0, 2), kBlock);
    grain = std::max<int64_t>(kGrain / std::max<int64_t>(elements, 1), 1);
  }

private:
  static constexpr int64_t kBlock = 256; ///< columns at a time

  void runPart(int64_t begin, int64_t end) override {
    const int64_t steps = dim(0, 1), width = dim(0, 2);
    for (int64_t part = begin; part < end; ++part) {
      int64_t column = part % blocks * kBlock;
      int64_t count = std::min(kBlock, width - column);
      int64_t start = part / blocks * steps * width + column;
      const T *x = data<T>(0) + start;
      T *y = data<T>(1) + start;
      std::copy_n(x, count, y);
      if (count == 1) {
        T all = *x;
        for (int64_t i = 1; i < steps; ++i)
          y[i * width] = all = combined<combine>(all, x[i * width]);
        continue;
      }
      for (int64_t i = 1; i < steps; ++i)
        for (int64_t k = 0; k < count; ++k)
          y[i * width + k] =
              combined<combine>(y[(i - 1) * width + k], x[i * width + k]);
    }
  }

  const int64_t blocks;
};

/// Each thread has rows of its own and looks for them among all places, so
/// that the order of updates is kept.
template <typename T, abi::Combine combine>
class Scatter final : public OrderedTask {
public:
  Scatter(ResolvedCall resolved, const ThreadTeam &team)
      : OrderedTask(std::move(resolved), team) {
    extent = dim(0, 0);
    grain = std::max<int64_t>(kGrain / std::max<int64_t>(dim(0, 1), 1),
                              std::max<int64_t>(dim(1, 0), 1));
  }

private:
  void runPart(int64_t begin, int64_t end) override {
    const int64_t width = dim(0, 1), count = dim(1, 0);
    T *rows = data<T>(3) + begin * width;
    if (const T *x = data<T>(0) + begin * width; x != rows)
      std::copy_n(x, (end - begin) * width, rows);
    const int64_t *places = data<int64_t>(1);
    const T *updates = data<T>(2);
    for (int64_t i = 0; i < count; ++i) {
      if (places[i] < begin || places[i] >= end)
        continue;
      T *row = rows + (places[i] - begin) * width;
      for (int64_t k = 0; k < width; ++k)
        row[k] = combined<combine>(row[k], updates[i * width + k]);
    }
  }
};

/// Copies rows, of whatever type: those of x, unless the result lies there, and
/// then those of the update. Where x and the result share bytes in a plan, each
/// may still lie with the caller, as an input and an output.
class UpdateSlice final : public OrderedTask {
public:
  UpdateSlice(ResolvedCall resolved, const ThreadTeam &team)
      : OrderedTask(std::move(resolved), team),
        row(dim(0, 2) * elementBytes(call.operands[0].type)) {
    grain = std::max<int64_t>(kGrain / dim(0, 2), 1);
  }

  bool run() override {
    copies = data<uint8_t>(0) != data<uint8_t>(3);
    if (copies) {
      extent = dim(0, 0) * dim(0, 1);
      OrderedTask::run();
    }
    copies = false;
    extent = dim(1, 0) * dim(1, 1);
    return OrderedTask::run();
  }

private:
  /// Rows of x, or of the update.
  void runPart(int64_t begin, int64_t end) override {
    if (copies) {
      std::copy_n(data<uint8_t>(0) + begin * row, (end - begin) * row,
                  data<uint8_t>(3) + begin * row);
      return;
    }
    const int64_t rows = dim(0, 1), updated = dim(1, 1),
                  sharing = dim(0, 0) / dim(2, 0);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t p = i / updated, start = data<int64_t>(2)[p / sharing];
      if (start >= 0)
        std::copy_n(data<uint8_t>(1) + i * row, row,
                    data<uint8_t>(3) +
                        (p * rows + (start % rows + i % updated) % rows) * row);
    }
  }

  const int64_t row;   ///< bytes
  bool copies = false; ///< x, and not the update yet
};

template <typename T, abi::Combine combine>
std::unique_ptr<Task> makeCombining(ResolvedCall call, const ThreadTeam &team) {
  if (call.call->kind() == abi::CallKind::scan)
    return std::make_unique<Scan<T, combine>>(std::move(call), team);
  return std::make_unique<Scatter<T, combine>>(std::move(call), team);
}

template <typename T>
std::unique_ptr<Task> make(ResolvedCall call, const ThreadTeam &team) {
  if (call.call->kind() == abi::CallKind::top_k)
    return std::make_unique<TopK<T>>(std::move(call), team);
  switch (call.call->details_as_Combination()->kind()) {
  case abi::Combine::replace:
    return makeCombining<T, abi::Combine::replace>(std::move(call), team);
  case abi::Combine::sum:
    return makeCombining<T, abi::Combine::sum>(std::move(call), team);
  case abi::Combine::prod:
    return makeCombining<T, abi::Combine::prod>(std::move(call), team);
  case abi::Combine::max:
    return makeCombining<T, abi::Combine::max>(std::move(call), team);
  case abi::Combine::min:
    return makeCombining<T, abi::Combine::min>(std::move(call), team);
  }
  return nullptr;
}

} // namespace

Expected<std::unique_ptr<Task>> prepareOrdered(ResolvedCall call,
                                               OnednnContext &,
                                               const ThreadTeam &team, bool) {
  std::unique_ptr<Task> task;
  const abi::DType type = call.operands[0].type;
  if (call.call->kind() == abi::CallKind::update_slice)
    task = std::make_unique<UpdateSlice>(std::move(call), team);
  else if (type == abi::DType::f32)
    task = make<float>(std::move(call), team);
  else if (type == abi::DType::f64)
    task = make<double>(std::move(call), team);
  else if (type == abi::DType::i32)
    task = make<int32_t>(std::move(call), team);
  else if (type == abi::DType::i64)
    task = make<int64_t>(std::move(call), team);
  else
    return Status::error("elements of a type that this call does not take");
  return task;
}

} // namespace partita::runtime
