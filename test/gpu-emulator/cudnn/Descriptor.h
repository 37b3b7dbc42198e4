//===- Descriptor.h - What a graph is described with ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TEST_GPUEMULATOR_CUDNN_DESCRIPTOR_H
#define PARTITA_TEST_GPUEMULATOR_CUDNN_DESCRIPTOR_H

#include "cudnn/Attention.h"
#include "cudnn/Convolve.h"
#include "cudnn/Resample.h"

#include <cstring>
#include <map>
#include <memory>
#include <variant>

namespace gpuemu::cudnn {

constexpr cudnnStatus_t kWell = CUDNN_STATUS_SUCCESS,
                        kWrong = CUDNN_STATUS_BAD_PARAM;

struct Engine {
  bool roundsToTf32 = false, keepsNan = false;
  uint64_t workspace = 0;
  /// Among the engines for a graph; it is the value of its only knob, too.
  int64_t index = 0;
  bool multipliesOnTensorCores = false, isCompiledAtRuntime = false;
};

using Graph = std::variant<Convolution, Resampling, Attention>;

struct Value {
  cudnnBackendAttributeType_t type;
  int64_t count = 0;
  std::vector<uint8_t> bytes;
};

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool isFinal = false;
  std::map<int, Value> values;
  // What finalising makes of them.
  Tensor tensor;
  std::shared_ptr<const Graph> graph;
  std::vector<Engine> proposals;
  Engine engine;

  template <typename T>
  std::vector<T> get(cudnnBackendAttributeName_t name) const {
    auto it = values.find(name);
    if (it == values.end() ||
        it->second.bytes.size() != size_t(it->second.count) * sizeof(T))
      return {};
    std::vector<T> all(size_t(it->second.count));
    if (!all.empty())
      memcpy(all.data(), it->second.bytes.data(), it->second.bytes.size());
    return all;
  }
  /// Sets an attribute that descriptors of this type have.
  cudnnStatus_t set(cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t attributeType, int64_t count,
                    const void *from);
  /// A finalised descriptor of this type, or null.
  const Descriptor *child(cudnnBackendAttributeName_t name,
                          cudnnBackendDescriptorType_t wanted) const {
    auto all = get<const Descriptor *>(name);
    return all.size() == 1 && all[0] && all[0]->isFinal &&
                   all[0]->type == wanted
               ? all[0]
               : nullptr;
  }
  /// A finalised tensor, or null.
  const Tensor *tensorAt(cudnnBackendAttributeName_t name) const {
    const Descriptor *found = child(name, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    return found ? &found->tensor : nullptr;
  }
};

} // namespace gpuemu::cudnn

#endif // PARTITA_TEST_GPUEMULATOR_CUDNN_DESCRIPTOR_H
