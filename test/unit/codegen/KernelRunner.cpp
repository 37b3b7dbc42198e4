//===- KernelRunner.cpp - Compile a cluster and run it --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"

#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/Passes.h"
#include "compiler/codegen/cpu/CpuBackend.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "runtime/abi/kernel.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ScopeExit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <memory>
#include <unistd.h>

using namespace mlir;

namespace partita::codegen::test {

std::vector<float> makeNumbers(size_t count, float range) {
  std::vector<float> numbers(count);
  uint32_t state = 12345;
  for (float &number : numbers) {
    state = state * 1664525u + 1013904223u;
    number = (float(state >> 8) / float(1 << 23) - 1.0f) * range;
  }
  return numbers;
}

void expectNear(const std::vector<float> &actual,
                const std::vector<float> &expected, double relative,
                double absolute) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i],
                absolute + relative * std::fabs(expected[i]))
        << "at element " << i;
}

namespace {

/// A buffer aligned as slots of an arena are.
using Buffer = std::unique_ptr<void, decltype(&std::free)>;
Buffer makeBuffer(size_t bytes) {
  size_t rounded = (std::max<size_t>(bytes, 1) + 63) / 64 * 64;
  return Buffer(std::aligned_alloc(64, rounded), &std::free);
}

std::string writeObject(const std::vector<char> &bytes) {
  char path[] = "/tmp/partita-kernel-XXXXXX";
  int fd = mkstemp(path);
  if (fd < 0)
    return {};
  close(fd);
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), bytes.size());
  return path;
}

} // namespace

std::vector<Bytes> runCluster(const std::string &function,
                              const std::vector<Bytes> &inputs) {
  DialectRegistry registry;
  registerCpuBackend();
  registerCodegenDialects(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(function, &context);
  if (!module) {
    ADD_FAILURE() << "the function does not parse";
    return {};
  }
  PassManager pm(&context);
  pm.addPass(createLowerClustersPass());
  if (failed(pm.run(*module))) {
    ADD_FAILURE() << "the cluster cannot be lowered";
    return {};
  }
  nn::ClusterOp cluster;
  module->walk([&](nn::ClusterOp op) { cluster = op; });
  auto kernel = dyn_cast<plan::KernelAttr>(*cluster.getLowering());
  if (!kernel) {
    ADD_FAILURE() << "the cluster is not a kernel";
    return {};
  }
  CodegenOptions options;
  options.levels = {abi::CpuLevel::x86_64_v3};
  if (std::getenv("PARTITA_TEST_V4"))
    options.levels = {abi::CpuLevel::x86_64_v4};
  FailureOr<std::vector<CompiledObject>> objects =
      compileKernels(getKernelsModules(*module).front(), options);
  if (failed(objects)) {
    ADD_FAILURE() << "the kernel cannot be compiled";
    return {};
  }
  std::string path = writeObject(objects->front().bytes);
  void *library = dlopen(path.c_str(), RTLD_NOW);
  unlink(path.c_str());
  if (!library) {
    ADD_FAILURE() << dlerror();
    return {};
  }
  llvm::scope_exit release([&] { dlclose(library); });
  auto run = reinterpret_cast<partita_kernel_fn>(
      dlsym(library, kernel.getName().str().c_str()));
  if (!run) {
    ADD_FAILURE() << dlerror();
    return {};
  }

  auto execute = [&](llvm::function_ref<void(void *const *, int64_t)> split) {
    std::vector<Buffer> buffers;
    std::vector<void *> pointers;
    for (const Bytes &input : inputs) {
      buffers.push_back(makeBuffer(input.size()));
      std::memcpy(buffers.back().get(), input.data(), input.size());
    }
    std::vector<int64_t> sizes;
    for (Value result : cluster.getResults()) {
      sizes.push_back(nn::getByteSize(result.getType()));
      buffers.push_back(makeBuffer(sizes.back()));
      std::memset(buffers.back().get(), 0x5a, sizes.back());
    }
    for (Buffer &buffer : buffers)
      pointers.push_back(buffer.get());
    split(pointers.data(), kernel.getExtent());
    std::vector<Bytes> results;
    for (size_t i = 0; i < sizes.size(); ++i) {
      auto *data = static_cast<char *>(pointers[inputs.size() + i]);
      results.emplace_back(data, data + sizes[i]);
    }
    return results;
  };
  std::vector<Bytes> whole = execute(
      [&](void *const *buffers, int64_t extent) { run(buffers, 0, extent); });
  std::vector<Bytes> single =
      execute([&](void *const *buffers, int64_t extent) {
        for (int64_t i = extent; i-- > 0;)
          run(buffers, i, i + 1);
      });
  std::vector<Bytes> thirds =
      execute([&](void *const *buffers, int64_t extent) {
        for (int64_t i = 0; i < 3; ++i)
          if (extent * i / 3 < extent * (i + 1) / 3)
            run(buffers, extent * i / 3, extent * (i + 1) / 3);
      });
  EXPECT_EQ(whole, single);
  EXPECT_EQ(whole, thirds);
  return whole;
}

std::vector<Bytes> runOps(const std::string &types, const std::string &body,
                          const std::vector<Bytes> &inputs) {
  std::string arguments, operands;
  std::string in = types.substr(1, types.find(") ->") - 1);
  std::string out = types.substr(types.find("->") + 2);
  // Splits the operand types at commas outside of brackets.
  int depth = 0, number = 0;
  std::string type;
  auto flush = [&] {
    if (type.empty())
      return;
    std::string name = std::to_string(number++);
    arguments += (name == "0" ? "%arg" : ", %arg") + name + ": " + type;
    operands += (name == "0" ? "%" : ", %") + name + " = %arg" + name;
    type.clear();
  };
  for (char c : in) {
    depth += c == '<' ? 1 : c == '>' ? -1 : 0;
    if (c == ',' && depth == 0)
      flush();
    else if (c != ' ')
      type += c;
  }
  flush();
  // Results of several types are in parentheses, with a comma between.
  std::string count;
  if (out.find('(') != std::string::npos)
    count = ":" + std::to_string(1 + std::count(out.begin(), out.end(), ','));
  return runCluster("func.func @main(" + arguments + ") {\n  %r" + count +
                        " = nn.cluster kernel (" + operands + ") : " + types +
                        " {\n" + body + "\n}\n  return\n}\n",
                    inputs);
}

} // namespace partita::codegen::test
