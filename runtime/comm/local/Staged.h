//===- Staged.h - Bytes of devices through the host -------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For a communicator that carries only bytes of the host: each end has buffers
// there, and copies between them and the device's memory on the device's queue.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_RUNTIME_COMM_LOCAL_STAGED_H
#define PARTITA_RUNTIME_COMM_LOCAL_STAGED_H

#include "runtime/comm/Communicator.h"

#include <memory>

namespace partita::runtime {

/// An end for bytes of the host as one for bytes of a memory; the end itself if
/// that is the host's.
std::unique_ptr<Sender> staged(std::unique_ptr<Sender> end,
                               const EndMemory &memory);
std::unique_ptr<Receiver> staged(std::unique_ptr<Receiver> end,
                                 const EndMemory &memory);
std::unique_ptr<Participant> staged(std::unique_ptr<Participant> part,
                                    const EndMemory &memory);

} // namespace partita::runtime

#endif // PARTITA_RUNTIME_COMM_LOCAL_STAGED_H
