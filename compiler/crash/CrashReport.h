//===- CrashReport.h - The report of a crash --------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever a user gives, the compiler's answer is a result or an error message.
// An abort, a failed assertion, a signal, a stack overflow, a fatal error of
// LLVM or an uncaught exception is a bug of Partita. The process then prints
// one line and ends with exit status 70 (EX_SOFTWARE):
//
//   partita-compile: error: a bug of Partita's: assertion 'i < size()' failed
//   (SmallVector.h:303), in nn-fold-scale, at node '/conv1/Conv'; please report
//   it with the model and the command
//
// Files that were being written are removed.
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_COMPILER_CRASH_CRASHREPORT_H
#define PARTITA_COMPILER_CRASH_CRASHREPORT_H

namespace mlir {
class MLIRContext;
}

namespace partita::crash {

inline constexpr int kExitStatus = 70;

/// Installs the handlers: from here on a crash ends in that line and that exit
/// status. `tool` is the first word of the line, and must live as long as the
/// process. In a build with AddressSanitizer, its handlers keep the signals.
void installCrashReport(const char *tool);

/// Records each pass, and each op that a pattern is applied to, as the thread's
/// place (Place.h).
void trackPlaces(mlir::MLIRContext &context);

} // namespace partita::crash

#endif // PARTITA_COMPILER_CRASH_CRASHREPORT_H
