//===- ConvCall.cpp - Convolutions ----------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/abi/LibraryMemory.h"
#include "runtime/device/cpu/ImageLayout.h"
#include "runtime/device/cpu/PrimitiveTask.h"
#include "runtime/device/cpu/WinogradConv.h"

namespace partita::runtime {
namespace {

/// Bytes of packed weights in the scratch.
size_t packedBytes(const dnnl_memory_desc_t &desc) {
  constexpr size_t step = abi::kScratchAlignment;
  return (dnnl_memory_desc_get_size(&desc) + step - 1) / step * step;
}

/// A convolution whose weights come in another order than the library's fast
/// code wants: they are brought into that order before it, in each run.
class RepackedConv final : public Task {
public:
  static constexpr int kWeights = 1; ///< among the arguments of the convolution
  static constexpr int kPacked = 1;  ///< among those of the reordering

  RepackedConv(std::unique_ptr<PrimitiveTask> reorder,
               std::unique_ptr<PrimitiveTask> conv, size_t packed)
      : reorder(std::move(reorder)), conv(std::move(conv)),
        packed_bytes(packed) {}

  bool run() override { return reorder->run() && conv->run(); }
  size_t scratchBytes() const override {
    return packed_bytes +
           std::max(reorder->scratchBytes(), conv->scratchBytes());
  }
  void useScratch(uint8_t *data) override {
    reorder->argument(kPacked).set(data);
    conv->argument(kWeights).set(data);
    reorder->useScratch(data + packed_bytes);
    conv->useScratch(data + packed_bytes);
  }
  void visitAddresses(const AddressVisitor &visit) override {
    reorder->visitAddresses(visit);
    conv->visitAddresses(visit);
  }

private:
  std::unique_ptr<PrimitiveTask> reorder, conv;
  size_t packed_bytes;
};

/// Whose order of the weights a convolution reads.
enum class Order {
  plain,   ///< that of the plan
  packed,  ///< the library's, made at load
  repacked ///< the library's, made in each run
};

class Conv {
public:
  Conv(ResolvedCall resolved, OnednnContext &context)
      : call(std::move(resolved)), context(context),
        strides(numbers(call.call->strides())),
        dilations(numbers(call.call->dilations())),
        pads_low(numbers(call.call->pads_low())) {}

  Expected<std::unique_ptr<Task>> prepare(bool pack) {
    if (input().rank() == 3)
      addHeight();
    // With one channel or one pixel both layouts are true; channels-last is
    // the faster one, if both images can have it.
    channels_last =
        liesDensely(input(), true) && liesDensely(call.result(), true);
    groupWeights();
    if (call.has_bias && !denseBias())
      biasAsPostOp();
    // Where the processor or the room does not allow it, directly.
    if (call.call->winograd() && pack && weights().constant && channels_last)
      if (auto task = prepareWinograd(call, padsHigh(), context))
        return task;
    const bool isPacked = pack && weights().constant;
    auto task = make(isPacked ? Order::packed : Order::repacked);
    if (!task && !(isPacked && context.lacksRoom()))
      task = make(Order::plain);
    return task;
  }

private:
  Operand &input() { return call.operands[0]; }
  Operand &weights() { return call.operands[1]; }

  static std::vector<int64_t> numbers(const flatbuffers::Vector<int64_t> *all) {
    return {all->begin(), all->end()};
  }

  /// Rows as images of height 1: for them the library has faster code, of
  /// single channels above all.
  void addHeight() {
    auto extend = [](Operand &operand) {
      int64_t stride = operand.dims[2] * operand.strides[2];
      operand.dims.insert(operand.dims.begin() + 2, 1);
      operand.strides.insert(operand.strides.begin() + 2, stride);
    };
    for (Operand &operand : call.operands)
      extend(operand);
    for (PostOperation &post : call.post_ops)
      if (post.operand.rank() == 3)
        extend(post.operand);
    strides.insert(strides.begin(), 1);
    dilations.insert(dilations.begin(), 1);
    pads_low.insert(pads_low.begin(), 0);
  }

  /// [O, I/G, ..] -> [G, O/G, I/G, ..], as the library has grouped weights.
  void groupWeights() {
    int64_t groups = call.call->groups();
    Operand &weights = this->weights();
    if (groups == 1)
      return;
    weights.dims[0] /= groups;
    weights.strides.insert(weights.strides.begin(),
                           weights.strides[0] * weights.dims[0]);
    weights.dims.insert(weights.dims.begin(), groups);
  }

  bool denseBias() const {
    return call.bias.dims[0] == call.operands.back().dims[1] &&
           (call.bias.dims[0] == 1 || call.bias.strides[0] == 1);
  }

  void biasAsPostOp() {
    PostOperation add;
    add.kind = abi::PostOpKind::add;
    add.operand = call.bias;
    add.operand.dims.assign(call.result().rank(), 1);
    add.operand.strides.assign(call.result().rank(), 0);
    add.operand.dims[1] = call.bias.dims[0];
    add.operand.strides[1] = call.bias.strides[0];
    add.operand.broadcastTo(call.result().dims);
    call.post_ops.insert(call.post_ops.begin(), std::move(add));
    call.has_bias = false;
  }

  /// Strides of weights axes of extent 1 are made those of a dense tensor.
  dnnl_memory_desc_t weightsDesc() { return broadcastDesc(weights()); }

  Expected<std::unique_ptr<Task>> make(Order order) {
    DescribeOperand describe = [&](const Operand &operand) {
      return imageDesc(operand, channels_last);
    };
    return fusePostOps(
        context, call.post_ops, call.result(), describe,
        [&](const std::vector<PostOperation> &fused, bool &slow) {
          return make(order, fused, describe, slow);
        });
  }

  Expected<std::unique_ptr<Task>> make(Order order,
                                       const std::vector<PostOperation> &post,
                                       const DescribeOperand &describe,
                                       bool &slow) {
    dnnl_memory_desc_t src = describe(input()), plain = weightsDesc(),
                       dst = describe(call.result()), bias = {};
    std::vector<int64_t> dims(plain.dims, plain.dims + plain.ndims);
    dnnl_memory_desc_t weights_desc =
        order == Order::plain ? plain : anyDesc(dims);
    if (call.has_bias)
      bias = stridedDesc(call.bias.dims, {1});

    OwnedAttr attr;
    if (Status status = makeAttributes(post, describe, attr); !status.ok())
      return status;
    OwnedPrimitiveDesc desc;
    if (dnnl_status_t status =
            makeDesc(order, src, weights_desc, bias, dst, attr, desc);
        status != dnnl_success)
      return Status::error(
          std::string("oneDNN does not take this convolution: ") +
          context.reason(status));
    slow = isReference(desc);
    auto task = PrimitiveTask::create(context, desc);
    if (!task)
      return task.status();

    float *data = weights().data;
    if (order != Order::plain)
      weights_desc = *weightsOf(desc);
    if (order == Order::repacked) {
      if (dnnl_memory_desc_equal(&weights_desc, &plain))
        order = Order::plain;
      else
        data = nullptr; // in the scratch
    }
    if (order == Order::packed) {
      auto made = context.packed(weights(), plain, weights_desc);
      if (!made)
        return made.status();
      data = *made;
    } else if (weights().constant) {
      context.readInPlace(weights());
    }
    std::vector<PrimitiveTask::Argument> arguments = {
        {DNNL_ARG_SRC, src, input().data},
        {DNNL_ARG_WEIGHTS, weights_desc, data},
        {DNNL_ARG_DST, dst, call.result().data}};
    if (call.has_bias)
      arguments.push_back({DNNL_ARG_BIAS, bias, call.bias.data});
    addPostOpArguments(post, describe, arguments);
    if (Status status = (*task)->add(context, arguments); !status.ok())
      return status;
    if (order == Order::repacked)
      return repack(plain, weights_desc, std::move(*task));
    return std::unique_ptr<Task>(std::move(*task));
  }

  static const dnnl_memory_desc_t *weightsOf(const OwnedPrimitiveDesc &desc) {
    return dnnl_primitive_desc_query_md(desc.get(), dnnl_query_weights_md, 0);
  }

  Expected<std::unique_ptr<Task>> repack(const dnnl_memory_desc_t &plain,
                                         const dnnl_memory_desc_t &wanted,
                                         std::unique_ptr<PrimitiveTask> conv) {
    OwnedAttr attr;
    if (Status status = makeAttributes({}, nullptr, attr); !status.ok())
      return status;
    OwnedPrimitiveDesc desc;
    if (dnnl_status_t status = dnnl_reorder_primitive_desc_create(
            desc.out(), &plain, context.engine(), &wanted, context.engine(),
            attr.get());
        status != dnnl_success)
      return Status::error(std::string("oneDNN cannot pack these weights: ") +
                           onednnText(status));
    auto reorder = PrimitiveTask::create(context, desc);
    if (!reorder)
      return reorder.status();
    if (Status status =
            (*reorder)->add(context, {{DNNL_ARG_FROM, plain, weights().data},
                                      {DNNL_ARG_TO, wanted, nullptr}});
        !status.ok())
      return status;
    return std::unique_ptr<Task>(std::make_unique<RepackedConv>(
        std::move(*reorder), std::move(conv), packedBytes(wanted)));
  }

  dnnl_status_t makeDesc(Order order, const dnnl_memory_desc_t &src,
                         const dnnl_memory_desc_t &weights,
                         const dnnl_memory_desc_t &bias,
                         const dnnl_memory_desc_t &dst, const OwnedAttr &attr,
                         OwnedPrimitiveDesc &desc) {
    // The library counts the elements between two taps; 0 means dense.
    std::vector<int64_t> skipped = dilations;
    for (int64_t &dilation : skipped)
      dilation -= 1;
    dnnl_convolution_desc_t op;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &op, dnnl_forward_inference, dnnl_convolution_direct, &src, &weights,
        call.has_bias ? &bias : nullptr, &dst, strides.data(), skipped.data(),
        pads_low.data(), padsHigh().data());
    if (status != dnnl_success)
      return status;
    // The library prefers code that reads the input where it lies. Pixels a
    // power of two apart then meet in one set of a cache; its older code copies
    // them next to each other first.
    auto getRoom = [&](const OwnedPrimitiveDesc &each) -> int64_t {
      return order == Order::repacked
                 ? static_cast<int64_t>(packedBytes(*weightsOf(each)))
                 : 0;
    };
    if (skipsPixels() &&
        context.choose(&op, attr, desc, [&](const OwnedPrimitiveDesc &each) {
          return isNamed(each, "jit_1x1") ? getRoom(each) : -1;
        }) == dnnl_success)
      return dnnl_success;
    return context.choose(&op, attr, desc, getRoom);
  }

  /// Whether windows are single pixels, and not all pixels are in one.
  bool skipsPixels() {
    const Operand &weights = this->weights();
    auto window = weights.dims.end() - (input().rank() - 2);
    return call.call->groups() == 1 &&
           std::all_of(window, weights.dims.end(),
                       [](int64_t extent) { return extent == 1; }) &&
           std::any_of(strides.begin(), strides.end(),
                       [](int64_t stride) { return stride > 1; });
  }

  /// The library wants the window to end where the padding does.
  std::vector<int64_t> padsHigh() {
    std::vector<int64_t> pads;
    const Operand &weights = this->weights();
    int first = weights.rank() - (input().rank() - 2);
    for (int i = 0; i < input().rank() - 2; ++i)
      pads.push_back((call.result().dims[i + 2] - 1) * strides[i] +
                     (weights.dims[first + i] - 1) * dilations[i] + 1 -
                     input().dims[i + 2] - pads_low[i]);
    return pads;
  }

  ResolvedCall call;
  OnednnContext &context;
  std::vector<int64_t> strides, dilations, pads_low; ///< by spatial axis
  bool channels_last = false;
};

} // namespace

Expected<std::unique_ptr<Task>> prepareConv(ResolvedCall call,
                                            OnednnContext &context, bool pack) {
  return Conv(std::move(call), context).prepare(pack);
}

} // namespace partita::runtime
