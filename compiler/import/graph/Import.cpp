//===- Import.cpp - ONNX models to the nn dialect -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/import/graph/Import.h"

#include "compiler/import/graph/GraphImport.h"
#include "compiler/import/graph/GraphPrep.h"
#include "compiler/import/graph/InputShapes.h"
#include "compiler/import/graph/OpTable.h"
#include "compiler/import/model/ModelFile.h"

#include "dialects/dist/DistDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace mlir;

namespace partita::import {

/// Devices flush denormals, so 0 takes the place of such a constant. Large
/// tensors stay in their file, and are not looked at.
static void remarkDenormals(ModuleOp module) {
  module.walk([](nn::ConstantOp constant) {
    constexpr int64_t kMostElements = 256;
    auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue());
    // f16 is computed in f32, which has its denormals.
    if (!elements || elements.getElementType().isF16() ||
        (!elements.isSplat() && elements.getNumElements() > kMostElements))
      return;
    auto splat = elements.isSplat()
                     ? SmallVector<APFloat>{elements.getSplatValue<APFloat>()}
                     : llvm::to_vector(elements.getValues<APFloat>());
    const auto *found =
        llvm::find_if(splat, [](const APFloat &x) { return x.isDenormal(); });
    if (found == splat.end())
      return;
    const APFloat least = APFloat::getSmallestNormalized(found->getSemantics());
    emitRemark(constant.getLoc())
        << "a constant has the denormal number " << found->convertToDouble()
        << ", which counts as 0, as all numbers below "
        << least.convertToDouble() << " do";
  });
}

static FailureOr<OwningOpRef<ModuleOp>>
importChecked(MLIRContext &context, const ImportOptions &options) {
  Location loc = UnknownLoc::get(&context);
  auto file =
      PARTITA_TRY(ModelFile::read(options.modelPath, loc, options.keepWeights));
  file->filesMayBeAbsent = options.filesMayBeAbsent;
  onnx::ModelProto &model = file->proto;
  PARTITA_TRY(checkVersions(model, loc));
  completeAttributeTypes(model);
  if (model.graph().sparse_initializer_size() != 0)
    return emitError(loc) << "the model has sparse initializers, which are not "
                             "supported";
  if (model.graph().output_size() == 0)
    return emitError(loc) << "the model has no outputs";

  auto annotations =
      PARTITA_TRY(DeviceAnnotations::choose(model, options, loc));
  NodeNumbers numbers;
  if (options.numberNodes)
    numbers = numberNodes(model);
  PARTITA_TRY(mergeRepeatedConstants(*file, loc));

  LocalFunctions functions;
  for (const onnx::FunctionProto &function : model.functions())
    // What crosses replicas has functions for other runtimes only.
    if (function.domain() != kReplicaDomain ||
        !findOp(kReplicaDomain, function.name(), 1).function)
      functions[getFunctionKey(function.domain(), function.name(),
                               function.overload())] = &function;
  PARTITA_TRY(checkSupported(model, functions, loc));
  ModelInputs inputs = PARTITA_TRY(bindInputs(model.graph(), options, loc));

  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  (*module)->setAttr(
      kModelAttr,
      StringAttr::get(&context, sys::path::stem(options.modelPath)));
  GraphImport graph(*file, functions, annotations,
                    options.numberNodes ? &numbers : nullptr, options, *module);
  PARTITA_TRY(graph.run(inputs));
  PARTITA_TRY(verify(*module));
  remarkDenormals(*module);
  return module;
}

FailureOr<OwningOpRef<ModuleOp>> importOnnxModel(MLIRContext &context,
                                                 const ImportOptions &options) {
  context.loadDialect<nn::NNDialect, dist::DistDialect, func::FuncDialect,
                      arith::ArithDialect, math::MathDialect>();
  // ONNX's library reports by exceptions.
  try {
    return importChecked(context, options);
  } catch (const std::exception &e) {
    return emitError(UnknownLoc::get(&context))
           << "cannot import '" << options.modelPath << "': " << e.what();
  }
}

} // namespace partita::import
