//===- PoolCall.cpp - Pooling ---------------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/ImageLayout.h"
#include "runtime/device/cpu/PrimitiveTask.h"

namespace partita::runtime {

Expected<std::unique_ptr<Task>> preparePool(ResolvedCall resolved,
                                            OnednnContext &context) {
  const abi::LibraryCall &call = *resolved.call;
  const Operand &input = resolved.operands[0], &result = resolved.operands[1];
  bool channels_last = liesDensely(input, true) && liesDensely(result, true);
  auto describe = [&](const Operand &operand) {
    return imageDesc(operand, channels_last);
  };
  dnnl_memory_desc_t src = describe(input), dst = describe(result);

  // The library counts the elements between two taps, and wants the last window
  // to end where the padding does.
  std::vector<int64_t> dilations, pads_high;
  for (int i = 0; i < input.rank() - 2; ++i) {
    dilations.push_back(call.dilations()->Get(i) - 1);
    pads_high.push_back((result.dims[i + 2] - 1) * call.strides()->Get(i) +
                        (call.window()->Get(i) - 1) * call.dilations()->Get(i) +
                        1 - input.dims[i + 2] - call.pads_low()->Get(i));
  }
  dnnl_alg_kind_t algorithm =
      call.kind() == abi::CallKind::pool_max ? dnnl_pooling_max
      : call.include_pad()                   ? dnnl_pooling_avg_include_padding
                                             : dnnl_pooling_avg_exclude_padding;

  OwnedAttr attr;
  if (Status status = makeAttributes(resolved.post_ops, describe, attr);
      !status.ok())
    return status;
  dnnl_pooling_v2_desc_t op;
  OwnedPrimitiveDesc desc;
  dnnl_status_t status = dnnl_pooling_v2_forward_desc_init(
      &op, dnnl_forward_inference, algorithm, &src, &dst,
      call.strides()->data(), call.window()->data(), dilations.data(),
      call.pads_low()->data(), pads_high.data());
  if (status == dnnl_success)
    status = context.choose(&op, attr, desc);
  if (status != dnnl_success)
    return Status::error(std::string("oneDNN does not take this pooling: ") +
                         context.reason(status));
  auto task = PrimitiveTask::create(context, desc);
  if (!task)
    return task.status();
  std::vector<PrimitiveTask::Argument> arguments = {
      {DNNL_ARG_SRC, src, input.data}, {DNNL_ARG_DST, dst, result.data}};
  addPostOpArguments(resolved.post_ops, describe, arguments);
  if (Status added = (*task)->add(context, arguments); !added.ok())
    return added;
  return std::unique_ptr<Task>(std::move(*task));
}

} // namespace partita::runtime
