//===- Program.h - partita-run from its command line on ---------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_PROGRAM_H
#define PARTITA_TOOLS_PARTITA_RUN_PROGRAM_H

namespace partita::run {

/// Does what the command line says and returns the exit status. May be called
/// any number of times, one after another. An error that leaves threads of a
/// session running ends the process.
int runProgram(int argc, char **argv);

/// Bounds how long a thread of an OpenMP team spins for the others before it
/// sleeps. libgomp's default, several milliseconds, is longer than most ops.
/// Beside a foreign process, the waiting thread then uses up the time that the
/// thread it waits for needs, and a step takes thirty times as long. libgomp
/// reads its settings before main. So the program starts itself again with
/// GOMP_SPINCOUNT set, unless the user has set it or OMP_WAIT_POLICY.
void boundSpinning(char **argv);

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_PROGRAM_H
