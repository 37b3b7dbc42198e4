//===- CostKinds.h - The kinds of cost models -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_COST_COSTKINDS_H
#define PARTITA_COMPILER_COST_COSTKINDS_H

#include "compiler/codegen/DeviceSpeeds.h"
#include "compiler/cost/CostModel.h"
#include "compiler/cost/MachineFile.h"

namespace partita::codegen {
class Backend;
} // namespace partita::codegen

namespace partita {

/// Of devices beside the processor. `file` may be null.
std::unique_ptr<const CostModel>
makeDeviceCosts(const codegen::Backend &backend,
                codegen::DeviceSpeeds published, const MachineFile *file,
                llvm::StringRef kind, llvm::StringRef architecture);

/// Of devices that are cores of the processor. `file` may be null. `threads` of
/// 0 are an equal share of the file's cores.
std::unique_ptr<const CostModel>
makeProcessorCosts(const codegen::Backend &backend,
                   std::shared_ptr<const MachineFile> file, int64_t devices,
                   int64_t threads);

} // namespace partita

#endif // PARTITA_COMPILER_COST_COSTKINDS_H
