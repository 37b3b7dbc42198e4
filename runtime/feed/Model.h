//===- Model.h - What partita-run knows of an artifact ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_FEED_MODEL_H
#define PARTITA_RUNTIME_FEED_MODEL_H

#include "runtime/abi/plan_generated.h"
#include "runtime/artifact/Artifact.h"
#include "runtime/base/Mesh.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace partita::feed {

/// An input or output. The shape is that of one micro-batch.
struct Port {
  std::string name;
  abi::DType dtype = abi::DType::f32;
  std::vector<int64_t> shape;
  int batchAxis = -1;
  bool perStep = false; ///< one tensor for all micro-batches of a step
  int index = 0;        ///< among the model's own inputs or outputs
  std::string node;     ///< of an exposed inner value: the node that makes it
  /// Why a run takes this shape, once: what combines samples. Empty: it does
  /// not, or nobody asked.
  std::string whole;
  /// Devices that load or store it, in increasing order.
  std::vector<int> devices;

  int64_t bytes() const;
  /// The number of samples in one micro-batch. 1 if the port has no batch axis.
  int64_t samples() const { return batchAxis < 0 ? 1 : shape[batchAxis]; }
  /// Whether one of `devices` loads or stores it; none stands for all of the
  /// plan.
  bool usedBy(const std::vector<int> &devices) const;
  /// `whole` as the end of a message: "; samples cannot be split: ...", or "".
  std::string wholeText() const;
  /// E.g. "float32 [N, 3, 224, 224]", with N for the batch axis.
  std::string typeText() const;
};

/// An input or output of the model that is a sequence or an optional. Its
/// tensors are ports, named `x.0`, `x.1`, ... or `x`.
struct Collection {
  std::string name;
  abi::CollectionKind kind = abi::CollectionKind::sequence;
  int index = 0;
  int length = 0; ///< -1: an optional without a value

  bool isOptional() const { return kind != abi::CollectionKind::sequence; }
  std::string portName(int position) const {
    return kind == abi::CollectionKind::optional_tensor
               ? name
               : name + "." + std::to_string(position);
  }
  /// E.g. "a sequence of 2 tensors", "an optional without a value".
  std::string text() const;
};

struct Model {
  explicit Model(std::shared_ptr<const runtime::Artifact> artifact);

  std::shared_ptr<const runtime::Artifact> artifact;
  const abi::Plan *plan;
  std::string file;   ///< the artifact's file name without its folder
  runtime::Mesh mesh; ///< on which every program is executed
  int devices;
  int microBatches; ///< of a step, over all replicas
  /// Without the one that says of which sequences a step is, if it may be of
  /// several (Plan.step_sequences).
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Port> boundInputs;
  std::vector<Collection> inputCollections;
  std::vector<Collection> outputCollections;

  /// The sizes that the plan is for, e.g. "tokens = 64". Empty if its file has
  /// no other plans.
  std::string sizesText() const;
  std::string deviceName(int device) const;
  /// The names of the devices that execute a program, e.g. "cpu:0" or "cpu:0,
  /// cpu:2".
  std::string executorNames(int program) const;
  /// E.g. "all_reduce along tensor".
  std::string collectiveText(const abi::Collective &collective) const;
  /// The names of the axes along which its devices differ, e.g. "tensor".
  std::string axesText(const abi::Collective &collective) const;
  /// The number of samples in one micro-batch, which is that of the first input
  /// that has a batch axis.
  int64_t samples() const;
  /// Fails if the plan's micro-batches, or its steps, must be full and
  /// `samples` samples do not fill theirs.
  runtime::Status checkSamples(int64_t samples) const;
  /// The bytes of the inputs and outputs of all micro-batches of a step. The
  /// caller holds them. They are not part of the memory that is planned for the
  /// devices.
  int64_t ioBytes() const;
  /// The number of devices whose program runs at least one unit.
  int workingDevices() const;
};

std::vector<std::string> namesOf(const std::vector<Port> &ports);

} // namespace partita::feed

#endif // PARTITA_RUNTIME_FEED_MODEL_H
