//===- AttentionGraph.cpp - Attention as a graph --------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cudnn/AttentionGraph.h"

#include <algorithm>
#include <cstdlib>

using namespace gpuemu::cudnn;

namespace {

/// y = x * b, op(x, b), op(x), or the sum or maximum of x.
struct Step {
  const Tensor *x, *b, *y;
  const Descriptor *how;
};

Step stepOf(const Descriptor &operation) {
  switch (operation.type) {
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    return {operation.tensorAt(CUDNN_ATTR_OPERATION_MATMUL_ADESC),
            operation.tensorAt(CUDNN_ATTR_OPERATION_MATMUL_BDESC),
            operation.tensorAt(CUDNN_ATTR_OPERATION_MATMUL_CDESC),
            operation.child(CUDNN_ATTR_OPERATION_MATMUL_DESC,
                            CUDNN_BACKEND_MATMUL_DESCRIPTOR)};
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    return {operation.tensorAt(CUDNN_ATTR_OPERATION_REDUCTION_XDESC), nullptr,
            operation.tensorAt(CUDNN_ATTR_OPERATION_REDUCTION_YDESC),
            operation.child(CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                            CUDNN_BACKEND_REDUCTION_DESCRIPTOR)};
  default:
    return {operation.tensorAt(CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
            operation.tensorAt(CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
            operation.tensorAt(CUDNN_ATTR_OPERATION_POINTWISE_YDESC),
            operation.child(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                            CUDNN_BACKEND_POINTWISE_DESCRIPTOR)};
  }
}

cudnnPointwiseMode_t modeOf(const Step &step) {
  return step.how->get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE).at(0);
}

bool takesTwo(cudnnPointwiseMode_t mode) {
  return mode == CUDNN_POINTWISE_ADD || mode == CUDNN_POINTWISE_MUL ||
         mode == CUDNN_POINTWISE_SUB || mode == CUDNN_POINTWISE_DIV;
}

/// Whether y is what x and b make; an extent of 1 is repeated.
bool isBroadcast(int64_t x, int64_t b, int64_t y) {
  return y == std::max(x, b) && (x == y || x == 1) && (b == y || b == 1);
}

bool fitsProduct(const Step &step) {
  const std::vector<int64_t> &x = step.x->shape, &b = step.b->shape,
                             &y = step.y->shape;
  const size_t row = y.size() - 2, column = y.size() - 1;
  for (size_t i = 0; i < row; ++i)
    if (!isBroadcast(x[i], b[i], y[i]))
      return false;
  return x[row] == y[row] && x[column] == b[row] && b[column] == y[column];
}

bool fitsReduction(const Step &step) {
  for (size_t i = 0; i < step.y->shape.size(); ++i)
    if (step.y->shape[i] != step.x->shape[i] && step.y->shape[i] != 1)
      return false;
  return true;
}

bool fitsPointwise(const Step &step) {
  const Tensor &b = step.b ? *step.b : *step.x;
  for (size_t i = 0; i < step.y->shape.size(); ++i)
    if (!isBroadcast(step.x->shape[i], b.shape[i], step.y->shape[i]))
      return false;
  return step.b || !takesTwo(modeOf(step));
}

/// Whether a number names one tensor, and inner tensors are written before they
/// are read. The operations stand in their order.
bool isWellFormed(const std::vector<const Descriptor *> &operations) {
  std::map<int64_t, const Tensor *> tensors;
  for (const Descriptor *operation : operations) {
    const Step step = stepOf(*operation);
    for (const Tensor *read : {step.x, step.b}) {
      if (!read)
        continue;
      auto [it, isNew] = tensors.emplace(read->id, read);
      if (isNew ? read->isVirtual : *it->second != *read)
        return false;
    }
    if (step.y->isByValue || !tensors.emplace(step.y->id, step.y).second)
      return false;
  }
  return true;
}

/// Thrown where no engine computes the graph.
struct NoEngine {};

void expect(bool known) {
  if (!known)
    throw NoEngine();
}

/// Walks a graph that is well formed.
class AttentionReader {
public:
  explicit AttentionReader(const std::vector<const Descriptor *> &operations)
      : operations(operations) {}

  /// Throws `NoEngine`.
  Attention read() {
    Attention how;
    const Step dot = product();
    how.q = *dot.x;
    how.k = *dot.b;
    const Step scaled = pointwise(CUDNN_POINTWISE_MUL, inner(dot));
    how.scale = *scaled.b;
    const Tensor *scores = &inner(scaled);
    how.hasMask = isNext(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    if (how.hasMask) {
      const Step masked = pointwise(CUDNN_POINTWISE_ADD, *scores);
      how.mask = *masked.b;
      scores = &inner(masked);
    }
    const Tensor &maximum = reduction(CUDNN_REDUCE_TENSOR_MAX, *scores);
    const Tensor &shifted =
        inner(pointwise(CUDNN_POINTWISE_SUB, *scores, &maximum));
    const Tensor &exponential = inner(pointwise(CUDNN_POINTWISE_EXP, shifted));
    const Tensor &sum = reduction(CUDNN_REDUCE_TENSOR_ADD, exponential);
    const Tensor &logarithm = inner(pointwise(CUDNN_POINTWISE_LOG, sum));
    how.statistics = *pointwise(CUDNN_POINTWISE_ADD, maximum, &logarithm).y;
    const Tensor &p = *pointwise(CUDNN_POINTWISE_DIV, exponential, &sum).y;
    const Step last = product();
    how.v = *last.b;
    how.result = *last.y;
    expect(at == operations.size());
    expect(last.x->id == p.id && p.isVirtual && p.type == how.q.type);
    checkTensors(how);
    return how;
  }

private:
  bool isNext(cudnnBackendDescriptorType_t type) const {
    return at < operations.size() && operations[at]->type == type;
  }

  /// The next operation, which computes in f32.
  Step next(cudnnBackendDescriptorType_t type,
            cudnnBackendAttributeName_t precision) {
    expect(isNext(type));
    const Step step = stepOf(*operations[at++]);
    expect(step.how->get<cudnnDataType_t>(precision).at(0) == CUDNN_DATA_FLOAT);
    return step;
  }

  Step product() {
    return next(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                CUDNN_ATTR_MATMUL_COMP_TYPE);
  }

  /// Of x and `b`, or of x and something else that is repeated in its shape.
  Step pointwise(cudnnPointwiseMode_t mode, const Tensor &x,
                 const Tensor *b = nullptr) {
    const Step step = next(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                           CUDNN_ATTR_POINTWISE_MATH_PREC);
    expect(modeOf(step) == mode && step.x->id == x.id);
    expect(!b || step.b->id == b->id);
    expect(!step.b == !takesTwo(mode));
    expect(step.y->shape == x.shape);
    return step;
  }

  /// Of the rows.
  const Tensor &reduction(cudnnReduceTensorOp_t what, const Tensor &x) {
    const Step step = next(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                           CUDNN_ATTR_REDUCTION_COMP_TYPE);
    expect(step.x->id == x.id &&
           step.how->get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR)
                   .at(0) == what);
    std::vector<int64_t> shape = x.shape;
    shape.back() = 1;
    expect(step.y->shape == shape);
    return inner(step);
  }

  /// The result of a step that is in no memory.
  static const Tensor &inner(const Step &step) {
    expect(step.y->isVirtual && step.y->type == CUDNN_DATA_FLOAT);
    return *step.y;
  }

  /// In memory, with elements along a dimension side by side.
  static void expectRows(const Tensor &tensor, size_t along) {
    expect(!tensor.isVirtual && !tensor.isByValue);
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      expect(tensor.shape[i] == 1 ||
             (i == along ? tensor.strides[i] == 1 : tensor.strides[i] > 0));
  }

  /// Which types and layouts engines were found for.
  static void checkTensors(const Attention &how) {
    const cudnnDataType_t type = how.q.type;
    expect(type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16);
    expect(how.q.shape.size() == 4);
    for (const Tensor *tensor : {&how.k, &how.v, &how.result})
      expect(tensor->type == type && tensor->shape[0] == how.q.shape[0] &&
             tensor->shape[1] == how.q.shape[1]);
    for (int64_t extent : {how.q.shape[3], how.v.shape[3]})
      expect(extent % 8 == 0 && extent <= 512);
    expectRows(how.q, 3);
    expectRows(how.k, 2);
    expectRows(how.v, 3);
    expectRows(how.result, 3);
    expectRows(how.statistics, 3);
    expect(how.result.isDisjoint() && how.statistics.isDisjoint());
    expect(how.statistics.type == CUDNN_DATA_FLOAT);
    expect(how.scale.isByValue && how.scale.count() == 1 &&
           how.scale.type == CUDNN_DATA_FLOAT);
    if (!how.hasMask)
      return;
    expectRows(how.mask, 3);
    expect(how.mask.type == type || how.mask.type == CUDNN_DATA_FLOAT);
    expect(how.mask.shape[3] == how.k.shape[3]);
  }

  const std::vector<const Descriptor *> &operations;
  size_t at = 0;
};

} // namespace

cudnnStatus_t gpuemu::cudnn::finalizeStep(const Descriptor &operation) {
  const Step step = stepOf(operation);
  if (!step.x || !step.y || !step.how ||
      step.x->shape.size() != step.y->shape.size() ||
      (step.b && step.b->shape.size() != step.y->shape.size()))
    return kWrong;
  switch (operation.type) {
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    return step.b && fitsProduct(step) ? kWell : kWrong;
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    return fitsReduction(step) ? kWell : kWrong;
  default:
    return fitsPointwise(step) ? kWell : kWrong;
  }
}

cudnnStatus_t gpuemu::cudnn::finalizeAttentionGraph(
    Descriptor &self, const std::vector<const Descriptor *> &operations) {
  for (const Descriptor *operation : operations)
    if (!operation->isFinal ||
        (operation->type != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR &&
         operation->type != CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR &&
         operation->type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR))
      return CUDNN_STATUS_NOT_SUPPORTED;
  if (!isWellFormed(operations))
    return kWrong;
  const char *withoutCompiler = getenv("CUDNN_EMU_NO_NVRTC");
  try {
    self.graph = std::make_shared<Graph>(AttentionReader(operations).read());
  } catch (const NoEngine &) {
    return kWell;
  }
  if (withoutCompiler && *withoutCompiler)
    return kWell;
  Engine engine;
  engine.multipliesOnTensorCores = engine.isCompiledAtRuntime = true;
  self.proposals = {engine, engine};
  self.proposals[0].workspace = 256;
  self.proposals[1].index = 1;
  return kWell;
}
