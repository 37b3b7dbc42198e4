//===- ModelFileTest.cpp - Models whole, truncated and mutated ------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/model/ModelFile.h"
#include "compiler/import/graph/Import.h"

#include "mlir/IR/MLIRContext.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace partita::import;

namespace {

/// y = x . w + b with 2 KiB of weights, which stay in the file.
onnx::ModelProto makeModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto &graph = *model.mutable_graph();
  graph.set_name("g");
  auto addInfo = [](onnx::ValueInfoProto *info, const char *name,
                    int64_t size) {
    info->set_name(name);
    auto *type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    type->mutable_shape()->add_dim()->set_dim_value(4);
    type->mutable_shape()->add_dim()->set_dim_value(size);
  };
  addInfo(graph.add_input(), "x", 32);
  addInfo(graph.add_output(), "y", 16);
  onnx::TensorProto &w = *graph.add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(32);
  w.add_dims(16);
  w.set_raw_data(std::string(32 * 16 * 4, '\x3f'));
  onnx::TensorProto &b = *graph.add_initializer();
  b.set_name("b");
  b.set_data_type(onnx::TensorProto::FLOAT);
  b.add_dims(16);
  for (int i = 0; i < 16; ++i)
    b.add_float_data(i);
  onnx::NodeProto &dot = *graph.add_node();
  dot.set_op_type("MatMul");
  dot.add_input("x");
  dot.add_input("w");
  dot.add_output("t");
  onnx::NodeProto &add = *graph.add_node();
  add.set_op_type("Add");
  add.add_input("t");
  add.add_input("b");
  add.add_output("y");
  return model;
}

class ModelFileTest : public testing::Test {
protected:
  void SetUp() override {
    path = std::filesystem::temp_directory_path() /
           ("partita-model-" + std::to_string(getpid()) + ".onnx");
    context.getDiagEngine().registerHandler(
        [this](mlir::Diagnostic &diagnostic) { message = diagnostic.str(); });
  }
  void TearDown() override { std::filesystem::remove(path); }

  bool import(const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    message.clear();
    ImportOptions options;
    options.modelPath = path;
    bool imported = mlir::succeeded(importOnnxModel(context, options));
    EXPECT_TRUE(imported || !message.empty());
    return imported;
  }

  std::filesystem::path path;
  mlir::MLIRContext context;
  std::string message;
};

TEST_F(ModelFileTest, LeavesPayloadsInTheFile) {
  std::string bytes = makeModel().SerializeAsString(), whyNot;
  std::vector<std::pair<int64_t, int64_t>> spans;
  std::optional<std::string> small =
      copyWithoutPayloads(bytes, /*smallFloats=*/false, spans, whyNot);
  ASSERT_TRUE(small);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].second, 32 * 16 * 4);
  EXPECT_EQ(bytes.substr(spans[0].first, spans[0].second),
            std::string(32 * 16 * 4, '\x3f'));
  EXPECT_LT(small->size(), 1024u);
}

TEST_F(ModelFileTest, ImportsWhole) {
  EXPECT_TRUE(import(makeModel().SerializeAsString())) << message;
}

TEST_F(ModelFileTest, RefusesWhatIsTruncatedAnywhere) {
  std::string bytes = makeModel().SerializeAsString();
  // At some lengths what is left is itself a message; never a complete model.
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(import(bytes.substr(0, size))) << "at " << size;
}

TEST_F(ModelFileTest, SurvivesEveryFlippedByte) {
  std::string bytes = makeModel().SerializeAsString();
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\x3f' && i % 97 != 0)
      continue; // a weight
    for (int mask : {0x01, 0x80, 0xff}) {
      std::string mutated = bytes;
      mutated[i] = static_cast<char>(mutated[i] ^ mask);
      import(mutated);
    }
  }
}

} // namespace
