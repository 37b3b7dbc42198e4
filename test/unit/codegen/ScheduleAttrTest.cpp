//===- ScheduleAttrTest.cpp - What is written is what is compiled ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/Backend.h"
#include "compiler/codegen/Passes.h"
#include "compiler/codegen/cpu/CpuBackend.h"
#include "compiler/codegen/kernels/KernelSchedule.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace partita;
using namespace partita::codegen;

namespace {

/// A softmax of 4 rows, lowered to a kernel.
class ScheduleAttr : public testing::Test {
protected:
  void SetUp() override {
    registerCpuBackend();
    DialectRegistry registry;
    registerCodegenDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler(
        [&](Diagnostic &diagnostic) { error = diagnostic.str(); });
    module = parseSourceString<ModuleOp>(
        "func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {\n"
        "%0 = nn.cluster kernel (%a = %x) : (tensor<4x8xf32>) -> "
        "tensor<4x8xf32> {\n"
        "%s = nn.softmax %a dim 1 : tensor<4x8xf32>\n"
        "nn.yield %s : tensor<4x8xf32>\n}\n"
        "return %0 : tensor<4x8xf32>\n}",
        &context);
    PassManager pm(&context);
    pm.addPass(createLowerClustersPass());
    ASSERT_TRUE(module && succeeded(pm.run(*module)));
    module->walk([&](nn::ClusterOp cluster) {
      lowering = cast<plan::KernelAttr>(*cluster.getLowering());
    });
  }

  func::FuncOp getKernel() {
    return *getKernelsModules(*module).front().getOps<func::FuncOp>().begin();
  }

  LogicalResult check() {
    return getBackend(*module).checkKernels(getKernelsModules(*module).front());
  }

  /// A plan that starts the kernel.
  void addDispatch(plan::KernelAttr kernel) {
    OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
    plan::DispatchOp::create(b, module->getLoc(), kernel, ValueRange(),
                             ValueRange(), "softmax", 0, 0);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  plan::KernelAttr lowering;
  std::string error;
};

TEST_F(ScheduleAttr, IsReadAsItWasDecided) {
  KernelSchedule decided = scheduleKernel(getKernel());
  FailureOr<KernelSchedule> read = readSchedule(getKernel());
  ASSERT_TRUE(succeeded(read));
  EXPECT_EQ(read->sizes, decided.sizes);
  EXPECT_EQ(read->tiles, decided.tiles);
  EXPECT_EQ(read->extent, decided.extent);
  EXPECT_EQ(read->grain, decided.grain);
  EXPECT_EQ(read->inPlace, decided.inPlace);
  ASSERT_EQ(read->stages.size(), decided.stages.size());
  for (size_t i = 0; i < decided.stages.size(); ++i)
    EXPECT_EQ(read->stages[i].rows, decided.stages[i].rows);
  EXPECT_EQ(lowering.getExtent(), decided.extent);
}

TEST_F(ScheduleAttr, Missing) {
  getKernel()->removeAttr(kScheduleAttr);
  EXPECT_TRUE(failed(check()));
  EXPECT_EQ(error, "the kernel has no schedule: run --lower-clusters");
}

TEST_F(ScheduleAttr, OfOtherStages) {
  // Tiles of no elements; then a row that no tile belongs to.
  for (const char *text :
       {"{grain = 1, in_place = array<i64>, rows = [array<i64: 0, -1>, "
        "array<i64: 0, -1>, array<i64: 0, -1>, array<i64: 0, -1>], tiles = "
        "array<i64: 0>}",
        "{grain = 1, in_place = array<i64>, rows = [array<i64: 0, 1>, "
        "array<i64: 0, 1>, array<i64: 0, 1>, array<i64: 0, 1>], tiles = "
        "array<i64: 1>}",
        "{grain = 1, in_place = array<i64>, rows = [], tiles = array<i64>}"}) {
    getKernel()->setAttr(kScheduleAttr, parseAttribute(text, &context));
    EXPECT_TRUE(failed(check())) << text;
    EXPECT_EQ(error, "the kernel's schedule is not one of its stages");
  }
}

TEST_F(ScheduleAttr, PlanStartsItOtherwise) {
  addDispatch(lowering);
  EXPECT_TRUE(succeeded(check()));
  addDispatch(plan::KernelAttr::get(
      &context, lowering.getName(), lowering.getExtent() + 1,
      lowering.getGrain(), lowering.getInPlace(), lowering.getLaunch()));
  EXPECT_TRUE(failed(check()));
  EXPECT_EQ(error, "starts a kernel otherwise than it is compiled");
}

TEST_F(ScheduleAttr, PlanStartsAnother) {
  addDispatch(plan::KernelAttr::get(&context, "other", 1, 1, {}, {}));
  EXPECT_TRUE(failed(check()));
  EXPECT_EQ(error, "starts a kernel that is not compiled");
}

} // namespace
