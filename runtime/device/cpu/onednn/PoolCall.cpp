//===- PoolCall.cpp - Pooling ---------------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/ImageLayout.h"
#include "runtime/device/cpu/onednn/PrimitiveTask.h"
#include "runtime/device/cpu/own/NanKeeping.h"

#include <algorithm>

namespace partita::runtime {
namespace {

/// Whether the library's code for AVX is the slower one: on AMD's processors it
/// takes about 35 ns for each vector of the result besides what the window
/// takes (Zen 3, oneDNN 2.6), its code for SSE none of that and three times as
/// long for an element of the window.
bool prefersSse(const OwnedPrimitiveDesc &desc, const abi::Pool &pool) {
  constexpr int64_t kMostElements = 32;
  int64_t elements = 1;
  for (int64_t extent : *pool.window())
    elements *= std::min(extent, kMostElements + 1);
  __builtin_cpu_init();
  return elements <= kMostElements && __builtin_cpu_is("amd") &&
         isNamed(desc, "jit:avx") && !isNamed(desc, "jit:avx512");
}

} // namespace

Expected<std::unique_ptr<Task>> preparePool(ResolvedCall resolved,
                                            OnednnContext &context,
                                            const ThreadTeam &, bool) {
  const abi::Call &call = *resolved.call;
  const abi::Pool &pool = *call.details_as_Pool();
  if (context.nanTeam() && call.kind() == abi::CallKind::pool_max)
    return makeNanKeepingPool(resolved, *context.nanTeam());
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
    dilations.push_back(pool.dilations()->Get(i) - 1);
    pads_high.push_back((result.dims[i + 2] - 1) * pool.strides()->Get(i) +
                        (pool.window()->Get(i) - 1) * pool.dilations()->Get(i) +
                        1 - input.dims[i + 2] - pool.pads_low()->Get(i));
  }
  dnnl_alg_kind_t algorithm =
      call.kind() == abi::CallKind::pool_max ? dnnl_pooling_max
      : pool.include_pad()                   ? dnnl_pooling_avg_include_padding
                                             : dnnl_pooling_avg_exclude_padding;

  OwnedAttr attr;
  PARTITA_TRY(makeAttributes(resolved.post_ops, describe, attr));
  dnnl_pooling_v2_desc_t op;
  OwnedPrimitiveDesc desc;
  dnnl_status_t status = dnnl_pooling_v2_forward_desc_init(
      &op, dnnl_forward_inference, algorithm, &src, &dst,
      pool.strides()->data(), pool.window()->data(), dilations.data(),
      pool.pads_low()->data(), pads_high.data());
  if (status == dnnl_success)
    status = context.choose(&op, attr, desc);
  if (status == dnnl_success && prefersSse(desc, pool))
    if (OwnedPrimitiveDesc sse;
        context.choose(&op, attr, sse, [](const OwnedPrimitiveDesc &each) {
          return isNamed(each, "jit:sse41") ? 0 : -1;
        }) == dnnl_success)
      desc = std::move(sse);
  PARTITA_TRY(context.check(status, "oneDNN does not take this pooling"));
  auto task = PARTITA_TRY(PrimitiveTask::create(context, desc));
  std::vector<PrimitiveTask::Argument> arguments = {
      {DNNL_ARG_SRC, src, input.data}, {DNNL_ARG_DST, dst, result.data}};
  addPostOpArguments(resolved.post_ops, describe, arguments);
  PARTITA_TRY(task->add(context, arguments));
  return std::unique_ptr<Task>(std::move(task));
}

} // namespace partita::runtime
