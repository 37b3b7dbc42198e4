//===- Resample.cpp - Pooling on a device ---------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cudnn/Resample.h"

#include <limits>

using namespace gpuemu::cudnn;

namespace {

/// One window.
class Window {
public:
  Window(const Resampling &how, const std::vector<float> &x,
         const std::vector<int64_t> &index)
      : how(how), x(x), index(index) {
    add(2, index[0] * how.x.strides[0] + index[1] * how.x.strides[1]);
  }

  float value() const {
    if (how.mode == CUDNN_RESAMPLE_MAXPOOL)
      return largest;
    int64_t elements = 1;
    for (int64_t extent : how.window)
      elements *= extent;
    return total / float(how.mode == CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING
                             ? inside
                             : elements);
  }

private:
  void add(size_t dim, int64_t place) {
    if (dim == index.size()) {
      const float value = x[size_t(place)];
      ++inside;
      total += value;
      if (value > largest || (how.propagatesNan && value != value))
        largest = value;
      return;
    }
    const size_t i = dim - 2;
    for (int64_t k = 0; k < how.window[i]; ++k) {
      const int64_t at = index[dim] * how.strides[i] + k - how.pads[i];
      if (at >= 0 && at < how.x.shape[dim])
        add(dim + 1, place + at * how.x.strides[dim]);
    }
  }

  const Resampling &how;
  const std::vector<float> &x;
  const std::vector<int64_t> &index;
  float largest = -std::numeric_limits<float>::infinity(), total = 0;
  int64_t inside = 0;
};

} // namespace

std::string gpuemu::cudnn::resample(const ResamplingJob &job) {
  const Resampling &how = job.resampling;
  if (job.x < job.y + how.y.bytes() && job.y < job.x + how.x.bytes())
    return "the result of a pool overlaps what it reads";
  try {
    const std::vector<float> x = read(how.x, job.x, "x");
    std::vector<float> results(size_t(how.y.count()));
    std::vector<int64_t> index(how.y.shape.size());
    for (size_t n = 0; n < results.size(); ++n) {
      int64_t place = 0;
      for (size_t i = 0; i < index.size(); ++i)
        place += index[i] * how.y.strides[i];
      results[size_t(place)] = Window(how, x, index).value();
      advance(index, how.y.shape);
    }
    write(how.y, job.y, "y", results);
  } catch (const Wrong &wrong) {
    return wrong.what;
  }
  return {};
}
