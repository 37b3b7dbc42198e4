//===- main.cpp - NCCL's tests, in one process or several -----------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   partita_nccl_tests
//   mpirun -n 4 partita_nccl_tests
//
//===----------------------------------------------------------------------===//

#include "test/unit/nccl/Fleet.h"

#ifdef PARTITA_WITH_MPI
#include "runtime/comm/mpi/Job.h"
#include "runtime/comm/mpi/MixedCommunicator.h"
#include "runtime/comm/mpi/Wait.h"
#endif

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
#ifdef PARTITA_WITH_MPI
  using namespace partita;
  using namespace partita::runtime;
  if (mpi::launched()) {
    auto job = mpi::Job::start();
    if (!job)
      return 1;
    auto placement = mpi::Placement::even(test::kDevices, (*job)->size());
    if (!placement) {
      std::fprintf(stderr, "%s\n", placement.status().message().c_str());
      (*job)->abort();
    }
    test::World &world = test::world();
    world.rank = world.processes.rank = (*job)->rank();
    for (int device = 0; device < test::kDevices; ++device)
      world.process_of[size_t(device)] = placement->processOf(device);
    world.processes.process_of = world.process_of;
    world.processes.gather_all = [&](std::span<const uint8_t> bytes) {
      return (*job)->gatherAll(bytes);
    };
    world.processes.interrupted = [] {
      return mpi::isInterrupted() ? mpi::interruptedError() : Status();
    };
    world.base = [&](const nccl::Traffic &traffic, double timeout_s) {
      MPI_Comm comm;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      auto made = MixedCommunicator::create(comm, *placement, traffic.channels,
                                            traffic.micro_batches, timeout_s,
                                            false, traffic.collectives);
      EXPECT_TRUE(made.ok()) << made.status().message();
      return made ? *made : nullptr;
    };
    world.barrier = [&] { (void)(*job)->barrier(); };
    if (RUN_ALL_TESTS())
      (*job)->abort();
    return 0;
  }
#endif
  return RUN_ALL_TESTS();
}
