//===- ParameterList.cpp - The parameters of a model, for people ----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/autodiff/ParameterList.h"

#include "compiler/autodiff/Ports.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace partita::autodiff {

std::vector<Parameter> listParameters(ModuleOp module) {
  std::vector<Parameter> parameters;
  for (auto weight : module.getOps<nn::WeightOp>()) {
    auto type = cast<RankedTensorType>(weight.getType());
    Parameter parameter{weight.getOrigin().str(), "", type.getShape().vec(),
                        ""};
    llvm::raw_string_ostream(parameter.type) << type.getElementType();
    if (auto reason = weight->getAttrOfType<StringAttr>(kUntrainedAttr))
      parameter.untrained = reason.str();
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

static std::string getShapeText(const Parameter &parameter) {
  std::string text;
  for (int64_t size : parameter.shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return parameter.type + " [" + text + "]";
}

void printParameters(const std::vector<Parameter> &parameters,
                     llvm::raw_ostream &out) {
  size_t nameWidth = 9, shapeWidth = 5;
  int64_t trained = 0, elements = 0;
  for (const Parameter &parameter : parameters) {
    nameWidth = std::max(nameWidth, parameter.name.size());
    shapeWidth = std::max(shapeWidth, getShapeText(parameter).size());
    if (!parameter.untrained.empty())
      continue;
    elements += llvm::product_of(parameter.shape);
    ++trained;
  }
  auto print = [&](StringRef name, StringRef shape, StringRef what) {
    out << name;
    out.indent(static_cast<unsigned>(nameWidth - name.size() + 2)) << shape;
    out.indent(static_cast<unsigned>(shapeWidth - shape.size() + 2))
        << what << "\n";
  };
  print("parameter", "shape", "trained");
  for (const Parameter &parameter : parameters)
    print(parameter.name, getShapeText(parameter),
          parameter.untrained.empty() ? "yes" : "no: " + parameter.untrained);
  out << trained << " of " << parameters.size() << " tensors are trained, "
      << elements << " elements\n";
}

llvm::json::Value toJson(const std::vector<Parameter> &parameters) {
  llvm::json::Array list;
  for (const Parameter &parameter : parameters) {
    llvm::json::Object entry{{"name", parameter.name},
                             {"type", parameter.type},
                             {"shape", llvm::json::Array(parameter.shape)},
                             {"trained", parameter.untrained.empty()}};
    if (!parameter.untrained.empty())
      entry["reason"] = parameter.untrained;
    list.push_back(std::move(entry));
  }
  return list;
}

} // namespace partita::autodiff
