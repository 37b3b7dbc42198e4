//===- Layout.cpp - Samples in the bytes of a port ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/feed/Layout.h"

#include "runtime/base/Elements.h"
#include "runtime/io/DType.h"

#include <cstring>

namespace partita::feed {

using runtime::Status;
using runtime::Tensor;

Layout layoutOf(const Port &port) {
  Layout layout;
  layout.inner = runtime::elementBytes(port.dtype);
  for (size_t d = 0; d < port.shape.size(); ++d)
    if (int(d) < port.batchAxis)
      layout.outer *= port.shape[d];
    else if (int(d) > port.batchAxis)
      layout.inner *= port.shape[d];
  return layout;
}

void copyEntries(const Layout &layout, uint8_t *to, int64_t toEntries,
                 int64_t toBegin, const uint8_t *from, int64_t fromEntries,
                 int64_t fromBegin, int64_t count) {
  for (int64_t o = 0; o < layout.outer; ++o)
    std::memcpy(to + (o * toEntries + toBegin) * layout.inner,
                from + (o * fromEntries + fromBegin) * layout.inner,
                size_t(count * layout.inner));
}

void takeReplica(const Port &port, runtime::Tensor &to, const uint8_t *from,
                 int replica, int replicas) {
  if (port.batchAxis < 0) {
    if (replica == 0)
      std::memcpy(to.mutableData(), from, size_t(to.bytes()));
    return;
  }
  const int64_t samples = port.samples(),
                all = to.shape()[size_t(port.batchAxis)];
  for (int64_t begin = replica * samples; begin < all;
       begin += replicas * samples)
    copyEntries(layoutOf(port), to.mutableData(), all, begin, from, all, begin,
                std::min(samples, all - begin));
}

Status checkInput(const Port &port, const Tensor &tensor) {
  if (tensor.dtype() != port.dtype)
    return Status::error("the input '" + port.name + "' is given as " +
                         tensor.typeText() + ", but " + port.typeText() +
                         " is needed; convert it, for example with "
                         "x.astype('" +
                         runtime::dtypeName(port.dtype) + "')");
  std::vector<int64_t> shape = tensor.shape();
  bool right = shape.size() == port.shape.size();
  for (size_t d = 0; right && d < shape.size(); ++d)
    right = int(d) == port.batchAxis || shape[d] == port.shape[d];
  if (!right)
    return Status::error(
        "the input '" + port.name + "' is given as " + tensor.typeText() +
        ", but " + port.typeText() + " is needed" +
        (port.batchAxis >= 0 ? " (N: any number of samples)" : "") +
        port.wholeText());
  if (port.batchAxis >= 0 && shape[size_t(port.batchAxis)] == 0)
    return Status::error("the input '" + port.name + "' has no samples");
  return Status();
}

} // namespace partita::feed
