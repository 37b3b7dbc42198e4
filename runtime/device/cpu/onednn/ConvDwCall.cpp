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
#include "runtime/device/cpu/onednn/PrimitiveTask.h"
#include "runtime/device/cpu/onednn/rules/LibraryMemory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <omp.h>

namespace partita::runtime {
namespace {

class ConvDw final : public CallTask {
public:
  ConvDw(ResolvedCall resolved, const ThreadTeam &team)
      : CallTask(std::move(resolved)), team(team),
        windows(*call.call->details_as_Conv(), x(), dw(), dy()),
        slices(sliceCall()) {}

  Status prepare(OnednnContext &context) {
    if (!liesDensely(x(), true) || !liesDensely(dy(), true))
      return Status::error("the channels of the images are not innermost");
    layOutCopies();
    // Each thread runs the primitives by itself.
    omp_set_num_threads(1);
    Status status = makeKinds(context);
    layOutSums();
    omp_set_num_threads(team.size());
    for (int i = 0; status.ok() && i < team.size(); ++i) {
      workers.push_back(std::make_unique<Worker>());
      status = makeWorker(context, *workers.back());
    }
    return status;
  }

  bool run() override {
    failed.store(false, std::memory_order_relaxed);
    omp_set_num_threads(1);
    team.split(slices.count, 1, [&](int thread, int64_t begin, int64_t end) {
      FlushDenormals flush;
      for (int64_t i = begin; i < end; ++i)
        if (!runSlice(*workers[thread], i))
          failed.store(true, std::memory_order_relaxed);
    });
    team.enter();
    return !failed.load(std::memory_order_relaxed);
  }

  size_t scratchBytes() const override {
    return layout.end * static_cast<size_t>(team.size());
  }

  void useScratch(uint8_t *data) override {
    for (size_t i = 0; i < workers.size(); ++i)
      workers[i]->scratch = data + i * layout.end;
  }

private:
  /// Slices of one width, and of them parts of one number of images.
  struct Kind {
    int64_t groups = 0, in = 0, out = 0, images = 0; ///< of all groups together
    OwnedPrimitive primitive, reorder;
    dnnl_memory_desc_t x, dy, packed, plain, scratch;
    size_t elements = 0; ///< of `packed`
    size_t scratchBytes = 0;
  };
  /// Arguments of a kind, of one thread.
  struct Arguments {
    OwnedMemory x, dy, packed, plain, scratch;
  };
  static constexpr size_t kKinds = 4;
  struct Worker {
    OwnedStream stream;
    std::array<Arguments, kKinds> arguments;
    uint8_t *scratch = nullptr;
  };

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

  Status makeKinds(OnednnContext &context) {
    const int64_t images = x().dims[0];
    for (int64_t slice : {int64_t(0), slices.count - 1})
      for (int64_t image :
           {int64_t(0), (images - 1) / slices.images * slices.images}) {
        Kind &kind = kinds[kindOf(slice, image)];
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
        PARTITA_TRY(
            makeKind(context, kind, &first == &kind ? nullptr : &first));
      }
    return Status();
  }

  Status makeKind(OnednnContext &context, Kind &kind, const Kind *first) {
    auto describeImages = [&](const Operand &images, int64_t channels) {
      std::vector<int64_t> dims = images.dims, strides(dims.size(), 1);
      dims[0] = kind.images;
      dims[1] = channels;
      int64_t stride = channels;
      for (size_t axis = dims.size(); axis-- > 2; stride *= dims[axis])
        strides[axis] = stride;
      strides[0] = stride;
      return stridedDesc(dims, strides);
    };
    kind.x = describeImages(x(), kind.in);
    kind.dy = describeImages(dy(), kind.out);
    std::vector<int64_t> dims = dw().dims;
    dims[0] = kind.out;
    if (kind.groups > 1) {
      dims[0] /= kind.groups;
      dims.insert(dims.begin(), kind.groups);
    }
    std::vector<int64_t> strides(dims.size(), 1);
    for (size_t i = dims.size() - 1; i-- > 0;)
      strides[i] = strides[i + 1] * dims[i + 1];
    kind.plain = stridedDesc(dims, strides);
    const dnnl_memory_desc_t filter =
        first ? first->packed : anyDesc(dims, abi::DType::f32);
    OwnedAttr attr;
    PARTITA_TRY(makeAttributes({}, nullptr, attr));
    OwnedPrimitiveDesc forward, desc, reorder;
    dnnl_convolution_desc_t op;
    dnnl_status_t status = windows.describeForward(context, attr, kind.x,
                                                   filter, kind.dy, forward);
    if (status == dnnl_success)
      status = dnnl_dilated_convolution_backward_weights_desc_init(
          &op, dnnl_convolution_direct, &kind.x, &filter, nullptr, &kind.dy,
          windows.strides.data(), windows.skipped.data(),
          windows.padsLow.data(), windows.padsHigh.data());
    auto getRoom = [&](const OwnedPrimitiveDesc &each) -> int64_t {
      return static_cast<int64_t>(
          layout.sum +
          2 * rules::alignScratch(dnnl_memory_desc_get_size(packedOf(each))));
    };
    if (status == dnnl_success)
      status = context.choose(&op, attr, desc, getRoom, forward.get());
    if (status == dnnl_success) {
      kind.packed = *packedOf(desc);
      kind.elements = dnnl_memory_desc_get_size(&kind.packed) / sizeof(float);
      kind.scratch = *dnnl_primitive_desc_query_md(desc.get(),
                                                   dnnl_query_scratchpad_md, 0);
      kind.scratchBytes = dnnl_memory_desc_get_size(&kind.scratch);
      status = dnnl_reorder_primitive_desc_create(reorder.out(), &kind.packed,
                                                  context.engine(), &kind.plain,
                                                  context.engine(), nullptr);
    }
    if (status == dnnl_success)
      status = createPrimitive(kind.primitive, desc);
    if (status == dnnl_success)
      status = createPrimitive(kind.reorder, reorder);
    if (status == dnnl_success)
      return Status();
    return Status::error(std::string("oneDNN does not take this derivative of "
                                     "a convolution: ") +
                         context.reason(status));
  }

  static const dnnl_memory_desc_t *packedOf(const OwnedPrimitiveDesc &desc) {
    return dnnl_primitive_desc_query_md(desc.get(), dnnl_query_diff_weights_md,
                                        0);
  }

  Status makeWorker(OnednnContext &context, Worker &worker) {
    if (dnnl_stream_create(worker.stream.out(), context.engine(),
                           dnnl_stream_default_flags) != dnnl_success)
      return Status::error("oneDNN makes no stream for a thread");
    for (size_t i = 0; i < kKinds; ++i) {
      const Kind &kind = kinds[i];
      Arguments &own = worker.arguments[i];
      if (!kind.images)
        continue;
      for (auto [desc, memory] :
           {std::pair(&kind.x, &own.x), std::pair(&kind.dy, &own.dy),
            std::pair(&kind.packed, &own.packed),
            std::pair(&kind.plain, &own.plain),
            std::pair(&kind.scratch, &own.scratch)})
        PARTITA_TRY(context.memory(*desc, DNNL_MEMORY_NONE, *memory));
    }
    return Status();
  }

  /// The scratch of a thread, by where each part begins: channels of dy, of x
  /// if there are groups, two sums of a slice, and the library's.
  struct Layout {
    size_t x = 0, sum = 0, part = 0, library = 0, end = 0;
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
    size_t packed = 0, library = 0;
    for (const Kind &kind : kinds) {
      packed =
          std::max(packed, rules::alignScratch(kind.elements * sizeof(float)));
      library = std::max(library, kind.scratchBytes);
    }
    layout.part = layout.sum + packed;
    layout.library = layout.part + packed;
    layout.end = layout.library + rules::alignScratch(library);
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

  bool runSlice(Worker &worker, int64_t slice) {
    auto at = [&](size_t offset) {
      return reinterpret_cast<float *>(worker.scratch + offset);
    };
    float *dyCopy = at(0), *xCopy = at(layout.x), *sum = at(layout.sum),
          *part = at(layout.part), *library = at(layout.library);
    const int64_t images = x().dims[0];
    const Kind &first = kinds[kindOf(slice, 0)];
    const int64_t firstOut = slice * outWidth, firstIn = slice * inWidth;
    for (int64_t image = 0; image < images; image += slices.images) {
      const size_t number = kindOf(slice, image);
      const Kind &kind = kinds[number];
      Arguments &arguments = worker.arguments[number];
      copyChannels(dy(), image, kind.images, firstOut, kind.out, dyCopy);
      float *source = x().data + image * pixelsOf(x()) * x().dims[1];
      if (windows.groups > 1) {
        copyChannels(x(), image, kind.images, firstIn, kind.in, xCopy);
        source = xCopy;
      }
      dnnl_memory_set_data_handle(arguments.x.get(), source);
      dnnl_memory_set_data_handle(arguments.dy.get(), dyCopy);
      dnnl_memory_set_data_handle(arguments.packed.get(), image ? part : sum);
      dnnl_memory_set_data_handle(arguments.scratch.get(), library);
      const dnnl_exec_arg_t list[] = {
          {DNNL_ARG_SRC, arguments.x.get()},
          {DNNL_ARG_DIFF_DST, arguments.dy.get()},
          {DNNL_ARG_DIFF_WEIGHTS, arguments.packed.get()},
          {DNNL_ARG_SCRATCHPAD, arguments.scratch.get()}};
      if (dnnl_primitive_execute(kind.primitive.get(), worker.stream.get(),
                                 kind.scratchBytes ? 4 : 3,
                                 list) != dnnl_success)
        return false;
      if (!image)
        continue;
      for (size_t i = 0; i < kind.elements; ++i)
        sum[i] += part[i];
    }
    Arguments &arguments = worker.arguments[kindOf(slice, 0)];
    const int64_t rows = call.operands[2].strides[0];
    dnnl_memory_set_data_handle(arguments.packed.get(), sum);
    dnnl_memory_set_data_handle(arguments.plain.get(),
                                call.operands[2].data + firstOut * rows);
    const dnnl_exec_arg_t list[] = {{DNNL_ARG_FROM, arguments.packed.get()},
                                    {DNNL_ARG_TO, arguments.plain.get()}};
    return dnnl_primitive_execute(first.reorder.get(), worker.stream.get(), 2,
                                  list) == dnnl_success;
  }

  const ThreadTeam &team;
  ConvWindows windows;
  rules::ConvDwSlices slices;
  int64_t outWidth = 0, inWidth = 0; ///< channels of the widest slice
  Layout layout;
  std::array<Kind, kKinds> kinds;
  std::vector<std::unique_ptr<Worker>> workers;
  std::atomic<bool> failed = false;
};

} // namespace

Expected<std::unique_ptr<Task>> prepareConvDw(ResolvedCall call,
                                              OnednnContext &context,
                                              const ThreadTeam &team, bool) {
  auto task = std::make_unique<ConvDw>(std::move(call), team);
  PARTITA_TRY(task->prepare(context));
  return std::unique_ptr<Task>(std::move(task));
}

} // namespace partita::runtime
