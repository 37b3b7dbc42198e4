//===- ConvDxCall.cpp - The derivative of a convolution to its image ------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/ConvWindows.h"
#include "runtime/device/cpu/onednn/ImageLayout.h"
#include "runtime/device/cpu/onednn/Reordering.h"

namespace partita::runtime {
namespace {

class ConvDx {
public:
  ConvDx(ResolvedCall resolved, OnednnContext &context)
      : call(std::move(resolved)), context(context),
        windows(*call.call->details_as_Conv(), dx(), weights(), dy()) {}

  Expected<std::unique_ptr<Task>> prepare() {
    windows.groupWeights(weights());
    channelsLast = liesDensely(dx(), true) && liesDensely(dy(), true);
    auto task = make(anyDesc(weights().dims, weights().type));
    // In the plan's order, no copy needs room.
    if (!task && !context.lacksRoom())
      task = make(broadcastDesc(weights()));
    return task;
  }

private:
  Operand &dy() { return call.operands[0]; }
  Operand &weights() { return call.operands[1]; }
  Operand &dx() { return call.operands[2]; }

  Expected<std::unique_ptr<Task>> make(dnnl_memory_desc_t filter) {
    const dnnl_memory_desc_t image = imageDesc(dx(), channelsLast),
                             cotangent = imageDesc(dy(), channelsLast),
                             given = broadcastDesc(weights());
    OwnedAttr attr;
    PARTITA_TRY(makeAttributes({}, nullptr, attr));
    OwnedPrimitiveDesc desc;
    PARTITA_TRY(
        context.check(describe(image, filter, cotangent, attr, desc),
                      "oneDNN does not take this derivative of a convolution"));
    filter = queryDesc(desc, dnnl_query_weights_md);
    auto task = PARTITA_TRY(PrimitiveTask::create(context, desc));
    const bool isReordered = !dnnl_memory_desc_equal(&filter, &given);
    PARTITA_TRY(task->add(context, {{DNNL_ARG_WEIGHTS, filter,
                                     isReordered ? nullptr : weights().data},
                                    {DNNL_ARG_DIFF_DST, cotangent, dy().data},
                                    {DNNL_ARG_DIFF_SRC, image, dx().data}}));
    const AddressPlace place = task->argument(0);
    std::unique_ptr<Task> made = std::move(task);
    if (!isReordered)
      return made;
    return reorderBefore(context, given, weights().data, filter,
                         std::move(made), place);
  }

  dnnl_status_t describe(const dnnl_memory_desc_t &image,
                         const dnnl_memory_desc_t &filter,
                         const dnnl_memory_desc_t &cotangent,
                         const OwnedAttr &attr, OwnedPrimitiveDesc &desc) {
    OwnedPrimitiveDesc forward;
    dnnl_convolution_desc_t op;
    dnnl_status_t status = windows.describeForward(context, attr, image, filter,
                                                   cotangent, forward);
    if (status == dnnl_success)
      status = dnnl_dilated_convolution_backward_data_desc_init(
          &op, dnnl_convolution_direct, &image, &filter, &cotangent,
          windows.strides.data(), windows.skipped.data(),
          windows.padsLow.data(), windows.padsHigh.data());
    if (status != dnnl_success)
      return status;
    const dnnl_memory_desc_t given = broadcastDesc(weights());
    auto getRoom = [&](const OwnedPrimitiveDesc &each) -> int64_t {
      const dnnl_memory_desc_t wanted = queryDesc(each, dnnl_query_weights_md);
      return dnnl_memory_desc_equal(&wanted, &given)
                 ? 0
                 : static_cast<int64_t>(packedBytes(wanted));
    };
    return context.choose(&op, attr, desc, getRoom, forward.get());
  }

  ResolvedCall call;
  OnednnContext &context;
  ConvWindows windows;
  bool channelsLast = false;
};

} // namespace

Expected<std::unique_ptr<Task>> prepareConvDx(ResolvedCall call,
                                              OnednnContext &context,
                                              const ThreadTeam &, bool) {
  return ConvDx(std::move(call), context).prepare();
}

} // namespace partita::runtime
