//===- RecurrentCall.cpp - Recurrent layers -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop over time: a step is one product of the hidden state with the
// weights (a gru that resets before its product has two) and the functions of
// the gates. The states, the product and the library's memory lie in the
// device's scratch; a step allocates nothing.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/BestLevel.h"
#include "runtime/device/cpu/onednn/PrimitiveTask.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"
#include "runtime/device/cpu/simd/GateRows.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace partita::runtime {
namespace {

struct GateFunction {
  abi::GateFunctionKind kind = abi::GateFunctionKind::tanh;
  float alpha = 0;
  float beta = 0;
};

template <typename Fn> void mapEach(float *values, int64_t count, Fn fn) {
  for (int64_t i = 0; i < count; ++i)
    values[i] = fn(values[i]);
}

/// Applies the function to `count` elements in place.
void applyGate(const GateFunction &function, float *values, int64_t count) {
  using Kind = abi::GateFunctionKind;
  static const GateRows logisticRow = atBestLevel(logisticRowBaseline,
                                                  logisticRowV3, logisticRowV4),
                        tanhRow =
                            atBestLevel(tanhRowBaseline, tanhRowV3, tanhRowV4);
  float alpha = function.alpha, beta = function.beta;
  switch (function.kind) {
  case Kind::relu:
    return mapEach(values, count, [](float x) { return std::max(x, 0.0f); });
  case Kind::tanh:
    return tanhRow(values, count);
  case Kind::logistic:
    return logisticRow(values, count);
  case Kind::affine:
    return mapEach(values, count, [=](float x) { return alpha * x + beta; });
  case Kind::leaky_relu:
    return mapEach(values, count,
                   [=](float x) { return x < 0 ? alpha * x : x; });
  case Kind::thresholded_relu:
    return mapEach(values, count,
                   [=](float x) { return x > alpha ? x : 0.0f; });
  case Kind::scaled_tanh:
    return mapEach(values, count,
                   [=](float x) { return alpha * std::tanh(beta * x); });
  case Kind::hard_sigmoid:
    return mapEach(values, count, [=](float x) {
      return std::clamp(alpha * x + beta, 0.0f, 1.0f);
    });
  case Kind::elu:
    return mapEach(values, count, [=](float x) {
      return x < 0 ? alpha * (std::exp(x) - 1) : x;
    });
  case Kind::softsign:
    return mapEach(values, count,
                   [](float x) { return x / (1 + std::fabs(x)); });
  case Kind::softplus:
    return mapEach(values, count, [](float x) {
      return std::max(x, 0.0f) + std::log1p(std::exp(-std::fabs(x)));
    });
  }
}

/// state[B, H] . weights[H, N], for gates that lie next to each other.
struct StateProduct {
  std::unique_ptr<PrimitiveTask> task; ///< of the state, weights, and result
  bool in_place = true;                ///< the weights are read where they lie

  /// `weights` [N, H], of one direction.
  Status make(OnednnContext &context, int64_t batch, Operand weights,
              bool pack) {
    int64_t rows = weights.dims[0];
    int64_t hidden = weights.dims[1];
    dnnl_memory_desc_t state = stridedDesc({batch, hidden}, {hidden, 1}),
                       out = stridedDesc({batch, rows}, {rows, 1}),
                       plain =
                           stridedDesc({hidden, rows}, {weights.strides[1],
                                                        weights.strides[0]});
    OwnedPrimitiveDesc desc;
    auto choose = [&](const dnnl_memory_desc_t &right) {
      return chooseProduct(context, state, right, out, "this recurrent layer",
                           /*adds=*/false, desc);
    };
    auto bind = [&](const dnnl_memory_desc_t &right, float *data) -> Status {
      task = PARTITA_TRY(PrimitiveTask::create(context, desc));
      return task->add(context, {{DNNL_ARG_SRC, state, nullptr},
                                 {DNNL_ARG_WEIGHTS, right, data},
                                 {DNNL_ARG_DST, out, nullptr}});
    };
    if (pack && weights.constant) {
      // The library packs the matrix as it multiplies with it.
      std::swap(weights.dims[0], weights.dims[1]);
      std::swap(weights.strides[0], weights.strides[1]);
      if (choose(anyDesc({hidden, rows})).ok()) {
        const dnnl_memory_desc_t right = queryDesc(desc, dnnl_query_weights_md);
        if (auto packed = context.packed(weights, plain, right)) {
          in_place = *packed == weights.data;
          return bind(right, *packed);
        }
      }
    }
    PARTITA_TRY(choose(plain));
    return bind(plain, weights.data);
  }

  size_t scratchBytes() const { return task ? task->scratchBytes() : 0; }
  void useScratch(float *state, float *out, uint8_t *scratch) {
    task->argument(0).set(reinterpret_cast<uint8_t *>(state));
    task->argument(2).set(reinterpret_cast<uint8_t *>(out));
    task->useScratch(scratch);
  }
  void visitAddresses(const AddressVisitor &visit) {
    if (in_place)
      visit(task->argument(1));
  }
};

/// One direction: its products, and the functions of its gates.
struct Direction {
  StateProduct product; ///< all gates, or those before the reset
  StateProduct candidate;
  GateFunction functions[3];
  bool reversed = false;
};

class Recurrent final : public CallTask {
public:
  explicit Recurrent(ResolvedCall resolved)
      : CallTask(std::move(resolved)),
        plan(*call.call->details_as_Recurrent()) {
    steps = x().dims[0];
    batch = x().dims[1];
    hidden = weights().dims[2];
    gates = weights().dims[1] / hidden;
  }

  Status prepare(OnednnContext &context, bool pack) {
    int64_t count = weights().dims[0];
    int64_t functions = plan.functions()->size() / count;
    directions = std::vector<Direction>(count);
    for (int64_t d = 0; d < count; ++d) {
      Direction &direction = directions[d];
      direction.reversed = plan.reversed()->Get(d) != 0;
      for (int64_t i = 0; i < functions; ++i) {
        const abi::GateFunction *function =
            plan.functions()->Get(d * functions + i);
        direction.functions[i] = {function->kind(), function->alpha(),
                                  function->beta()};
      }
      Operand own = weights();
      own.data += d * own.strides[0];
      own.dims.erase(own.dims.begin());
      own.strides.erase(own.strides.begin());
      if (resetsBefore()) {
        Operand last = own;
        last.data += 2 * hidden * own.strides[0];
        last.dims[0] = hidden;
        own.dims[0] = 2 * hidden;
        PARTITA_TRY(direction.candidate.make(context, batch, last, pack));
      }
      PARTITA_TRY(direction.product.make(context, batch, own, pack));
      if (direction.product.in_place ||
          (resetsBefore() && direction.candidate.in_place))
        context.readInPlace(weights());
    }
    return Status();
  }

  bool run() override {
    FlushDenormals flush;
    for (size_t d = 0; d < directions.size(); ++d)
      if (!run(static_cast<int64_t>(d)))
        return false;
    return true;
  }

  size_t scratchBytes() const override {
    size_t library = 0;
    for (const Direction &direction : directions)
      library = std::max({library, direction.product.scratchBytes(),
                          direction.candidate.scratchBytes()});
    return static_cast<size_t>(
               rules::recurrentRoom(batch, hidden, gates * hidden)) +
           library;
  }

  void useScratch(uint8_t *data) override {
    auto take = [&](size_t bytes) {
      auto *part = reinterpret_cast<float *>(data);
      data += bytes;
      return part;
    };
    state = take(stateBytes());
    cell = take(stateBytes());
    reset = take(stateBytes());
    sums = take(rules::recurrentStateRoom(batch, gates * hidden));
    for (Direction &direction : directions) {
      direction.product.useScratch(state, sums, data);
      if (resetsBefore())
        direction.candidate.useScratch(reset, sums + 2 * batch * hidden, data);
    }
  }

  void visitAddresses(const AddressVisitor &visit) override {
    CallTask::visitAddresses(visit);
    for (Direction &direction : directions) {
      direction.product.visitAddresses(visit);
      if (resetsBefore())
        direction.candidate.visitAddresses(visit);
    }
  }

private:
  Operand &x() { return call.operands[0]; }
  Operand &weights() { return call.operands[1]; }

  bool isGru() const { return plan.cell() == abi::Cell::gru; }
  bool isLstm() const { return plan.cell() == abi::Cell::lstm; }
  /// A gru whose gate r multiplies the state before the product.
  bool resetsBefore() const { return isGru() && !plan.hidden_bias(); }

  size_t stateBytes() const {
    return static_cast<size_t>(rules::recurrentStateRoom(batch, hidden));
  }

  /// The row of elements at [i, j] of a state [D, B, H].
  static const float *at(const Operand &operand, int64_t i, int64_t j) {
    return operand.data + i * operand.strides[0] + j * operand.strides[1];
  }

  void copyState(const std::optional<Operand> &from, int64_t d, float *to) {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t i = 0; i < hidden; ++i)
        to[b * hidden + i] =
            from ? at(*from, d, b)[i * from->strides[2]] : 0.0f;
  }

  /// How many steps a sequence has.
  int64_t length(int64_t b) const {
    if (!call.lengths)
      return steps;
    const auto *data = reinterpret_cast<const int32_t *>(call.lengths->data);
    return std::clamp<int64_t>(data[b * call.lengths->strides[0]], 0, steps);
  }

  bool run(int64_t d) {
    Direction &direction = directions[d];
    copyState(call.initial, d, state);
    copyState(call.initial_cell, d, cell);
    for (int64_t step = 0; step < steps; ++step) {
      if (!direction.product.task->run())
        return false;
      if (resetsBefore()) {
        for (int64_t b = 0; b < batch; ++b)
          resetState(direction, d, b, step);
        if (!direction.candidate.task->run())
          return false;
      }
      for (int64_t b = 0; b < batch; ++b)
        runStep(direction, d, b, step);
    }
    for (int64_t b = 0; b < batch; ++b) {
      store(steps, d, b, state + b * hidden);
      if (isLstm())
        store(steps + 1, d, b, cell + b * hidden);
    }
    return true;
  }

  /// Where in time a sequence is at a step; -1 past its end.
  int64_t timeOf(const Direction &direction, int64_t b, int64_t step) const {
    int64_t count = length(b);
    if (step >= count)
      return -1;
    return direction.reversed ? count - 1 - step : step;
  }

  void store(int64_t time, int64_t d, int64_t b, const float *from) {
    const Operand &result = call.result();
    float *to = result.data + time * result.strides[0] + d * result.strides[1] +
                b * result.strides[2];
    for (int64_t i = 0; i < hidden; ++i)
      to[i * result.strides[3]] = from ? from[i] : 0.0f;
  }

  float clipped(float value) const {
    float bound = plan.clip();
    return bound > 0 ? std::clamp(value, -bound, bound) : value;
  }

  /// The inputs' part of the gates at a time, [G * H] with a stride.
  struct Row {
    const float *data;
    int64_t stride;
    float operator[](int64_t i) const { return data[i * stride]; }
  };
  Row inputs(int64_t time, int64_t d, int64_t b) {
    return {x().data + time * x().strides[0] + b * x().strides[1] +
                d * x().strides[2],
            x().strides[3]};
  }

  /// sums [B, 2 H] and then [B, H] if there are two products, else [B, G * H].
  float *sumsOf(int64_t b) {
    return sums + b * (resetsBefore() ? 2 : gates) * hidden;
  }
  float *candidatesOf(int64_t b) { return sums + (2 * batch + b) * hidden; }

  void addInputs(float *to, Row from, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      to[i] = clipped(to[i] + from[first + i]);
  }

  void resetState(const Direction &direction, int64_t d, int64_t b,
                  int64_t step) {
    int64_t time = timeOf(direction, b, step);
    float *own = reset + b * hidden;
    const float *h = state + b * hidden;
    if (time < 0) {
      std::copy_n(h, hidden, own);
      return;
    }
    float *sum = sumsOf(b);
    addInputs(sum, inputs(time, d, b), 0, 2 * hidden);
    applyGate(direction.functions[0], sum, 2 * hidden);
    for (int64_t i = 0; i < hidden; ++i)
      own[i] = sum[hidden + i] * h[i];
  }

  void runStep(const Direction &direction, int64_t d, int64_t b, int64_t step) {
    int64_t time = timeOf(direction, b, step);
    if (time < 0) {
      store(step, d, b, nullptr);
      return;
    }
    if (isLstm())
      runLstm(direction, d, b, inputs(time, d, b));
    else if (isGru())
      runGru(direction, d, b, inputs(time, d, b));
    else
      runRnn(direction, b, inputs(time, d, b));
    store(time, d, b, state + b * hidden);
  }

  void runRnn(const Direction &direction, int64_t b, Row from) {
    float *sum = sumsOf(b);
    addInputs(sum, from, 0, hidden);
    applyGate(direction.functions[0], sum, hidden);
    std::copy_n(sum, hidden, state + b * hidden);
  }

  void runGru(const Direction &direction, int64_t d, int64_t b, Row from) {
    float *sum = sumsOf(b), *h = state + b * hidden, *candidate;
    if (resetsBefore()) {
      candidate = candidatesOf(b);
      addInputs(candidate, from, 2 * hidden, hidden);
    } else {
      addInputs(sum, from, 0, 2 * hidden);
      applyGate(direction.functions[0], sum, 2 * hidden);
      candidate = sum + 2 * hidden;
      const Operand &bias = *call.hidden_bias;
      const float *own = bias.data + d * bias.strides[0];
      for (int64_t i = 0; i < hidden; ++i)
        candidate[i] = clipped(sum[hidden + i] *
                                   (candidate[i] + own[i * bias.strides[1]]) +
                               from[2 * hidden + i]);
    }
    applyGate(direction.functions[1], candidate, hidden);
    for (int64_t i = 0; i < hidden; ++i)
      h[i] = (1 - sum[i]) * candidate[i] + sum[i] * h[i];
  }

  /// Adds the cell's state, times the weights of a peephole.
  void peep(float *to, int64_t d, int64_t which, const float *c) {
    if (!call.peepholes)
      return;
    const Operand &all = *call.peepholes;
    const float *own =
        all.data + d * all.strides[0] + which * hidden * all.strides[1];
    for (int64_t i = 0; i < hidden; ++i)
      to[i] += own[i * all.strides[1]] * c[i];
  }

  /// Adds the inputs to a gate, looks at the cell through its peephole (-1:
  /// none), and applies its function.
  void runGate(const GateFunction &function, float *gate, Row from,
               int64_t first, int64_t d, int64_t which, const float *c) {
    for (int64_t i = 0; i < hidden; ++i)
      gate[i] += from[first + i];
    if (which >= 0)
      peep(gate, d, which, c);
    if (plan.clip() > 0)
      for (int64_t i = 0; i < hidden; ++i)
        gate[i] = clipped(gate[i]);
    applyGate(function, gate, hidden);
  }

  void runLstm(const Direction &direction, int64_t d, int64_t b, Row from) {
    float *i = sumsOf(b), *o = i + hidden, *f = o + hidden, *g = f + hidden,
          *c = cell + b * hidden, *h = state + b * hidden;
    const auto &[gate, update, output] = direction.functions;
    runGate(gate, i, from, 0, d, 0, c);
    if (plan.coupled())
      for (int64_t k = 0; k < hidden; ++k)
        f[k] = 1 - i[k];
    else
      runGate(gate, f, from, 2 * hidden, d, 2, c);
    runGate(update, g, from, 3 * hidden, d, -1, c);
    for (int64_t k = 0; k < hidden; ++k)
      c[k] = f[k] * c[k] + i[k] * g[k];
    // This gate sees the new state of the cell.
    runGate(gate, o, from, hidden, d, 1, c);
    std::copy_n(c, hidden, h);
    applyGate(output, h, hidden);
    for (int64_t k = 0; k < hidden; ++k)
      h[k] *= o[k];
  }

  const abi::Recurrent &plan;
  int64_t steps, batch, hidden, gates;
  std::vector<Direction> directions;
  float *state = nullptr, *cell = nullptr, *reset = nullptr, *sums = nullptr;
};

} // namespace

Expected<std::unique_ptr<Task>> prepareRecurrent(ResolvedCall call,
                                                 OnednnContext &context,
                                                 const ThreadTeam &,
                                                 bool pack) {
  return prepared(std::make_unique<Recurrent>(std::move(call)), context, pack);
}

} // namespace partita::runtime
