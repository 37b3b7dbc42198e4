//===- LaunchApi.cpp - Modules, functions and launches ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "driver/Module.h"
#include "driver/State.h"

#include <algorithm>
#include <cstring>

using namespace gpuemu;

struct CUfunc_st {
  CUmod_st *owner = nullptr;
  std::shared_ptr<const Program> program;
  int mostDynamicShared = 0;
};

struct CUmod_st {
  /// Shared with launches, which outlive an unloading.
  std::shared_ptr<Module> module;
  std::map<std::string, CUfunc_st> functions;
};

namespace {

constexpr unsigned usualShared = 49152;

/// Copies a message to the buffer that the options of a load name.
void writeLog(const std::string &text, unsigned count, CUjit_option *options,
              void **values) {
  char *buffer = nullptr;
  size_t size = 0;
  size_t *sizeOut = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
      buffer = static_cast<char *>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
      size = unsigned(reinterpret_cast<uintptr_t>(values[i]));
      sizeOut = reinterpret_cast<size_t *>(&values[i]);
    }
  }
  if (!buffer || !size)
    return;
  size_t length = std::min(text.size(), size - 1);
  memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
  *sizeOut = length;
}

CUmod_st *loadModule(State &state, const void *image, unsigned count,
                     CUjit_option *options, void **values) {
  checkNotCapturing(state);
  try {
    auto result = std::make_unique<CUmod_st>();
    result->module = std::make_shared<Module>(
        static_cast<const char *>(image), state.memory,
        currentContext()->device, state.config.architecture,
        state.config.driverVersion);
    state.modules.insert(result.get());
    return result.release();
  } catch (const Fault &fault) {
    writeLog(fault.what(), count, options, values);
    throw;
  }
}

CUmod_st &moduleOf(State &state, CUmodule module) {
  if (!state.modules.count(module))
    throw Fault(CUDA_ERROR_INVALID_HANDLE, "there is no such module");
  return *module;
}

CUfunc_st *functionIn(CUmod_st &module, const char *name) {
  std::shared_ptr<const Program> program = module.module->kernel(name);
  if (!program)
    throw Fault(CUDA_ERROR_NOT_FOUND,
                std::string("there is no kernel ") + name + " in the module");
  CUfunc_st &function = module.functions[name];
  function.owner = &module;
  function.program = std::move(program);
  function.mostDynamicShared =
      std::max(function.mostDynamicShared,
               int(usualShared) -
                   int(std::min(usualShared, function.program->staticShared)));
  return &function;
}

unsigned optInShared(const State &state) {
  unsigned architecture = state.config.architecture;
  return architecture >= 120 ? 101376 : architecture >= 90 ? 232448 : 166912;
}

struct Shape {
  unsigned grid[3], block[3], shared;
};

void checkShape(const CUfunc_st &function, const Shape &shape) {
  const Program &program = *function.program;
  auto fail = [&](CUresult error, const std::string &what) {
    throw Fault(error, "a launch of " + program.name + ": " + what);
  };
  uint64_t threads = 1;
  static constexpr unsigned mostBlock[3] = {1024, 1024, 64};
  static constexpr unsigned mostGrid[3] = {INT32_MAX, 65535, 65535};
  for (int i = 0; i < 3; ++i) {
    threads *= shape.block[i];
    if (!shape.block[i] || shape.block[i] > mostBlock[i])
      fail(CUDA_ERROR_INVALID_VALUE,
           "a block of size " + std::to_string(shape.block[i]));
    if (!shape.grid[i] || shape.grid[i] > mostGrid[i])
      fail(CUDA_ERROR_INVALID_VALUE,
           "a grid of size " + std::to_string(shape.grid[i]));
    if (program.exactThreads && shape.block[i] != program.exactBlock[i])
      fail(CUDA_ERROR_INVALID_VALUE, "the kernel requires other blocks");
  }
  if (threads > program.maxThreads)
    fail(CUDA_ERROR_INVALID_VALUE, "blocks of " + std::to_string(threads) +
                                       " threads; at most " +
                                       std::to_string(program.maxThreads));
  if (int(shape.shared) > function.mostDynamicShared)
    fail(CUDA_ERROR_INVALID_VALUE,
         std::to_string(shape.shared) +
             " bytes of dynamic shared memory; at most " +
             std::to_string(function.mostDynamicShared) +
             " (CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)");
}

CUresult launch(const char *name, CUfunction function, const Shape &shape,
                CUstream handle, void **parameters, void **extra) {
  return call(name, [&](State &state, auto &) -> CUresult {
    if (!function || extra)
      return CUDA_ERROR_INVALID_VALUE;
    moduleOf(state, function->owner);
    CUstream_st &stream = streamOf(state, handle);
    checkShape(*function, shape);
    if (function->owner->module->device() != stream.device)
      throw Fault(CUDA_ERROR_INVALID_HANDLE,
                  "the kernel and the stream belong to different devices");
    const Program &program = *function->program;
    if (!program.parameters.empty() && !parameters)
      return CUDA_ERROR_INVALID_VALUE;
    auto result = std::make_shared<Launch>();
    result->program = function->program;
    result->module = function->owner->module;
    std::copy_n(shape.grid, 3, result->grid);
    std::copy_n(shape.block, 3, result->block);
    result->dynamicShared = shape.shared;
    result->device = stream.device;
    // They are copied now, and not when the kernel runs.
    result->parameters.resize(program.parameterBytes);
    for (size_t i = 0; i < program.parameters.size(); ++i)
      memcpy(result->parameters.data() + program.parameters[i].offset,
             parameters[i], program.parameters[i].bytes);
    result->number = ++state.launchNumber;
    Operation operation;
    operation.name = "kernel " + program.name;
    operation.run = [&state, result] {
      ++state.counts.launches;
      Launch launch = *result;
      launch.reachable = state.contexts[size_t(launch.device)]->reachable;
      RunResult done = runLaunch(launch, state.memory, state.config.run);
      state.counts.laneInstructions += done.laneSteps;
      return true;
    };
    state.scheduler->enqueue(stream, std::move(operation));
    return CUDA_SUCCESS;
  });
}

/// Blocks that fit into a multiprocessor.
int activeBlocks(State &state, const CUfunc_st &function, int threads,
                 size_t shared) {
  const Program &program = *function.program;
  unsigned architecture = state.config.architecture;
  int most = architecture >= 120 ? 24 : 32;
  int mostThreads = architecture >= 120 ? 1536 : 2048;
  if (threads <= 0 || threads > int(program.maxThreads))
    return 0;
  int rounded = (threads + 31) / 32 * 32;
  most = std::min(most, mostThreads / rounded);
  most = std::min(most, 65536 / (int(program.registerCount) * rounded));
  size_t bytes = program.staticShared + shared + 1024;
  return std::min<int>(most, int((optInShared(state) + 1024) / bytes));
}

} // namespace

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return call("cuModuleLoadData", Needs::Context, Kind::Creates,
              [&](State &state, auto &) {
                *module = loadModule(state, image, 0, nullptr, nullptr);
                return CUDA_SUCCESS;
              });
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                            CUjit_option *options, void **values) {
  return call("cuModuleLoadDataEx", Needs::Context, Kind::Creates,
              [&](State &state, auto &) {
                *module = loadModule(state, image, count, options, values);
                return CUDA_SUCCESS;
              });
}

CUresult cuModuleUnload(CUmodule module) {
  return call("cuModuleUnload", Needs::Context, Kind::Releases,
              [&](State &state, auto &) {
                moduleOf(state, module);
                state.modules.erase(module);
                delete module;
                return CUDA_SUCCESS;
              });
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                             const char *name) {
  return call("cuModuleGetFunction", [&](State &state, auto &) {
    *function = functionIn(moduleOf(state, module), name);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
  return call("cuModuleGetFunctionCount", [&](State &state, auto &) {
    *count = unsigned(moduleOf(state, module).module->kernelCount());
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes,
                              CUmodule module, const char *name) {
  return call("cuModuleGetGlobal", [&](State &state, auto &) -> CUresult {
    const Module::Global *found = moduleOf(state, module).module->global(name);
    if (!found)
      return CUDA_ERROR_NOT_FOUND;
    if (address)
      *address = found->address;
    if (bytes)
      *bytes = found->bytes;
    return CUDA_SUCCESS;
  });
}

// A library is a module here, and its kernels are functions.
CUresult cuLibraryLoadData(CUlibrary *library, const void *image,
                           CUjit_option *options, void **values, unsigned count,
                           CUlibraryOption *, void **, unsigned) {
  return call("cuLibraryLoadData", Needs::Context, Kind::Creates,
              [&](State &state, auto &) {
                *library = reinterpret_cast<CUlibrary>(
                    loadModule(state, image, count, options, values));
                return CUDA_SUCCESS;
              });
}

CUresult cuLibraryUnload(CUlibrary library) {
  return cuModuleUnload(reinterpret_cast<CUmodule>(library));
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library,
                            const char *name) {
  return cuModuleGetFunction(reinterpret_cast<CUfunction *>(kernel),
                             reinterpret_cast<CUmodule>(library), name);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  return call("cuLibraryGetModule", [&](State &state, auto &) {
    *module = &moduleOf(state, reinterpret_cast<CUmodule>(library));
    return CUDA_SUCCESS;
  });
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which,
                            CUfunction function) {
  return call("cuFuncGetAttribute", [&](State &state, auto &) -> CUresult {
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    moduleOf(state, function->owner);
    const Program &program = *function->program;
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = int(program.maxThreads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = int(program.staticShared);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = 0;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = int(program.localBytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = int(program.registerCount);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = int(state.config.architecture);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->mostDynamicShared;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which,
                            int value) {
  return call("cuFuncSetAttribute", [&](State &state, auto &) -> CUresult {
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    moduleOf(state, function->owner);
    if (which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
      return CUDA_SUCCESS;
    if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
      return CUDA_ERROR_INVALID_VALUE;
    int most = int(optInShared(state)) - int(function->program->staticShared);
    if (value < 0 || value > most)
      throw Fault(CUDA_ERROR_INVALID_VALUE,
                  "the kernel can have " + std::to_string(most) +
                      " bytes of dynamic shared memory and not " +
                      std::to_string(value));
    function->mostDynamicShared = value;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetName(const char **name, CUfunction function) {
  return call("cuFuncGetName", [&](State &state, auto &) {
    moduleOf(state, function->owner);
    *name = function->program->name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset,
                            size_t *bytes) {
  return call("cuFuncGetParamInfo", [&](State &state, auto &) -> CUresult {
    moduleOf(state, function->owner);
    const auto &parameters = function->program->parameters;
    if (index >= parameters.size())
      return CUDA_ERROR_INVALID_VALUE;
    *offset = parameters[index].offset;
    if (bytes)
      *bytes = parameters[index].bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY,
                        unsigned gridZ, unsigned blockX, unsigned blockY,
                        unsigned blockZ, unsigned shared, CUstream stream,
                        void **parameters, void **extra) {
  return launch("cuLaunchKernel", function,
                {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, shared},
                stream, parameters, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                          void **parameters, void **extra) {
  if (!config)
    return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute &each = config->attrs[i];
    const auto &cluster = each.value.clusterDim;
    bool unsupported = (each.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
                        each.value.cooperative) ||
                       (each.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
                        uint64_t(cluster.x) * cluster.y * cluster.z > 1);
    if (unsupported)
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return launch("cuLaunchKernelEx", function,
                {{config->gridDimX, config->gridDimY, config->gridDimZ},
                 {config->blockDimX, config->blockDimY, config->blockDimZ},
                 config->sharedMemBytes},
                config->hStream, parameters, extra);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                     CUfunction function,
                                                     int threads,
                                                     size_t shared) {
  return call("cuOccupancyMaxActiveBlocksPerMultiprocessor",
              [&](State &state, auto &) {
                moduleOf(state, function->owner);
                *blocks = activeBlocks(state, *function, threads, shared);
                return CUDA_SUCCESS;
              });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, CUfunction function, int threads, size_t shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads,
                                                     shared);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block,
                                          CUfunction function,
                                          CUoccupancyB2DSize sharedOf,
                                          size_t shared, int limit) {
  return call("cuOccupancyMaxPotentialBlockSize", [&](State &state, auto &) {
    moduleOf(state, function->owner);
    int most = int(function->program->maxThreads), best = 0;
    if (limit > 0)
      most = std::min(most, limit);
    for (int threads = 32; threads <= most; threads += 32) {
      size_t bytes = sharedOf ? sharedOf(threads) : shared;
      int blocks = activeBlocks(state, *function, threads, bytes);
      if (blocks * threads >= best) {
        best = blocks * threads;
        *block = threads;
        *grid = blocks * 132;
      }
    }
    return CUDA_SUCCESS;
  });
}
