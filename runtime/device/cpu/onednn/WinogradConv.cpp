//===- WinogradConv.cpp - Convolutions by Winograd's method ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/WinogradConv.h"

#include "runtime/device/cpu/onednn/ImageLayout.h"
#include "runtime/device/cpu/onednn/PrimitiveTask.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

#include <algorithm>

namespace partita::runtime {
namespace {

constexpr size_t kAlignment = 4096;

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Input into blocks, convolution, result out of blocks. The blocked images lie
/// in the scratch, before that of the convolution.
class WinogradTask final : public Task {
public:
  /// A primitive and what it is executed with.
  struct Part {
    OwnedPrimitive primitive;
    std::vector<OwnedMemory> memories;
    std::vector<dnnl_exec_arg_t> arguments;

    Status add(OnednnContext &context, int index,
               const dnnl_memory_desc_t &desc, void *data) {
      OwnedMemory memory;
      PARTITA_TRY(context.memory(desc, data, memory));
      arguments.push_back({index, memory.get()});
      memories.push_back(std::move(memory));
      return Status();
    }
  };

  Part parts[3];
  dnnl_stream_t stream = nullptr;
  size_t input_bytes = 0, result_bytes = 0, conv_bytes = 0;

  bool run() override {
    return std::all_of(std::begin(parts), std::end(parts), [&](Part &part) {
      return dnnl_primitive_execute(part.primitive.get(), stream,
                                    static_cast<int>(part.arguments.size()),
                                    part.arguments.data()) == dnnl_success;
    });
  }
  size_t scratchBytes() const override {
    return aligned(input_bytes) + aligned(result_bytes) + conv_bytes;
  }
  /// Scratch is what each part has first: source, destination, its own.
  void useScratch(uint8_t *data) override {
    uint8_t *result = data + aligned(input_bytes);
    auto set = [](Part &part, size_t memory, uint8_t *address) {
      dnnl_memory_set_data_handle(part.memories[memory].get(), address);
    };
    set(parts[0], 0, data);
    set(parts[1], 0, data);
    set(parts[1], 1, result);
    set(parts[1], 2, result + aligned(result_bytes));
    set(parts[2], 0, result);
  }
  void visitAddresses(const AddressVisitor &visit) override {
    for (auto &[part, own] : {std::pair(&parts[0], 1), std::pair(&parts[1], 3),
                              std::pair(&parts[2], 1)})
      for (size_t i = own; i < part->memories.size(); ++i)
        visit(part->memories[i].get());
  }
};

/// From one order to the other; memory 0 is the one in the scratch.
Status addReorder(OnednnContext &context, const dnnl_memory_desc_t &from,
                  const dnnl_memory_desc_t &to, float *image, bool isInput,
                  WinogradTask::Part &part) {
  OwnedAttr attr;
  PARTITA_TRY(makeAttributes({}, {}, attr));
  OwnedPrimitiveDesc desc;
  dnnl_status_t status = dnnl_reorder_primitive_desc_create(
      desc.out(), &from, context.engine(), &to, context.engine(), attr.get());
  if (status == dnnl_success)
    status = createPrimitive(part.primitive, desc);
  if (status != dnnl_success)
    return Status::error(std::string("oneDNN cannot reorder the image: ") +
                         onednnText(status));
  const dnnl_memory_desc_t *scratch =
      dnnl_primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
  if (scratch && dnnl_memory_desc_get_size(scratch))
    return Status::error("reordering the image needs scratch of its own");
  Status added = part.add(context, isInput ? DNNL_ARG_TO : DNNL_ARG_FROM,
                          isInput ? to : from, DNNL_MEMORY_NONE);
  if (added.ok())
    added = part.add(context, isInput ? DNNL_ARG_FROM : DNNL_ARG_TO,
                     isInput ? from : to, image);
  return added;
}

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
  auto size = [&](const OwnedPrimitiveDesc &desc, dnnl_query_t what) {
    dnnl_memory_desc_t found = query(desc, what);
    return dnnl_memory_desc_get_size(&found);
  };
  const rules::WindowedImages shape = {result.dims[0], input.dims[1],
                                       result.dims[1], result.dims[2],
                                       result.dims[3]};
  OwnedPrimitiveDesc desc;
  status = context.choose(&op, attr, desc, [&](const OwnedPrimitiveDesc &each) {
    return static_cast<int64_t>(size(each, dnnl_query_weights_md)) >
                   rules::winogradFilterRoom(shape)
               ? -1
               : static_cast<int64_t>(aligned(size(each, dnnl_query_src_md)) +
                                      aligned(size(each, dnnl_query_dst_md)));
  });
  if (status != dnnl_success)
    return Status::error(context.reason(status));
  const dnnl_memory_desc_t blocked_input = query(desc, dnnl_query_src_md),
                           blocked_result = query(desc, dnnl_query_dst_md),
                           packed_weights = query(desc, dnnl_query_weights_md),
                           scratch = query(desc, dnnl_query_scratchpad_md);

  auto task = std::make_unique<WinogradTask>();
  task->stream = context.stream();
  task->input_bytes = dnnl_memory_desc_get_size(&blocked_input);
  task->result_bytes = dnnl_memory_desc_get_size(&blocked_result);
  task->conv_bytes = dnnl_memory_desc_get_size(&scratch);
  auto &[before, conv, after] = task->parts;
  PARTITA_TRY(addReorder(context, plain_input, blocked_input, input.data,
                         /*isInput=*/true, before));
  PARTITA_TRY(addReorder(context, blocked_result, plain_result, result.data,
                         /*isInput=*/false, after));
  status = createPrimitive(conv.primitive, desc);
  if (status != dnnl_success)
    return Status::error(onednnText(status));
  auto packed =
      PARTITA_TRY(context.packed(weights, plain_weights, packed_weights));
  Status made =
      conv.add(context, DNNL_ARG_SRC, blocked_input, DNNL_MEMORY_NONE);
  if (made.ok())
    made = conv.add(context, DNNL_ARG_DST, blocked_result, DNNL_MEMORY_NONE);
  if (made.ok())
    made = conv.add(context, DNNL_ARG_SCRATCHPAD, scratch, DNNL_MEMORY_NONE);
  if (made.ok())
    made = conv.add(context, DNNL_ARG_WEIGHTS, packed_weights, packed);
  if (made.ok() && call.has_bias)
    made = conv.add(context, DNNL_ARG_BIAS, bias, call.bias.data);
  if (!made.ok())
    return made;
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
