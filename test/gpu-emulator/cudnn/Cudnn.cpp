//===- Cudnn.cpp - cuDNN on emulated devices ------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The backend API, for graphs of a convolution with what precompiled engines
// add to it, of a pool, and of attention, whose engines need the runtime
// compiler. cuDNN 9.19 proposes engines for these patterns; there are none for
// others here.
//
//===----------------------------------------------------------------------===//

#include "cudnn/Cudnn.h"

#include "Emulator.h"
#include "cudnn/AttentionGraph.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

using namespace gpuemu::cudnn;

struct cudnnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
};

namespace {

constexpr int32_t kKnob = 2; // CUDNN_KNOB_TYPE_TILE_SIZE

cudnnStatus_t finalizeTensor(Descriptor &self) {
  Tensor &tensor = self.tensor;
  auto types = self.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  auto ids = self.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  auto alignments = self.get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  auto flags = self.get<uint8_t>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  tensor.shape = self.get<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  tensor.strides = self.get<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  if (types.size() != 1 || ids.size() != 1 || alignments.size() != 1 ||
      tensor.shape.size() < 3 || tensor.strides.size() != tensor.shape.size() ||
      alignments[0] < 1 || !std::has_single_bit(uint64_t(alignments[0])))
    return kWrong;
  for (int64_t extent : tensor.shape)
    if (extent < 1)
      return kWrong;
  tensor.type = types[0];
  tensor.id = ids[0];
  tensor.alignment = alignments[0];
  tensor.isVirtual = !flags.empty() && flags[0] != 0;
  flags = self.get<uint8_t>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  tensor.isByValue = !flags.empty() && flags[0] != 0;
  return tensor.isVirtual && tensor.isByValue ? kWrong : kWell;
}

/// The convolution that begins the graph; false if it is none.
bool readConvolution(const Descriptor &operation, Convolution &conv) {
  const Tensor *x = operation.tensorAt(
                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
               *w = operation.tensorAt(
                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W),
               *y = operation.tensorAt(
                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  const Descriptor *how =
      operation.child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                      CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  if (!x || !w || !y || !how)
    return false;
  conv.x = *x;
  conv.w = *w;
  conv.y = *y;
  conv.strides = how->get<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  conv.dilations = how->get<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  conv.pads = how->get<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const size_t rank = x->shape.size();
  auto dims = how->get<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  if (rank < 4 || rank > 5 || w->shape.size() != rank ||
      y->shape.size() != rank || dims.size() != 1 ||
      dims[0] != int64_t(rank) - 2 || conv.strides.size() != rank - 2 ||
      conv.dilations.size() != rank - 2 || conv.pads.size() != rank - 2 ||
      conv.pads != how->get<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) ||
      x->shape[1] % w->shape[1] || w->shape[0] != y->shape[1] ||
      x->shape[0] != y->shape[0] || y->shape[1] % (x->shape[1] / w->shape[1]))
    return false;
  for (size_t i = 2; i < rank; ++i) {
    const int64_t reach = (w->shape[i] - 1) * conv.dilations[i - 2] + 1,
                  room = x->shape[i] + 2 * conv.pads[i - 2] - reach;
    if (room < 0 || y->shape[i] != room / conv.strides[i - 2] + 1)
      return false;
  }
  return true;
}

/// Whether an operation behind number `i` adds something.
bool addsAfter(const std::vector<const Descriptor *> &operations, size_t i) {
  return std::any_of(operations.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                     operations.end(), [](const Descriptor *operation) {
                       return operation->tensorAt(
                           CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
                     });
}

/// The steps behind it. Sets `supported` if there are engines for the pattern.
bool readSteps(const std::vector<const Descriptor *> &operations,
               Convolution &conv, bool &supported) {
  supported = true;
  for (size_t i = 1; i < operations.size(); ++i) {
    const Descriptor &operation = *operations[i];
    const Descriptor *how =
        operation.child(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                        CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    const Tensor *x = operation.tensorAt(CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
                 *b = operation.tensorAt(CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
                 *y = operation.tensorAt(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    if (!how || !x || !y || x->id != conv.y.id || !x->isVirtual ||
        y->shape != x->shape)
      return false;
    const auto mode =
        how->get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE).at(0);
    if (mode == CUDNN_POINTWISE_RELU_FWD) {
      supported &= conv.hasBias && !conv.hasRelu;
      conv.hasRelu = true;
    } else if (!b) {
      return false;
    } else if (b->shape == y->shape &&
               (b->count() != y->shape[1] || addsAfter(operations, i))) {
      // The addend comes first. Of a single pixel a bias looks like it.
      supported &= !conv.hasBias && !conv.hasAddend;
      conv.addend = *b;
      conv.hasAddend = true;
    } else {
      supported &= !conv.hasBias && !conv.hasRelu &&
                   b->count() == y->shape[1] && b->shape[1] == y->shape[1] &&
                   b->alignment >= 16;
      conv.bias = *b;
      conv.hasBias = true;
    }
    conv.y = *y;
  }
  supported &= !conv.hasAddend || conv.hasBias;
  return !conv.y.isVirtual;
}

/// A descriptor of which each of these attributes has one value.
cudnnStatus_t
finalizeModes(const Descriptor &self,
              std::initializer_list<cudnnBackendAttributeName_t> names) {
  for (auto name : names)
    if (self.get<int>(name).size() != 1)
      return kWrong;
  return kWell;
}

cudnnStatus_t finalizeResample(const Descriptor &self) {
  auto dims = self.get<int64_t>(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS);
  if (dims.size() != 1 || dims[0] < 1)
    return kWrong;
  for (auto name :
       {CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_ATTR_RESAMPLE_STRIDES,
        CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_ATTR_RESAMPLE_POST_PADDINGS})
    if (self.get<int64_t>(name).size() != size_t(dims[0]))
      return kWrong;
  return finalizeModes(self,
                       {CUDNN_ATTR_RESAMPLE_MODE, CUDNN_ATTR_RESAMPLE_COMP_TYPE,
                        CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION,
                        CUDNN_ATTR_RESAMPLE_PADDING_MODE});
}

/// The windows must fit the tensors.
cudnnStatus_t finalizePool(const Descriptor &operation) {
  const Tensor *x = operation.tensorAt(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC),
               *y = operation.tensorAt(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC);
  const Descriptor *how =
      operation.child(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC,
                      CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  if (!x || !y || !how)
    return kWrong;
  auto window = how->get<int64_t>(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS),
       strides = how->get<int64_t>(CUDNN_ATTR_RESAMPLE_STRIDES),
       low = how->get<int64_t>(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS),
       high = how->get<int64_t>(CUDNN_ATTR_RESAMPLE_POST_PADDINGS);
  if (x->shape.size() != window.size() + 2 ||
      y->shape.size() != x->shape.size() || x->shape[0] != y->shape[0] ||
      x->shape[1] != y->shape[1])
    return kWrong;
  for (size_t i = 0; i < window.size(); ++i) {
    const int64_t room = x->shape[i + 2] + low[i] + high[i] - window[i];
    if (room < 0 || y->shape[i + 2] != room / strides[i] + 1)
      return kWrong;
  }
  return kWell;
}

/// A pool alone. The precompiled engine reads plain images.
cudnnStatus_t finalizePoolGraph(Descriptor &self, const Descriptor &operation) {
  const Descriptor &how =
      *operation.child(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC,
                       CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  Resampling pool;
  pool.x = *operation.tensorAt(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC);
  pool.y = *operation.tensorAt(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC);
  pool.mode = how.get<cudnnResampleMode_t>(CUDNN_ATTR_RESAMPLE_MODE)[0];
  pool.propagatesNan =
      how.get<cudnnNanPropagation_t>(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION)[0] ==
      CUDNN_PROPAGATE_NAN;
  pool.window = how.get<int64_t>(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS);
  pool.strides = how.get<int64_t>(CUDNN_ATTR_RESAMPLE_STRIDES);
  pool.pads = how.get<int64_t>(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS);
  const auto wanted =
      pool.mode == CUDNN_RESAMPLE_MAXPOOL ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
  const bool supported =
      how.get<cudnnPaddingMode_t>(CUDNN_ATTR_RESAMPLE_PADDING_MODE)[0] ==
          wanted &&
      how.get<cudnnDataType_t>(CUDNN_ATTR_RESAMPLE_COMP_TYPE)[0] ==
          CUDNN_DATA_FLOAT &&
      pool.x.type == pool.y.type && pool.x.isPlain() && pool.y.isPlain() &&
      !pool.x.isVirtual && !pool.y.isVirtual;
  self.graph = std::make_shared<Graph>(pool);
  if (supported)
    self.proposals = {{}};
  return kWell;
}

cudnnStatus_t finalizeGraph(Descriptor &self) {
  auto operations = self.get<const Descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (self.get<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE).size() != 1 ||
      operations.empty())
    return kWrong;
  if (operations.size() == 1 && operations[0]->isFinal &&
      operations[0]->type == CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR)
    return finalizePoolGraph(self, *operations[0]);
  if (operations[0]->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
    return finalizeAttentionGraph(self, operations);
  for (size_t i = 0; i < operations.size(); ++i)
    if (!operations[i]->isFinal ||
        operations[i]->type !=
            (i ? CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR
               : CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR))
      return CUDNN_STATUS_NOT_SUPPORTED;
  auto conv = std::make_shared<Convolution>();
  bool supported = false;
  if (!readConvolution(*operations[0], *conv) ||
      !readSteps(operations, *conv, supported))
    return kWrong;
  for (const Tensor *tensor : {&conv->x, &conv->w, &conv->y})
    supported &= tensor->type == conv->x.type && tensor->isPacked();
  if (conv->hasAddend)
    supported &= conv->addend.type == conv->x.type &&
                 conv->addend.strides == conv->y.strides;
  if (conv->hasBias)
    supported &= conv->bias.type == conv->x.type;
  self.graph = std::make_shared<Graph>(*conv);
  if (!supported)
    return kWell;
  // On tensor cores, which round f32; on others; one that keeps NaN.
  self.proposals = {{conv->x.type == CUDNN_DATA_FLOAT, false, 131, 0},
                    {false, false, 0, 1},
                    {false, true, 0, 2}};
  return kWell;
}

/// An engine by its number.
cudnnStatus_t finalizeEngine(Descriptor &self) {
  const Descriptor *graph = self.child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                                       CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  auto indices = self.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  if (!graph || indices.size() != 1)
    return kWrong;
  for (const Engine &engine : graph->proposals)
    if (engine.index == indices[0]) {
      self.engine = engine;
      self.graph = graph->graph;
      return kWell;
    }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

/// An engine with what its knob is set to.
cudnnStatus_t finalizeConfig(Descriptor &self) {
  const Descriptor *engine =
      self.child(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (!engine)
    return kWrong;
  self.engine = engine->engine;
  self.graph = engine->graph;
  for (const Descriptor *knob :
       self.get<const Descriptor *>(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) {
    auto knobs = knob->get<int32_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
    auto values = knob->get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
    if (!knob->isFinal || knobs.size() != 1 || values.size() != 1)
      return kWrong;
    if (knobs[0] != kKnob || values[0] != self.engine.index)
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
  return kWell;
}

cudnnStatus_t finalizeHeuristics(Descriptor &self) {
  const Descriptor *graph = self.child(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                       CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  auto modes = self.get<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE);
  if (!graph || modes.size() != 1)
    return kWrong;
  self.graph = graph->graph;
  self.proposals = graph->proposals;
  if (self.proposals.empty())
    return kWell;
  // The first ones are fast, and the last one always works.
  if (modes[0] == CUDNN_HEUR_MODE_A)
    self.proposals.pop_back();
  else if (self.proposals.size() > 1)
    self.proposals.erase(self.proposals.begin());
  return kWell;
}

cudnnStatus_t finalizePlan(Descriptor &self) {
  auto configs =
      self.get<const Descriptor *>(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (self.get<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE).size() != 1 ||
      configs.size() != 1 || !configs[0] || !configs[0]->graph)
    return kWrong;
  self.graph = configs[0]->graph;
  self.engine = configs[0]->engine;
  return kWell;
}

cudnnStatus_t finalizePack(Descriptor &self) {
  const size_t count =
      self.get<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).size();
  return count && self.get<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)
                          .size() == count
             ? kWell
             : kWrong;
}

cudnnStatus_t fill(int64_t wanted, int64_t *count, void *to,
                   const std::vector<Engine> &engines,
                   const std::shared_ptr<const Graph> &graph) {
  *count = int64_t(engines.size());
  if (wanted == 0)
    return kWell;
  *count = std::min(*count, wanted);
  for (int64_t i = 0; i < *count; ++i) {
    auto *target = static_cast<Descriptor **>(to)[i];
    if (!target)
      return kWrong;
    target->engine = engines[size_t(i)];
    target->graph = graph;
    target->isFinal = true;
  }
  return kWell;
}

/// Tells the notes of an engine, as many as there is room for.
template <typename Note>
cudnnStatus_t tell(const std::vector<Note> &notes, int64_t wanted,
                   int64_t *count, void *to) {
  *count = std::min(wanted, int64_t(notes.size()));
  if (*count)
    memcpy(to, notes.data(), size_t(*count) * sizeof(Note));
  return kWell;
}

/// Appends the work to the handle's stream.
template <auto Work, typename Job>
cudnnStatus_t enqueue(cudnnHandle_t handle, const char *name,
                      std::unique_ptr<Job> job) {
  CuEmuOperation operation = {};
  operation.name = name;
  operation.run = [](void *data) -> const char * {
    static thread_local std::string wrong;
    wrong = Work(*static_cast<Job *>(data));
    return wrong.empty() ? nullptr : wrong.c_str();
  };
  operation.drop = [](void *data) { delete static_cast<Job *>(data); };
  operation.data = job.release();
  return cuEmuEnqueue(handle->stream, &operation)
             ? CUDNN_STATUS_EXECUTION_FAILED
             : kWell;
}

/// The pointers of a variant pack. The first that is wrong gives the status.
class Pack {
public:
  explicit Pack(const Descriptor &given)
      : ids(given.get<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)),
        pointers(given.get<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)),
        scratch(given.get<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE)) {}

  uint64_t find(const Tensor &tensor) {
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto address = uint64_t(pointers[i]);
      if (ids[i] != tensor.id)
        continue;
      if (address % uint64_t(tensor.alignment))
        note(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
      return address;
    }
    note(kWrong);
    return 0;
  }
  /// What a tensor of one number holds, which the host gives by value.
  float number(const Tensor &tensor) {
    const auto *from = reinterpret_cast<const float *>(find(tensor));
    if (!from)
      note(kWrong);
    return status == kWell ? *from : 0;
  }
  uint64_t workspace(uint64_t bytes) {
    if (!bytes)
      return 0;
    if (scratch.size() == 1 && scratch[0])
      return uint64_t(scratch[0]);
    note(kWrong);
    return 0;
  }

  cudnnStatus_t status = kWell;

private:
  void note(cudnnStatus_t found) {
    if (status == kWell)
      status = found;
  }
  const std::vector<int64_t> ids;
  const std::vector<void *> pointers, scratch;
};

cudnnStatus_t execute(cudnnHandle_t handle, const Resampling &pool,
                      const Engine &, Pack pack) {
  auto job = std::make_unique<ResamplingJob>();
  job->resampling = pool;
  job->x = pack.find(pool.x);
  job->y = pack.find(pool.y);
  return pack.status != kWell
             ? pack.status
             : enqueue<resample>(handle, "a pool of cuDNN", std::move(job));
}

cudnnStatus_t execute(cudnnHandle_t handle, const Convolution &conv,
                      const Engine &engine, Pack pack) {
  auto job = std::make_unique<ConvolutionJob>();
  job->convolution = conv;
  job->x = pack.find(conv.x);
  job->w = pack.find(conv.w);
  job->y = pack.find(conv.y);
  if (conv.hasAddend)
    job->addend = pack.find(conv.addend);
  if (conv.hasBias)
    job->bias = pack.find(conv.bias);
  job->roundsToTf32 = engine.roundsToTf32;
  job->keepsNan = engine.keepsNan;
  job->workspaceBytes = engine.workspace;
  job->workspace = pack.workspace(engine.workspace);
  return pack.status != kWell
             ? pack.status
             : enqueue<convolve>(handle, "a convolution of cuDNN",
                                 std::move(job));
}

cudnnStatus_t execute(cudnnHandle_t handle, const Attention &how,
                      const Engine &engine, Pack pack) {
  auto job = std::make_unique<AttentionJob>();
  job->attention = how;
  job->q = pack.find(how.q);
  job->k = pack.find(how.k);
  job->v = pack.find(how.v);
  if (how.hasMask)
    job->mask = pack.find(how.mask);
  job->result = pack.find(how.result);
  job->statistics = pack.find(how.statistics);
  job->scale = pack.number(how.scale);
  job->workspaceBytes = engine.workspace;
  job->workspace = pack.workspace(engine.workspace);
  return pack.status != kWell
             ? pack.status
             : enqueue<attend>(handle, "attention of cuDNN", std::move(job));
}

} // namespace

size_t cudnnGetVersion(void) {
  const char *version = getenv("CUDNN_EMU_VERSION");
  return version ? size_t(atoll(version)) : 91900;
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
  case CUDNN_STATUS_SUCCESS:
    return "CUDNN_STATUS_SUCCESS";
  case CUDNN_STATUS_NOT_INITIALIZED:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case CUDNN_STATUS_BAD_PARAM:
    return "CUDNN_STATUS_BAD_PARAM";
  case CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER:
    return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
  case CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED:
    return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
  case CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE:
    return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
  case CUDNN_STATUS_NOT_SUPPORTED:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case CUDNN_STATUS_EXECUTION_FAILED:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  if (!handle)
    return kWrong;
  const int device = cuEmuDevice(nullptr);
  if (device < 0)
    return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = new cudnnContext{device};
  return kWell;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return kWell;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!handle || cuEmuDevice(stream) != handle->device)
    return kWrong;
  handle->stream = stream;
  return kWell;
}

cudnnStatus_t
cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                             cudnnBackendDescriptor_t *descriptor) {
  if (!descriptor)
    return kWrong;
  *descriptor = new Descriptor{type};
  return kWell;
}

cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Descriptor *>(descriptor);
  return kWell;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type,
                                       int64_t count, const void *values) {
  auto *self = static_cast<Descriptor *>(descriptor);
  if (!self || self->isFinal || count < 1 || !values)
    return kWrong;
  return self->set(name, type, count, values);
}

cudnnStatus_t
cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                         cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t wanted,
                         int64_t *count, void *to) {
  const auto *self = static_cast<const Descriptor *>(descriptor);
  if (!self || !count || wanted < 0 || (wanted && !to))
    return kWrong;
  if (!self->isFinal)
    return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  switch (name) {
  case CUDNN_ATTR_ENGINEHEUR_RESULTS:
    return fill(wanted, count, to, self->proposals, self->graph);
  case CUDNN_ATTR_ENGINECFG_ENGINE:
    return fill(wanted, count, to, {self->engine}, self->graph);
  case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
    return fill(wanted, count, to, {self->engine}, self->graph);
  case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
  case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
    if (type != CUDNN_TYPE_INT64 || wanted != 1)
      return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    *count = 1;
    memcpy(to, &self->engine.index, 8);
    return kWell;
  case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
    if (type != CUDNN_TYPE_KNOB_TYPE || wanted != 1)
      return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    *count = 1;
    memcpy(to, &kKnob, sizeof kKnob);
    return kWell;
  case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    if (type != CUDNN_TYPE_INT64 || wanted != 1)
      return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    *count = 1;
    memcpy(to, &self->engine.workspace, 8);
    return kWell;
  case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
    std::vector<cudnnBackendNumericalNote_t> notes;
    if (self->engine.roundsToTf32 || self->engine.multipliesOnTensorCores)
      notes.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    if (self->engine.keepsNan)
      notes.push_back(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP);
    return tell(notes, wanted, count, to);
  }
  case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE: {
    if (type != CUDNN_TYPE_BEHAVIOR_NOTE)
      return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
    std::vector<cudnnBackendBehaviorNote_t> notes;
    if (self->engine.isCompiledAtRuntime)
      notes.push_back(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
    return tell(notes, wanted, count, to);
  }
  default:
    return kWrong;
  }
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  auto *self = static_cast<Descriptor *>(descriptor);
  if (!self || self->isFinal)
    return kWrong;
  cudnnStatus_t status = kWell;
  switch (self->type) {
  case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
    status = finalizeTensor(*self);
    break;
  case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
    status = finalizeGraph(*self);
    break;
  case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
    status = finalizeEngine(*self);
    break;
  case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
    status = finalizeConfig(*self);
    break;
  case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    status = finalizeHeuristics(*self);
    break;
  case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
    status = finalizePlan(*self);
    break;
  case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
    status = finalizePack(*self);
    break;
  case CUDNN_BACKEND_RESAMPLE_DESCRIPTOR:
    status = finalizeResample(*self);
    break;
  case CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR:
    status = finalizePool(*self);
    break;
  case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
    status = finalizeModes(
        *self, {CUDNN_ATTR_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MATH_PREC});
    break;
  case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
    status = finalizeModes(*self, {CUDNN_ATTR_MATMUL_COMP_TYPE});
    break;
  case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
    status = finalizeModes(
        *self, {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_ATTR_REDUCTION_COMP_TYPE});
    break;
  case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    status = finalizeStep(*self);
    break;
  default: // read with the graph
    break;
  }
  self->isFinal = status == kWell;
  return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                  cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  const auto *planned = static_cast<const Descriptor *>(plan),
             *given = static_cast<const Descriptor *>(pack);
  if (!handle || !planned || !given ||
      planned->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
      given->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
    return kWrong;
  if (!planned->isFinal || !given->isFinal)
    return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  return std::visit(
      [&](const auto &graph) {
        return execute(handle, graph, planned->engine, Pack(*given));
      },
      *planned->graph);
}
