//===- JobProcesses.cpp - A job that trains -------------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/partita-run/train/JobProcesses.h"

#include "tools/partita-run/Run.h"

namespace partita::run {

runtime::Expected<std::shared_ptr<runtime::Communicator>>
JobProcesses::communicator(std::shared_ptr<const runtime::Artifact> artifact) {
  const Model model(std::move(artifact));
  const runtime::SessionOptions session = sessionOptions(options, model, job);
  return job.communicator(model, session.places, options.devices,
                          options.timeout, haveRoom(options, job),
                          communicators++);
}

} // namespace partita::run
