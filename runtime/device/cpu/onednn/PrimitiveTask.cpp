//===- PrimitiveTask.cpp - A oneDNN primitive with its arguments ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/PrimitiveTask.h"

#include "runtime/abi/Calls.h"
#include "runtime/device/cpu/onednn/rules/Fusion.h"
#include "runtime/device/cpu/own/NanKeeping.h"

#include <algorithm>
#include <cstring>

namespace partita::runtime {
namespace {

using Kind = abi::PostOpKind;

/// What the library computes a post-op by.
struct Function {
  dnnl_alg_kind_t algorithm = dnnl_alg_kind_undef;
  float alpha = 0, beta = 0;
};

Function functionOf(const PostOperation &post) {
  const std::pair<float, float> none, alpha(post.alpha, 0),
      both(post.alpha, post.beta);
  switch (post.kind) {
#define PARTITA_POST_OP(name, algorithm, takes, fusion, nan)                   \
  case Kind::name:                                                             \
    return {dnnl_##algorithm, takes.first, takes.second};
#include "runtime/device/cpu/onednn/rules/PostOps.def"
#undef PARTITA_POST_OP
  }
  return {};
}

} // namespace

Expected<std::unique_ptr<PrimitiveTask>>
PrimitiveTask::create(OnednnContext &context, const OwnedPrimitiveDesc &desc) {
  auto task = std::make_unique<PrimitiveTask>();
  task->stream = context.stream();
  PARTITA_TRY(context.check(createPrimitive(task->primitive, desc),
                            "oneDNN cannot prepare it"));
  task->scratch_bytes = runtime::scratchBytes(desc);
  if (task->scratch_bytes)
    PARTITA_TRY(context.memory(queryDesc(desc, dnnl_query_scratchpad_md),
                               DNNL_MEMORY_NONE, task->scratchpad));
  return task;
}

Status PrimitiveTask::add(OnednnContext &context,
                          const std::vector<Argument> &arguments) {
  std::vector<dnnl_exec_arg_t> set;
  for (const Argument &argument : arguments) {
    OwnedMemory memory;
    PARTITA_TRY(context.memory(argument.desc, argument.data, memory));
    set.push_back({argument.index, memory.get()});
    memories.push_back(std::move(memory));
  }
  if (scratch_bytes)
    set.push_back({DNNL_ARG_SCRATCHPAD, scratchpad.get()});
  sets.push_back(std::move(set));
  return Status();
}

bool PrimitiveTask::run() {
  for (const std::vector<dnnl_exec_arg_t> &set : sets)
    if (dnnl_primitive_execute(primitive.get(), stream,
                               static_cast<int>(set.size()),
                               set.data()) != dnnl_success)
      return false;
  return true;
}

void PrimitiveTask::useScratch(uint8_t *data) {
  if (scratch_bytes)
    dnnl_memory_set_data_handle(scratchpad.get(), data);
}

uint8_t *AddressPlace::get() const {
  void *address = nullptr;
  if (pointer)
    std::memcpy(&address, pointer, sizeof address);
  else
    dnnl_memory_get_data_handle(memory, &address);
  return static_cast<uint8_t *>(address);
}

void AddressPlace::set(uint8_t *address) const {
  if (pointer)
    std::memcpy(pointer, &address, sizeof address);
  else
    dnnl_memory_set_data_handle(memory, address);
}

void PrimitiveTask::visitAddresses(const AddressVisitor &visit) {
  for (OwnedMemory &memory : memories)
    visit(memory.get());
}

Status makeAttributes(const std::vector<PostOperation> &post_ops,
                      const DescribeOperand &describe, OwnedAttr &attr) {
  OwnedPostOps ops;
  dnnl_status_t status = dnnl_primitive_attr_create(attr.out());
  if (status == dnnl_success)
    status = dnnl_primitive_attr_set_scratchpad_mode(attr.get(),
                                                     dnnl_scratchpad_mode_user);
  if (status == dnnl_success)
    status = dnnl_post_ops_create(ops.out());
  for (const PostOperation &post : post_ops) {
    if (status != dnnl_success)
      break;
    const Function function = functionOf(post);
    if (abi::isBinary(post.kind)) {
      dnnl_memory_desc_t desc = describe(post.operand);
      status =
          dnnl_post_ops_append_binary(ops.get(), function.algorithm, &desc);
    } else if (post.kind == Kind::sum) {
      status = dnnl_post_ops_append_sum(ops.get(), 1.0f);
    } else {
      status = dnnl_post_ops_append_eltwise(ops.get(), 1.0f, function.algorithm,
                                            function.alpha, function.beta);
    }
  }
  if (status == dnnl_success)
    status = dnnl_primitive_attr_set_post_ops(attr.get(), ops.get());
  if (status == dnnl_success)
    return Status();
  return Status::error(std::string("oneDNN takes no such post-ops: ") +
                       onednnText(status));
}

/// Whether a result has one element a channel: the library then takes an
/// operand of one a channel for one of the result's own form, or the other way.
static bool hasOnePixel(const OwnedPrimitiveDesc &desc) {
  const dnnl_memory_desc_t result = queryDesc(desc, dnnl_query_dst_md);
  for (int i = 0; i < result.ndims; ++i)
    if (i != 1 && result.dims[i] != 1)
      return false;
  return result.ndims > 0;
}

bool computesRightly(const OwnedPrimitiveDesc &desc,
                     const std::vector<PostOperation> &post_ops) {
  // The depthwise code takes the first block's operands for all channels, and
  // the other one does so where the pixel sees nothing but padding.
  if ((isNamed(desc, "brdgmm_dw") || isNamed(desc, "brgconv")) &&
      hasOnePixel(desc))
    return std::none_of(
        post_ops.begin(), post_ops.end(),
        [](const PostOperation &post) { return abi::isBinary(post.kind); });
  const bool product = isNamed(desc, "x64:gemm"), reference = isReference(desc);
  return !(product || reference) ||
         std::none_of(post_ops.begin(), post_ops.end(),
                      [product, reference](const PostOperation &post) {
                        return post.kind == Kind::logistic ||
                               (reference && post.kind == Kind::relu) ||
                               (product && abi::isBinary(post.kind));
                      });
}

void addPostOpArguments(const std::vector<PostOperation> &post_ops,
                        const DescribeOperand &describe,
                        std::vector<PrimitiveTask::Argument> &arguments) {
  for (size_t i = 0; i < post_ops.size(); ++i)
    if (abi::isBinary(post_ops[i].kind))
      arguments.push_back(
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1,
           describe(post_ops[i].operand), post_ops[i].operand.data});
}

Status chooseProduct(OnednnContext &context, const dnnl_memory_desc_t &left,
                     const dnnl_memory_desc_t &right,
                     const dnnl_memory_desc_t &result, const char *owner,
                     bool adds, OwnedPrimitiveDesc &desc) {
  OwnedAttr attr;
  std::vector<PostOperation> post_ops(adds ? 1 : 0);
  for (PostOperation &sum : post_ops)
    sum.kind = Kind::sum;
  PARTITA_TRY(makeAttributes(post_ops, {}, attr));
  dnnl_matmul_desc_t op;
  dnnl_status_t status =
      dnnl_matmul_desc_init(&op, &left, &right, nullptr, &result);
  if (status == dnnl_success)
    status = context.choose(&op, attr, desc);
  return context.check(
      status, std::string("oneDNN does not take the products of ") + owner);
}

namespace {

/// A post-op as a primitive of its own, in place on the result.
Expected<std::unique_ptr<Task>> makeAlone(OnednnContext &context,
                                          const PostOperation &post,
                                          const Operand &result,
                                          const DescribeOperand &describe) {
  dnnl_memory_desc_t desc = describe(result);
  std::vector<PrimitiveTask::Argument> arguments = {
      {DNNL_ARG_DST, desc, result.data}};
  OwnedAttr attr;
  PARTITA_TRY(makeAttributes({}, describe, attr));
  OwnedPrimitiveDesc made;
  dnnl_status_t status;
  const Function function = functionOf(post);
  if (abi::isBinary(post.kind)) {
    dnnl_memory_desc_t other = describe(post.operand);
    dnnl_binary_desc_t op;
    status =
        dnnl_binary_desc_init(&op, function.algorithm, &desc, &other, &desc);
    if (status == dnnl_success)
      status = context.choose(&op, attr, made);
    arguments.push_back({DNNL_ARG_SRC_0, desc, result.data});
    arguments.push_back({DNNL_ARG_SRC_1, other, post.operand.data});
  } else {
    dnnl_eltwise_desc_t op;
    status = dnnl_eltwise_forward_desc_init(&op, dnnl_forward_inference,
                                            function.algorithm, &desc,
                                            function.alpha, function.beta);
    if (status == dnnl_success)
      status = context.choose(&op, attr, made);
    if (status == dnnl_success && isReference(made) && post.kind == Kind::relu)
      return Status::error("oneDNN would make -0 of negative numbers");
    arguments.push_back({DNNL_ARG_SRC, desc, result.data});
  }
  PARTITA_TRY(context.check(status, "oneDNN does not take this post-op"));
  auto task = PARTITA_TRY(PrimitiveTask::create(context, made));
  PARTITA_TRY(task->add(context, arguments));
  return std::unique_ptr<Task>(std::move(task));
}

/// How many post-ops come before one that must not be fused. oneDNN 2.6 gives a
/// second function of one kind the parameters of the first.
size_t countFusable(const std::vector<PostOperation> &post_ops,
                    bool keeps_nan) {
  for (size_t i = 0; i < post_ops.size(); ++i) {
    if (keeps_nan && rules::losesNan(post_ops[i].kind))
      return i;
    for (size_t j = 0; j < i; ++j)
      if (!abi::isBinary(post_ops[i].kind) &&
          post_ops[i].kind == post_ops[j].kind &&
          (post_ops[i].alpha != post_ops[j].alpha ||
           post_ops[i].beta != post_ops[j].beta))
        return i;
  }
  return post_ops.size();
}

} // namespace

Expected<std::unique_ptr<Task>>
fusePostOps(OnednnContext &context, const std::vector<PostOperation> &post_ops,
            const Operand &result, const DescribeOperand &describe,
            const MakeFused &make) {
  bool slow = false;
  const size_t most = countFusable(post_ops, context.nanTeam() != nullptr);
  const bool fits = most == post_ops.size();
  const OnednnContext::Taken before = context.taken();
  bool works = false; // with all post-ops, by reference code
  Status why = Status::error("oneDNN takes none of the post-ops");
  // Code that keeps NaN has the bits of code that does not: the library sums in
  // the order of what it would compute it with.
  struct Preference {
    OnednnContext &context;
    ~Preference() { context.prefer(""); }
  } preference{context};
  if (!fits && countFusable(post_ops, false) == post_ops.size()) {
    if (make(post_ops, slow) && !slow)
      context.prefer(context.chosen());
    context.giveBack(before);
  }
  if (fits) {
    auto all = make(post_ops, slow);
    if (all && !slow)
      return all;
    works = all.ok();
    if (!works)
      why = all.status();
  }
  auto makeWhole = [&]() -> Expected<std::unique_ptr<Task>> {
    if (!works)
      return why;
    context.giveBack(before);
    return make(post_ops, slow);
  };
  // Reference code is better than post-ops that cannot be fused.
  for (bool mayBeSlow : {false, true})
    for (size_t count = most + !fits; count-- > 0 && !(works && mayBeSlow);) {
      // What the destination held before the call is gone after it.
      if (post_ops[count].kind == Kind::sum)
        break;
      // No try has less room because of another.
      context.giveBack(before);
      std::vector<PostOperation> fused(post_ops.begin(),
                                       post_ops.begin() + count);
      auto first = make(fused, slow);
      if (!first || (slow && !mayBeSlow))
        continue;
      auto sequence = std::make_unique<TaskSequence>();
      sequence->tasks.push_back(std::move(*first));
      for (size_t i = count; i < post_ops.size() && sequence; ++i) {
        if (context.nanTeam() && rules::losesNan(post_ops[i].kind)) {
          sequence->tasks.push_back(
              makeNanKeeping(post_ops[i], result, *context.nanTeam()));
          continue;
        }
        auto next = makeAlone(context, post_ops[i], result, describe);
        // As where NaN is kept: numbers must not depend on that.
        if (!next && context.team() && rules::losesNan(post_ops[i].kind))
          next = makeNanKeeping(post_ops[i], result, *context.team());
        if (next)
          sequence->tasks.push_back(std::move(*next));
        else
          sequence.reset();
      }
      if (!sequence) // a post-op has no code of its own
        return makeWhole();
      return std::unique_ptr<Task>(std::move(sequence));
    }
  return makeWhole();
}

} // namespace partita::runtime
