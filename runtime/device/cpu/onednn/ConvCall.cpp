//===- ConvCall.cpp - Convolutions ----------------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/ConvWindows.h"
#include "runtime/device/cpu/onednn/ImageLayout.h"
#include "runtime/device/cpu/onednn/Reordering.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace partita::runtime {
namespace {

/// Whose order of the weights a convolution reads.
enum class Order {
  plain,   ///< that of the plan
  packed,  ///< the library's, made at load
  repacked ///< the library's, made in each run
};

/// Channels that are one vector, of the code that reads planes.
constexpr int64_t kVector = 16;

class Conv {
public:
  Conv(ResolvedCall resolved, ConvWindows windows, OnednnContext &context)
      : call(std::move(resolved)), context(context),
        windows(std::move(windows)) {}

  Expected<std::unique_ptr<Task>> prepare(const ThreadTeam &team, bool pack) {
    if (input().rank() == 3) {
      std::vector<Operand *> images;
      for (Operand &operand : call.operands)
        images.push_back(&operand);
      for (PostOperation &post : call.post_ops)
        if (post.operand.rank() == 3)
          images.push_back(&post.operand);
      windows.addHeight(images);
    }
    // With one channel or one pixel both layouts are true; channels-last is
    // the faster one, if both images can have it.
    channels_last =
        liesDensely(input(), true) && liesDensely(call.result(), true);
    if (!channels_last && liesDensely(input(), false) &&
        liesDensely(call.result(), true) &&
        !liesDensely(call.result(), false) && input().type == abi::DType::f32)
      image = Image::planes;
    windows.groupWeights(weights());
    if (call.bias && !denseBias())
      biasAsPostOp();
    // Where the processor or the room does not allow it, directly; and where
    // NaN is kept: a tile's sums would bring it to pixels that have none.
    const abi::Conv &given = *call.call->details_as_Conv();
    if (given.winograd() && given.strides()->size() == 2 && pack &&
        weights().constant && channels_last && !context.nanTeam()) {
      if (auto task = prepareWinograd(call, padsHigh(), context))
        return task;
      if (auto task = prepareTiledWinograd(call, context, team))
        return task;
    }
    auto task = makeBest(pack);
    // Where the processor has no code for this.
    if (!task && image == Image::planes)
      task = makeBands(pack);
    return task;
  }

  /// With packed weights, by the code for windows of one pixel, or not at all.
  Expected<std::unique_ptr<Task>> preparePointwise() {
    channels_last = only_pointwise = true;
    if (!liesDensely(input(), true) || !liesDensely(call.result(), true))
      return Status::error("the rows of a matrix do not lie densely");
    return make(Order::packed);
  }

private:
  /// How the library gets the image.
  enum class Image {
    same,     ///< in the order that the result has
    planes,   ///< its planes as they lie, for a result with channels innermost
    reordered ///< the same, with channels innermost after a reordering
  };

  Expected<std::unique_ptr<Task>> makeBest(bool pack) {
    const bool isPacked = pack && weights().constant;
    auto task = make(isPacked ? Order::packed : Order::repacked);
    if (!task && !(isPacked && context.lacksRoom()))
      task = make(Order::plain);
    return task;
  }

  /// Rows of the result after rows, each from a part of the image that is
  /// reordered in little scratch.
  Expected<std::unique_ptr<Task>> makeBands(bool pack) {
    constexpr int64_t kMost = 256 << 10; // bytes, of the room each call has
    const int64_t images = input().dims[0];
    const int64_t row = input().dims[1] * sizeof(float) *
                        product(input().dims.begin() + 3, input().dims.end());
    const int64_t window = windows.extent(weights(), 0),
                  all = call.result().dims[2];
    const int64_t rows = std::clamp<int64_t>(
        (kMost / row - window) / windows.strides[0] + 1, 1, all);
    auto bands = std::make_unique<TaskSequence>();
    for (int64_t i = 0; i < all * images; i += std::min(rows, all - i % all)) {
      const int64_t begin = i % all, end = std::min(begin + rows, all);
      Conv band(*this);
      band.channels_last = true;
      band.image = Image::reordered;
      const int64_t stride = windows.strides[0],
                    from = begin * stride - windows.padsLow[0],
                    to = (end - 1) * stride - windows.padsLow[0] + window;
      const int64_t first = std::clamp<int64_t>(from, 0, input().dims[2] - 1),
                    last = std::clamp<int64_t>(to, first + 1, input().dims[2]);
      band.windows.padsLow[0] = first - from;
      restrict(band.input(), i / all, first, last);
      restrict(band.call.result(), i / all, begin, end);
      for (PostOperation &post : band.call.post_ops)
        if (post.operand.rank())
          restrict(post.operand, i / all, begin, end);
      bands->tasks.push_back(PARTITA_TRY(band.makeBest(pack)));
    }
    return std::unique_ptr<Task>(std::move(bands));
  }

  /// To rows of one image.
  static void restrict(Operand &operand, int64_t image, int64_t begin,
                       int64_t end) {
    operand.advance(image * operand.strides[0] + begin * operand.strides[2]);
    operand.dims[0] = 1;
    operand.dims[2] = end - begin;
  }

  template <typename Iterator>
  static int64_t product(Iterator begin, Iterator end) {
    return std::accumulate(begin, end, int64_t(1), std::multiplies<>());
  }

  Operand &input() { return call.operands[0]; }
  Operand &weights() { return call.operands[1]; }

  bool denseBias() const {
    return call.bias->dims[0] == call.operands.back().dims[1] &&
           (call.bias->dims[0] == 1 || call.bias->strides[0] == 1);
  }

  void biasAsPostOp() {
    PostOperation add;
    add.kind = abi::PostOpKind::add;
    add.operand = *call.bias;
    add.operand.dims.assign(call.result().rank(), 1);
    add.operand.strides.assign(call.result().rank(), 0);
    add.operand.dims[1] = call.bias->dims[0];
    add.operand.strides[1] = call.bias->strides[0];
    add.operand.broadcastTo(call.result().dims);
    call.post_ops.insert(call.post_ops.begin(), std::move(add));
    call.bias.reset();
  }

  /// Strides of weights axes of extent 1 are made those of a dense tensor.
  dnnl_memory_desc_t weightsDesc() { return broadcastDesc(weights()); }

  Expected<std::unique_ptr<Task>> make(Order order) {
    // Channels of one vector lie innermost as a block of them does, and that
    // is what the code for planes writes.
    if (image == Image::planes && call.result().dims[1] != kVector)
      return Status::error("not a vector of channels");
    DescribeOperand describe = [&](const Operand &operand) {
      return image == Image::planes && operand.dims == call.result().dims &&
                     liesDensely(operand, true)
                 ? blockedDesc(operand.dims)
                 : imageDesc(operand, channels_last);
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
    dnnl_memory_desc_t given = imageDesc(input(), false), plain = weightsDesc(),
                       src = image == Image::planes ? given
                             : image == Image::same ? describe(input())
                                                    : channelsInnermost(),
                       dst = describe(call.result()), bias = {};
    std::vector<int64_t> dims(plain.dims, plain.dims + plain.ndims);
    dnnl_memory_desc_t weights_desc =
        order == Order::plain ? plain : anyDesc(dims, weights().type);
    if (call.bias)
      bias = stridedDesc(call.bias->dims, {1});

    OwnedAttr attr;
    PARTITA_TRY(makeAttributes(post, describe, attr));
    OwnedPrimitiveDesc desc;
    PARTITA_TRY(
        context.check(makeDesc(order, src, weights_desc, bias, dst, attr, desc),
                      "oneDNN does not take this convolution"));
    if (!computesRightly(desc, post))
      return Status::error("oneDNN computes its post-ops wrongly");
    slow = isReference(desc);
    if (slow && image == Image::planes)
      return Status::error("oneDNN has no fast code for planes");
    auto task = PARTITA_TRY(PrimitiveTask::create(context, desc));

    float *data = weights().data;
    if (order != Order::plain)
      weights_desc = queryDesc(desc, dnnl_query_weights_md);
    if (order == Order::repacked) {
      if (dnnl_memory_desc_equal(&weights_desc, &plain))
        order = Order::plain;
      else
        data = nullptr; // in the scratch
    }
    if (order == Order::packed)
      data = PARTITA_TRY(context.packed(weights(), plain, weights_desc));
    else
      context.readInPlace(weights());
    std::vector<PrimitiveTask::Argument> arguments = {
        {DNNL_ARG_SRC, src, image == Image::reordered ? nullptr : input().data},
        {DNNL_ARG_WEIGHTS, weights_desc, data},
        {DNNL_ARG_DST, dst, call.result().data}};
    if (call.bias)
      arguments.push_back({DNNL_ARG_BIAS, bias, call.bias->data});
    addPostOpArguments(post, describe, arguments);
    PARTITA_TRY(task->add(context, arguments));
    const AddressPlace source = task->argument(0), filter = task->argument(1);
    Expected<std::unique_ptr<Task>> conv =
        std::unique_ptr<Task>(std::move(task));
    if (order == Order::repacked)
      conv = reorderBefore(context, plain, weights().data, weights_desc,
                           std::move(*conv), filter);
    if (conv && image == Image::reordered)
      conv = reorderBefore(context, given, input().data, src, std::move(*conv),
                           source);
    return conv;
  }

  static dnnl_memory_desc_t blockedDesc(const std::vector<int64_t> &dims) {
    dnnl_memory_desc_t desc = {};
    dnnl_memory_desc_init_by_tag(&desc, static_cast<int>(dims.size()),
                                 dims.data(), dnnl_f32,
                                 dims.size() == 5   ? dnnl_aBcde16b
                                 : dims.size() == 4 ? dnnl_aBcd16b
                                                    : dnnl_aBc16b);
    return desc;
  }

  /// The input as it lies once it is reordered.
  dnnl_memory_desc_t channelsInnermost() {
    Operand moved = input();
    moved.strides = denseStrides(moved.dims, true);
    return imageDesc(moved, true);
  }

  dnnl_status_t makeDesc(Order order, const dnnl_memory_desc_t &src,
                         const dnnl_memory_desc_t &weights,
                         const dnnl_memory_desc_t &bias,
                         const dnnl_memory_desc_t &dst, const OwnedAttr &attr,
                         OwnedPrimitiveDesc &desc) {
    dnnl_convolution_desc_t op;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &op, dnnl_forward_inference, dnnl_convolution_direct, &src, &weights,
        call.bias ? &bias : nullptr, &dst, windows.strides.data(),
        windows.skipped.data(), windows.padsLow.data(), padsHigh().data());
    if (status != dnnl_success)
      return status;
    // The library prefers code that reads the input where it lies. Pixels a
    // power of two apart then meet in one set of a cache; its older code copies
    // them next to each other first.
    auto getRoom = [&](const OwnedPrimitiveDesc &each) -> int64_t {
      const size_t weights =
          order == Order::repacked
              ? packedBytes(queryDesc(each, dnnl_query_weights_md))
              : 0;
      const size_t moved = image == Image::reordered ? packedBytes(src) : 0;
      return static_cast<int64_t>(weights + moved);
    };
    auto getPointwiseRoom = [&](const OwnedPrimitiveDesc &each) -> int64_t {
      return isNamed(each, "jit_1x1") ? getRoom(each) : -1;
    };
    if (only_pointwise)
      return context.choose(&op, attr, desc, getPointwiseRoom);
    if (skipsPixels() &&
        context.choose(&op, attr, desc, getPointwiseRoom) == dnnl_success)
      return dnnl_success;
    return context.choose(&op, attr, desc, getRoom);
  }

  /// Whether windows are single pixels, and not all pixels are in one.
  bool skipsPixels() {
    const Operand &weights = this->weights();
    auto window = weights.dims.end() - (input().rank() - 2);
    return windows.groups == 1 &&
           std::all_of(window, weights.dims.end(),
                       [](int64_t extent) { return extent == 1; }) &&
           std::any_of(windows.strides.begin(), windows.strides.end(),
                       [](int64_t stride) { return stride > 1; });
  }

  std::vector<int64_t> padsHigh() {
    return windows.findPadsHigh(input(), weights(), call.result());
  }

  ResolvedCall call;
  OnednnContext &context;
  ConvWindows windows;
  bool channels_last = false, only_pointwise = false;
  Image image = Image::same;
};

} // namespace

Expected<std::unique_ptr<Task>> prepareConv(ResolvedCall call,
                                            OnednnContext &context,
                                            const ThreadTeam &team, bool pack) {
  ConvWindows windows(*call.call->details_as_Conv());
  if (!multipliesIntegers(call))
    return Conv(std::move(call), std::move(windows), context)
        .prepare(team, pack);
  if (hasExactIntegers())
    if (auto task = Conv(call, std::move(windows), context).prepare(team, pack))
      return task;
  return prepareIntegerConv(std::move(call), context, team);
}

Expected<std::unique_ptr<Task>> preparePointwise(ResolvedCall call,
                                                 OnednnContext &context) {
  auto image = [](Operand &matrix) {
    matrix.dims = {1, matrix.dims[1], 1, matrix.dims[0]};
    matrix.strides = {0, matrix.strides[1], 0, matrix.strides[0]};
  };
  Operand &weights = call.operands[1];
  if (std::count(weights.strides.begin(), weights.strides.end(), 0))
    return Status::error("the weights are broadcast");
  weights.dims = {weights.dims[1], weights.dims[0], 1, 1};
  weights.strides = {weights.strides[1], weights.strides[0], 1, 1};
  image(call.operands[0]);
  image(call.result());
  for (PostOperation &post : call.post_ops)
    if (post.operand.rank())
      image(post.operand);
  return Conv(std::move(call), ConvWindows(2), context).preparePointwise();
}

} // namespace partita::runtime
