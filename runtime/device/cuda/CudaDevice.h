//===- CudaDevice.h - A GPU of NVIDIA's as a device -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Several devices of a plan may use one GPU. Each has streams and an arena of
// its own there. They share the GPU's context and the plan's kernels.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H

#include "runtime/device/Driver.h"
#include "runtime/device/cuda/CudaQueue.h"
#include "runtime/device/cuda/CudaShare.h"
#include "runtime/device/cuda/KernelModule.h"
#include "runtime/device/cuda/Transfers.h"
#include "runtime/device/cuda/cublaslt/MatmulTask.h"
#include "runtime/device/cuda/cudnn/EngineTask.h"

namespace partita::runtime::cuda {

/// Libraries that tests give. Null: the one that is installed is looked for
/// when a plan has calls of it.
struct LibraryApis {
  const cublaslt::Api *blas = nullptr;
  const cudnn::Api *dnn = nullptr;
};

class CudaDevice final : public Device {
public:
  /// See Driver::create. `make` must succeed before all other calls.
  CudaDevice(const abi::Plan &plan, int index, const WeightPointers &weights,
             std::shared_ptr<const Gpu> gpu,
             std::shared_ptr<const KernelModule> kernels,
             const DeviceOptions &options, const LibraryApis &libraries);
  Status make(const DeviceOptions &options);
  ~CudaDevice() override;

  const Gpu &gpu() const { return *used_gpu; }
  const std::shared_ptr<const Gpu> &sharedGpu() const { return used_gpu; }
  CudaQueue &cudaQueue() { return *work; }

  bool isHost() const override { return false; }

  uint8_t *slot(int index, int micro_batch) const override;
  Expected<uint8_t *> allocate(size_t bytes, const char *what) override;
  Status upload(uint8_t *to, const void *from, size_t bytes) override;
  Status download(void *to, const uint8_t *from, size_t bytes) override;
  uint8_t *arena() const override;
  DeviceMemory memory() const override;

  Status letMove(const std::vector<int> &slots) override;
  Expected<Instance *> prepare(int unit) override;
  /// Makes graphs of units.
  Status finish() override;
  std::string remark() const override { return load_remark; }

  Queue &queue() override { return *work; }
  Status beginStep() override;
  Event closeStep() override { return work->record(); }
  Status awaitStep(const Event &end) override { return work->awaitStep(end); }
  bool metNan() const override { return false; } // its kernels keep NaN
  int64_t busyNs() const override { return work->busyNs(); }

private:
  void placeWeights();
  void placeStates();
  size_t workspaceBytes() const;
  StepTraffic stepTraffic() const;
  Status checkMemory(size_t arena_bytes, size_t lasting) const;
  Status allocateAll(const DeviceOptions &options);
  Status findStates();
  Status loadWeights();
  Status loadStates();
  Status runLoadProgram();
  Status cutWeight(const abi::Slice &slice);
  bool isWeight(int slot) const;
  CudaInstance::Operand operand(int slot) const;
  RowPart rowPart(const abi::Slice &slice) const;
  Status add(CudaInstance &instance, const abi::Instruction &instruction);
  Status addCall(CudaInstance &instance, const abi::Call &call,
                 const char *label);
  CudaInstance::Operand operand(const abi::View &view) const;
  rules::Tensor tensorOf(const abi::View &view) const;
  std::vector<rules::PostOp> postOpsOf(const abi::Call &call) const;
  std::vector<CudaInstance::Operand> operandsOf(const abi::Call &call,
                                                int addend, int bias) const;
  Status addProduct(CudaInstance &instance, const abi::Call &call,
                    const char *label);
  Status addConvolution(CudaInstance &instance, const abi::Call &call,
                        const char *label);
  Status addPool(CudaInstance &instance, const abi::Call &call,
                 const char *label);
  Status addAttention(CudaInstance &instance, const abi::Call &call,
                      const char *label);
  template <typename Plan, typename Rule, typename... More>
  Status addEngine(CudaInstance &instance,
                   const std::vector<CudaInstance::Operand> &operands,
                   const Rule &rule, const char *what, const char *label,
                   More... more);
  static uint32_t alignmentOf(const CudaInstance::Operand &operand);

  const abi::Plan &plan;
  const int index;
  const abi::Device &described;
  const abi::Program &program;
  const WeightPointers &weights;
  const std::shared_ptr<const Gpu> used_gpu;
  const std::shared_ptr<const KernelModule> kernels;
  const LibraryApis library_apis;
  const bool keep_nan, use_graphs;

  struct State {
    bool used = false;           ///< by this device
    bool is_new = false;         ///< its initial value is to be brought
    CudaInstance::Copies copies; ///< their addresses
    size_t bytes = 0;            ///< of all copies
  };

  std::shared_ptr<CudaShare> share; ///< maybe with devices of other plans
  DeviceBuffer constants;           ///< and weights that steps read
  DeviceBuffer load_weights;        ///< until they are loaded
  std::vector<DeviceBuffer> allocated;
  std::vector<int64_t> weight_offsets;   ///< by weight; -1: not on the device
  std::vector<bool> only_loads;          ///< by weight: in `load_weights`
  size_t kept_bytes = 0, load_bytes = 0; ///< of weights
  std::vector<State> states;             ///< those of the plan
  size_t state_bytes = 0;
  std::vector<CudaInstance::Copies> frames;
  DeviceAddress workspace = 0; ///< of library calls: of the share
  // Since the first call.
  std::shared_ptr<cublaslt::Library> blas;
  std::shared_ptr<cudnn::Library> dnn;

  std::unique_ptr<CudaQueue> work;
  std::unique_ptr<Transfers> transfers;
  std::vector<std::unique_ptr<CudaInstance>> instances; ///< by unit; or null
  std::string load_remark;
};

/// Loads the artifact's kernels through a driver. Tests give their own `api`.
Expected<std::unique_ptr<Driver>>
makeCudaDriver(const Artifact &artifact, const DeviceOptions &options,
               const Api &api, const LibraryApis &libraries = {});

} // namespace partita::runtime::cuda

namespace partita::runtime {

/// Loads NVIDIA's driver, and the artifact's kernels.
Expected<std::unique_ptr<Driver>> loadCudaDriver(const Artifact &artifact,
                                                 const DeviceOptions &options);

/// See DescribeNeeds.
std::vector<std::string> describeCudaNeeds(const Artifact &artifact);

/// Measures a GPU of each architecture. None without a driver.
Expected<std::vector<DeviceFigures>> measureCudaDevices();

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDADEVICE_H
