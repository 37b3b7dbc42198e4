//===- SampleProof.cpp - Whether a run may split a model's inputs ---------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Along a dimension of size 1 everything seems independent: the mean over one
// sample is the sample. So a model that is for any number of samples is
// imported once more for a few of them, and the proof is about that. It is
// imported for another number, too: the same ops on the same numbers must
// compute it, or its numbers depend on how many samples there are.
//
// Where the model itself says how many samples there are, it is no model for
// another number. Then a proof about the shapes that it has is enough.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/ImportPlan.h"

#include "compiler/analysis/Samples.h"
#include "compiler/driver/ReadModule.h"
#include "dialects/dist/DistDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace partita::driver {
namespace {

/// Numbers of samples that few dimensions have, close to each other, so that
/// constants of both are small enough to be folded, or of none.
constexpr int64_t kProbe = 7, kOtherProbe = 8;

struct Proof {
  SmallVector<int64_t> axes;
  std::string why; ///< empty: there is one
  Location loc;
};

func::FuncOp getMain(ModuleOp module) {
  return *module.getOps<func::FuncOp>().begin();
}

Proof proveOn(func::FuncOp function, const analysis::Samples &samples) {
  Proof proof{{}, "", function.getLoc()};
  proof.axes = analysis::proveSamples(function, samples, proof.why);
  if (samples.mixing() && samples.mixing()->op)
    proof.loc = samples.mixing()->op->getLoc();
  return proof;
}

class Prover {
public:
  Prover(ModuleOp module, const import::ImportOptions &options)
      : main(getMain(module)), samples(main), options(options) {}

  Proof run() {
    if (isModuleFile(options.modelPath))
      return proveOn(main, samples);
    const bool isFixed =
        main->getParentOp()->hasAttr(import::kFixedSamplesAttr);
    Proof own = proveOn(main, samples);
    if (isFixed && own.why.empty())
      return own;
    // A proof for any number of samples is one for a fixed number, too.
    if (std::optional<Proof> proof = probe();
        proof && (!isFixed || proof->why.empty()))
      return *proof;
    return own;
  }

  /// Why the model does not compute with some numbers of samples as it does
  /// with others, or "".
  std::string compareTo(ArrayRef<int64_t> counts) {
    if (isModuleFile(options.modelPath))
      return "";
    std::string why = "it is no model for other numbers of samples";
    OwningOpRef<ModuleOp> probe = importFor(kProbe);
    if (!probe)
      return why;
    const analysis::Samples probed(getMain(*probe));
    for (int64_t count : counts) {
      OwningOpRef<ModuleOp> other = importFor(count);
      if (other)
        why = analysis::compareSampleCounts(getMain(*probe), probed,
                                            getMain(*other));
      if (!other || !why.empty())
        return why;
    }
    return "";
  }

private:
  OwningOpRef<ModuleOp> importFor(int64_t count) {
    // What the model is when it is compiled has been said.
    ScopedDiagnosticHandler quiet(main.getContext(), [](Diagnostic &) {});
    import::ImportOptions other = options;
    other.sampleCount = count;
    other.recordTensors = other.recordOps = other.numberNodes = false;
    auto module = readModel(*main.getContext(), other);
    return failed(module) ? OwningOpRef<ModuleOp>() : std::move(*module);
  }

  /// On the model for other numbers of samples; nothing if there is no such
  /// model.
  std::optional<Proof> probe() {
    OwningOpRef<ModuleOp> module = importFor(kProbe),
                          other = importFor(kOtherProbe);
    if (!module || !other)
      return std::nullopt;
    func::FuncOp function = getMain(*module);
    const analysis::Samples probed(function);
    Proof proof = proveOn(function, probed);
    if (proof.why.empty())
      proof.why =
          analysis::compareSampleCounts(function, probed, getMain(*other));
    for (unsigned i = 0; proof.why.empty() && i < proof.axes.size(); ++i)
      if (!isScaled(function.getResultTypes()[i], main.getResultTypes()[i],
                    proof.axes[i]))
        proof.why = "an output has another shape for another number of entries "
                    "of " +
                    samples.dimension();
    return proof;
  }

  /// Whether the sizes of an output differ by the number of samples alone.
  bool isScaled(Type probed, Type own, int64_t axis) {
    auto a = cast<RankedTensorType>(probed), b = cast<RankedTensorType>(own);
    if (a.getRank() != b.getRank())
      return false;
    for (int64_t dim = 0; dim < a.getRank(); ++dim)
      if (dim == axis ? a.getDimSize(dim) * samples.count() !=
                            b.getDimSize(dim) * kProbe
                      : a.getDimSize(dim) != b.getDimSize(dim))
        return false;
    return true;
  }

  func::FuncOp main;
  const analysis::Samples samples;
  const import::ImportOptions &options;
};

bool hasSamples(func::FuncOp main) {
  for (unsigned i = 0; i < main.getNumArguments(); ++i)
    if (main.getArgAttr(i, nn::kBatchAxisAttr))
      return true;
  return false;
}

} // namespace

std::string findMixing(ModuleOp module, const import::ImportOptions &options,
                       ArrayRef<int64_t> counts) {
  func::FuncOp main = getMain(module);
  for (BlockArgument argument : main.getArguments())
    if (auto axis = main.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                       nn::kBatchAxisAttr);
        nn::getTensorType(argument).getRank() > 0 &&
        (!axis || axis.getInt() != 0))
      return "dimension 0 of the inputs is not the same in all of them";
  Prover prover(module, options);
  Proof proof = prover.run();
  if (proof.why.empty())
    proof.why = prover.compareTo(counts);
  if (proof.why.empty() &&
      llvm::any_of(proof.axes, [](int64_t axis) { return axis != 0; }))
    return "outputs have them along another dimension than 0";
  return proof.why;
}

void proveSampleAxes(ModuleOp module, const import::ImportOptions &options) {
  func::FuncOp main = getMain(module);
  // What crosses devices is none of the model's samples.
  const bool isPlain = llvm::all_of(
      main.getBody().front().without_terminator(),
      [](Operation &op) { return isa<nn::NNDialect>(op.getDialect()); });
  if (options.replicas > 1 || module->hasAttr(dist::kFullMicroBatchesAttr) ||
      !hasSamples(main) || (!isPlain && isModuleFile(options.modelPath)))
    return;
  const Proof proof = Prover(module, options).run();
  analysis::setSampleAxes(main, proof.axes, proof.why);
  module->removeAttr(import::kFixedSamplesAttr);
  if (proof.why.empty())
    return;
  InFlightDiagnostic remark = emitRemark(proof.loc);
  remark << "samples cannot be split: " << proof.why
         << "; a run takes the compiled shapes, once";
  if (options.samples.empty() && !isModuleFile(options.modelPath))
    remark << " (--samples INPUT=AXIS says that samples lie along another "
              "dimension)";
}

} // namespace partita::driver
