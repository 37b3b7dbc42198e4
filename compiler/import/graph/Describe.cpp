//===- Describe.cpp - What a model takes and gives ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/Describe.h"
#include "compiler/import/graph/ModelValue.h"
#include "compiler/import/model/DimExpression.h"
#include "compiler/import/model/ModelFile.h"
#include "compiler/import/model/TensorData.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace partita;
using namespace partita::import;

namespace {
struct Port {
  std::string name, type;
  std::optional<CollectionKind> kind; // nothing: a tensor
  bool hasShape = true;
  std::vector<std::string> shape; // sizes, names, "?" where neither is known

  bool isSequence() const {
    return kind && *kind != CollectionKind::optional_tensor;
  }
  bool isOptional() const { return kind && *kind != CollectionKind::sequence; }
  /// "float", "sequence of float", "optional float", "optional sequence of
  /// float".
  std::string typeText() const {
    return std::string(isOptional() ? "optional " : "") +
           (isSequence() ? "sequence of " : "") + type;
  }
};
} // namespace

static Port describe(const onnx::ValueInfoProto &info,
                     std::vector<std::string> &dims) {
  Port port;
  port.name = info.name();
  port.type = "of a kind that is not supported";
  std::optional<DeclaredType> declared = getDeclaredType(info.type());
  port.hasShape = declared && declared->tensor->has_shape();
  if (!declared)
    return port;
  const onnx::TypeProto::Tensor &tensor = *declared->tensor;
  port.kind = declared->kind;
  port.type = onnx::TensorProto_DataType_IsValid(tensor.elem_type())
                  ? getOnnxTypeName(tensor.elem_type())
                  : "unknown";
  for (const auto &dim : tensor.shape().dim()) {
    if (dim.has_dim_value()) {
      port.shape.push_back(std::to_string(dim.dim_value()));
    } else if (!dim.dim_param().empty()) {
      if (!llvm::is_contained(dims, dim.dim_param()))
        dims.push_back(dim.dim_param());
      port.shape.push_back(dim.dim_param());
    } else {
      port.shape.push_back("?");
    }
  }
  return port;
}

static llvm::json::Array toJson(llvm::ArrayRef<Port> ports) {
  llvm::json::Array array;
  for (const Port &port : ports)
    array.push_back(llvm::json::Object{
        {"name", port.name},
        {"type", port.type},
        {"sequence", port.isSequence()},
        {"optional", port.isOptional()},
        {"shape", port.hasShape
                      ? llvm::json::Value(llvm::json::Array(port.shape))
                      : llvm::json::Value(nullptr)}});
  return array;
}

static void printPorts(llvm::raw_ostream &out, llvm::StringRef title,
                       llvm::ArrayRef<Port> ports) {
  size_t width = 0, typeWidth = 8;
  for (const Port &port : ports) {
    width = std::max(width, port.name.size());
    typeWidth = std::max(typeWidth, port.typeText().size());
  }
  out << title << "\n";
  for (const Port &port : ports)
    out << "  " << llvm::left_justify(port.name, width) << "  "
        << llvm::left_justify(port.typeText(), typeWidth) << " "
        << (port.hasShape ? "[" + llvm::join(port.shape, ", ") + "]"
                          : "of unknown shape")
        << "\n";
}

/// The flags that collections among the inputs need, or allow.
static void printCollectionFlags(llvm::raw_ostream &out,
                                 llvm::ArrayRef<Port> inputs) {
  auto print = [&](llvm::StringRef title, bool (Port::*isOne)() const,
                   llvm::StringRef flag, llvm::StringRef end) {
    if (llvm::none_of(inputs, [&](const Port &p) { return (p.*isOne)(); }))
      return;
    out << title << ":";
    for (const Port &port : inputs)
      if ((port.*isOne)())
        out << " " << flag << " " << port.name << end;
    out << "\n";
  };
  print("lengths to bind", &Port::isSequence, "--length", "=COUNT");
  print("may be left out", &Port::isOptional, "--absent", "");
}

llvm::LogicalResult import::describeOnnxModel(mlir::MLIRContext &context,
                                              const ImportOptions &options,
                                              llvm::raw_ostream &out,
                                              bool json) {
  auto file =
      ModelFile::read(options.modelPath, mlir::UnknownLoc::get(&context));
  if (failed(file))
    return llvm::failure();
  const onnx::GraphProto &graph = (*file)->proto.graph();
  llvm::StringSet<> initializers;
  for (const auto &tensor : graph.initializer())
    initializers.insert(tensor.name());

  std::vector<std::string> dims;
  std::vector<Port> inputs, outputs;
  for (const auto &info : graph.input())
    if (!initializers.contains(info.name()))
      inputs.push_back(describe(info, dims));
  std::vector<std::string> inputDims;
  // What depends on others follows from them.
  for (const std::string &name : dims)
    if (llvm::SmallVector<llvm::StringRef> names = findDimNames(name);
        names.empty() || !llvm::all_of(names, [&](llvm::StringRef part) {
          return llvm::is_contained(dims, part);
        }))
      inputDims.push_back(name);
  for (const auto &info : graph.output())
    outputs.push_back(describe(info, dims));

  if (json) {
    out << llvm::json::Value(
               llvm::json::Object{{"inputs", toJson(inputs)},
                                  {"outputs", toJson(outputs)},
                                  {"dims", llvm::json::Array(inputDims)}})
        << "\n";
    return llvm::success();
  }
  printPorts(out, "inputs", inputs);
  printPorts(out, "outputs", outputs);
  if (!inputDims.empty()) {
    out << "dimensions to bind:";
    for (const std::string &name : inputDims)
      out << " --dim " << name << "=SIZE";
    out << "\n";
  }
  printCollectionFlags(out, inputs);
  return llvm::success();
}
