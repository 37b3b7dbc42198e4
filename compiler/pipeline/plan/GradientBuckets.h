//===- GradientBuckets.h - Gradients added up together ----------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_PIPELINE_PLAN_GRADIENTBUCKETS_H
#define PARTITA_COMPILER_PIPELINE_PLAN_GRADIENTBUCKETS_H

#include "compiler/pipeline/plan/StageLowering.h"

namespace partita::pipeline {

/// The stage and its work after which a gradient is complete: a sum over
/// micro-batches, in one lane, or a value of the only micro-batch. Stage -1:
/// the value is none. Of gradients that are joined: where the last of them is.
std::pair<int, int> findComplete(const StageLowering &lowering,
                                 const LoweredDevice &device, int value);

/// Lets replicas add gradients up where they lie, if nobody else needs them,
/// and joins the all_reduces that an update has for them: those of a bucket
/// become one, whose slot has the gradients one after another. Nothing is
/// copied for it.
///
/// A bucket has gradients that are complete one after another, of one element
/// type, along the same axes. Nothing lies between them, so that no byte is
/// sent that is none of theirs: at most one has a size that is no multiple of
/// kAlignment. Numbers are alone. `dist.fusion_bytes` says how many bytes it
/// has at most; a larger gradient is alone. Without it, a bucket is as large as
/// makes the time that a collective needs to begin an eighth of its time: so
/// the first buckets can start early (Li et al., "PyTorch Distributed:
/// Experiences on Accelerating Data Parallel Training", 2020).
void formGradientBuckets(StageLowering &lowering, const CostModels &models);

} // namespace partita::pipeline

#endif // PARTITA_COMPILER_PIPELINE_PLAN_GRADIENTBUCKETS_H
