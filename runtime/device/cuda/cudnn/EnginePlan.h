//===- EnginePlan.h - An engine that cuDNN plans with -----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan begins as a graph of operations. The library proposes engines for it;
// the first that computes as exactly as is wanted, within the workspace,
// becomes the plan. It is remembered by its number and its knobs, and made from
// them the next time. What the operations are, a class for each kind of call
// says.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_ENGINEPLAN_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_ENGINEPLAN_H

#include "runtime/device/cuda/ChoiceCache.h"
#include "runtime/device/cuda/cudnn/Api.h"
#include "runtime/device/cuda/rules/Tensor.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace partita::runtime::cuda::cudnn {

/// What is asked of an engine.
struct EngineWishes {
  size_t workspace = 0;  ///< bytes, at most
  bool keep_nan = false; ///< NaN for NaN
  /// What the widest accesses of engines need.
  static constexpr uint32_t kMostAlignment = 16;
  /// Bytes, of each tensor in memory. All have the same: where those of a
  /// result and an addend differ, the library finds no engine, or one that
  /// computes something else (9.19, on an H200).
  uint32_t alignment = kMostAlignment;
  ChoiceCache *cache = nullptr; ///< may be null

  /// There is a tensor of this alignment.
  void include(uint32_t other) { alignment = std::min(alignment, other); }
};

class EnginePlan {
public:
  EnginePlan(const EnginePlan &) = delete;
  EnginePlan &operator=(const EnginePlan &) = delete;
  virtual ~EnginePlan();

  /// Tells a descriptor of the graph, of heuristics or of a plan for which
  /// device it is: by a handle, or by a device's properties.
  using ForDevice = std::function<Result(Descriptor, DescriptorType)>;

  Descriptor plan() const { return chosen; }
  size_t workspace() const { return workspace_bytes; }
  /// The numbers of the tensors, in the order of the call's operands.
  const std::vector<int64_t> &ids() const { return operand_ids; }

  /// A tensor that is no operand: a number of the host, which the library reads
  /// whenever the call is started; or, if that is null, a place in the
  /// workspace, before the engine's.
  struct Extra {
    int64_t id = 0;
    const void *number = nullptr;
    size_t place = 0; ///< bytes from the workspace's start
  };
  const std::vector<Extra> &extras() const { return extra_tensors; }
  /// Where the engine's own workspace starts.
  size_t enginePlace() const { return extra_bytes; }

protected:
  explicit EnginePlan(const Api &api) : api(api) {}

  Descriptor create(DescriptorType type);
  template <typename T>
  void set(Descriptor descriptor, Attribute name, AttributeType type,
           const std::vector<T> &values) {
    describe(name, values);
    if (failed == Result::success)
      note(api.setAttribute(descriptor, name, type,
                            static_cast<int64_t>(values.size()),
                            values.data()));
  }
  void set(Descriptor descriptor, Attribute name,
           const std::vector<Descriptor> &values) {
    set<Descriptor>(descriptor, name, AttributeType::descriptor, values);
  }
  void setFlag(Descriptor descriptor, Attribute name);
  void finalize(Descriptor descriptor);

  Descriptor pointwise(PointwiseMode mode, Descriptor x, Descriptor b,
                       Descriptor y);

  /// A tensor in memory, or within the graph; a `number` is read on the host.
  Descriptor tensor(abi::DType type, const rules::Image &image, int64_t id,
                    int64_t alignment, bool in_memory = true,
                    const void *number = nullptr);

  /// The notes of an engine, or none where the library fails.
  std::vector<NumericalNote> notesOf(Descriptor config);

  /// Chooses among the engines for the operations those that suit, and
  /// finalises a plan. `what`: the call, `how`: what an engine must be, and
  /// `advice`: what to do where there is none, in words.
  Status choose(
      const std::vector<Descriptor> &operations, const EngineWishes &wishes,
      const ForDevice &for_device,
      const std::function<bool(Descriptor config)> &suits,
      const std::string &what, const std::string &how,
      const std::string &advice = "compile the model with --no-library-calls");

  std::vector<int64_t> operand_ids;
  std::vector<Extra> extra_tensors;
  size_t extra_bytes = 0; ///< of the workspace

private:
  /// Adds an attribute to the text of the problem.
  template <typename T>
  void describe(Attribute name, const std::vector<T> &values) {
    text << ' ' << static_cast<int>(name);
    if constexpr (!std::is_pointer_v<T>)
      for (size_t i = 0; i < values.size(); ++i) {
        text << (i ? ',' : ':');
        if constexpr (std::is_enum_v<T>)
          text << static_cast<int>(values[i]);
        else
          text << values[i];
      }
  }
  void note(Result result);
  std::vector<Descriptor> propose(Descriptor graph, Heuristic mode,
                                  const ForDevice &for_device);
  bool use(Descriptor config, const EngineWishes &wishes,
           const ForDevice &for_device);
  /// An engine's number, and each of its knobs with its value; nothing where
  /// the library does not tell.
  std::optional<ChoiceCache::Choice> choiceOf(Descriptor config);
  /// The engine of such a choice with its settings; null if the library refuses
  /// it.
  Descriptor configOf(Descriptor whole, const ChoiceCache::Choice &choice,
                      const ForDevice &for_device);

  const Api &api;
  std::vector<Descriptor> made;
  std::ostringstream text;         ///< all attributes of the operations
  Result failed = Result::success; ///< the first failure
  Descriptor chosen = nullptr;
  size_t workspace_bytes = 0;
};

} // namespace partita::runtime::cuda::cudnn

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_ENGINEPLAN_H
