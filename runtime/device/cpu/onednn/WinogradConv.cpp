//===- WinogradConv.cpp - Convolutions by Winograd's method ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/ImageLayout.h"
#include "runtime/device/cpu/onednn/ReorderedTask.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

#include <algorithm>

namespace partita::runtime {
namespace {

/// Input into blocks, convolution, result out of blocks. The blocked images lie
/// in the scratch, before that of the primitives.
class WinogradTask final : public Task {
public:
  std::unique_ptr<PrimitiveTask> before, conv, after;
  size_t input_bytes = 0, result_bytes = 0;

  bool run() override { return before->run() && conv->run() && after->run(); }
  size_t scratchBytes() const override {
    return input_bytes + result_bytes +
           std::max({before->scratchBytes(), conv->scratchBytes(),
                     after->scratchBytes()});
  }
  void useScratch(uint8_t *data) override {
    uint8_t *result = data + input_bytes;
    before->argument(1).set(data);
    conv->argument(0).set(data);
    conv->argument(1).set(result);
    after->argument(0).set(result);
    for (PrimitiveTask *part : {before.get(), conv.get(), after.get()})
      part->useScratch(result + result_bytes);
  }
  void visitAddresses(const AddressVisitor &visit) override {
    for (PrimitiveTask *part : {before.get(), conv.get(), after.get()})
      part->visitAddresses(visit);
  }
};

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
  if (call.has_bias)
    bias = stridedDesc(call.bias.dims, {1});
  OwnedAttr attr;
  PARTITA_TRY(makeAttributes(post_ops, describe, attr));
  const abi::Conv &given = *call.call->details_as_Conv();
  dnnl_convolution_desc_t op;
  dnnl_status_t status = dnnl_convolution_forward_desc_init(
      &op, dnnl_forward_inference, dnnl_convolution_winograd, &any_input,
      &any_weights, call.has_bias ? &bias : nullptr, &any_result,
      given.strides()->data(), given.pads_low()->data(), pads_high.data());
  if (status != dnnl_success)
    return Status::error(onednnText(status));

  auto query = [](const OwnedPrimitiveDesc &desc, dnnl_query_t what) {
    return *dnnl_primitive_desc_query_md(desc.get(), what, 0);
  };
  const rules::WindowedImages shape = {result.dims[0], input.dims[1],
                                       result.dims[1], result.dims[2],
                                       result.dims[3]};
  OwnedPrimitiveDesc desc;
  status = context.choose(&op, attr, desc, [&](const OwnedPrimitiveDesc &each) {
    const dnnl_memory_desc_t filter = query(each, dnnl_query_weights_md);
    return static_cast<int64_t>(dnnl_memory_desc_get_size(&filter)) >
                   rules::winogradFilterRoom(shape)
               ? -1
               : static_cast<int64_t>(
                     packedBytes(query(each, dnnl_query_src_md)) +
                     packedBytes(query(each, dnnl_query_dst_md)));
  });
  if (status != dnnl_success)
    return Status::error(context.reason(status));
  const dnnl_memory_desc_t blocked_input = query(desc, dnnl_query_src_md),
                           blocked_result = query(desc, dnnl_query_dst_md),
                           packed_weights = query(desc, dnnl_query_weights_md);

  auto task = std::make_unique<WinogradTask>();
  task->input_bytes = packedBytes(blocked_input);
  task->result_bytes = packedBytes(blocked_result);
  task->before = PARTITA_TRY(
      makeReorder(context, plain_input, input.data, blocked_input, nullptr));
  task->after = PARTITA_TRY(
      makeReorder(context, blocked_result, nullptr, plain_result, result.data));
  task->conv = PARTITA_TRY(PrimitiveTask::create(context, desc));
  auto packed =
      PARTITA_TRY(context.packed(weights, plain_weights, packed_weights));
  std::vector<PrimitiveTask::Argument> arguments = {
      {DNNL_ARG_SRC, blocked_input, nullptr},
      {DNNL_ARG_DST, blocked_result, nullptr},
      {DNNL_ARG_WEIGHTS, packed_weights, packed}};
  if (call.has_bias)
    arguments.push_back({DNNL_ARG_BIAS, bias, call.bias.data});
  PARTITA_TRY(task->conv->add(context, arguments));
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
