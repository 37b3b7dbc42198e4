//===- DotCall.cpp - Matrix products --------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library is fastest on plain matrices, so the call's batch axes are
// brought to the simplest form first: if the right side is the same for all
// batches and everything else lies densely, they become rows; otherwise
// neighbouring ones become one where all operands allow it.
//
// Where it has only its general product, which reads weights in their plain
// order (processors without AVX-512), a convolution of single pixels is faster:
// its code has the weights in blocks.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/PrimitiveTask.h"

#include <algorithm>

namespace partita::runtime {

void broadcastBatch(ResolvedCall &product) {
  const std::vector<int64_t> &result = product.result().dims;
  for (Operand *operand : {&product.operands[0], &product.operands[1]}) {
    std::vector<int64_t> shape = operand->dims;
    std::copy_n(result.begin(), result.size() - 2, shape.begin());
    operand->broadcastTo(shape);
  }
}

namespace {

/// The operands of a product, all of one rank, result[B.., M, N].
class Dot {
public:
  Dot(ResolvedCall call, OnednnContext &context, bool pack)
      : call(std::move(call)), context(context), pack(pack) {}

  Expected<std::unique_ptr<Task>> prepare() {
    broadcastBatch(call);
    if (!foldBatchIntoRows())
      joinBatchAxes();
    dropBatchAxesOfOne();
    if (pack && rhs().constant && result().rank() == 2 &&
        lhs().type == abi::DType::f32 && isGeneral())
      if (auto task = makePointwise())
        return task;
    auto task = make(/*packed=*/pack && rhs().constant);
    if (!task && pack && rhs().constant && !context.lacksRoom())
      task = make(/*packed=*/false);
    if (!task && lhs().rank() > 2)
      task = makeLoop();
    return task;
  }

private:
  Operand &lhs() { return call.operands[0]; }
  Operand &rhs() { return call.operands[1]; }
  Operand &result() { return call.operands[2]; }

  /// The operands that have an axis of the result's rows, and those of the
  /// batch axes.
  std::vector<Operand *> rowOperands() {
    std::vector<Operand *> all = {&lhs(), &result()};
    for (PostOperation &post : call.post_ops)
      if (post.operand.rank())
        all.push_back(&post.operand);
    return all;
  }
  std::vector<Operand *> allOperands() {
    std::vector<Operand *> all = rowOperands();
    all.push_back(&rhs());
    return all;
  }

  static bool joins(const Operand &operand, int axis) {
    if (operand.dims[axis] == 1 || operand.dims[axis + 1] == 1)
      return true;
    return operand.strides[axis] ==
           operand.strides[axis + 1] * operand.dims[axis + 1];
  }
  static void join(Operand &operand, int axis) {
    if (operand.dims[axis + 1] == 1)
      operand.strides[axis + 1] = operand.strides[axis];
    operand.dims[axis + 1] *= operand.dims[axis];
    erase(operand, axis);
  }
  static void erase(Operand &operand, int axis) {
    operand.dims.erase(operand.dims.begin() + axis);
    operand.strides.erase(operand.strides.begin() + axis);
  }

  bool foldBatchIntoRows() {
    int batch = result().rank() - 2;
    for (int axis = 0; axis < batch; ++axis)
      if (rhs().dims[axis] != 1 && rhs().strides[axis] != 0)
        return false;
    for (Operand *operand : rowOperands()) {
      Operand folded = *operand;
      for (int axis = batch - 1; axis >= 0; --axis) {
        if (!joins(folded, axis))
          return false;
        join(folded, axis);
      }
    }
    for (int axis = batch - 1; axis >= 0; --axis) {
      for (Operand *operand : rowOperands())
        join(*operand, axis);
      erase(rhs(), axis);
    }
    return true;
  }

  void joinBatchAxes() {
    for (int axis = result().rank() - 4; axis >= 0; --axis) {
      std::vector<Operand *> all = allOperands();
      if (std::all_of(all.begin(), all.end(),
                      [&](Operand *o) { return joins(*o, axis); }))
        for (Operand *operand : all)
          join(*operand, axis);
    }
  }

  void dropBatchAxesOfOne() {
    for (int axis = result().rank() - 3; axis >= 0; --axis)
      if (result().dims[axis] == 1)
        for (Operand *operand : allOperands())
          erase(*operand, axis);
  }

  /// Extents and strides as the library takes them: an axis of one has the
  /// stride it would have in a dense matrix.
  static dnnl_memory_desc_t matrixDesc(const Operand &operand) {
    std::vector<int64_t> dims = operand.dims, strides = operand.strides;
    int last = operand.rank() - 1;
    for (int axis = 0; axis < last - 1; ++axis)
      if (strides[axis] == 0)
        dims[axis] = 1;
    if (dims[last] == 1)
      strides[last] = 1;
    if (dims[last - 1] == 1)
      strides[last - 1] = dims[last] * strides[last];
    int64_t dense = std::max(dims[last] * strides[last],
                             dims[last - 1] * strides[last - 1]);
    for (int axis = last - 2; axis >= 0; --axis) {
      if (dims[axis] == 1)
        strides[axis] = dense;
      dense = std::max(dense, dims[axis] * strides[axis]);
    }
    return stridedDesc(dims, strides, operand.type);
  }

  /// Whether the first post-op adds one dense vector to every row.
  bool beginsWithBias() {
    if (call.post_ops.empty() || call.post_ops[0].kind != abi::PostOpKind::add)
      return false;
    const Operand &operand = call.post_ops[0].operand;
    int last = operand.rank() - 1;
    for (int axis = 0; axis < last; ++axis)
      if (operand.dims[axis] != 1 && operand.strides[axis] != 0)
        return false;
    return operand.dims[last] == 1 || operand.strides[last] == 1;
  }

  /// Whether the library has nothing better for plain matrices than its general
  /// product.
  bool isGeneral() {
    dnnl_memory_desc_t src = matrixDesc(lhs()), dst = matrixDesc(result()),
                       weights = anyDesc(rhs().dims);
    OwnedAttr attr;
    OwnedPrimitiveDesc desc;
    dnnl_matmul_desc_t op;
    return makeAttributes({}, broadcastDesc, attr).ok() &&
           dnnl_matmul_desc_init(&op, &src, &weights, nullptr, &dst) ==
               dnnl_success &&
           context.choose(&op, attr, desc) == dnnl_success &&
           isNamed(desc, "gemm");
  }

  Expected<std::unique_ptr<Task>> makePointwise() {
    ResolvedCall product = call;
    if (beginsWithBias()) {
      Operand &bias = product.bias.emplace(product.post_ops[0].operand);
      bias.dims.erase(bias.dims.begin());
      bias.strides.erase(bias.strides.begin());
      product.post_ops.erase(product.post_ops.begin());
    }
    return preparePointwise(std::move(product), context);
  }

  Expected<std::unique_ptr<Task>> make(bool packed) {
    bool bias = beginsWithBias();
    std::vector<PostOperation> post(call.post_ops.begin() + bias,
                                    call.post_ops.end());
    return fusePostOps(
        context, post, result(), broadcastDesc,
        [&](const std::vector<PostOperation> &fused, bool &slow) {
          return make(packed, bias, fused, slow);
        });
  }

  /// How many rows the library computes at once. It brings many rows of a few
  /// columns each to memory together; where there is little to compute for
  /// them, that takes several times as long as row after row. Shape alone
  /// decides, for the same bits with any number of threads.
  int64_t rowsAtOnce() {
    constexpr int64_t kShallow = 64, kWide = 1024, kRows = 32;
    const int64_t all = result().dims[result().rank() - 2];
    const bool shallow = lhs().dims.back() <= kShallow;
    const bool wide = result().dims.back() >= kWide;
    return result().rank() == 2 && shallow && wide ? std::min(all, kRows) : all;
  }

  Expected<std::unique_ptr<Task>> make(bool packed, bool bias,
                                       const std::vector<PostOperation> &post,
                                       bool &slow) {
    const int64_t all = result().dims[result().rank() - 2];
    const int64_t rows = std::max<int64_t>(rowsAtOnce(), 1);
    if (all <= rows)
      return makeRows(packed, bias, post, slow, {0, all, 1});
    // What is left goes with the last block: of about as many rows, it wants
    // the weights in the same order.
    const int64_t whole = all % rows ? all / rows - 1 : all / rows;
    auto sequence = std::make_unique<TaskSequence>();
    for (const Rows &each :
         {Rows{0, rows, whole}, Rows{whole * rows, all - whole * rows, 1}}) {
      if (each.count == 0 || each.times == 0)
        continue;
      sequence->tasks.push_back(
          PARTITA_TRY(makeRows(packed, bias, post, slow, each)));
    }
    return std::unique_ptr<Task>(std::move(sequence));
  }

  /// `times` blocks of `count` rows each.
  struct Rows {
    int64_t begin, count, times;
  };
  static Operand block(Operand operand, int64_t begin, int64_t count) {
    const int axis = operand.rank() - 2;
    operand.advance(begin * operand.strides[axis]);
    operand.dims[axis] = count;
    return operand;
  }

  Expected<std::unique_ptr<Task>>
  makeRows(bool packed, bool bias, const std::vector<PostOperation> &post,
           bool &slow, const Rows &rows) {
    dnnl_memory_desc_t src = matrixDesc(block(lhs(), 0, rows.count)),
                       plain = matrixDesc(rhs()),
                       dst = matrixDesc(block(result(), 0, rows.count)),
                       bias_desc = {};
    std::vector<int64_t> rhs_dims(plain.dims, plain.dims + plain.ndims);
    dnnl_memory_desc_t weights = packed ? anyDesc(rhs_dims, rhs().type) : plain;
    if (bias) {
      Operand row = call.post_ops[0].operand;
      for (int axis = 0; axis < row.rank() - 1; ++axis)
        row.strides[axis] = 0;
      bias_desc = broadcastDesc(row);
    }
    auto postAt = [&](int64_t begin) {
      std::vector<PostOperation> part = post;
      for (PostOperation &each : part)
        if (each.operand.rank())
          each.operand = block(each.operand, begin, rows.count);
      return part;
    };
    OwnedAttr attr;
    PARTITA_TRY(makeAttributes(postAt(0), broadcastDesc, attr));
    dnnl_matmul_desc_t op;
    OwnedPrimitiveDesc desc;
    dnnl_status_t status = dnnl_matmul_desc_init(
        &op, &src, &weights, bias ? &bias_desc : nullptr, &dst);
    if (status == dnnl_success)
      status = context.choose(&op, attr, desc);
    PARTITA_TRY(
        context.check(status, "oneDNN does not take this matrix product"));
    slow = isReference(desc);
    if (!computesRightly(desc, post))
      return Status::error("oneDNN computes its post-ops wrongly");
    auto task = PARTITA_TRY(PrimitiveTask::create(context, desc));
    float *rhs_data = rhs().data;
    if (packed) {
      weights = queryDesc(desc, dnnl_query_weights_md);
      rhs_data = PARTITA_TRY(context.packed(rhs(), plain, weights));
    } else {
      context.readInPlace(rhs());
    }
    for (int64_t i = 0; i < rows.times; ++i) {
      const int64_t begin = rows.begin + i * rows.count;
      std::vector<PrimitiveTask::Argument> arguments = {
          {DNNL_ARG_SRC, src, block(lhs(), begin, rows.count).data},
          {DNNL_ARG_WEIGHTS, weights, rhs_data},
          {DNNL_ARG_DST, dst, block(result(), begin, rows.count).data}};
      if (bias)
        arguments.push_back(
            {DNNL_ARG_BIAS, bias_desc, call.post_ops[0].operand.data});
      addPostOpArguments(postAt(begin), broadcastDesc, arguments);
      PARTITA_TRY(task->add(context, arguments));
    }
    return std::unique_ptr<Task>(std::move(task));
  }

  /// Batches that the library cannot describe: one product after another.
  Expected<std::unique_ptr<Task>> makeLoop() {
    auto loop = std::make_unique<TaskSequence>();
    for (int64_t i = 0; i < result().dims[0]; ++i) {
      Dot one(call, context, pack);
      for (Operand *operand : one.allOperands()) {
        operand->advance(i * operand->strides[0]);
        erase(*operand, 0);
      }
      loop->tasks.push_back(PARTITA_TRY(one.prepare()));
    }
    return std::unique_ptr<Task>(std::move(loop));
  }

  ResolvedCall call;
  OnednnContext &context;
  bool pack;
};

} // namespace

Expected<std::unique_ptr<Task>> prepareDot(ResolvedCall call,
                                           OnednnContext &context,
                                           const ThreadTeam &team, bool pack) {
  if (call.operands[0].type == abi::DType::bf16) {
    if (hasBrainProducts()) {
      const OnednnContext::Taken before = context.taken();
      if (auto task = Dot(call, context, pack).prepare();
          task && context.chosen().rfind("ref", 0) != 0)
        return task;
      context.giveBack(before);
    }
    return prepareBrainDot(std::move(call), context, team);
  }
  if (!multipliesIntegers(call))
    return Dot(std::move(call), context, pack).prepare();
  if (hasExactIntegers())
    if (auto task = Dot(call, context, pack).prepare())
      return task;
  return prepareIntegerDot(std::move(call), context, team);
}

} // namespace partita::runtime
