//===- RemoteCpuBackend.cpp - The compiler knows the kind -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/CpuBackend.h"

namespace {

/// Compilers that are linked with this file have the kind, whose code is a
/// CPU's.
[[maybe_unused]] const bool added =
    (partita::codegen::registerCpuBackend("remote-cpu"), true);

} // namespace
