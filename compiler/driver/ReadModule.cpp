//===- ReadModule.cpp - Models written in the nn dialect ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/ReadModule.h"

#include "compiler/autodiff/Passes.h"
#include "compiler/files/Nesting.h"
#include "compiler/files/ReadFile.h"
#include "compiler/model/NodeNames.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/support/Try.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace partita::driver {
namespace {

/// "hidden" of "%hidden" or "%hidden:2"; nothing of a value that is a number.
StringRef getSsaName(SMRange range) {
  StringRef text(range.Start.getPointer(),
                 range.End.getPointer() - range.Start.getPointer());
  text.consume_front("%");
  text = text.take_until([](char c) { return c == ':' || c == '#'; });
  return llvm::all_of(text, llvm::isDigit) ? StringRef() : text;
}

Location getNamedLoc(MLIRContext *context, StringRef name) {
  return NameLoc::get(StringAttr::get(context, name));
}

class ModuleReader {
public:
  ModuleReader(MLIRContext &context, const import::ImportOptions &options)
      : context(context), options(options), builder(&context) {}

  FailureOr<OwningOpRef<ModuleOp>> run() {
    PARTITA_TRY(checkOptions());
    PARTITA_TRY(parse());
    PARTITA_TRY(findMain());
    nameValues();
    describePorts();
    describeModel();
    PARTITA_TRY(verify(*module));
    return std::move(module);
  }

private:
  /// A module has its shapes.
  LogicalResult checkOptions() {
    if (options.shapes.empty() && options.dims.empty() &&
        options.lengths.empty() && options.absent.empty() &&
        options.constants.empty() && options.samples.empty())
      return success();
    return emitError(UnknownLoc::get(&context))
           << "--shape, --dim, --samples, --length, --absent and --constant "
              "are "
              "for ONNX models; the shapes in '"
           << options.modelPath
           << "' are those of a micro-batch, and nn.batch_axis says where "
              "samples are";
  }

  LogicalResult parse() {
    auto buffer = files::readFile(options.modelPath, files::kMostDataBytes,
                                  files::Ending::null);
    if (!buffer)
      return emitError(UnknownLoc::get(&context))
             << "cannot open '" << options.modelPath
             << "': " << llvm::toString(buffer.takeError());
    if (std::optional<std::string> deep =
            files::findDeepNesting((*buffer)->getBuffer(), files::Syntax::mlir))
      return emitError(UnknownLoc::get(&context))
             << "'" << options.modelPath << "', " << *deep;
    sources.AddNewSourceBuffer(std::move(*buffer), SMLoc());
    Block parsed;
    PARTITA_TRY(
        parseAsmSourceFile(sources, &parsed, ParserConfig(&context), &state));
    module = detail::constructContainerOpForParserIfNecessary<ModuleOp>(
        &parsed, &context,
        FileLineColLoc::get(&context, options.modelPath, 1, 1));
    return success(bool(module));
  }

  LogicalResult findMain() {
    auto functions = module->getOps<func::FuncOp>();
    if (llvm::range_size(functions) == 1)
      main = *functions.begin();
    if (!main || main.getName() != "main" || main.isExternal())
      return module->emitError()
             << "a model is one function @main, with its ops";
    if (!llvm::hasSingleElement(main.getBody()))
      return main.emitError() << "a model's function has one block";
    auto isTensor = [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && tensor.hasStaticShape();
    };
    for (Type type : llvm::concat<const Type>(main.getArgumentTypes(),
                                              main.getResultTypes()))
      if (!isTensor(type))
        return main.emitError()
               << "an input or output of type " << type
               << ": a model takes and gives tensors with static shapes";
    for (Operation *op : collectNodes())
      if (!isa<nn::NNDialect>(op->getDialect()) &&
          !isa<dist::ReplicateOp, dist::PlaceholderOpInterface,
               dist::CollectiveOpInterface, dist::ShardOp>(op))
        return op->emitError()
               << "'" << op->getName()
               << "': a model's function holds ops of the nn dialect, what "
                  "crosses replicas (dist.replicate, dist.replica), and "
                  "collectives";
    return success();
  }

  /// The ops of the function, and of the replicas in it.
  SmallVector<Operation *> collectNodes() {
    SmallVector<Operation *> nodes;
    for (Operation &op : main.getBody().front().without_terminator()) {
      if (auto replicate = dyn_cast<dist::ReplicateOp>(op))
        for (Region &body : replicate.getBodies())
          for (Operation &inner : body.front().without_terminator())
            nodes.push_back(&inner);
      nodes.push_back(&op);
    }
    return nodes;
  }

  /// A node is called what its first value is called, unless its location has a
  /// name already.
  void nameValues() {
    llvm::DenseMap<Operation *, StringRef> names;
    for (const AsmParserState::OperationDefinition &op : state.getOpDefs())
      if (!op.resultGroups.empty())
        names[op.op] = getSsaName(op.resultGroups.front().definition.loc);
    llvm::StringMap<int> counts;
    for (Operation *op : collectNodes()) {
      StringRef kind = op->getName().stripDialect();
      const int number = counts[kind]++;
      if (!getNodeNames(op->getLoc()).empty())
        continue;
      StringRef name = names.lookup(op);
      op->setLoc(getNamedLoc(
          &context, name.empty() ? (kind + "_" + Twine(number)).str() : name));
    }
    const AsmParserState::BlockDefinition *block =
        state.getBlockDef(&main.getBody().front());
    for (BlockArgument argument : main.getArguments()) {
      const unsigned i = argument.getArgNumber();
      StringRef name = block && i < block->arguments.size()
                           ? getSsaName(block->arguments[i].loc)
                           : StringRef();
      argument.setLoc(getNamedLoc(
          &context, name.empty() ? ("input" + Twine(i)).str() : name));
    }
  }

  static StringRef getFirstName(Value value) {
    return getNodeNames(value.getLoc()).front();
  }

  void describePorts() {
    for (BlockArgument argument : main.getArguments()) {
      const unsigned i = argument.getArgNumber();
      if (!main.getArgAttr(i, nn::kNameAttr))
        main.setArgAttr(i, nn::kNameAttr,
                        builder.getStringAttr(getFirstName(argument)));
      if (!main.getArgAttr(i, import::kPortAttr))
        main.setArgAttr(i, import::kPortAttr, builder.getI64IntegerAttr(i));
    }
    Operation *end = main.getBody().front().getTerminator();
    for (OpOperand &result : end->getOpOperands()) {
      const unsigned i = result.getOperandNumber();
      if (main.getResultAttr(i, nn::kCheckAttr))
        continue;
      if (!main.getResultAttr(i, nn::kNameAttr))
        main.setResultAttr(i, nn::kNameAttr,
                           builder.getStringAttr(getFirstName(result.get())));
      if (!main.getResultAttr(i, import::kPortAttr))
        main.setResultAttr(i, import::kPortAttr, builder.getI64IntegerAttr(i));
    }
  }

  void describeModel() {
    ModuleOp op = *module;
    if (!op->hasAttr(import::kModelAttr))
      op->setAttr(
          import::kModelAttr,
          builder.getStringAttr(llvm::sys::path::stem(options.modelPath)));
    SmallVector<Attribute> nodes, outputs;
    llvm::SmallDenseSet<StringRef> seen; // replicas have the same nodes
    for (Operation *node : collectNodes()) {
      StringRef name = getNodeNames(node->getLoc()).front();
      if (!seen.insert(name).second)
        continue;
      nodes.push_back(builder.getStringAttr(name));
      outputs.push_back(
          builder.getStringAttr(node->getNumResults() == 1 ? name : ""));
    }
    op->setAttr(import::kNodesAttr, builder.getArrayAttr(nodes));
    if (options.recordTensors)
      op->setAttr(import::kNodeOutputsAttr, builder.getArrayAttr(outputs));
  }

  MLIRContext &context;
  const import::ImportOptions &options;
  Builder builder;
  llvm::SourceMgr sources;
  AsmParserState state;
  OwningOpRef<ModuleOp> module;
  func::FuncOp main;
};

} // namespace

bool isModuleFile(StringRef path) { return path.ends_with(".mlir"); }

FailureOr<OwningOpRef<ModuleOp>>
readModule(MLIRContext &context, const import::ImportOptions &options) {
  return ModuleReader(context, options).run();
}

FailureOr<OwningOpRef<ModuleOp>>
readModel(MLIRContext &context, const import::ImportOptions &options) {
  auto module = isModuleFile(options.modelPath)
                    ? readModule(context, options)
                    : import::importOnnxModel(context, options);
  if (failed(module) ||
      !(*module)
           ->walk([](nn::VariableOp) { return WalkResult::interrupt(); })
           .wasInterrupted())
    return module;
  PassManager pm(&context, ModuleOp::getOperationName());
  pm.addPass(autodiff::createResolveGradientsPass());
  PARTITA_TRY(pm.run(**module));
  return module;
}

} // namespace partita::driver
