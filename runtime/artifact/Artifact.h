//===- Artifact.h - A verified, mapped .partita file ------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `open` maps the file and trusts nothing in it. First it checks hashes,
// bounds, alignment, order and zero padding (SectionTable.h). Then it runs the
// FlatBuffers verifier. Then it checks every index, offset and shape of the
// plan, and its schedule (PlanVerifier.h). So users of an Artifact need no
// further checks.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_ARTIFACT_ARTIFACT_H
#define PARTITA_RUNTIME_ARTIFACT_ARTIFACT_H

#include "runtime/abi/artifact.h"
#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace partita::abi {
struct Plan;
}

namespace partita::runtime {

/// A shared object for one CPU level, inside the mapped file.
struct ObjectSection {
  abi::CpuLevel level = abi::CpuLevel::none;
  const uint8_t *data = nullptr;
  size_t bytes = 0;
};

/// The kernels for GPUs, inside the mapped file.
struct PtxSection {
  abi::GpuArchitecture architecture = abi::GpuArchitecture::none;
  const char *text = nullptr; ///< ends with NUL; null: there is none
};

class Artifact {
public:
  /// Maps and verifies `path` and the weight files it names. An error says
  /// which file is wrong, how, and what to do. Of several plans, the one for
  /// the largest sizes.
  static Expected<std::shared_ptr<const Artifact>>
  open(const std::string &path);

  /// One for each plan of the file that computes outputs, in their order: that
  /// of the smallest sizes first. They have the same dimensions, and inputs and
  /// outputs of the same names and types; equal weights have the same address.
  /// Of a model that is trained, these are its plans `eval`.
  static Expected<std::vector<std::shared_ptr<const Artifact>>>
  openAll(const std::string &path);

  /// A plan that learns, and one that computes outputs from the same states.
  struct Training {
    std::shared_ptr<const Artifact> train, eval;
  };
  /// Fails if the file is of a model that is not trained.
  static Expected<Training> openTraining(const std::string &path);
  ~Artifact();

  const std::string &path() const;
  const abi::Plan &plan() const;
  const std::vector<ObjectSection> &objects() const;
  const PtxSection &ptx() const;

  /// The mapped bytes of Plan.weights[index], read only. Weights of the weights
  /// section are aligned to 64 bytes. Weights of another file have any
  /// alignment, maybe less than that of their element.
  const uint8_t *weight(int index) const;

  /// Reads the weights Plan.weights[i], on up to `threads` threads, and
  /// compares their hashes. An error names the first weight that has changed
  /// since the model was compiled.
  Status verifyWeights(const std::vector<int> &indices, int threads) const;

  struct Impl;
  explicit Artifact(std::unique_ptr<Impl> impl);

private:
  static Expected<std::vector<std::shared_ptr<const Artifact>>>
  openPlans(const std::string &path);

  std::unique_ptr<Impl> impl;
};

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_ARTIFACT_ARTIFACT_H
