//===- DnnHeaderTest.cpp - cuDNN as NVIDIA has it -------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/cudnn/CallPlans.h"
#include "test/unit/cuda/ConvCases.h"
#include "test/unit/cuda/DnnGpus.h"
#include "test/unit/cuda/PoolCases.h"
#include "test/unit/cuda/SameCall.h"

#include <gtest/gtest.h>

#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>

#include <cstring>
#include <dlfcn.h>
#include <type_traits>

namespace partita::test {
namespace {

namespace ours = runtime::cuda::cudnn;

TEST(CudnnHeader, FunctionsAreDeclaredAlike) {
#define PARTITA_CUDNN(MEMBER, NAME, TYPES)                                     \
  static_assert(is_same_call<decltype(ours::Api::MEMBER), decltype(&NAME)>,    \
                #NAME);
#include "runtime/device/cuda/cudnn/Functions.def"
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST(CudnnHeader, ConstantsAreTheSame) {
#define SAME(OURS, THEIRS)                                                     \
  EXPECT_EQ(static_cast<long>(ours::OURS), static_cast<long>(THEIRS)) << #THEIRS
  SAME(Result::success, CUDNN_STATUS_SUCCESS);
  SAME(Result::not_initialized, CUDNN_STATUS_NOT_INITIALIZED);
  SAME(Result::bad_param, CUDNN_STATUS_BAD_PARAM);
  SAME(Result::not_supported, CUDNN_STATUS_NOT_SUPPORTED);
  SAME(Result::execution_failed, CUDNN_STATUS_EXECUTION_FAILED);
  SAME(DataType::f32, CUDNN_DATA_FLOAT);
  SAME(DataType::f16, CUDNN_DATA_HALF);
  SAME(DataType::bf16, CUDNN_DATA_BFLOAT16);
  SAME(ConvolutionMode::cross_correlation, CUDNN_CROSS_CORRELATION);
  SAME(PointwiseMode::add, CUDNN_POINTWISE_ADD);
  SAME(PointwiseMode::mul, CUDNN_POINTWISE_MUL);
  SAME(PointwiseMode::div, CUDNN_POINTWISE_DIV);
  SAME(PointwiseMode::sub, CUDNN_POINTWISE_SUB);
  SAME(PointwiseMode::exp, CUDNN_POINTWISE_EXP);
  SAME(PointwiseMode::log, CUDNN_POINTWISE_LOG);
  SAME(PointwiseMode::relu, CUDNN_POINTWISE_RELU_FWD);
  SAME(Reduction::add, CUDNN_REDUCE_TENSOR_ADD);
  SAME(Reduction::max, CUDNN_REDUCE_TENSOR_MAX);
  SAME(ResampleMode::max, CUDNN_RESAMPLE_MAXPOOL);
  SAME(ResampleMode::average, CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING);
  SAME(ResampleMode::average_with_pads, CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING);
  SAME(NanPropagation::propagate, CUDNN_PROPAGATE_NAN);
  SAME(PaddingMode::zero, CUDNN_ZERO_PAD);
  SAME(PaddingMode::negative_infinity, CUDNN_NEG_INF_PAD);
  SAME(Heuristic::fallback, CUDNN_HEUR_MODE_FALLBACK);
  SAME(Heuristic::fast, CUDNN_HEUR_MODE_A);
#define NOTE(OURS, THEIRS)                                                     \
  SAME(NumericalNote::OURS, CUDNN_NUMERICAL_NOTE_##THEIRS)
  NOTE(tensor_core, TENSOR_CORE);
  NOTE(down_convert_inputs, DOWN_CONVERT_INPUTS);
  NOTE(reduced_precision_reduction, REDUCED_PRECISION_REDUCTION);
  NOTE(fft, FFT);
  NOTE(nondeterministic, NONDETERMINISTIC);
  NOTE(winograd, WINOGRAD);
  NOTE(strict_nan_prop, STRICT_NAN_PROP);
#define DESCRIPTOR(OURS, THEIRS)                                               \
  SAME(DescriptorType::OURS, CUDNN_BACKEND_##THEIRS##_DESCRIPTOR)
  DESCRIPTOR(pointwise, POINTWISE);
  DESCRIPTOR(convolution, CONVOLUTION);
  DESCRIPTOR(engine, ENGINE);
  DESCRIPTOR(engine_config, ENGINECFG);
  DESCRIPTOR(heuristics, ENGINEHEUR);
  DESCRIPTOR(plan, EXECUTION_PLAN);
  DESCRIPTOR(knob_choice, KNOB_CHOICE);
  DESCRIPTOR(operation_convolution, OPERATION_CONVOLUTION_FORWARD);
  DESCRIPTOR(operation_pointwise, OPERATION_POINTWISE);
  DESCRIPTOR(graph, OPERATIONGRAPH);
  DESCRIPTOR(variant_pack, VARIANT_PACK);
  DESCRIPTOR(tensor, TENSOR);
  DESCRIPTOR(matmul, MATMUL);
  DESCRIPTOR(operation_matmul, OPERATION_MATMUL);
  DESCRIPTOR(reduction, REDUCTION);
  DESCRIPTOR(operation_reduction, OPERATION_REDUCTION);
  DESCRIPTOR(resample, RESAMPLE);
  DESCRIPTOR(operation_resample, OPERATION_RESAMPLE_FWD);
#define TYPE(OURS, THEIRS) SAME(AttributeType::OURS, CUDNN_TYPE_##THEIRS)
  TYPE(handle, HANDLE);
  TYPE(data_type, DATA_TYPE);
  TYPE(boolean, BOOLEAN);
  TYPE(int64, INT64);
  TYPE(f32, FLOAT);
  TYPE(void_ptr, VOID_PTR);
  TYPE(convolution_mode, CONVOLUTION_MODE);
  TYPE(heuristic, HEUR_MODE);
  TYPE(knob, KNOB_TYPE);
  TYPE(numerical_note, NUMERICAL_NOTE);
  TYPE(pointwise_mode, POINTWISE_MODE);
  TYPE(descriptor, BACKEND_DESCRIPTOR);
  TYPE(nan_propagation, NAN_PROPOGATION);
  TYPE(reduction_operator, REDUCTION_OPERATOR_TYPE);
  TYPE(resample_mode, RESAMPLE_MODE);
  TYPE(padding_mode, PADDING_MODE);
#define ATTRIBUTE(OURS, THEIRS) SAME(Attribute::OURS, CUDNN_ATTR_##THEIRS)
  ATTRIBUTE(pointwise_mode, POINTWISE_MODE);
  ATTRIBUTE(pointwise_type, POINTWISE_MATH_PREC);
  ATTRIBUTE(convolution_type, CONVOLUTION_COMP_TYPE);
  ATTRIBUTE(convolution_mode, CONVOLUTION_CONV_MODE);
  ATTRIBUTE(convolution_dilations, CONVOLUTION_DILATIONS);
  ATTRIBUTE(convolution_strides, CONVOLUTION_FILTER_STRIDES);
  ATTRIBUTE(convolution_post_paddings, CONVOLUTION_POST_PADDINGS);
  ATTRIBUTE(convolution_pre_paddings, CONVOLUTION_PRE_PADDINGS);
  ATTRIBUTE(convolution_spatial_dims, CONVOLUTION_SPATIAL_DIMS);
  ATTRIBUTE(heuristics_mode, ENGINEHEUR_MODE);
  ATTRIBUTE(heuristics_graph, ENGINEHEUR_OPERATION_GRAPH);
  ATTRIBUTE(heuristics_results, ENGINEHEUR_RESULTS);
  ATTRIBUTE(config_engine, ENGINECFG_ENGINE);
  ATTRIBUTE(config_knobs, ENGINECFG_KNOB_CHOICES);
  ATTRIBUTE(plan_handle, EXECUTION_PLAN_HANDLE);
  ATTRIBUTE(plan_config, EXECUTION_PLAN_ENGINE_CONFIG);
  ATTRIBUTE(plan_workspace, EXECUTION_PLAN_WORKSPACE_SIZE);
  ATTRIBUTE(operation_convolution_alpha, OPERATION_CONVOLUTION_FORWARD_ALPHA);
  ATTRIBUTE(operation_convolution_beta, OPERATION_CONVOLUTION_FORWARD_BETA);
  ATTRIBUTE(operation_convolution_descriptor,
            OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  ATTRIBUTE(operation_convolution_w, OPERATION_CONVOLUTION_FORWARD_W);
  ATTRIBUTE(operation_convolution_x, OPERATION_CONVOLUTION_FORWARD_X);
  ATTRIBUTE(operation_convolution_y, OPERATION_CONVOLUTION_FORWARD_Y);
  ATTRIBUTE(operation_pointwise_descriptor, OPERATION_POINTWISE_PW_DESCRIPTOR);
  ATTRIBUTE(operation_pointwise_x, OPERATION_POINTWISE_XDESC);
  ATTRIBUTE(operation_pointwise_b, OPERATION_POINTWISE_BDESC);
  ATTRIBUTE(operation_pointwise_y, OPERATION_POINTWISE_YDESC);
  ATTRIBUTE(graph_handle, OPERATIONGRAPH_HANDLE);
  ATTRIBUTE(graph_operations, OPERATIONGRAPH_OPS);
  ATTRIBUTE(tensor_alignment, TENSOR_BYTE_ALIGNMENT);
  ATTRIBUTE(tensor_type, TENSOR_DATA_TYPE);
  ATTRIBUTE(tensor_dimensions, TENSOR_DIMENSIONS);
  ATTRIBUTE(tensor_strides, TENSOR_STRIDES);
  ATTRIBUTE(tensor_id, TENSOR_UNIQUE_ID);
  ATTRIBUTE(tensor_is_virtual, TENSOR_IS_VIRTUAL);
  ATTRIBUTE(pack_ids, VARIANT_PACK_UNIQUE_IDS);
  ATTRIBUTE(pack_pointers, VARIANT_PACK_DATA_POINTERS);
  ATTRIBUTE(pack_workspace, VARIANT_PACK_WORKSPACE);
  ATTRIBUTE(knob_choice_knob, KNOB_CHOICE_KNOB_TYPE);
  ATTRIBUTE(knob_choice_value, KNOB_CHOICE_KNOB_VALUE);
  ATTRIBUTE(engine_graph, ENGINE_OPERATION_GRAPH);
  ATTRIBUTE(engine_index, ENGINE_GLOBAL_INDEX);
  ATTRIBUTE(engine_numerical_notes, ENGINE_NUMERICAL_NOTE);
  ATTRIBUTE(tensor_is_by_value, TENSOR_IS_BY_VALUE);
  ATTRIBUTE(matmul_type, MATMUL_COMP_TYPE);
  ATTRIBUTE(operation_matmul_a, OPERATION_MATMUL_ADESC);
  ATTRIBUTE(operation_matmul_b, OPERATION_MATMUL_BDESC);
  ATTRIBUTE(operation_matmul_c, OPERATION_MATMUL_CDESC);
  ATTRIBUTE(operation_matmul_descriptor, OPERATION_MATMUL_DESC);
  ATTRIBUTE(reduction_operator, REDUCTION_OPERATOR);
  ATTRIBUTE(reduction_type, REDUCTION_COMP_TYPE);
  ATTRIBUTE(operation_reduction_x, OPERATION_REDUCTION_XDESC);
  ATTRIBUTE(operation_reduction_y, OPERATION_REDUCTION_YDESC);
  ATTRIBUTE(operation_reduction_descriptor, OPERATION_REDUCTION_DESC);
  ATTRIBUTE(resample_mode, RESAMPLE_MODE);
  ATTRIBUTE(resample_type, RESAMPLE_COMP_TYPE);
  ATTRIBUTE(resample_spatial_dims, RESAMPLE_SPATIAL_DIMS);
  ATTRIBUTE(resample_post_paddings, RESAMPLE_POST_PADDINGS);
  ATTRIBUTE(resample_pre_paddings, RESAMPLE_PRE_PADDINGS);
  ATTRIBUTE(resample_strides, RESAMPLE_STRIDES);
  ATTRIBUTE(resample_window, RESAMPLE_WINDOW_DIMS);
  ATTRIBUTE(resample_nan_propagation, RESAMPLE_NAN_PROPAGATION);
  ATTRIBUTE(resample_padding_mode, RESAMPLE_PADDING_MODE);
  ATTRIBUTE(operation_resample_x, OPERATION_RESAMPLE_FWD_XDESC);
  ATTRIBUTE(operation_resample_y, OPERATION_RESAMPLE_FWD_YDESC);
  ATTRIBUTE(operation_resample_descriptor, OPERATION_RESAMPLE_FWD_DESC);
#undef SAME
}
#pragma GCC diagnostic pop

#ifdef PARTITA_CUDNN_LIBRARY

rules::Tensor view(abi::DType type, const Shape &shape, const Shape &strides) {
  return {type, shape, strides, 0};
}

ours::EngineWishes wishes(uint32_t alignment) {
  ours::EngineWishes all;
  all.workspace = rules::kGpuWorkspace;
  all.include(alignment);
  return all;
}

/// How often the library was asked for proposals.
int asked = 0;
decltype(ours::Api::getAttribute) real_get;
ours::Api counting(const ours::Api &api) {
  ours::Api counted = api;
  real_get = api.getAttribute;
  counted.getAttribute = [](auto descriptor, auto name, auto type,
                            int64_t wanted, int64_t *count, void *to) {
    asked += name == ours::Attribute::heuristics_results && wanted == 0;
    return real_get(descriptor, name, type, wanted, count, to);
  };
  return counted;
}

// NVIDIA's own library plans each convolution with each epilogue that the table
// has, in f32 alone where it is of f32, without a GPU. It takes an engine again
// by its number and its knobs.
TEST(CudnnLibrary, PlansOurConvolutionsForGpusThatAreNotThere) {
  const std::string why = forEachGpu([](const ours::Api &real, const char *gpu,
                                        const ForDevice &for_device) {
    const ours::Api api = counting(real);
    for (abi::DType type : {abi::DType::f32, abi::DType::f16, abi::DType::bf16})
      for (const ConvCase &each : convCases())
        for (int post_ops = 0; post_ops < 5; ++post_ops) {
          const Shape x = channelsLast(each.x),
                      weights = denseStrides(each.weights()),
                      wshape = each.weights(), yshape = each.result(),
                      y = channelsLast(yshape);
          Shape bias(yshape.size(), 0);
          bias[1] = 1;
          rules::Convolution wanted{view(type, each.x, x),
                                    view(type, wshape, weights),
                                    view(type, yshape, y),
                                    each.strides,
                                    each.dilations,
                                    each.pads,
                                    each.pads,
                                    each.groups,
                                    {}};
          const rules::PostOp add_bias{abi::PostOpKind::add, 0, 0,
                                       view(type, yshape, bias)},
              add{abi::PostOpKind::add, 0, 0, view(type, yshape, y)},
              relu{abi::PostOpKind::relu, 0, 0, {}};
          wanted.post_ops = post_ops == 0   ? std::vector<rules::PostOp>{}
                            : post_ops == 1 ? std::vector{add_bias}
                            : post_ops == 2 ? std::vector{add_bias, relu}
                            : post_ops == 3 ? std::vector{add_bias, add}
                                            : std::vector{add, add_bias, relu};
          rules::Conv conv;
          ASSERT_EQ(rules::describeConv(wanted, conv), nullptr);
          runtime::cuda::ChoiceCache cache("", "");
          ours::EngineWishes wanted_of = wishes(64);
          wanted_of.cache = &cache;
          asked = 0;
          for (const bool again : {false, true}) {
            ours::ConvPlan plan(api);
            const runtime::Status status =
                plan.make(conv, wanted_of, for_device);
            EXPECT_TRUE(status.ok())
                << gpu << ", " << abi::EnumNameDType(type) << ", " << each.name
                << ", " << post_ops << ": " << status.message();
            EXPECT_EQ(asked == 0, again)
                << gpu << ", " << abi::EnumNameDType(type) << ", " << each.name
                << ", " << post_ops;
            asked = 0;
          }
        }
  });
  if (!why.empty())
    GTEST_SKIP() << why;
}

// So it does each pool, at the least alignment that a tensor may have.
TEST(CudnnLibrary, PlansOurPoolsForGpusThatAreNotThere) {
  const std::string why = forEachGpu([](const ours::Api &api, const char *gpu,
                                        const ForDevice &for_device) {
    for (abi::DType type : {abi::DType::f32, abi::DType::f16, abi::DType::bf16})
      for (const PoolCase &each : poolCases())
        for (const bool average : {false, true})
          for (const bool include_pad : {false, true}) {
            const Shape yshape = each.result(), x = each.stridesOf(each.x),
                        y = each.stridesOf(yshape), ones(each.window.size(), 1);
            rules::Pool pool;
            ASSERT_EQ(rules::describePool(
                          {view(type, each.x, x), view(type, yshape, y),
                           average, include_pad, each.window, each.strides,
                           ones, each.pads, each.pads, false},
                          pool),
                      nullptr);
            ours::PoolPlan plan(api);
            const runtime::Status status = plan.make(
                pool, wishes(static_cast<uint32_t>(rules::floatBytes(type))),
                for_device);
            EXPECT_TRUE(status.ok())
                << gpu << ", " << abi::EnumNameDType(type) << ", " << each.name
                << ", " << average << include_pad << ": " << status.message();
            EXPECT_EQ(plan.workspace(), 0u);
          }
  });
  if (!why.empty())
    GTEST_SKIP() << why;
}

// What the table says of images whose channels lie innermost holds: without a
// compiler at run time the library has no engine for them as they are.
TEST(CudnnLibrary, HasNoEngineForChannelsInside) {
  const std::string why = forEachGpu([](const ours::Api &api, const char *gpu,
                                        const ForDevice &for_device) {
    const PoolCase &each = poolCases().front();
    rules::Pool pool{abi::DType::f32, rules::PoolMode::max, {}, {}, {}, {}, {}};
    pool.x = {each.x, channelsLast(each.x)};
    pool.result = {each.result(), channelsLast(each.result())};
    pool.window = each.window;
    pool.strides = each.strides;
    pool.pads = each.pads;
    ours::PoolPlan plan(api);
    const runtime::Status status = plan.make(pool, wishes(16), for_device);
    EXPECT_NE(status.message().find("has no engine for a pool that computes in "
                                    "f32 alone and needs 33554432 bytes of "
                                    "workspace at most"),
              std::string::npos)
        << gpu << ": " << status.message();
  });
  if (!why.empty())
    GTEST_SKIP() << why;
}

#else

TEST(CudnnLibrary, IsInstalled) {
  GTEST_SKIP() << "cudnn_graph.h is installed, but libcudnn.so.9 was not found "
                  "where CMake looked: nothing is planned by NVIDIA's cuDNN";
}

#endif

} // namespace
} // namespace partita::test

#else

TEST(CudnnHeader, IsInstalled) {
  GTEST_SKIP() << "no cudnn_graph.h of NVIDIA's is installed";
}

#endif
