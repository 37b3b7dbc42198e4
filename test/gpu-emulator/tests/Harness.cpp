//===- Harness.cpp - Runs kernels and single instructions -------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Harness.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>

using namespace gpuemu::test;

void gpuemu::test::check(CUresult result) {
  if (result == CUDA_SUCCESS)
    return;
  const char *name = nullptr;
  cuGetErrorName(result, &name);
  throw std::runtime_error(std::string(name ? name : "?") + ": " +
                           cuEmuLastError());
}

void EmulatorTest::SetUp() {
  check(cuInit(0));
  CUcontext context = nullptr;
  check(cuDevicePrimaryCtxRetain(&context, 0));
  check(cuCtxSetCurrent(context));
}

void EmulatorTest::TearDown() {
  cuEmuFail(0, 0);
  int devices = 0;
  check(cuDeviceGetCount(&devices));
  for (int i = 0; i < devices; ++i)
    check(cuDevicePrimaryCtxReset_v2(i));
  check(cuDevicePrimaryCtxRelease_v2(0));
  for (const char *what : {"live-allocations", "live-streams", "live-events",
                           "live-modules", "live-graphs"})
    EXPECT_EQ(cuEmuCount(what), 0u) << what;
}

Kernel::Kernel(const std::string &ptx) {
  check(cuModuleLoadData(&module, ptx.c_str()));
  check(cuModuleGetFunction(&function, module, "k"));
}

Kernel::~Kernel() { cuModuleUnload(module); }

CUresult Kernel::launch(const std::vector<void *> &parameters, unsigned threads,
                        unsigned blocks, unsigned shared,
                        CUstream stream) const {
  return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream,
                        const_cast<void **>(parameters.data()), nullptr);
}

Buffer::Buffer(size_t bytes) : bytes(bytes) {
  check(cuMemAlloc_v2(&address, bytes));
}

Buffer::~Buffer() { cuMemFree_v2(address); }

std::string gpuemu::test::kernelText(unsigned parameters,
                                     const std::string &declarations,
                                     const std::string &body,
                                     const std::string &beforeKernel) {
  std::string text = ".version 8.0\n.target sm_90\n.address_size 64\n" +
                     beforeKernel + "\n.visible .entry k(";
  std::string loads;
  for (unsigned i = 0; i < parameters; ++i) {
    std::string number = std::to_string(i);
    text += (i ? ", " : "") + (".param .u64 p" + number);
    loads += "  .reg .b64 %p" + number + ";\n  ld.param.u64 %p" + number +
             ", [p" + number + "];\n";
  }
  return text + ")\n{\n" + declarations + "\n  .reg .b32 %thread;\n" + loads +
         "  mov.u32 %thread, %tid.x;\n" + body + "\n  ret;\n}\n";
}

CUresult gpuemu::test::runKernel(const std::string &text, Buffer &buffer,
                                 unsigned threads, unsigned blocks,
                                 unsigned shared) {
  Kernel kernel(text);
  CUresult launched = kernel.launch({&buffer.address}, threads, blocks, shared);
  return launched ? launched : cuCtxSynchronize();
}

std::vector<uint64_t> gpuemu::test::runInstruction(
    const std::string &instruction, const std::vector<std::string> &types,
    const std::vector<std::vector<uint64_t>> &operands) {
  const char *names[] = {"%d", "%a", "%b", "%c", "%e"};
  size_t sources = types.size() - 1;
  std::string declarations =
      "  .reg .b64 %in, %out, %i;\n  .reg .b32 %n, %block, %size;\n"
      "  .reg .pred %past;\n";
  std::string loads, store;
  for (size_t i = 0; i < types.size(); ++i) {
    std::string name = names[i];
    declarations += "  .reg ." + types[i] + " " + name + ";\n";
    bool isPredicate = types[i] == "pred";
    if (isPredicate)
      declarations += "  .reg .b32 " + name + "w;\n";
    std::string bits = isPredicate ? "32" : types[i].substr(1);
    std::string value = isPredicate ? name + "w" : name;
    if (i == 0) {
      if (isPredicate)
        store = "  selp.b32 %dw, 1, 0, %d;\n";
      store += "  st.global.b" + bits + " [%out], " + value + ";\n";
      // Not zero before, so that a result that is not written shows.
      if (!isPredicate)
        loads += "  mov.b" + bits + " %d, 85;\n";
    } else {
      loads += "  ld.global.b" + bits + " " + value + ", [%in+" +
               std::to_string(8 * (i - 1)) + "];\n";
      if (isPredicate)
        loads += "  setp.ne.u32 " + name + ", " + value + ", 0;\n";
    }
  }
  std::string body = "  mov.u32 %block, %ctaid.x;\n  mov.u32 %size, %ntid.x;\n"
                     "  mad.lo.u32 %n, %block, %size, %thread;\n"
                     "  mul.wide.u32 %i, %n, 8;\n  add.u64 %out, %p1, %i;\n"
                     "  mul.lo.u64 %i, %i, " +
                     std::to_string(sources) + ";\n  add.u64 %in, %p0, %i;\n" +
                     loads + "  " + instruction +
                     (instruction.back() == '}' ? "\n" : ";\n") + store;
  std::string text = kernelText(2, declarations, body);
  // For tests/ptxas.py.
  if (const char *path = getenv("GPUEMU_DUMP"))
    std::ofstream(path, std::ios::app) << text << "// " << instruction << "\n";
  Kernel kernel(text);
  // Whole blocks: the rest repeats the last row.
  size_t blocks = (operands.size() + 63) / 64;
  std::vector<uint64_t> values;
  for (size_t i = 0; i < 64 * blocks; ++i) {
    const auto &row = operands[std::min(i, operands.size() - 1)];
    values.insert(values.end(), row.begin(), row.end());
  }
  Buffer in(values), out(8 * 64 * blocks);
  check(cuMemsetD8_v2(out.address, 0, out.bytes));
  check(kernel.launch({&in.address, &out.address}, 64, unsigned(blocks)));
  std::vector<uint64_t> results = out.read<uint64_t>();
  results.resize(operands.size());
  return results;
}

void gpuemu::test::runCases(const std::vector<Case> &cases) {
  std::map<std::string, std::vector<const Case *>> byInstruction;
  for (const Case &each : cases)
    byInstruction[each.instruction].push_back(&each);
  for (const auto &[instruction, list] : byInstruction) {
    std::vector<std::vector<uint64_t>> operands;
    for (const Case *each : list)
      operands.push_back(each->operands);
    std::vector<uint64_t> results =
        runInstruction(instruction, list[0]->types, operands);
    for (size_t i = 0; i < list.size(); ++i) {
      std::string shown;
      for (uint64_t operand : operands[i])
        shown += " " + std::to_string(operand);
      EXPECT_EQ(results[i], list[i]->expected) << instruction << " of" << shown;
    }
  }
}
