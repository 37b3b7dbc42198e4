//===- ConvPlan.h - A convolution planned by cuDNN --------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operation graph: the convolution, then the addend, the bias and ReLU, as
// far as there are. The library proposes engines; the first that computes as
// exactly as is wanted, within the workspace, becomes the plan.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_CONVPLAN_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_CONVPLAN_H

#include "runtime/device/cuda/cudnn/Api.h"
#include "runtime/device/cuda/rules/Conv.h"

#include <functional>
#include <vector>

namespace partita::runtime::cuda::cudnn {

/// The numbers of tensors in a plan.
enum class TensorId : int64_t { x = 1, weights, result, addend, bias };

/// What is asked of an engine.
struct ConvWishes {
  size_t workspace = 0;                ///< bytes, at most
  bool keep_nan = false;               ///< ReLU gives NaN for NaN
  std::vector<uint32_t> alignments{5}; ///< bytes, of tensors by number - 1
};

class ConvPlan {
public:
  explicit ConvPlan(const Api &api) : api(api) {}
  ConvPlan(const ConvPlan &) = delete;
  ConvPlan &operator=(const ConvPlan &) = delete;
  ~ConvPlan();

  /// Tells a descriptor of the graph, of heuristics or of a plan for which
  /// device it is: by a handle, or by a device's properties.
  using ForDevice = std::function<Result(Descriptor, DescriptorType)>;

  /// Chooses an engine and finalises its plan.
  Status make(const rules::Conv &conv, const ConvWishes &wishes,
              const ForDevice &for_device);

  Descriptor plan() const { return chosen; }
  size_t workspace() const { return workspace_bytes; }

private:
  Descriptor create(DescriptorType type);
  template <typename T>
  void set(Descriptor descriptor, Attribute name, AttributeType type,
           const std::vector<T> &values);
  void set(Descriptor descriptor, Attribute name,
           const std::vector<Descriptor> &values) {
    set<Descriptor>(descriptor, name, AttributeType::descriptor, values);
  }
  void finalize(Descriptor descriptor);
  void note(Result result);
  Descriptor tensor(const rules::Conv &conv, const rules::Image &image,
                    TensorId id, const ConvWishes &wishes);
  Descriptor inner(const rules::Image &image, int64_t id);
  Descriptor graph(const rules::Conv &conv, const ConvWishes &wishes,
                   const ForDevice &for_device);
  Descriptor pointwise(PointwiseMode mode, Descriptor x, Descriptor b,
                       Descriptor y);
  std::vector<Descriptor> propose(Descriptor graph, Heuristic mode,
                                  const ForDevice &for_device);
  bool isExact(Descriptor config, const rules::Conv &conv,
               const ConvWishes &wishes);
  bool use(Descriptor config, const ConvWishes &wishes,
           const ForDevice &for_device);

  const Api &api;
  std::vector<Descriptor> made;
  Result failed = Result::success; ///< the first failure
  Descriptor chosen = nullptr;
  size_t workspace_bytes = 0;
};

} // namespace partita::runtime::cuda::cudnn

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_CONVPLAN_H
