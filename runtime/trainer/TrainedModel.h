//===- TrainedModel.h - Weights into a trainer, and out of it ---*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_TRAINER_TRAINEDMODEL_H
#define PARTITA_RUNTIME_TRAINER_TRAINEDMODEL_H

#include "runtime/trainer/Trainer.h"

#include <string>

namespace partita::runtime::train {

/// Whether `exportTrained` can be expected to work, before training begins.
/// `artifact`: the path of the trainer's artifact.
Status checkExport(const Trainer &trainer, const std::string &artifact,
                   const std::string &output);

/// Writes the trained parameters into a copy of the model that was compiled.
/// Process 0 does, and needs the model.
Status exportTrained(const Trainer &trainer, const std::string &artifact,
                     const std::string &output);

/// Loads the parameters of this process from a file of safetensors, by their
/// names. After an error all states are as before. Returns a remark for people
/// on tensors of the file that the trainer does not train; empty if none.
Expected<std::string> loadWeights(Trainer &trainer, const std::string &path);

} // namespace partita::runtime::train

#endif // PARTITA_RUNTIME_TRAINER_TRAINEDMODEL_H
