//===- ConvDwCall.cpp - The derivative of a convolution to its weights ----===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library would split the sum over all pixels over its threads, and its
// bits would depend on their number. So the work is cut into slices of output
// channels, or of groups, which follow from the shapes alone
// (rules::ConvDwSlices). A thread computes one slice at a time, by primitives
// made for one thread: it copies the channels of the slice next to each other,
// some images at a time, and adds up what these give, in their order.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cpu/onednn/ConvWindows.h"
#include "runtime/device/cpu/onednn/ImageLayout.h"
#include "runtime/device/cpu/onednn/Reordering.h"
#include "runtime/device/cpu/onednn/ThreadTask.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace partita::runtime {
namespace {

class ConvDw final : public ThreadTask {
public:
  ConvDw(ResolvedCall resolved, const ThreadTeam &team)
      : ThreadTask(std::move(resolved), team),
        windows(*call.call->details_as_Conv(), x(), dw(), dy()),
        slices(sliceCall()) {}

  Status prepare(OnednnContext &context) {
    if (!liesDensely(x(), true) || !liesDensely(dy(), true))
      return Status::error("the channels of the images are not innermost");
    layOutCopies();
    std::vector<ThreadPrimitive> primitives(2 * kKinds);
    PARTITA_TRY(makeKinds(context, primitives));
    layOutSums();
    return ThreadTask::prepare(context, std::move(primitives), layout.end,
                               slices.count);
  }

private:
  /// Slices of one width, and of them parts of one number of images. Kind i has
  /// primitive 2 i, and the next one brings its sum into the plan's order.
  struct Kind {
    int64_t groups = 0, in = 0, out = 0, images = 0; ///< of all groups together
    dnnl_memory_desc_t packed;                       ///< of what is added up
    size_t elements = 0;                             ///< of `packed`
  };
  static constexpr size_t kKinds = 4;

  Operand &x() { return call.operands[0]; }
  Operand &dy() { return call.operands[1]; }
  Operand &dw() { return call.operands[2]; }
  const Operand &x() const { return call.operands[0]; }
  const Operand &dy() const { return call.operands[1]; }

  rules::ConvDwSlices sliceCall() {
    return rules::sliceConvDw(x().dims, dy().dims, dw().dims, windows.groups);
  }

  static int64_t pixelsOf(const Operand &images) {
    return images.dims[2] * (images.rank() > 3 ? images.dims[3] : int64_t(1));
  }

  size_t kindOf(int64_t slice, int64_t image) const {
    return (slice + 1 == slices.count ? 2 : 0) +
           (image + slices.images > x().dims[0] ? 1 : 0);
  }

  Status makeKinds(OnednnContext &context,
                   std::vector<ThreadPrimitive> &primitives) {
    const AloneInTeam alone(team);
    const int64_t images = x().dims[0];
    for (int64_t slice : {int64_t(0), slices.count - 1})
      for (int64_t image :
           {int64_t(0), (images - 1) / slices.images * slices.images}) {
        const size_t number = kindOf(slice, image);
        Kind &kind = kinds[number];
        if (kind.images)
          continue;
        if (windows.groups == 1) {
          kind.groups = 1;
          kind.out =
              std::min(slices.channels, dw().dims[0] - slice * slices.channels);
        } else {
          kind.groups =
              std::min(slices.groups, windows.groups - slice * slices.groups);
          kind.out = dw().dims[0] / windows.groups * kind.groups;
        }
        kind.in = dw().dims[1] * kind.groups;
        kind.images = std::min(slices.images, images - image);
        // What is added up lies in one order.
        const Kind &first = kinds[kindOf(slice, 0)];
        PARTITA_TRY(makeKind(context, kind,
                             &first == &kind ? nullptr : &first.packed,
                             &primitives[2 * number]));
      }
    return Status();
  }

  /// `order`: of what is added up; null: the library's choice.
  Status makeKind(OnednnContext &context, Kind &kind,
                  const dnnl_memory_desc_t *order,
                  ThreadPrimitive *primitives) {
    auto describeImages = [&](const Operand &images, int64_t channels) {
      std::vector<int64_t> dims = images.dims;
      dims[0] = kind.images;
      dims[1] = channels;
      return stridedDesc(dims, denseStrides(dims, true));
    };
    const dnnl_memory_desc_t image = describeImages(x(), kind.in),
                             cotangent = describeImages(dy(), kind.out);
    std::vector<int64_t> dims = dw().dims;
    dims[0] = kind.out;
    if (kind.groups > 1) {
      dims[0] /= kind.groups;
      dims.insert(dims.begin(), kind.groups);
    }
    const dnnl_memory_desc_t plain =
                                 stridedDesc(dims, denseStrides(dims, false)),
                             filter = order ? *order : anyDesc(dims);
    OwnedAttr attr;
    PARTITA_TRY(makeAttributes({}, nullptr, attr));
    OwnedPrimitiveDesc forward, desc, reorder;
    dnnl_convolution_desc_t op;
    dnnl_status_t status = windows.describeForward(context, attr, image, filter,
                                                   cotangent, forward);
    if (status == dnnl_success)
      status = dnnl_dilated_convolution_backward_weights_desc_init(
          &op, dnnl_convolution_direct, &image, &filter, nullptr, &cotangent,
          windows.strides.data(), windows.skipped.data(),
          windows.padsLow.data(), windows.padsHigh.data());
    auto getRoom = [&](const OwnedPrimitiveDesc &each) -> int64_t {
      return static_cast<int64_t>(
          layout.sum +
          2 * packedBytes(queryDesc(each, dnnl_query_diff_weights_md)));
    };
    if (status == dnnl_success)
      status = context.choose(&op, attr, desc, getRoom, forward.get());
    constexpr const char *kWhat =
        "oneDNN does not take this derivative of a convolution";
    PARTITA_TRY(context.check(status, kWhat));
    kind.packed = queryDesc(desc, dnnl_query_diff_weights_md);
    kind.elements = dnnl_memory_desc_get_size(&kind.packed) / sizeof(float);
    PARTITA_TRY(context.check(dnnl_reorder_primitive_desc_create(
                                  reorder.out(), &kind.packed, context.engine(),
                                  &plain, context.engine(), nullptr),
                              kWhat));
    PARTITA_TRY(primitives[0].make(context, desc,
                                   {{DNNL_ARG_SRC, image},
                                    {DNNL_ARG_DIFF_DST, cotangent},
                                    {DNNL_ARG_DIFF_WEIGHTS, kind.packed}},
                                   kWhat));
    return primitives[1].make(
        context, reorder, {{DNNL_ARG_FROM, kind.packed}, {DNNL_ARG_TO, plain}},
        kWhat);
  }

  /// The scratch of a thread, by where each part begins: channels of dy, of x
  /// if there are groups, and two sums of a slice.
  struct Layout {
    size_t x = 0, sum = 0, part = 0, end = 0;
  };

  /// Of everything but what the library chooses.
  void layOutCopies() {
    auto copied = [&](const Operand &images, int64_t channels) {
      return rules::alignScratch(sizeof(float) * slices.images *
                                 pixelsOf(images) * channels);
    };
    const int64_t outputs = dw().dims[0] / windows.groups;
    outWidth = windows.groups == 1 ? slices.channels : outputs * slices.groups;
    inWidth = dw().dims[1] * slices.groups;
    layout.x = copied(dy(), outWidth);
    layout.sum = layout.x + (windows.groups == 1 ? 0 : copied(x(), inWidth));
  }

  void layOutSums() {
    size_t packed = 0;
    for (const Kind &kind : kinds)
      packed =
          std::max(packed, rules::alignScratch(kind.elements * sizeof(float)));
    layout.part = layout.sum + packed;
    layout.end = layout.part + packed;
  }

  /// Copies channels of images, from the given one on, next to each other.
  static void copyChannels(const Operand &images, int64_t image, int64_t count,
                           int64_t first, int64_t channels, float *to) {
    const int64_t all = images.dims[1], pixels = pixelsOf(images);
    const float *from = images.data + image * pixels * all + first;
    for (int64_t i = 0; i < count * pixels; ++i)
      std::memcpy(to + i * channels, from + i * all,
                  sizeof(float) * static_cast<size_t>(channels));
  }

  bool runPart(Worker &worker, int64_t slice) override {
    auto at = [&](size_t offset) {
      return worker.scratch() + offset / sizeof(float);
    };
    float *dyCopy = at(0), *xCopy = at(layout.x), *sum = at(layout.sum),
          *part = at(layout.part);
    const int64_t images = x().dims[0];
    const int64_t firstOut = slice * outWidth, firstIn = slice * inWidth;
    for (int64_t image = 0; image < images; image += slices.images) {
      const size_t number = kindOf(slice, image);
      const Kind &kind = kinds[number];
      copyChannels(dy(), image, kind.images, firstOut, kind.out, dyCopy);
      float *source = x().data + image * pixelsOf(x()) * x().dims[1];
      if (windows.groups > 1) {
        copyChannels(x(), image, kind.images, firstIn, kind.in, xCopy);
        source = xCopy;
      }
      if (!worker.run(2 * number, {source, dyCopy, image ? part : sum}))
        return false;
      if (!image)
        continue;
      for (size_t i = 0; i < kind.elements; ++i)
        sum[i] += part[i];
    }
    return worker.run(2 * kindOf(slice, 0) + 1,
                      {sum, dw().data + firstOut * dw().strides[0]});
  }

  ConvWindows windows;
  rules::ConvDwSlices slices;
  int64_t outWidth = 0, inWidth = 0; ///< channels of the widest slice
  Layout layout;
  std::array<Kind, kKinds> kinds;
};

} // namespace

Expected<std::unique_ptr<Task>> prepareConvDw(ResolvedCall call,
                                              OnednnContext &context,
                                              const ThreadTeam &team, bool) {
  return prepared(std::make_unique<ConvDw>(std::move(call), team), context);
}

} // namespace partita::runtime
