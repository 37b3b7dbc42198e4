//===- MeasuredCostTest.cpp - Predicted times, worked out by hand ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every rate is a number of its own, mostly a prime, and every table has its
// value at one point only: whoever takes another rate, or looks it up at
// another point, gets another time.
//
//===----------------------------------------------------------------------===//

#include "compiler/cost/MeasuredCost.h"
#include "compiler/codegen/Backend.h"
#include "compiler/codegen/cpu/CpuBackend.h"
#include "compiler/codegen/cuda/CudaBackend.h"

#include "runtime/abi/machine.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace partita;
using namespace partita;
namespace key = partita::abi::machine;

namespace {

/// A table without axes, or one that is the same everywhere.
MeasuredTable flat(double value, size_t axes = 0) {
  return {std::vector<std::vector<double>>(axes, {1.0}), {value}};
}

/// A table that has the value at the point and others around it.
MeasuredTable at(const std::vector<double> &point, double value) {
  MeasuredTable table;
  size_t count = 1, index = 0;
  for (double coordinate : point) {
    table.axes.push_back({coordinate / 50, coordinate, coordinate * 50});
    count *= 3;
    index = index * 3 + 1;
  }
  table.values.assign(count, value * 3.7);
  table.values[index] = value;
  return table;
}

/// A table along bytes.
MeasuredTable along(std::vector<double> bytes, std::vector<double> values) {
  return {{std::move(bytes)}, std::move(values)};
}

class MeasuredCost : public testing::Test {
protected:
  MeasuredCost() {
    codegen::registerCpuBackend();
    context.loadDialect<nn::NNDialect, func::FuncDialect>();
    team.threads = 2;
    for (const char *name :
         {key::kDot, key::kDotPlain, key::kConv, key::kWinograd,
          key::kDepthwise, key::kPool, key::kAttention})
      team.tables[name] = MeasuredTable(); // to look up is a fault
    team.tables[key::kCold] = flat(19, 2);
    team.tables[key::kRead] = flat(23, 1);
    team.tables[key::kEviction] = flat(29, 1);
    team.tables[key::kSimple] = flat(0.5);
    team.tables[key::kExponential] = flat(0.125);
    team.tables[key::kDivide] = flat(0.0625);
    team.tables[key::kReordered] = flat(0.03125);
    team.tables[key::kEpilogueGelu] = flat(3);
    team.tables[key::kEpilogueExp] = flat(5);
    team.tables[key::kEpilogueBinary] = flat(7);
    team.tables[key::kInteger] = flat(4);
    team.tables[key::kDispatch] = flat(100);
  }

  /// The time of the cluster of all ops of `body`, but parameters. %x, %y and
  /// %z are the arguments of `arguments`.
  ClusterTime getTime(nn::ClusterKind kind, const std::string &arguments,
                      const std::string &body, int64_t bytes,
                      int64_t outputBytes = 0) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
        "func.func @f(" + arguments + ") {\n" + body + "\nreturn\n}",
        ParserConfig(&context, /*verifyAfterParse=*/false));
    if (!module) {
      ADD_FAILURE() << "the ops do not parse";
      return {};
    }
    SmallVector<Operation *> ops;
    module->walk([&](Operation *op) {
      if (isa<nn::NNDialect>(op->getDialect()) && !isa<nn::ParameterOp>(op))
        ops.push_back(op);
    });
    analysis::Rates rates;
    return getMeasuredTime({ops, kind, bytes, outputBytes, rates}, step, team,
                           /*lanes=*/16, contention,
                           *codegen::findBackend("cpu"));
  }

  double getCallNs(const std::string &arguments, const std::string &body,
                   int64_t bytes = 1000) {
    return getTime(nn::ClusterKind::call, arguments, body, bytes).ns;
  }
  double getKernelNs(const std::string &arguments, const std::string &body) {
    return getTime(nn::ClusterKind::kernel, arguments, body, 0).ns;
  }

  MLIRContext context;
  MeasuredTeam team;
  StepFootprint step;
  Contention contention;
};

constexpr const char *kImage = "%x: tensor<2x6x6x32xf32>";

std::string conv(const std::string &weights, const std::string &attributes,
                 const std::string &type) {
  return "%w = nn.parameter @w : " + weights +
         "\n%0 = nn.conv %x, %w channels_last " + attributes +
         " : tensor<2x6x6x32xf32>, " + weights + " -> " + type;
}

//===----------------------------------------------------------------------===//
// Library calls
//===----------------------------------------------------------------------===//

TEST_F(MeasuredCost, ProductWithWeights) {
  // 20 columns are computed as two vectors of 16.
  team.tables[key::kDot] = at({8, 32, 64}, 2);
  EXPECT_DOUBLE_EQ(
      getCallNs("%x: tensor<8x64xf32>",
                "%w = nn.parameter @w : tensor<64x20xf32>\n"
                "%0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : "
                "tensor<8x64xf32>, tensor<64x20xf32> -> tensor<8x20xf32>"),
      2.0 * 8 * 32 * 64 / 2);
}

TEST_F(MeasuredCost, ProductOfComputedValues) {
  // Three products; 5 columns are computed as one vector.
  team.tables[key::kDotPlain] = at({8, 16, 64}, 3);
  EXPECT_DOUBLE_EQ(
      getCallNs("%x: tensor<3x8x64xf32>, %y: tensor<3x64x5xf32>",
                "%0 = nn.dot %x, %y batch [0] x [0] contract [2] x [1] : "
                "tensor<3x8x64xf32>, tensor<3x64x5xf32> -> tensor<3x8x5xf32>"),
      3 * 2.0 * 8 * 16 * 64 / 3);
}

TEST_F(MeasuredCost, ProductWithStateIsNotPacked) {
  team.tables[key::kDotPlain] = at({8, 32, 64}, 3);
  EXPECT_DOUBLE_EQ(
      getCallNs("%x: tensor<8x64xf32>",
                "%w = nn.parameter state @w : tensor<64x32xf32>\n"
                "%0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : "
                "tensor<8x64xf32>, tensor<64x32xf32> -> tensor<8x32xf32>"),
      2.0 * 8 * 32 * 64 / 3);
}

TEST_F(MeasuredCost, ProductOfIntegers) {
  team.tables[key::kDot] = at({8, 32, 64}, 2);
  EXPECT_DOUBLE_EQ(
      getCallNs("%x: tensor<8x64xui8>",
                "%w = nn.parameter @w : tensor<64x32xi8>\n"
                "%0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : "
                "tensor<8x64xui8>, tensor<64x32xi8> -> tensor<8x32xi32>"),
      2.0 * 8 * 32 * 64 / 2 / 4);
}

TEST_F(MeasuredCost, Convolution) {
  // Groups one after another: 24 channels of each are two vectors. The side is
  // that of the result, the stride one number for both dimensions.
  team.tables[key::kConv] = at({9, 2, 16, 32, 3}, 5);
  EXPECT_DOUBLE_EQ(
      getCallNs(kImage, conv("tensor<48x16x3x3xf32>",
                             "strides [2, 2] dilations [1, 1] pads [1, 1] x "
                             "[0, 0] groups 2",
                             "tensor<2x3x3x48xf32>")),
      2 * 2.0 * 9 * 16 * 32 * (2 * 3 * 3) / 5);
}

TEST_F(MeasuredCost, Winograd) {
  team.tables[key::kWinograd] = at({32, 64, 6}, 7);
  EXPECT_DOUBLE_EQ(
      getCallNs(kImage, conv("tensor<64x32x3x3xf32>",
                             "strides [1, 1] dilations [1, 1] pads [1, 1] x "
                             "[1, 1] groups 1 {nn.winograd}",
                             "tensor<2x6x6x64xf32>")),
      2.0 * 9 * 32 * 64 * (2 * 6 * 6) / 7);
}

TEST_F(MeasuredCost, Depthwise) {
  team.tables[key::kDepthwise] = at({9, 1, 32, 6}, 11);
  EXPECT_DOUBLE_EQ(
      getCallNs(kImage, conv("tensor<32x1x3x3xf32>",
                             "strides [1, 1] dilations [1, 1] pads [1, 1] x "
                             "[1, 1] groups 32",
                             "tensor<2x6x6x32xf32>")),
      2.0 * 9 * 32 * (2 * 6 * 6) / 11);
}

constexpr const char *kPoolOp =
    "%0 = nn.window_reduce max %x window [1, 2, 2, 1] strides [1, 2, 2, 1] "
    "dilations [1, 1, 1, 1] pads [0, 0, 0, 0] x [0, 0, 0, 0] : "
    "tensor<2x6x6x32xf32> -> tensor<2x3x3x32xf32>";

TEST_F(MeasuredCost, Pool) {
  team.tables[key::kPool] = at({4, 32, 3}, 13);
  EXPECT_DOUBLE_EQ(getCallNs(kImage, kPoolOp), 4.0 * 32 * (2 * 3 * 3) / 13);
}

TEST_F(MeasuredCost, WindowOfAKernelIsNotAPool) {
  // An operation for each of 4 elements of a window, a quarter of the time of
  // an addition that loads and stores.
  EXPECT_DOUBLE_EQ(getKernelNs(kImage, kPoolOp),
                   100 + 0.25 * 4 * (2 * 3 * 3 * 32) / 0.5);
}

TEST_F(MeasuredCost, Attention) {
  // Two threads take three heads in two turns. 8 scores of 10 columns, each
  // twice 16 and twice 32 operations in the products and 25 in the softmax.
  team.tables[key::kAttention] = at({8, 10, 24}, 17);
  EXPECT_DOUBLE_EQ(
      getCallNs("%x: tensor<1x3x8x16xf32>, %y: tensor<1x3x10x16xf32>, "
                "%z: tensor<1x3x10x32xf32>",
                "%0 = nn.attention %x, %y, %z scale 0.25 : "
                "tensor<1x3x8x16xf32>, tensor<1x3x10x16xf32>, "
                "tensor<1x3x10x32xf32> -> tensor<1x3x8x32xf32>"),
      3.0 * 8 * 10 * (2 * 16 + 2 * 32 + 25) / 17 * (2.0 * 2 / 3));
}

/// A product that takes 1024 ns, and ops behind it.
const std::string kProduct =
    "%w = nn.parameter @w : tensor<16x16xf32>\n"
    "%0 = nn.dot %x, %w batch [] x [] contract [1] x [0] : "
    "tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>\n";

TEST_F(MeasuredCost, Epilogue) {
  team.tables[key::kDot] = at({4, 16, 16}, 2);
  const std::string arguments = "%x: tensor<4x16xf32>, %y: tensor<4x16xf32>";
  auto after = [&](const std::string &op) {
    return getCallNs(arguments, kProduct + op) - 1024;
  };
  const std::string type = " : tensor<4x16xf32>";
  EXPECT_DOUBLE_EQ(after("%1 = nn.relu %0" + type), 0);
  EXPECT_DOUBLE_EQ(after("%1 = nn.erf %0" + type), 64 * 3);
  EXPECT_DOUBLE_EQ(after("%1 = nn.exp %0" + type), 64 * 5);
  EXPECT_DOUBLE_EQ(after("%1 = nn.add %0, %y" + type), 64 * 7);
  // A weight stays in the caches.
  EXPECT_DOUBLE_EQ(after("%v = nn.parameter @v : tensor<4x16xf32>\n"
                         "%1 = nn.add %0, %v" +
                         type),
                   0);
}

//===----------------------------------------------------------------------===//
// Caches and other devices
//===----------------------------------------------------------------------===//

TEST_F(MeasuredCost, ColdWeights) {
  // They were measured with their own 1024 bytes in a cache; a step touches
  // 1000 others and twice those of its largest cluster, 1100.
  team.tables[key::kDot] = at({4, 16, 16}, 2);
  team.tables[key::kCold] = {{{4, 5}, {1025, 3201}}, {10, 25, 700, 800}};
  step.weightBytes = 1000;
  step.mostBytes = 1100;
  ClusterTime time =
      getTime(nn::ClusterKind::call, "%x: tensor<4x16xf32>", kProduct, 2000);
  EXPECT_DOUBLE_EQ(time.ns, 1024 + (25 - 10) * 1024 / 1024.0);
  EXPECT_DOUBLE_EQ(time.memoryNs, 15);
}

TEST_F(MeasuredCost, EvictedResult) {
  // The result is 256 bytes of the 2000 with which a call was measured; half
  // of an arena of 2200 bytes and all outputs, 900, are written before them.
  team.tables[key::kDot] = at({4, 16, 16}, 2);
  team.tables[key::kEviction] = along({1999, 2001, 5000}, {8, 8, 40});
  step.mostBytes = 2200 + 1899;
  step.outputBytes = 900;
  auto getNs = [&](int64_t outputBytes) {
    return getTime(nn::ClusterKind::call, "%x: tensor<4x16xf32>", kProduct,
                   2000, outputBytes)
        .ns;
  };
  EXPECT_DOUBLE_EQ(getNs(256), 1024 + (40 - 8) * 256 / 1024.0);
  // What is no output does not meet the outputs of other micro-batches.
  step.mostBytes = 4999;
  EXPECT_DOUBLE_EQ(getNs(0), 1024 + (40 - 8) * 256 / 1024.0);
}

TEST_F(MeasuredCost, Contention) {
  // All three of 3 devices together reach what 2 reach alone, as far as they
  // ask for memory at the same time: half of it.
  team.tables[key::kDot] = at({4, 16, 16}, 2);
  team.tables[key::kCold] = {{{4}, {1025, 3001}}, {10, 25}};
  contention = {.devices = 3, .cache = 1, .compute = 1.5, .memory = 2.25};
  step.weightBytes = 9000;
  step.memoryShare = 0.5;
  ClusterTime time =
      getTime(nn::ClusterKind::call, "%x: tensor<4x16xf32>", kProduct, 2000);
  // 3000 bytes of weights are each device's; asked for 1 + 2 * 0.5 times.
  double slowdown = 2 * 2.25 / 3;
  EXPECT_DOUBLE_EQ(time.ns, 1024 * 1.5 + 15 * slowdown);
  EXPECT_DOUBLE_EQ(time.memoryNs, 15 * slowdown);
}

TEST_F(MeasuredCost, OperandsOfACacheThatOthersUse) {
  // 256 bytes of x are read at the rate of 2000 bytes when measured, and of
  // 4000 with two devices on one cache. Nothing of it waits for memory.
  team.tables[key::kDot] = at({4, 16, 16}, 2);
  team.tables[key::kRead] = along({2001, 4001, 2 << 20, 4e6}, {16, 8, 8, 2});
  contention = {.devices = 2, .cache = 2, .compute = 1, .memory = 2};
  ClusterTime time =
      getTime(nn::ClusterKind::call, "%x: tensor<4x16xf32>", kProduct, 2000);
  EXPECT_NEAR(time.ns, 1024 + 256 / 8.0 - 256 / 16.0, 1e-9);
  EXPECT_NEAR(time.memoryNs, 0, 1e-9);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

TEST_F(MeasuredCost, Arithmetic) {
  const std::string x = "%x: tensor<64x20xf32>", type = " : tensor<64x20xf32>";
  const double elements = 64 * 20;
  EXPECT_DOUBLE_EQ(getKernelNs(x, "%0 = nn.add %x, %x" + type),
                   100 + 0.25 * elements / 0.5);
  EXPECT_DOUBLE_EQ(getKernelNs(x, "%0 = nn.exp %x" + type),
                   100 + elements / 0.125);
  EXPECT_DOUBLE_EQ(getKernelNs(x, "%0 = nn.div %x, %x" + type),
                   100 + elements / 0.0625);
  EXPECT_DOUBLE_EQ(
      getKernelNs(x, "%0 = nn.transpose %x [1, 0] : tensor<64x20xf32> -> "
                     "tensor<20x64xf32>"),
      100 + elements / 0.03125);
  // 20 elements of a row are computed as 32.
  EXPECT_DOUBLE_EQ(getKernelNs(x, "%0 = nn.softmax %x dim 1" + type),
                   100 + 64 * 32 / 0.125);
  EXPECT_DOUBLE_EQ(getKernelNs(x, "%0 = nn.reduce sum %x [1] : "
                                  "tensor<64x20xf32> -> tensor<64xf32>"),
                   100 + 0.25 * elements / 0.5);
  // Together: one start.
  EXPECT_DOUBLE_EQ(
      getKernelNs(x, "%0 = nn.exp %x" + type + "\n%1 = nn.add %0, %x" + type),
      100 + elements / 0.125 + 0.25 * elements / 0.5);
}

TEST_F(MeasuredCost, SumsThatWaitForEachOther) {
  const std::string x = "%x: tensor<64x20xf32>";
  const double elements = 64 * 20;
  EXPECT_DOUBLE_EQ(
      getKernelNs(x, "%0 = nn.scan sum %x dim 0 : tensor<64x20xf32>"),
      100 + 0.25 * elements / 0.5);
  // One at a time, where 16 would be added at once.
  EXPECT_DOUBLE_EQ(
      getKernelNs(x, "%0 = nn.scan sum %x dim 1 : tensor<64x20xf32>"),
      100 + 16 * 0.25 * elements / 0.5);
}

TEST_F(MeasuredCost, BytesOfAKernel) {
  // More bytes than arithmetic: 15360 of them unfused. 8000 are touched by two
  // clusters, and 500 of outputs if it makes one.
  team.tables[key::kRead] = along({8001, 8501, 1e15}, {0.5, 0.25, 0.25});
  step.mostBytes = 4000;
  step.outputBytes = 500;
  const std::string x = "%x: tensor<64x20xf32>",
                    op = "%0 = nn.add %x, %x : tensor<64x20xf32>";
  auto getNs = [&](int64_t bytes, int64_t outputBytes) {
    return getTime(nn::ClusterKind::kernel, x, op, bytes, outputBytes).ns;
  };
  EXPECT_NEAR(getNs(10240, 0), 100 + 10240 / 0.5, 1e-9);
  EXPECT_NEAR(getNs(10240, 5120), 100 + 10240 / 0.25, 1e-9);
  // Ops read no more than they have operands, whatever the cluster is given.
  EXPECT_NEAR(getNs(99999, 0), 100 + 15360 / 0.5, 1e-9);
}

TEST_F(MeasuredCost, ComputingUnderContention) {
  contention.compute = 1.5;
  EXPECT_DOUBLE_EQ(getKernelNs("%x: tensor<64x20xf32>",
                               "%0 = nn.exp %x : tensor<64x20xf32>"),
                   100 + 1.5 * 64 * 20 / 0.125);
}

//===----------------------------------------------------------------------===//
// Without a file
//===----------------------------------------------------------------------===//

TEST_F(MeasuredCost, DefaultRates) {
  auto model = makeCostModel(UnknownLoc::get(&context), "", 1, 1);
  ASSERT_TRUE(succeeded(model));
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "func.func @f(%x: tensor<64x64xf32>) {\n"
      "%0 = nn.dot %x, %x batch [] x [] contract [1] x [0] : "
      "tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>\n"
      "return\n}",
      &context);
  ASSERT_TRUE(module);
  Operation *dot = nullptr;
  module->walk([&](nn::DotOp op) { dot = op; });
  analysis::Rates rates;
  auto getNs = [&](nn::ClusterKind kind) {
    return (*model)->getClusterTime({dot, kind, 0, 0, rates}, step).ns;
  };
  const double flops = 2.0 * 64 * 64 * 64;
  // A library multiplies at 150 GFLOP/s, loops of ours at 8.
  EXPECT_NEAR(getNs(nn::ClusterKind::call), 1500 + flops / 150, 1e-6);
  EXPECT_NEAR(getNs(nn::ClusterKind::kernel), 1500 + flops / 8, 1e-6);
}

TEST_F(MeasuredCost, PublishedRatesOfGpus) {
  codegen::cuda::registerCudaBackend();
  auto model = makeCostModel(UnknownLoc::get(&context), "", 1, 1, "cuda:sm_90");
  ASSERT_TRUE(succeeded(model));
  EXPECT_EQ((*model)->getName(), "an H100 80GB SXM (unmeasured)");
  EXPECT_EQ((*model)->getThreads(), 0);
  // Four fifths of the 450 GB/s of NVLink, behind a copy's 10 us.
  EXPECT_DOUBLE_EQ((*model)->getTransferNs(360000), 10000 + 1000);
  // A ring of four has three hops.
  EXPECT_DOUBLE_EQ((*model)->getCollectiveNs(720000, 4), 6600 + 3 * 600 + 2000);
  EXPECT_DOUBLE_EQ((*model)->getUnitNs(), 5000);
  analysis::Rates rates;
  auto getNs = [&](const std::string &type, nn::ClusterKind kind,
                   int64_t bytes) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
        "func.func @f(%x: " + type + ") {\n" +
            "%0 = nn.dot %x, %x batch [] x [] contract [1] x [0] : " + type +
            ", " + type + " -> " + type + "\nreturn\n}",
        &context);
    Operation *dot = nullptr;
    module->walk([&](nn::DotOp op) { dot = op; });
    return (*model)->getClusterTime({dot, kind, bytes, 0, rates}, step).ns;
  };
  // 132 processors at 1.83 GHz do 256 operations of f32 in a clock, and 4096
  // of f16; a library reaches 60 % of that, our loops 5 % of f32's.
  const double flops = 2.0 * 512 * 512 * 512, clocks = 132 * 1.83;
  EXPECT_NEAR(getNs("tensor<512x512xf32>", nn::ClusterKind::call, 0),
              3000 + flops / (0.6 * 256 * clocks), 1e-6);
  EXPECT_NEAR(getNs("tensor<512x512xf16>", nn::ClusterKind::call, 0),
              3000 + flops / (0.6 * 4096 * clocks), 1e-6);
  EXPECT_NEAR(getNs("tensor<512x512xf16>", nn::ClusterKind::kernel, 0),
              3000 + flops / (0.05 * 256 * clocks), 1e-6);
  // Or the bytes take longer, at four fifths of 3350 GB/s.
  EXPECT_NEAR(getNs("tensor<512x512xf16>", nn::ClusterKind::call, 268000000),
              3000 + 100000, 1e-6);
}

TEST_F(MeasuredCost, KernelsOfGpusByTheirThreads) {
  codegen::cuda::registerCudaBackend();
  auto model = makeCostModel(UnknownLoc::get(&context), "", 1, 1, "cuda:sm_90");
  ASSERT_TRUE(succeeded(model));
  auto getNs = [&](const std::string &arguments, const std::string &body,
                   int64_t bytes) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
        "func.func @f(" + arguments + ") {\n" + body + "\nreturn\n}", &context);
    if (!module) {
      ADD_FAILURE() << "the ops do not parse";
      return 0.0;
    }
    SmallVector<Operation *> ops;
    module->walk([&](Operation *op) {
      if (isa<nn::NNDialect>(op->getDialect()))
        ops.push_back(op);
    });
    analysis::Rates rates;
    return (*model)
        ->getClusterTime({ops, nn::ClusterKind::kernel, bytes, 0, rates}, step)
        .ns;
  };
  // 1024 threads of each of 132 processors keep them busy; a quarter of 256
  // operations in a clock are reached then, and 2680 GB/s.
  const double filling = 132 * 1024, rate = 132 * 1.83 * 64;
  EXPECT_NEAR(getNs("%x: tensor<2048x2048xf32>",
                    "%0 = nn.neg %x : tensor<2048x2048xf32>", 26800000),
              3000 + 10000, 1e-6);
  EXPECT_NEAR(
      getNs("%x: tensor<132xf32>", "%0 = nn.neg %x : tensor<132xf32>", 2680),
      3000 + 1 * filling / 132, 1e-6);
  // 256 threads for each of few columns, four elements a thread for shorter
  // ones. What is computed on the way has the threads of the reduction.
  EXPECT_NEAR(getNs("%x: tensor<1000000x8xf32>",
                    "%0 = nn.neg %x : tensor<1000000x8xf32>\n"
                    "%1 = nn.reduce sum %0 [0] : tensor<1000000x8xf32> -> "
                    "tensor<8xf32>",
                    26800000),
              3000 + 10000 * filling / (8 * 256), 1e-6);
  EXPECT_NEAR(getNs("%x: tensor<64x100xf32>",
                    "%0 = nn.softmax %x dim 1 : tensor<64x100xf32>", 268000),
              3000 + 100 * filling / (64 * 25), 1e-6);
  // All pairs of a row's elements, and all elements for each rank; or a pass
  // over the row for each of few results.
  EXPECT_NEAR(getNs("%x: tensor<4x1000xf32>",
                    "%0 = nn.top_k largest %x : tensor<4x1000xf32> -> "
                    "tensor<4x500xi64>",
                    0),
              3000 + (8 * 4e6 + 3 * 2e6) / rate * filling / (4 * 256), 1e-6);
  EXPECT_NEAR(getNs("%x: tensor<4x1000xf32>",
                    "%0 = nn.top_k largest %x : tensor<4x1000xf32> -> "
                    "tensor<4x10xi64>",
                    0),
              3000 + 8 * 40 * 5096 / rate * filling / (4 * 256), 1e-6);
  // A short row is reduced for each of its elements; a block scans a long one.
  EXPECT_NEAR(getNs("%x: tensor<2000x100xf32>",
                    "%0 = nn.scan sum %x dim 1 : tensor<2000x100xf32>", 0),
              3000 + 3 * 2e7 / rate, 1e-6);
  EXPECT_NEAR(getNs("%x: tensor<10x10000xf32>",
                    "%0 = nn.scan sum %x dim 1 : tensor<10x10000xf32>", 0),
              3000 + 8 * 1e5 / rate * filling / (10 * 256), 1e-6);
  // Each element looks at all updates.
  EXPECT_NEAR(getNs("%x: tensor<500x2xf32>, %p: tensor<100xi64>, "
                    "%u: tensor<100x2xf32>",
                    "%0 = nn.scatter %x %p %u : tensor<500x2xf32>, "
                    "tensor<100xi64>, tensor<100x2xf32>",
                    0),
              3000 + 3 * 1e5 / rate * filling / (1000 * 25), 1e-6);
}

} // namespace
