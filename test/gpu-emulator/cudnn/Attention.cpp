//===- Attention.cpp - Attention on a device ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cudnn/Attention.h"

#include "Emulator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>

using namespace gpuemu::cudnn;

namespace {

/// The dimensions whose elements lie one after another.
constexpr size_t kLast = 3, kOfKeys = 2;

/// What attention writes. Nothing else may lie there.
class WrittenMemory {
public:
  /// Throws `Wrong` where a part is written already.
  void add(uint64_t address, uint64_t bytes, const char *name) {
    check(address, bytes, name);
    ends[address] = address + bytes;
  }
  void check(uint64_t address, uint64_t bytes, const char *name) const {
    auto it = ends.lower_bound(address + bytes);
    if (it != ends.begin() && std::prev(it)->second > address)
      throw Wrong{std::string(name) + " overlaps what attention writes"};
  }

private:
  std::map<uint64_t, uint64_t> ends; // by beginnings
};

/// Calls with the address and the bytes of each row of a tensor.
template <typename Function>
void eachRow(const Tensor &tensor, uint64_t address, size_t along,
             const Function &call) {
  std::vector<int64_t> outer = tensor.shape, index(outer.size());
  outer[along] = 1;
  const int64_t rows = tensor.count() / tensor.shape[along];
  for (int64_t row = 0; row < rows; ++row) {
    int64_t place = 0;
    for (size_t i = 0; i < index.size(); ++i)
      place += index[i] * tensor.strides[i];
    call(address + uint64_t(place) * tensor.elementBytes(),
         uint64_t(tensor.shape[along]) * tensor.elementBytes());
    advance(index, outer);
  }
}

void checkOverlaps(const AttentionJob &job) {
  const Attention &how = job.attention;
  WrittenMemory written;
  if (job.workspaceBytes)
    written.add(job.workspace, job.workspaceBytes, "the workspace");
  auto writes = [&](const Tensor &tensor, uint64_t at, const char *name) {
    eachRow(tensor, at, kLast, [&](uint64_t row, uint64_t bytes) {
      written.add(row, bytes, name);
    });
  };
  writes(how.result, job.result, "tensor result");
  writes(how.statistics, job.statistics, "tensor statistics");
  auto reads = [&](const Tensor &tensor, uint64_t at, size_t along,
                   const char *name) {
    eachRow(tensor, at, along, [&](uint64_t row, uint64_t bytes) {
      written.check(row, bytes, name);
    });
  };
  reads(how.q, job.q, kLast, "tensor q");
  reads(how.k, job.k, kOfKeys, "tensor k");
  reads(how.v, job.v, kLast, "tensor v");
  if (how.hasMask)
    reads(how.mask, job.mask, kLast, "tensor mask");
}

/// The numbers are those of engines that take the scores block by block: the
/// exponentials are rounded for the second product, and divided by their sum
/// after it.
class Head {
public:
  Head(const AttentionJob &job, int64_t batch, int64_t head)
      : job(job), how(job.attention), batch(batch), head(head),
        keys(size_t(how.k.shape[3])), depth(size_t(how.q.shape[3])),
        width(size_t(how.v.shape[3])), k(depth * keys), v(keys * width) {
    for (size_t l = 0; l < keys; ++l) {
      const int64_t last = int64_t(l);
      const auto key =
          readRow(how.k, job.k, "k", place(how.k, 0) + last * how.k.strides[3],
                  int64_t(depth));
      for (size_t d = 0; d < depth; ++d)
        k[d * keys + l] = key[d];
      const auto value =
          readRow(how.v, job.v, "v", place(how.v, last), int64_t(width));
      std::copy(value.begin(), value.end(), v.begin() + last * int64_t(width));
    }
  }

  void run() {
    for (int64_t row = 0; row < how.q.shape[2]; ++row) {
      std::vector<float> scores = scoresOf(row);
      float maximum = -std::numeric_limits<float>::infinity(), sum = 0;
      for (float score : scores)
        maximum = score > maximum ? score : maximum;
      std::vector<float> result(width);
      for (size_t l = 0; l < keys; ++l) {
        const float exponential = std::exp(scores[l] - maximum),
                    p = rounded(exponential, how.result.type);
        sum += exponential;
        for (size_t e = 0; e < width; ++e)
          result[e] += p * v[l * width + e];
      }
      for (float &value : result)
        value /= sum;
      writeRow(how.result, job.result, "result", place(how.result, row),
               result);
      writeRow(how.statistics, job.statistics, "statistics",
               place(how.statistics, row), {maximum + std::log(sum)});
    }
  }

private:
  /// Of a tensor's row; where an extent is 1, all share it.
  int64_t place(const Tensor &tensor, int64_t row) const {
    const int64_t index[] = {batch, head, row};
    int64_t at = 0;
    for (size_t i = 0; i < 3; ++i)
      if (tensor.shape[i] != 1)
        at += index[i] * tensor.strides[i];
    return at;
  }

  std::vector<float> scoresOf(int64_t row) const {
    const auto q =
        readRow(how.q, job.q, "q", place(how.q, row), int64_t(depth));
    std::vector<float> scores(keys);
    for (size_t d = 0; d < depth; ++d)
      for (size_t l = 0; l < keys; ++l)
        scores[l] += q[d] * k[d * keys + l];
    for (float &score : scores)
      score *= job.scale;
    if (!how.hasMask)
      return scores;
    const auto mask = readRow(how.mask, job.mask, "mask", place(how.mask, row),
                              int64_t(keys));
    for (size_t l = 0; l < keys; ++l)
      scores[l] += mask[l];
    return scores;
  }

  const AttentionJob &job;
  const Attention &how;
  const int64_t batch, head;
  const size_t keys, depth, width;
  std::vector<float> k, v; // [depth, keys], [keys, width]
};

} // namespace

std::string gpuemu::cudnn::attend(const AttentionJob &job) {
  try {
    checkOverlaps(job);
    if (job.workspaceBytes) {
      // Whatever else lies there is lost.
      void *scratch = cuEmuBytes(job.workspace, job.workspaceBytes, 2);
      if (!scratch)
        return std::string("the workspace: ") + cuEmuLastError();
      memset(scratch, 0xab, job.workspaceBytes);
    }
    for (int64_t batch = 0; batch < job.attention.q.shape[0]; ++batch)
      for (int64_t head = 0; head < job.attention.q.shape[1]; ++head)
        Head(job, batch, head).run();
  } catch (const Wrong &wrong) {
    return wrong.what;
  }
  return {};
}
