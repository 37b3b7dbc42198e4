//===- Types.h - Types and constants of cuDNN -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What this program uses of NVIDIA's cudnn_graph.h, so that it builds without
// it. A test holds these declarations to that header, where it is installed.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_TYPES_H
#define PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_TYPES_H

#include "runtime/device/cuda/driver/Types.h"

#include <cstddef>
#include <cstdint>

namespace partita::runtime::cuda::cudnn {

/// cudnnStatus_t.
enum class Result : int {
  success = 0,
  not_initialized = 1001,
  bad_param = 2000,
  not_supported = 3000,
  execution_failed = 5000,
};

/// cudnnDataType_t.
enum class DataType : int { f32 = 0, f16 = 2, bf16 = 9 };

/// cudnnConvolutionMode_t.
enum class ConvolutionMode : int { cross_correlation = 1 };

/// cudnnPointwiseMode_t.
enum class PointwiseMode : int {
  add = 0,
  mul = 1,
  div = 6,
  sub = 9,
  exp = 13,
  log = 15,
  relu = 100,
};

/// cudnnReduceTensorOp_t.
enum class Reduction : int { add = 0, max = 3 };

/// cudnnResampleMode_t: pooling.
enum class ResampleMode : int {
  average_with_pads = 2,
  max = 3,
  average = 4,
};

/// cudnnNanPropagation_t.
enum class NanPropagation : int { propagate = 1 };

/// cudnnPaddingMode_t: what the border holds.
enum class PaddingMode : int { zero = 0, negative_infinity = 1 };

/// cudnnBackendHeurMode_t: by a model of what is fast; what always works.
enum class Heuristic : int { fallback = 2, fast = 3 };

/// cudnnBackendNumericalNote_t.
enum class NumericalNote : int {
  tensor_core = 0,
  down_convert_inputs = 1,
  reduced_precision_reduction = 2,
  fft = 3,
  nondeterministic = 4,
  winograd = 5,
  strict_nan_prop = 9,
};

/// cudnnBackendDescriptorType_t.
enum class DescriptorType : int {
  pointwise = 0,
  convolution = 1,
  engine = 2,
  engine_config = 3,
  heuristics = 4,
  plan = 5,
  knob_choice = 7,
  operation_convolution = 10,
  operation_pointwise = 13,
  graph = 15,
  variant_pack = 16,
  tensor = 17,
  matmul = 18,
  operation_matmul = 19,
  reduction = 21,
  operation_reduction = 22,
  resample = 24,
  operation_resample = 25,
};

/// cudnnBackendAttributeType_t.
enum class AttributeType : int {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  f32 = 4,
  void_ptr = 6,
  convolution_mode = 7,
  heuristic = 8,
  knob = 9,
  nan_propagation = 10,
  numerical_note = 11,
  pointwise_mode = 14,
  descriptor = 15,
  reduction_operator = 18,
  resample_mode = 21,
  padding_mode = 22,
};

/// cudnnBackendAttributeName_t.
enum class Attribute : int {
  pointwise_mode = 0,
  pointwise_type = 1,
  convolution_type = 100,
  convolution_mode = 101,
  convolution_dilations = 102,
  convolution_strides = 103,
  convolution_post_paddings = 104,
  convolution_pre_paddings = 105,
  convolution_spatial_dims = 106,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  config_engine = 300,
  config_knobs = 302,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace = 402,
  knob_choice_knob = 600,
  knob_choice_value = 601,
  operation_convolution_alpha = 700,
  operation_convolution_beta = 701,
  operation_convolution_descriptor = 702,
  operation_convolution_w = 703,
  operation_convolution_x = 704,
  operation_convolution_y = 705,
  operation_pointwise_descriptor = 750,
  operation_pointwise_x = 751,
  operation_pointwise_b = 752,
  operation_pointwise_y = 753,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  pack_ids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_graph = 1300,
  engine_index = 1301,
  engine_numerical_notes = 1303,
  matmul_type = 1500,
  operation_matmul_a = 1520,
  operation_matmul_b = 1521,
  operation_matmul_c = 1522,
  operation_matmul_descriptor = 1523,
  reduction_operator = 1600,
  reduction_type = 1601,
  operation_reduction_x = 1610,
  operation_reduction_y = 1611,
  operation_reduction_descriptor = 1612,
  resample_mode = 1700,
  resample_type = 1701,
  resample_spatial_dims = 1702,
  resample_post_paddings = 1703,
  resample_pre_paddings = 1704,
  resample_strides = 1705,
  resample_window = 1706,
  resample_nan_propagation = 1707,
  resample_padding_mode = 1708,
  operation_resample_x = 1710,
  operation_resample_y = 1711,
  operation_resample_descriptor = 1716,
};

using Handle = struct HandleObject *;
using Descriptor = void *; ///< cudnnBackendDescriptor_t

} // namespace partita::runtime::cuda::cudnn

#endif // PARTITA_RUNTIME_DEVICE_CUDA_CUDNN_TYPES_H
