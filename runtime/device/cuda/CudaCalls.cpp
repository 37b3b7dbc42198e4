//===- CudaCalls.cpp - Library calls of a GPU, prepared at load -----------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Elements.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/cudnn/CallPlans.h"

#include <bit>

namespace partita::runtime::cuda {

static constexpr char kAdvice[] = ": compile the model for this kind of device";

CudaInstance::Operand CudaDevice::operand(const abi::View &view) const {
  CudaInstance::Operand place = operand(view.slot());
  const abi::DType type = at(program.slots(), view.slot()).dtype();
  place.address +=
      static_cast<DeviceAddress>(view.offset() * elementBytes(type));
  return place;
}

rules::Tensor CudaDevice::tensorOf(const abi::View &view) const {
  rules::Tensor tensor;
  tensor.type = at(program.slots(), view.slot()).dtype();
  tensor.shape = {view.shape()->data(), view.shape()->size()};
  tensor.strides = {view.strides()->data(), view.strides()->size()};
  tensor.offset = view.offset();
  return tensor;
}

/// Of all addresses that the operand may have.
uint32_t CudaDevice::alignmentOf(const CudaInstance::Operand &operand) {
  DeviceAddress bits = 256;
  if (!operand.copies)
    bits |= operand.address;
  else
    for (const DeviceAddress copy : *operand.copies)
      bits |= copy + operand.address;
  return uint32_t(1) << std::countr_zero(bits);
}

std::vector<rules::PostOp> CudaDevice::postOpsOf(const abi::Call &call) const {
  std::vector<rules::PostOp> post_ops;
  for (const abi::PostOp &post : each(call.post_ops())) {
    post_ops.push_back({post.kind(), post.alpha(), post.beta(), {}});
    if (!post.view())
      continue;
    post_ops.back().operand = tensorOf(*post.view());
    post_ops.back().is_result =
        post.view()->slot() ==
        call.operands()->Get(call.operands()->size() - 1)->slot();
  }
  return post_ops;
}

/// The operands of a call, and those of two of its post-ops, if there are.
std::vector<CudaInstance::Operand>
CudaDevice::operandsOf(const abi::Call &call, int addend, int bias) const {
  std::vector<CudaInstance::Operand> operands;
  for (const abi::View *view : *call.operands())
    operands.push_back(operand(*view));
  for (const int post_op : {addend, bias})
    if (post_op >= 0)
      operands.push_back(operand(*at(call.post_ops(), post_op).view()));
  return operands;
}

Status CudaDevice::addCall(CudaInstance &instance, const abi::Call &call,
                           const char *label) {
  switch (call.kind()) {
  case abi::CallKind::dot:
    return addProduct(instance, call, label);
  case abi::CallKind::conv:
    return addConvolution(instance, call, label);
  case abi::CallKind::pool_max:
  case abi::CallKind::pool_avg:
    return addPool(instance, call, label);
  case abi::CallKind::attention:
    return addAttention(instance, call, label);
  default:
    return Status::error(std::string("GPUs have no call '") +
                         abi::EnumNameCallKind(call.kind()) + "'" + kAdvice);
  }
}

Status CudaDevice::addProduct(CudaInstance &instance, const abi::Call &call,
                              const char *label) {
  rules::Product wanted{tensorOf(*call.operands()->Get(0)),
                        tensorOf(*call.operands()->Get(1)),
                        tensorOf(*call.operands()->Get(2)), postOpsOf(call)};
  rules::Matmul matmul;
  const char *why = rules::describeMatmul(wanted, matmul);
  if (why)
    return Status::error("cuBLASLt does not compute the product, because " +
                         std::string(why) + kAdvice);
  if (keep_nan && matmul.activation == rules::Activation::relu)
    return Status::error("the ReLU of cuBLASLt may make a number of NaN: for "
                         "--strict-nan compile the model with "
                         "--no-library-calls");
  if (!blas)
    blas = PARTITA_TRY(cublaslt::openLibrary(library_apis.blas, used_gpu));
  const std::vector<CudaInstance::Operand> operands =
      operandsOf(call, matmul.addend, matmul.bias);
  cublaslt::Alignments alignments{alignmentOf(operands[1]),
                                  alignmentOf(operands[0]), 256,
                                  alignmentOf(operands[2])};
  if (matmul.addend >= 0)
    alignments.c = alignmentOf(operands[3]);
  const CudaInstance::Operand &last = operands.back();
  const DeviceAddress bias =
      last.address + (last.copies ? last.copies->front() : 0);
  auto task = PARTITA_TRY(cublaslt::MatmulTask::prepare(
      blas, matmul, alignments, matmul.bias >= 0 ? bias : 0,
      {workspace, static_cast<size_t>(program.workspace_bytes())}));
  instance.add(std::move(task), operands, label);
  return Status();
}

/// A call of cuDNN. `more`: what the plan is made with besides.
template <typename Plan, typename Rule, typename... More>
Status CudaDevice::addEngine(CudaInstance &instance,
                             const std::vector<CudaInstance::Operand> &operands,
                             const Rule &rule, const char *what,
                             const char *label, More... more) {
  if (!dnn)
    dnn = PARTITA_TRY(cudnn::openLibrary(library_apis.dnn, used_gpu));
  cudnn::EngineWishes wishes;
  wishes.workspace = static_cast<size_t>(program.workspace_bytes());
  wishes.keep_nan = keep_nan;
  wishes.cache = &dnn->cache;
  for (const CudaInstance::Operand &each : operands)
    wishes.include(alignmentOf(each));
  auto made = std::make_unique<Plan>(dnn->api, more...);
  PARTITA_TRY(made->make(rule, wishes, cudnn::forDeviceOf(*dnn)));
  instance.add(std::make_unique<cudnn::EngineTask>(dnn, std::move(made), what,
                                                   workspace),
               operands, label);
  return Status();
}

static std::span<const int64_t>
numbers(const flatbuffers::Vector<int64_t> *values) {
  return {values->data(), values->size()};
}

Status CudaDevice::addConvolution(CudaInstance &instance, const abi::Call &call,
                                  const char *label) {
  const abi::Conv &given = *call.details_as_Conv();
  rules::Convolution wanted{tensorOf(*call.operands()->Get(0)),
                            tensorOf(*call.operands()->Get(1)),
                            tensorOf(*call.operands()->Get(2)),
                            numbers(given.strides()),
                            numbers(given.dilations()),
                            numbers(given.pads_low()),
                            numbers(given.pads_high()),
                            given.groups(),
                            postOpsOf(call)};
  rules::Conv conv;
  const char *why = given.bias() ? "its bias is no post-op"
                                 : rules::describeConv(wanted, conv);
  if (why)
    return Status::error("cuDNN does not compute the convolution, because " +
                         std::string(why) + kAdvice);
  return addEngine<cudnn::ConvPlan>(instance,
                                    operandsOf(call, conv.addend, conv.bias),
                                    conv, "the convolution", label);
}

Status CudaDevice::addPool(CudaInstance &instance, const abi::Call &call,
                           const char *label) {
  const abi::Pool &given = *call.details_as_Pool();
  rules::Pool pool;
  const char *why = rules::describePool(
      {tensorOf(*call.operands()->Get(0)), tensorOf(*call.operands()->Get(1)),
       call.kind() == abi::CallKind::pool_avg, given.include_pad(),
       numbers(given.window()), numbers(given.strides()),
       numbers(given.dilations()), numbers(given.pads_low()),
       numbers(given.pads_high()), length(call.post_ops()) > 0},
      pool);
  if (why)
    return Status::error("cuDNN does not compute the pool, because " +
                         std::string(why) + kAdvice);
  return addEngine<cudnn::PoolPlan>(instance, operandsOf(call, -1, -1), pool,
                                    "the pool", label);
}

Status CudaDevice::addAttention(CudaInstance &instance, const abi::Call &call,
                                const char *label) {
  auto mask = [&](const abi::View *view) {
    return view ? std::optional(tensorOf(*view)) : std::nullopt;
  };
  const abi::Attention &given = *call.details_as_Attention();
  rules::Attention attention;
  const char *why = rules::describeAttention(
      {tensorOf(*call.operands()->Get(0)), tensorOf(*call.operands()->Get(1)),
       tensorOf(*call.operands()->Get(2)), tensorOf(*call.operands()->Get(3)),
       mask(given.mask_mul()), mask(given.mask_add()),
       length(call.post_ops()) > 0},
      attention);
  if (why)
    return Status::error("cuDNN does not compute the attention, because " +
                         std::string(why) + kAdvice);
  if (keep_nan)
    return Status::error("attention of cuDNN may make a number of NaN: for "
                         "--strict-nan compile the model without "
                         "--attention-calls");
  std::vector<CudaInstance::Operand> operands = operandsOf(call, -1, -1);
  if (given.mask_add())
    operands.push_back(operand(*given.mask_add()));
  return addEngine<cudnn::AttentionPlan>(instance, operands, attention,
                                         "attention", label, given.scale());
}

} // namespace partita::runtime::cuda
