//===- ContractionGradients.cpp - Derivatives of products -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The derivative of a product to one factor is the product of the cotangent and
// the other factor. Those of a convolution are ops of their own, for which
// libraries have code.
//
//===----------------------------------------------------------------------===//

#include "dialects/nn/grad/Term.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace partita::nn;
using namespace partita::nn::grad;
using partita::nn::grad::Shape;

/// The derivative to one factor, which has the given dimensions; `otherX` are
/// those of the other factor. `first` is the dimension of dy that is the other
/// factor's first free one.
static Term differentiateFactor(Term dy, Term other, ArrayRef<int64_t> shape,
                                ArrayRef<int64_t> batch,
                                ArrayRef<int64_t> contract,
                                ArrayRef<int64_t> otherBatch,
                                ArrayRef<int64_t> otherContract,
                                int64_t first) {
  const int64_t rank = static_cast<int64_t>(shape.size()),
                batches = static_cast<int64_t>(batch.size());
  const Shape otherFree = getFreeDims(other.rank(), otherBatch, otherContract),
              free = getFreeDims(rank, batch, contract),
              dyBatch = allDims(batches),
              dyContract = llvm::to_vector(llvm::seq<int64_t>(
                  first, first + static_cast<int64_t>(otherFree.size())));
  Shape order(rank);
  // The product has the batch, the factor's free dimensions, and the contracted
  // ones in the order in which the other factor has them.
  int64_t place = 0;
  for (int64_t dim : batch)
    order[dim] = place++;
  for (int64_t dim : free)
    order[dim] = place++;
  auto sorted = llvm::to_vector(llvm::seq<unsigned>(0, contract.size()));
  llvm::sort(sorted, [&](unsigned a, unsigned b) {
    return otherContract[a] < otherContract[b];
  });
  for (unsigned i : sorted)
    order[contract[i]] = place++;
  auto type = RankedTensorType::get(
      permuted(shape, invertPermutationVector(order)), dy.element());
  return dy
      .make<DotOp>(type, dy.get(), other.get(), dyBatch, otherBatch, dyContract,
                   otherFree)
      .transpose(order);
}

FailureOr<Cotangents> DotOp::buildVjp(const Term &dy) {
  Term lhs(dy.b(), getLhs()), rhs(dy.b(), getRhs());
  if (!isa<FloatType>(lhs.element()))
    return failure();
  const int64_t batches = static_cast<int64_t>(getLhsBatch().size()),
                contracted = static_cast<int64_t>(getLhsContract().size());
  return Cotangents{
      differentiateFactor(dy, rhs, lhs.shape(), getLhsBatch(), getLhsContract(),
                          getRhsBatch(), getRhsContract(),
                          lhs.rank() - contracted),
      differentiateFactor(dy, lhs, rhs.shape(), getRhsBatch(), getRhsContract(),
                          getLhsBatch(), getLhsContract(), batches)};
}

static Term swapLast(Term matrices) { return matrices.transpose({0, 2, 1}); }

FailureOr<Cotangents> ExpertDotOp::buildVjp(const Term &dy) {
  Term x(dy.b(), getX()), weights(dy.b(), getWeights());
  return Cotangents{
      dy.make<ExpertDotOp>(x.type(), dy.get(), swapLast(weights).get(),
                           getExperts()),
      dy.make<ExpertOuterOp>(weights.type(), dy.get(), x.get(), getExperts()),
      Value()};
}

FailureOr<Cotangents> ExpertOuterOp::buildVjp(const Term &dw) {
  Term dy(dw.b(), getDy()), x(dw.b(), getX());
  return Cotangents{
      dw.make<ExpertDotOp>(dy.type(), x.get(), dw.get(), getExperts()),
      dw.make<ExpertDotOp>(x.type(), dy.get(), swapLast(dw).get(),
                           getExperts()),
      Value()};
}

//===----------------------------------------------------------------------===//
// Convolutions: one, and the derivatives of one
//===----------------------------------------------------------------------===//

/// A convolution, or a derivative of one, with the windows of `like`.
template <typename Made, typename Op>
static Term makeLike(Op like, RankedTensorType type, Term first, Term second) {
  return first.make<Made>(type, first.get(), second.get(), like.getLayout(),
                          like.getStrides(), like.getDilations(),
                          like.getPadsLow(), like.getPadsHigh(),
                          like.getGroups());
}

FailureOr<Cotangents> ConvOp::buildVjp(const Term &dy) {
  Term x(dy.b(), getX()), weights(dy.b(), getWeights());
  if (!isa<FloatType>(x.element()))
    return failure();
  return Cotangents{makeLike<ConvDxOp>(*this, x.type(), dy, weights),
                    makeLike<ConvDwOp>(*this, weights.type(), x, dy)};
}

FailureOr<Cotangents> ConvDxOp::buildVjp(const Term &g) {
  Term dy(g.b(), getDy()), weights(g.b(), getWeights());
  return Cotangents{makeLike<ConvOp>(*this, dy.type(), g, weights),
                    makeLike<ConvDwOp>(*this, weights.type(), g, dy)};
}

FailureOr<Cotangents> ConvDwOp::buildVjp(const Term &g) {
  Term x(g.b(), getX()), dy(g.b(), getDy());
  return Cotangents{makeLike<ConvDxOp>(*this, x.type(), dy, g),
                    makeLike<ConvOp>(*this, dy.type(), x, g)};
}
