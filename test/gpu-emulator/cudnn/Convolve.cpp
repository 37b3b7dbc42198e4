//===- Convolve.cpp - A convolution on a device ---------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cudnn/Convolve.h"

#include "Emulator.h"
#include "ops/Number.h"

#include <cstring>

using namespace gpuemu;
using namespace gpuemu::cudnn;

namespace {

/// To the 10 bits of fraction that tensor cores read of f32.
void roundToTf32(std::vector<float> &values) {
  for (float &value : values)
    value = bitsToFloat((floatToBits(value) + 0x1000) & ~0x1fffu);
}

class Run {
public:
  explicit Run(const ConvolutionJob &job)
      : job(job), conv(job.convolution), x(read(conv.x, job.x, "x")),
        w(read(conv.w, job.w, "w")) {
    if (job.roundsToTf32) {
      roundToTf32(x);
      roundToTf32(w);
    }
    if (conv.hasAddend)
      addend = read(conv.addend, job.addend, "addend");
    if (conv.hasBias)
      bias = read(conv.bias, job.bias, "bias");
  }

  void run() {
    std::vector<float> results(size_t(conv.y.count()));
    std::vector<int64_t> index(conv.y.shape.size());
    for (size_t n = 0; n < results.size(); ++n) {
      int64_t place = 0;
      for (size_t i = 0; i < index.size(); ++i)
        place += index[i] * conv.y.strides[i];
      results[size_t(place)] = finish(sum(index), index, place);
      advance(index, conv.y.shape);
    }
    // Written last: the addend may lie where the result goes.
    write(conv.y, job.y, "y", results);
  }

private:
  float finish(float value, const std::vector<int64_t> &index,
               int64_t place) const {
    if (conv.hasAddend)
      value += addend[size_t(place)];
    if (conv.hasBias)
      value += bias[size_t(index[1])];
    if (!conv.hasRelu)
      return value;
    return value > 0 || (job.keepsNan && value != value) ? value : 0;
  }

  float sum(const std::vector<int64_t> &index) const {
    const int64_t channels = conv.w.shape[1];
    const int64_t outputs = conv.y.shape[1] * channels / conv.x.shape[1];
    const int64_t first = index[1] / outputs * channels;
    float total = 0;
    add(2, index[0] * conv.x.strides[0] + first * conv.x.strides[1],
        index[1] * conv.w.strides[0], index, channels, total);
    return total;
  }

  /// The windows' elements along the spatial dimensions from `dim` on.
  void add(size_t dim, int64_t atX, int64_t atW,
           const std::vector<int64_t> &index, int64_t channels,
           float &total) const {
    if (dim == index.size()) {
      for (int64_t c = 0; c < channels; ++c)
        total += x[size_t(atX + c * conv.x.strides[1])] *
                 w[size_t(atW + c * conv.w.strides[1])];
      return;
    }
    for (int64_t k = 0; k < conv.w.shape[dim]; ++k) {
      const int64_t at = index[dim] * conv.strides[dim - 2] +
                         k * conv.dilations[dim - 2] - conv.pads[dim - 2];
      if (at >= 0 && at < conv.x.shape[dim])
        add(dim + 1, atX + at * conv.x.strides[dim],
            atW + k * conv.w.strides[dim], index, channels, total);
    }
  }

  const ConvolutionJob &job;
  const Convolution &conv;
  std::vector<float> x, w, addend, bias;
};

} // namespace

std::string gpuemu::cudnn::convolve(const ConvolutionJob &job) {
  auto overlaps = [&](const Tensor &tensor, uint64_t address) {
    return address < job.y + job.convolution.y.bytes() &&
           job.y < address + tensor.bytes();
  };
  if (overlaps(job.convolution.x, job.x) || overlaps(job.convolution.w, job.w))
    return "the result of a convolution overlaps what it reads";
  if (job.workspaceBytes) {
    // Whatever else lies there is lost.
    void *scratch = cuEmuBytes(job.workspace, job.workspaceBytes, 2);
    if (!scratch)
      return std::string("the workspace: ") + cuEmuLastError();
    memset(scratch, 0xab, job.workspaceBytes);
  }
  try {
    Run(job).run();
  } catch (const Wrong &wrong) {
    return wrong.what;
  }
  return {};
}
