//===- WinogradConv.cpp - Convolutions by Winograd's method ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/ImageLayout.h"
#include "runtime/device/cpu/onednn/Reordering.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

#include <algorithm>

namespace partita::runtime {
namespace {

dnnl_memory_desc_t describe(const Operand &image) {
  return imageDesc(image, true);
}

/// With these post-ops; fails for those that the library does not fuse.
Expected<std::unique_ptr<Task>> make(const ResolvedCall &call,
                                     const std::vector<PostOperation> &post_ops,
                                     const std::vector<int64_t> &pads_high,
                                     OnednnContext &context) {
  const Operand &input = call.operands[0], &weights = call.operands[1],
                &result = call.operands.back();
  const dnnl_memory_desc_t plain_input = describe(input),
                           plain_result = describe(result),
                           plain_weights = broadcastDesc(weights),
                           any_input = anyDesc(input.dims),
                           any_result = anyDesc(result.dims),
                           any_weights = anyDesc(weights.dims);
  dnnl_memory_desc_t bias = {};
  if (call.bias)
    bias = stridedDesc(call.bias->dims, {1});
  OwnedAttr attr;
  PARTITA_TRY(makeAttributes(post_ops, describe, attr));
  const abi::Conv &given = *call.call->details_as_Conv();
  dnnl_convolution_desc_t op;
  dnnl_status_t status = dnnl_convolution_forward_desc_init(
      &op, dnnl_forward_inference, dnnl_convolution_winograd, &any_input,
      &any_weights, call.bias ? &bias : nullptr, &any_result,
      given.strides()->data(), given.pads_low()->data(), pads_high.data());
  const rules::WindowedImages shape = {result.dims[0], input.dims[1],
                                       result.dims[1], result.dims[2],
                                       result.dims[3]};
  OwnedPrimitiveDesc desc;
  auto getRoom = [&](const OwnedPrimitiveDesc &each) {
    const dnnl_memory_desc_t filter = queryDesc(each, dnnl_query_weights_md);
    return static_cast<int64_t>(dnnl_memory_desc_get_size(&filter)) >
                   rules::winogradFilterRoom(shape)
               ? -1
               : static_cast<int64_t>(
                     packedBytes(queryDesc(each, dnnl_query_src_md)) +
                     packedBytes(queryDesc(each, dnnl_query_dst_md)));
  };
  if (status == dnnl_success)
    status = context.choose(&op, attr, desc, getRoom);
  PARTITA_TRY(context.check(status, "oneDNN has no code for this method"));
  const dnnl_memory_desc_t blocked_input = queryDesc(desc, dnnl_query_src_md),
                           blocked_result = queryDesc(desc, dnnl_query_dst_md),
                           packed_weights =
                               queryDesc(desc, dnnl_query_weights_md);

  // Input into blocks, convolution, result out of blocks.
  auto before = PARTITA_TRY(
      makeReorder(context, plain_input, input.data, blocked_input, nullptr));
  auto after = PARTITA_TRY(
      makeReorder(context, blocked_result, nullptr, plain_result, result.data));
  auto conv = PARTITA_TRY(PrimitiveTask::create(context, desc));
  auto packed =
      PARTITA_TRY(context.packed(weights, plain_weights, packed_weights));
  std::vector<PrimitiveTask::Argument> arguments = {
      {DNNL_ARG_SRC, blocked_input, nullptr},
      {DNNL_ARG_DST, blocked_result, nullptr},
      {DNNL_ARG_WEIGHTS, packed_weights, packed}};
  if (call.bias)
    arguments.push_back({DNNL_ARG_BIAS, bias, call.bias->data});
  PARTITA_TRY(conv->add(context, arguments));
  auto task = std::make_unique<TaskSequence>();
  task->buffers = {
      {packedBytes(blocked_input), {before->argument(1), conv->argument(0)}},
      {packedBytes(blocked_result), {conv->argument(1), after->argument(0)}}};
  for (auto *part : {&before, &conv, &after})
    task->tasks.push_back(std::move(*part));
  return std::unique_ptr<Task>(std::move(task));
}

} // namespace

Expected<std::unique_ptr<Task>>
prepareWinograd(const ResolvedCall &call, const std::vector<int64_t> &pads_high,
                OnednnContext &context) {
  if (call.operands[0].rank() != 4 ||
      call.call->details_as_Conv()->groups() != 1 ||
      std::any_of(call.post_ops.begin(), call.post_ops.end(),
                  [](const PostOperation &post) {
                    return post.kind >= abi::PostOpKind::add;
                  }))
    return Status::error("it has post-ops with operands, or groups");
  return fusePostOps(
      context, call.post_ops, call.operands.back(), describe,
      [&](const std::vector<PostOperation> &fused, bool & /*slow*/) {
        return make(call, fused, pads_high, context);
      });
}

} // namespace partita::runtime
