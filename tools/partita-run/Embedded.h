//===- Embedded.h - Samples through partita.h -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plain run uses only the C interface, like any program that embeds the
// runtime. It opens the artifact, submits samples and waits for them.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_EMBEDDED_H
#define PARTITA_TOOLS_PARTITA_RUN_EMBEDDED_H

#include "runtime/capi/partita.h"
#include "runtime/feed/Feed.h"
#include "tools/partita-run/show/Progress.h"

#include <memory>

namespace partita::run {

using namespace feed;

class Embedded {
public:
  /// `options` are all that the run asks for, except the path.
  static runtime::Expected<std::unique_ptr<Embedded>>
  open(const Model &model, const partita_options &options);

  /// Computes all samples of `inputs`, which Feed has checked, and writes them
  /// to the tensors of `results`.
  runtime::Status run(const InputTensors &inputs, int64_t samples,
                      std::vector<runtime::Tensor> &results,
                      Progress &progress);

  int64_t stepSamples() const { return partita_step_samples(model.get()); }
  bool keepsNan() const { return partita_keeps_nan(model.get()) != 0; }
  const char *remark() const { return partita_remark(model.get()); }

private:
  struct Close {
    void operator()(partita_model *opened) const { partita_close(opened); }
  };
  std::unique_ptr<partita_model, Close> model;
};

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_EMBEDDED_H
