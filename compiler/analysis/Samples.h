//===- Samples.h - Which dimension of a value holds samples -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run may cut its inputs into micro-batches only if samples do not depend on
// each other. This analysis proves that, from the inputs to the outputs, by the
// factors of the ops' sharding rules: samples are a factor that passes through
// every op. They may be a part of a dimension on the way.
//
//   %x: tensor<4x3x8xf32>                 samples: dimension 0
//   reshape  -> tensor<12x8xf32>          dimension 0, 3 entries each
//   dot with a weight [8, 5]              dimension 0, 3 entries each
//   transpose -> tensor<5x12xf32>         dimension 1, 3 entries each
//   softmax over dimension 0              the same
//   softmax over dimension 1              samples are combined: no proof
//
// A value that no sample goes into may meet samples if it is the same for all
// of them: a weight [4, 3, 8] that is added to %x is a different one for each.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_ANALYSIS_SAMPLES_H
#define PARTITA_COMPILER_ANALYSIS_SAMPLES_H

#include "compiler/analysis/DimParts.h"
#include "dialects/nn/NNDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace partita::analysis {

/// On the module: a clause that says why samples are not independent. A run
/// takes the shapes as they are, once.
inline constexpr llvm::StringLiteral kMixesAttr = "nn.mixes";

/// The ops that outputs are computed from, in order. Results that tell of wrong
/// indices (dialects/nn/CheckAttr.h) are no outputs: they are about a whole
/// micro-batch.
llvm::SmallVector<mlir::Operation *> getOutputOps(mlir::func::FuncOp function,
                                                  bool withChecks = false);

/// Why there is no proof.
struct Mixing {
  mlir::Operation *op = nullptr;
  /// A clause, e.g. "'pool' (nn.reduce) combines the entries of dimension 0 of
  /// 'x'".
  std::string text;
};

class Samples {
public:
  /// Follows the samples from the arguments with `nn.batch_axis` on, up to the
  /// first op that mixes them. They must agree in the number of samples.
  /// `withChecks`: to results that tell of wrong indices, too.
  explicit Samples(mlir::func::FuncOp function, bool withChecks = false);

  /// Where samples are in a value; nothing if none go into it, or if it is
  /// beyond the first op that mixes them.
  std::optional<DimPart> find(mlir::Value value) const;
  /// The number of samples; 0 if no argument has any.
  int64_t count() const { return samples; }
  const std::optional<Mixing> &mixing() const { return mixed; }

  /// The axis of an output, which has a name, along which samples follow one
  /// another. Nothing, with a clause in `why`, if it has none. An output that
  /// no sample goes into has dimension 0 if that has one equal entry a sample.
  std::optional<int64_t> getResultAxis(mlir::Value result, llvm::StringRef name,
                                       std::string &why) const;
  /// E.g. "dimension 0 of 'x'", of the first argument with samples.
  const std::string &dimension() const { return what; }

private:
  void visit(mlir::Operation *op);
  void visitReshape(nn::ReshapeOp op, DimPart part);
  void mix(mlir::Operation *op, const llvm::Twine &does);
  static constexpr int kDepth = 256;
  /// Whether a value that no sample goes into is the same along a part of a
  /// dimension. Beyond some depth nothing is known.
  bool isUniform(mlir::Value value, DimPart part, int depth = kDepth) const;
  bool findUniform(mlir::Value value, DimPart part, int depth) const;

  const std::string what;
  int64_t samples = 0;
  llvm::DenseMap<mlir::Value, DimPart> known;
  std::optional<Mixing> mixed;
  using Question = std::tuple<void *, int64_t, int64_t, int64_t>;
  mutable std::map<Question, bool> uniform;
};

/// The proof on the function as it is: the axes of its results, or none with a
/// clause in `why`.
llvm::SmallVector<int64_t> proveSamples(mlir::func::FuncOp function,
                                        const Samples &samples,
                                        std::string &why);

/// Whether two functions, the same model for two numbers of samples, compute
/// the same of each sample. They do not if a number or a size of one differs
/// from that of the other where it should not: `x / Shape(x)[0]`. Returns a
/// clause about the first difference; empty if there is none. The samples are
/// those of `a`, of which there is a proof.
std::string compareSampleCounts(mlir::func::FuncOp a, const Samples &samples,
                                mlir::func::FuncOp b);

/// Writes `nn.batch_axis` on the results of a function, if there is a proof.
/// Otherwise, with `why`, takes it off the arguments and results, and writes
/// `nn.mixes` on the module.
void setSampleAxes(mlir::func::FuncOp function, llvm::ArrayRef<int64_t> axes,
                   llvm::StringRef why);

/// Whether a step has one micro-batch, if nobody says how many: samples are not
/// independent, or each micro-batch has states of its own.
bool isWhole(mlir::ModuleOp module);

} // namespace partita::analysis

#endif // PARTITA_COMPILER_ANALYSIS_SAMPLES_H
