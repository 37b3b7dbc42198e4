//===- Compile.cpp - From an ONNX model to an artifact --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Compile.h"

#include "compiler/analysis/Samples.h"
#include "compiler/codegen/Backend.h"
#include "compiler/codegen/Codegen.h"
#include "compiler/codegen/cpu/CpuBackend.h"
#include "compiler/codegen/cuda/CudaBackend.h"
#include "compiler/crash/Place.h"
#include "compiler/driver/PrintModule.h"
#include "compiler/driver/ReadModel.h"
#include "compiler/driver/ReadModule.h"
#include "compiler/driver/SampleProof.h"
#include "compiler/fuse/Passes.h"
#include "compiler/import/annotations/AnnotatedModel.h"
#include "compiler/pipeline/Decision.h"
#include "compiler/pipeline/Passes.h"
#include "compiler/pipeline/cost/MachineModel.h"
#include "compiler/pipeline/partition/ScheduleFile.h"
#include "compiler/pipeline/partition/StageOrder.h"
#include "compiler/pipeline/plan/DeviceMemory.h"
#include "compiler/shard/CollectAnnotations.h"
#include "compiler/shard/Passes.h"
#include "compiler/simplify/Passes.h"
#include "dialects/dist/Annotations.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/nn/CheckAttr.h"
#include "dialects/nn/NNDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "runtime/abi/DeviceKinds.h"
#include "runtime/abi/Text.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace partita;
using namespace partita::driver;

void driver::registerCompilerDialects(DialectRegistry &registry) {
  codegen::registerCpuBackend();
  codegen::cuda::registerCudaBackend();
  registry.insert<nn::NNDialect, dist::DistDialect, plan::PlanDialect,
                  func::FuncDialect>();
  codegen::registerCodegenDialects(registry);
}

std::string
driver::getAnnotationsOverride(const pipeline::PartitionOptions &options) {
  return !options.file.empty()        ? "--partition"
         : options.devices > 0        ? "--devices"
         : options.tensorParallel > 0 ? "--tensor-parallel"
         : options.replicas > 0       ? "--replicas"
         : options.stages > 0         ? "--stages"
                                      : "";
}

namespace {
/// One compilation: the phases in their order.
class Compilation {
public:
  /// Plan number `plan` of `plans`. `targets`: the different ones of the
  /// devices, if they were said of each; that of `options` is the first.
  Compilation(MLIRContext &context, CompileOptions options,
              std::vector<std::string> targets, int plan, int plans)
      : context(context), options(std::move(options)),
        targets(std::move(targets)), plan(plan), plans(plans) {}

  /// Up to what `options.kind` says; an artifact is not written yet.
  LogicalResult run(llvm::raw_ostream &ir,
                    std::vector<pipeline::PlanSummary> &summaries);

  /// The decision about the nodes, if `emitOnnx` asks for it.
  const dist::Annotations &getAnnotations() const { return annotations; }

  /// What was decided, for another plan of the model: CompileOptions.
  std::map<std::string, int64_t> stagesOfNodes;
  std::vector<int64_t> devicesOfStages;

  /// Ends the last phase. The module stays here.
  emit::CompiledPlan take() {
    place.reset();
    return {*module, std::move(objects)};
  }

private:
  void begin(llvm::StringLiteral name) {
    // The phase before ends first.
    place.reset();
    place.emplace(name);
    if (options.progress)
      options.progress(name, plan * kPhases + phase++, plans * kPhases + 1);
  }

  LogicalResult transform(llvm::function_ref<void(OpPassManager &)> addPasses) {
    PassManager pm(&context, ModuleOp::getOperationName());
    // A plan may have millions of steps: the module is verified after every
    // phase, not after every pass, which partita-opt does.
    pm.enableVerifier(false);
    addPasses(pm);
    if (failed(pm.run(*module)))
      return failure();
    // Passes refuse what a user may not ask for: this is none of his errors.
    if (failed(mlir::verify(*module)))
      llvm::report_fatal_error("a phase made a module that is not valid");
    return success();
  }

  /// Gradients are of no use to Winograd's method: where its rounding turns the
  /// sign of an element before a ReLU, they jump.
  void addFusePass(OpPassManager &pm, bool winograd) const {
    winograd &= options.autodiff.loss.empty();
    pm.addPass(fuse::createFuseClustersPass(
        {winograd, options.libraryCalls, options.reference}));
  }

  LogicalResult partition(const pipeline::PartitionOptions &partitionOptions,
                          EmitKind until);
  LogicalResult tryPartition(ModuleOp whole,
                             const pipeline::PartitionOptions &partitionOptions,
                             EmitKind until, std::vector<Diagnostic> &remarks);
  LogicalResult partitionToFit();
  std::string findWhatFits(ModuleOp whole, ModuleOp plan,
                           pipeline::PartitionOptions tried);
  void remarkCores(const pipeline::PlanSummary &plan);
  std::vector<std::string> getTargets() const;
  bool widensHalves() const;
  bool sumsMicroBatches() const;
  LogicalResult checkTargets();
  LogicalResult checkMachine();
  LogicalResult differentiate();
  LogicalResult checkScales();
  void addTrainPasses(OpPassManager &pm);
  void describeInitialValues();
  void takeStages();
  void noteStages();
  LogicalResult compileKernels();
  LogicalResult nameDimensions();
  LogicalResult checkMask();

  static constexpr int kPhases = 5;
  static constexpr int kMostDevicesTried = 64;
  MLIRContext &context;
  const CompileOptions options;
  const std::vector<std::string> targets;
  const int plan, plans;
  int64_t cores = 0; ///< of the machine that was measured; 0: none was
  OwningOpRef<ModuleOp> module;
  std::vector<emit::ObjectFile> objects;
  dist::Annotations annotations;
  int phase = 0;
  std::optional<crash::AtPass> place;
};
} // namespace

std::vector<std::string> Compilation::getTargets() const {
  if (!targets.empty())
    return targets;
  return {options.target.empty() ? "cpu" : options.target};
}

/// Whether halves are computed in f32: on CPUs alone, none of whose levels has
/// arithmetic of halves.
bool Compilation::widensHalves() const {
  return llvm::all_of(getTargets(), [](StringRef target) {
    return codegen::findBackend(codegen::splitTarget(target).first)
        ->hasCpuLevels();
  });
}

/// Whether a step has one loss, and one gradient of each parameter, of all of
/// its micro-batches.
bool Compilation::sumsMicroBatches() const {
  return options.autodiff.results != autodiff::LossResults::whole;
}

/// Targets must be backends', and architectures of theirs.
LogicalResult Compilation::checkTargets() {
  llvm::StringMap<StringRef> known;
  for (const std::string &target : targets) {
    auto [kind, architecture] = codegen::splitTarget(target);
    auto [it, isNew] = known.try_emplace(kind, target);
    if (!isNew)
      return emitError(UnknownLoc::get(&context))
             << "the devices are of '" << it->second << "' and of '" << target
             << "': an artifact has code for one architecture of a kind";
  }
  for (const std::string &target : getTargets()) {
    auto [kind, architecture] = codegen::splitTarget(target);
    const codegen::Backend *backend = codegen::findBackend(kind);
    std::string error = backend ? backend->checkArchitecture(architecture)
                                : "there is no such kind of device";
    if (!error.empty())
      return emitError(UnknownLoc::get(&context))
             << (targets.empty() ? "--target " + target : "'" + target + "'")
             << ": " << error;
  }
  return success();
}

/// A wrong file should not wait for a large model.
LogicalResult Compilation::checkMachine() {
  for (const std::string &target : getTargets()) {
    auto machine = pipeline::MachineModel::load(
        UnknownLoc::get(&context), options.partition.machine, 1, 0, target);
    if (failed(machine))
      return failure();
    cores = std::max(cores, machine->getCores());
    if (machine->lacksDevice())
      emitRemark(UnknownLoc::get(&context))
          << "the machine file '" << options.partition.machine
          << "' says nothing of devices of " << target
          << ": times are predicted for " << machine->getName()
          << ", by its data sheet; measure them with partita-run --calibrate "
             "on a machine that has some";
  }
  return success();
}

/// The loss and its gradients in the place of the outputs, if asked for.
LogicalResult Compilation::differentiate() {
  if (options.autodiff.loss.empty() && !options.parameters)
    return success();
  if (failed(transform([&](OpPassManager &pm) {
        autodiff::addAutodiffPasses(pm, options.autodiff);
        if (options.parameters)
          return;
        if (!options.train.optimizer.empty())
          addTrainPasses(pm);
        else if (sumsMicroBatches())
          pm.addPass(
              train::createSumGradientsPass({options.train.microBatches}));
      })))
    return failure();
  if (options.parameters)
    *options.parameters = autodiff::listParameters(*module);
  describeInitialValues();
  // Zeros that were added, numbers that fold.
  return options.reference ? success() : transform([](OpPassManager &pm) {
    simplify::addCanonicalPasses(pm);
  });
}

/// Of integers, inputs of the model are scaled.
LogicalResult Compilation::checkScales() {
  std::vector<std::string> names;
  for (auto function : module->getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto name = function.getArgAttrOfType<StringAttr>(i, nn::kNameAttr))
        names.push_back("'" + name.str() + "'");
  for (const std::string &scaled : options.train.scaledInputs)
    if (!llvm::is_contained(names, "'" + scaled + "'"))
      return emitError(UnknownLoc::get(&context))
             << "`scale` names '" << scaled
             << "', which is no input of the model; its inputs are "
             << abi::namesText(names);
  return success();
}

/// What turns gradients into a step that learns; or, of a plan that evaluates,
/// what reads the same states.
void Compilation::addTrainPasses(OpPassManager &pm) {
  if (options.autodiff.results == autodiff::LossResults::beside)
    return pm.addPass(train::createMarkStatesPass());
  train::AddOptimizerPassOptions optimizer;
  optimizer.optimizer = options.train.optimizer;
  optimizer.groups.assign(options.train.groups.begin(),
                          options.train.groups.end());
  optimizer.clipNorm = options.train.clipNorm;
  optimizer.microBatches = options.train.microBatches;
  pm.addPass(train::createAddOptimizerPass(optimizer));
  train::ChooseInitialValuesPassOptions initial;
  initial.init.assign(options.train.init.begin(), options.train.init.end());
  pm.addPass(train::createChooseInitialValuesPass(initial));
}

/// What states are drawn from, for those who run the artifact.
void Compilation::describeInitialValues() {
  llvm::json::Object initial;
  for (auto weight : module->getOps<nn::WeightOp>())
    if (auto values = weight->getAttrOfType<StringAttr>(nn::kInitialAttr))
      initial[weight.getOrigin()] = values.getValue();
  auto described = (*module)->getAttrOfType<StringAttr>(plan::kTrainingAttr);
  if (initial.empty() || !described)
    return;
  auto all = llvm::json::parse(described.getValue());
  if (!all)
    return llvm::consumeError(all.takeError());
  (*all->getAsObject())["initial"] = std::move(initial);
  (*module)->setAttr(
      plan::kTrainingAttr,
      StringAttr::get(&context, llvm::formatv("{0}", *all).str()));
}

LogicalResult Compilation::compileKernels() {
  for (ModuleOp kernels : codegen::getKernelsModules(*module)) {
    auto compiled = codegen::compileKernels(kernels, options.codegen);
    if (failed(compiled))
      return failure();
    for (codegen::CompiledObject &object : *compiled)
      objects.push_back(
          {object.level, std::move(object.bytes), object.architecture});
  }
  return success();
}

/// Whether no number may depend on how tensors are cut.
static bool isReproducible(ModuleOp module) {
  return llvm::any_of(module.getOps<func::FuncOp>(), [](func::FuncOp function) {
    return function->hasAttr(dist::kReproducibleAttr);
  });
}

/// Writes into the plan for which sizes it is.
LogicalResult Compilation::nameDimensions() {
  auto models = module->getOps<plan::ModelOp>();
  if (models.empty() || options.dimensions.empty())
    return success();
  plan::ModelOp model = *models.begin();
  Builder b(&context);
  NamedAttrList sizes;
  for (const DimensionSizes &dimension : options.dimensions)
    sizes.set(dimension.name,
              b.getI64IntegerAttr(options.import.dims.lookup(dimension.name)));
  model.setDimensionsAttr(sizes.getDictionary(&context));
  if (options.mask.empty())
    return success();
  for (auto port : module->getOps<plan::PortOp>())
    if (port.getKind() == plan::PortKind::input &&
        port.getPortName() == options.mask) {
      model.setMask(options.mask);
      return success();
    }
  return module->emitError()
         << "--mask " << options.mask << ": the model has no such input";
}

/// Only samples that are independent of each other are padded.
LogicalResult Compilation::checkMask() {
  auto mixes = (*module)->getAttrOfType<StringAttr>(analysis::kMixesAttr);
  if (!mixes || options.mask.empty())
    return success();
  return emitError(UnknownLoc::get(&context))
         << "--mask " << options.mask << ": samples cannot be padded, because "
         << mixes.getValue()
         << "; leave out --mask, and compile the model for each size";
}

/// Cuts the model, and goes on to the plan, or as far as `until` says.
/// Stages as another plan has them.
void Compilation::takeStages() {
  if (options.stagesOfNodes.empty())
    return;
  Builder b(&context);
  NamedAttrList stages;
  for (const auto &[name, stage] : options.stagesOfNodes)
    stages.set(name, b.getI64IntegerAttr(stage));
  for (auto function : module->getOps<func::FuncOp>()) {
    function->setAttr(dist::kAnnotatedStagesAttr,
                      stages.getDictionary(&context));
    function->setAttr(dist::kDevicesAttr,
                      b.getDenseI64ArrayAttr(options.devicesOfStages));
  }
}

void Compilation::noteStages() {
  if (options.train.optimizer.empty())
    return;
  for (auto function : module->getOps<func::FuncOp>()) {
    stagesOfNodes = pipeline::getStagesOfNodes(function);
    const SmallVector<int64_t> devices = pipeline::getDevices(function);
    devicesOfStages.assign(devices.begin(), devices.end());
  }
}

LogicalResult
Compilation::partition(const pipeline::PartitionOptions &partitionOptions,
                       EmitKind until) {
  if (failed(transform([&](OpPassManager &pm) {
        pipeline::addDecisionPasses(pm, partitionOptions);
      })))
    return failure();
  noteStages();
  if (options.nodes)
    options.nodes->readDecision(*module);
  if (!options.emitOnnx.empty())
    annotations = shard::collectAnnotations(*module);
  if (until == EmitKind::decision)
    return success();
  if (failed(transform([&](OpPassManager &pm) {
        pipeline::addCutPasses(pm, partitionOptions);
        // What another kind of device computes, its own backend fuses.
        if (targets.size() > 1) {
          addFusePass(pm, options.winograd && !isReproducible(*module));
          pipeline::addPricePasses(pm, partitionOptions);
        }
      })))
    return failure();
  if (until == EmitKind::stages)
    return success();
  begin("choosing kernels and library calls");
  if (failed(transform([&](OpPassManager &pm) {
        pm.addPass(fuse::createFormClustersPass());
        codegen::addCodegenPasses(pm, options.reference);
      })))
    return failure();
  if (until == EmitKind::clusters)
    return success();
  return transform([&](OpPassManager &pm) {
    pipeline::addPlanPasses(pm, partitionOptions);
  });
}

/// The same on a copy of the whole model. Remarks are kept for later.
LogicalResult
Compilation::tryPartition(ModuleOp whole,
                          const pipeline::PartitionOptions &partitionOptions,
                          EmitKind until, std::vector<Diagnostic> &remarks) {
  const int begun = phase;
  remarks.clear();
  module = cast<ModuleOp>(whole->clone());
  ScopedDiagnosticHandler keep(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      return failure();
    remarks.push_back(std::move(diagnostic));
    return success();
  });
  LogicalResult result = partition(partitionOptions, until);
  phase = begun;
  return result;
}

/// The fastest stages, if their devices have room for them; else the fastest
/// that fit. How much room a device needs is known when its plan is made, so
/// each try goes that far.
LogicalResult Compilation::partitionToFit() {
  pipeline::PartitionOptions given = options.partition;
  given.devices = 0; // the mesh says it
  given.wholeNodes = !options.emitOnnx.empty();
  // The file may say how much memory there is.
  if (given.memory <= 0 && given.file.empty())
    return partition(given, options.kind);
  OwningOpRef<ModuleOp> whole = std::move(module);
  pipeline::PartitionOptions tried = given;
  tried.emitFile.clear();
  std::vector<Diagnostic> remarks, others;
  LogicalResult result = success();
  while (true) {
    result = tryPartition(*whole, tried, EmitKind::plan, remarks);
    if (failed(result) || pipeline::fitsMemory(*module) ||
        tried.memoryTry == pipeline::kLastMemoryTry)
      break;
    ++tried.memoryTry;
  }
  for (Diagnostic &remark : remarks)
    context.getDiagEngine().emit(std::move(remark));
  if (failed(result))
    return failure();
  if (!pipeline::fitsMemory(*module)) {
    OwningOpRef<ModuleOp> plan = std::move(module);
    std::string advice = findWhatFits(*whole, *plan, tried);
    module = std::move(plan);
    return transform([&](OpPassManager &pm) {
      pm.addPass(pipeline::createPlanCheckMemoryPass({advice}));
    });
  }
  phase += 1; // the tries were one
  const bool stopsEarly = options.kind == EmitKind::decision ||
                          options.kind == EmitKind::stages ||
                          options.kind == EmitKind::clusters;
  if (given.emitFile.empty() && !stopsEarly)
    return success();
  OwningOpRef<ModuleOp> plan = std::move(module);
  tried.emitFile = given.emitFile;
  result = tryPartition(*whole, tried,
                        stopsEarly ? options.kind : EmitKind::stages, others);
  if (!stopsEarly)
    module = std::move(plan);
  return result;
}

/// What would have room, found by planning it.
std::string Compilation::findWhatFits(ModuleOp whole, ModuleOp plan,
                                      pipeline::PartitionOptions tried) {
  // More devices are more places along the axis "stage".
  const int places =
      static_cast<int>(llvm::range_size(plan.getOps<plan::ProgramOp>()));
  const int each = static_cast<int>(std::max<size_t>(
      llvm::range_size(plan.getOps<plan::DeviceOp>()) / places, 1));
  std::vector<Diagnostic> remarks;
  // What cannot be planned at all is no advice, and no error of the person.
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
  auto fits = [&](const pipeline::PartitionOptions &other) {
    return succeeded(tryPartition(whole, other, EmitKind::plan, remarks)) &&
           pipeline::fitsMemory(*module);
  };
  SmallVector<std::string> found;
  pipeline::PartitionOptions more = tried;
  int most = places;
  // Of devices of several kinds nobody knows which there are more of.
  const SmallVector<int> counts =
      targets.size() > 1 ? SmallVector<int>{}
                         : SmallVector<int>{places + 1, places + 2, 2 * places,
                                            4 * places, 8 * places};
  for (int count : counts) {
    if (count <= most || count > kMostDevicesTried)
      continue;
    more.devices = most = count;
    if (fits(more)) {
      const std::string all = std::to_string(count * each);
      found.push_back(all + " devices (--devices " + all + ")");
      break;
    }
  }
  // What gradients need again.
  for (const char *word : {"standard", "full"}) {
    pipeline::PartitionOptions again = tried;
    again.recompute = word;
    if (options.autodiff.results == autodiff::LossResults::parts &&
        !options.train.optimizer.empty() && tried.recompute != word &&
        tried.recompute != "full" && fits(again)) {
      found.push_back(std::string("computing again what gradients need "
                                  "(--recompute ") +
                      word + ")");
      break;
    }
  }
  pipeline::PartitionOptions fewer = tried;
  fewer.microBatches = 1;
  if (fits(fewer))
    found.push_back("one micro-batch in flight (--micro-batches 1)");
  if (!found.empty())
    return "what would fit: " + llvm::join(found, ", or ");
  return "neither " + std::to_string(most * each) +
         " devices nor one micro-batch in flight would fit: compile it for "
         "smaller micro-batches (--dim, --shape), or give it more memory";
}

/// Says if devices want more cores than the machine has for which times are
/// predicted.
void Compilation::remarkCores(const pipeline::PlanSummary &plan) {
  const int64_t devices = llvm::range_size(module->getOps<plan::DeviceOp>());
  if (cores > 0 && devices * plan.threads > cores)
    emitRemark(UnknownLoc::get(&context))
        << "the machine has " << abi::countOf(cores, "core") << ", and "
        << abi::countOf(devices, "device") << " of " << plan.threads
        << " each want " << devices * plan.threads
        << ": times are predicted as if it had them";
}

LogicalResult Compilation::run(llvm::raw_ostream &ir,
                               std::vector<pipeline::PlanSummary> &summaries) {
  if (failed(checkTargets()) || failed(checkMachine()))
    return failure();
  begin("reading the model");
  import::ImportOptions imports = options.import;
  imports.recordTensors = !options.expose.nodes.empty();
  imports.recordOps = options.nodes != nullptr;
  imports.keepWeights = !options.autodiff.loss.empty() || options.parameters;
  FailureOr<int64_t> replicas =
      pipeline::readReplicas(UnknownLoc::get(&context), options.partition);
  if (failed(replicas))
    return failure();
  if (sumsMicroBatches())
    for (const auto &[input, axis] : options.import.samples)
      if (axis != 0)
        return emitError(UnknownLoc::get(&context))
               << "--samples " << input
               << ": dimension 0 of every input counts samples where a model "
                  "is trained, or gradients are summed over micro-batches";
  if (sumsMicroBatches())
    for (const std::string &target : getTargets())
      if (codegen::splitTarget(target).first != "cpu")
        return emitError(UnknownLoc::get(&context))
               << "--target " << target << ": "
               << (options.train.optimizer.empty()
                       ? "gradients are summed over micro-batches on CPUs yet; "
                         "leave it out, or --micro-batches"
                       : "models are trained on CPUs yet; leave it out");
  if (*replicas > 1 && options.train.optimizer.empty() && sumsMicroBatches())
    return emitError(UnknownLoc::get(&context))
           << "--gradients with " << *replicas
           << " replicas that share a batch (--replicas) are those of one "
              "micro-batch: leave out --micro-batches";
  // An update would be that of one replica's samples.
  if (*replicas > 1 && !options.train.optimizer.empty())
    return emitError(UnknownLoc::get(&context))
           << "--gradients with " << *replicas
           << " replicas that share a batch (--replicas): their gradients are "
              "not summed; compile the model for one";
  imports.replicas = *replicas;
  if (!options.train.optimizer.empty())
    imports.training = {options.autodiff.results ==
                                autodiff::LossResults::beside
                            ? import::TrainingMode::evaluate
                            : import::TrainingMode::learn,
                        options.train.microBatches, options.train.evalMode};
  imports.numberNodes = !options.emitOnnx.empty();
  imports.annotationsOverride = getAnnotationsOverride(options.partition);
  auto imported = readModel(context, imports);
  if (failed(imported))
    return failure();
  module = std::move(*imported);
  if (!options.train.optimizer.empty()) {
    const bool learns =
        options.autodiff.results == autodiff::LossResults::parts;
    (*module)->setAttr(plan::kEntryAttr,
                       StringAttr::get(&context, learns ? "train" : "eval"));
    if (failed(checkScales()))
      return failure();
    if (!options.train.description.empty())
      (*module)->setAttr(plan::kTrainingAttr,
                         StringAttr::get(&context, options.train.description));
  }
  // Nobody tells the samples of a step apart.
  if (!sumsMicroBatches())
    proveSampleAxes(*module, imports);
  else
    (*module)->removeAttr(import::kFixedSamplesAttr);
  if (failed(checkMask()))
    return failure();
  if (!options.target.empty())
    (*module)->setAttr(codegen::kTargetAttr,
                       StringAttr::get(&context, options.target));
  if (options.nodes)
    options.nodes->readModel(*module);
  if (options.kind == EmitKind::imported)
    return printModule(*module, ir), success();

  begin("simplifying and fusing");
  // Annotations say the mesh of a model that has some. They are read when its
  // nodes are what will be computed.
  const bool isAnnotated = (*module)->hasAttr(dist::kAnnotationsAttr);
  if (failed(transform([&](OpPassManager &pm) {
        // What one replica computes of the whole batch comes first: all phases
        // see one program.
        // A module that is printed says nothing of devices, if it need not.
        if (!isAnnotated &&
            (options.kind != EmitKind::nn || imports.replicas > 1))
          pipeline::addMeshPasses(pm, options.partition);
        shard::addReplicaPasses(pm);
        if (options.expose.unfused)
          pm.addPass(pipeline::createExposeValuesPass({options.expose.nodes}));
        pm.addNestedPass<func::FuncOp>(simplify::createWidenHalvesPass(
            {/*keep=*/options.reference || !widensHalves()}));
        if (!options.reference)
          simplify::addCanonicalPasses(pm);
      })) ||
      failed(differentiate()) || failed(transform([&](OpPassManager &pm) {
        if (!options.reference)
          simplify::addOptimizePasses(pm, [&](RankedTensorType q,
                                              RankedTensorType v,
                                              bool hasFactor) {
            auto keeps = [&](StringRef target) {
              return codegen::findBackend(codegen::splitTarget(target).first)
                  ->keepsAttention(q, v, hasFactor, options.attentionCalls);
            };
            return !options.libraryCalls || llvm::all_of(getTargets(), keeps);
          });
        else
          pm.addPass(createCSEPass()); // for what nobody reads
      })))
    return failure();
  if (options.kind == EmitKind::nn)
    return printModule(*module, ir), success();
  if (options.kind == EmitKind::parameters)
    return success();

  begin("partitioning");
  // What the model says comes first. A person's word may add to it.
  if (isAnnotated && failed(transform([&](OpPassManager &pm) {
        pm.addPass(shard::createDistReadAnnotationsPass());
        pipeline::addMeshPasses(pm, options.partition);
      })))
    return failure();
  takeStages();
  const bool reproducible = isReproducible(*module);
  if (failed(transform([&](OpPassManager &pm) {
        pm.addPass(train::createFormAccumulatorsPass());
        // What one device computes, before it is decided what is fused: later
        // phases see the tensors that a device has. What is fused depends on
        // their sizes, and changes how results round.
        if (reproducible)
          addFusePass(pm, /*winograd=*/false);
        shard::addShardPasses(pm, {options.partition.file,
                                   options.partition.machine,
                                   options.partition.threads, options.explain});
        if (!reproducible)
          addFusePass(pm, options.winograd);
        // What is computed together is decided: nothing changes any more.
        if (!options.expose.nodes.empty() && !options.expose.unfused)
          pm.addPass(pipeline::createExposeValuesPass({options.expose.nodes}));
      })) ||
      failed(partitionToFit()))
    return failure();
  if (options.kind == EmitKind::stages || options.kind == EmitKind::clusters)
    return printModule(*module, ir), success();
  if (options.kind == EmitKind::decision)
    return success();
  if (failed(nameDimensions()))
    return failure();
  if (std::optional<pipeline::PlanSummary> summary =
          pipeline::summarize(*module)) {
    remarkCores(*summary);
    summaries.push_back(std::move(*summary));
  }
  if (options.kind == EmitKind::plan)
    return printModule(*module, ir), success();

  begin("compiling kernels");
  return compileKernels();
}

/// The names of the devices, e.g. "cpu:0".
static std::vector<std::string> getDeviceNames(const CompileOptions &options,
                                               int64_t count) {
  const std::string kind = options.partition.target.empty()
                               ? abi::getName(abi::DeviceKind::cpu)
                               : options.partition.target;
  std::vector<std::string> names;
  for (int64_t device = 0; device < count; ++device)
    names.push_back(kind + ":" + std::to_string(device));
  return names;
}

/// The options of each plan: one for each combination of sizes, the last
/// dimension counting fastest. Each has one to learn and one to evaluate, if
/// the model is trained.
static std::vector<CompileOptions> getPlans(const CompileOptions &options) {
  std::vector<CompileOptions> plans = {options};
  if (!options.train.optimizer.empty()) {
    plans.front().autodiff.results = autodiff::LossResults::parts;
    plans.front().partition.microBatches = options.train.microBatches;
    plans.push_back(plans.front());
    plans.back().autodiff.results = autodiff::LossResults::beside;
    plans.back().partition.microBatches = 1;
    plans.front().partition.recompute = options.train.recompute;
    plans.front().partition.recomputeNodes = options.train.recomputeNodes;
    // A file orders gradients, too.
    if (pipeline::isScheduleFile(options.partition.schedule))
      plans.back().partition.schedule.clear();
  } else if (!options.autodiff.loss.empty() &&
             options.partition.microBatches > 1) {
    plans.front().autodiff.results = autodiff::LossResults::parts;
    plans.front().train.microBatches = options.partition.microBatches;
  }
  for (const DimensionSizes &dimension : options.dimensions) {
    std::vector<CompileOptions> before = std::move(plans);
    plans.clear();
    for (const CompileOptions &plan : before)
      for (int64_t size : dimension.sizes) {
        plans.push_back(plan);
        plans.back().import.dims[dimension.name] = size;
      }
  }
  return plans;
}

/// The plan that evaluates has each state where the plan that learns has it.
static void followStages(const Compilation &learns, CompileOptions &options) {
  if (learns.devicesOfStages.size() < 2)
    return;
  options.stagesOfNodes = learns.stagesOfNodes;
  options.devicesOfStages = learns.devicesOfStages;
  pipeline::PartitionOptions &partition = options.partition;
  partition.devices =
      static_cast<int>(1 + *llvm::max_element(learns.devicesOfStages));
  partition.file.clear();
  partition.emitFile.clear();
  partition.stages = 0;
  partition.memory = 0;
}

/// Whether all plans have a state on the same device.
static LogicalResult checkStates(ArrayRef<emit::CompiledPlan> plans) {
  llvm::StringMap<unsigned> programOf;
  for (const emit::CompiledPlan &plan : plans)
    for (auto [number, program] :
         llvm::enumerate(ModuleOp(plan.module).getOps<plan::ProgramOp>()))
      for (auto slot : program.getBody().front().getOps<plan::SlotOp>()) {
        if (slot.getSpace() != plan::Space::state)
          continue;
        auto [it, isNew] = programOf.try_emplace(*slot.getWeight(),
                                                 static_cast<unsigned>(number));
        if (it->second != number)
          return program.emitError()
                 << "'" << *slot.getWeight() << "' is trained on device "
                 << it->second << " and evaluated on device " << number
                 << ": name blocks of whole nodes in a partition file";
      }
  return success();
}

LogicalResult
driver::compileModel(MLIRContext &context, const CompileOptions &given,
                     llvm::raw_ostream &ir,
                     std::vector<pipeline::PlanSummary> &summaries) {
  context.loadAllAvailableDialects();
  const Location loc = UnknownLoc::get(&context);
  FailureOr<std::vector<std::string>> targets =
      pipeline::readTargets(loc, given.partition);
  if (failed(targets))
    return failure();
  CompileOptions options = given;
  if (!targets->empty()) {
    if (!options.target.empty() && options.partition.targets.empty() &&
        ArrayRef(*targets) != ArrayRef(options.target))
      return emitError(loc) << "--target " << options.target << " and `targets`"
                            << " of the partition file contradict each other";
    options.target = targets->front();
    options.partition.target = codegen::splitTarget(options.target).first.str();
  }
  if (targets->size() > 1 && !options.emitOnnx.empty())
    return emitError(loc) << "--emit-onnx: ONNX's annotations cannot say that "
                             "devices are of several kinds ("
                          << abi::namesText(*targets)
                          << "); --emit-partition can";
  if (!options.train.optimizer.empty() &&
      !isModuleFile(options.import.modelPath))
    options.emit.trainedModel = options.import.modelPath;
  std::vector<CompileOptions> plans = getPlans(options);
  std::vector<std::unique_ptr<Compilation>> compilations;
  std::vector<emit::CompiledPlan> compiled;
  for (auto [number, each] : llvm::enumerate(plans)) {
    if (number + 1 < plans.size())
      each.nodes = nullptr;
    if (each.autodiff.results == autodiff::LossResults::beside)
      followStages(*compilations.back(), each);
    if (number > 0 && options.kind != EmitKind::artifact &&
        options.kind != EmitKind::decision)
      ir << "\n// -----\n\n";
    compilations.push_back(std::make_unique<Compilation>(
        context, std::move(each), *targets, static_cast<int>(number),
        static_cast<int>(plans.size())));
    if (failed(compilations.back()->run(ir, summaries)))
      return failure();
    compiled.push_back(compilations.back()->take());
  }
  if (!options.emitOnnx.empty()) {
    const dist::Annotations &annotations =
        compilations.back()->getAnnotations();
    if (failed(import::writeAnnotatedModel(
            options.import.modelPath, options.emitOnnx, annotations,
            getDeviceNames(options, annotations.devices),
            UnknownLoc::get(&context))))
      return failure();
  }
  if (options.kind != EmitKind::artifact)
    return success();
  if (!options.train.optimizer.empty() && failed(checkStates(compiled)))
    return failure();
  crash::AtPass at("writing the artifact");
  if (options.progress)
    options.progress("writing the artifact", 1, 1);
  return emit::emitArtifact(compiled, options.emit);
}
