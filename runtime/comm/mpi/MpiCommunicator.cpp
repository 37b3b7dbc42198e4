//===- MpiCommunicator.cpp - Transfers between processes ------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/mpi/MpiCommunicator.h"

#include "runtime/abi/Text.h"
#include "runtime/comm/Ends.h"
#include "runtime/comm/local/Counter.h"
#include "runtime/comm/local/Staged.h"
#include "runtime/comm/mpi/Wait.h"

#include <string>

namespace partita::runtime {

Expected<std::shared_ptr<MpiCommunicator>>
MpiCommunicator::create(MPI_Comm comm, const mpi::Placement &placement,
                        std::vector<ChannelInfo> channels, int micro_batches,
                        mpi::Patience patience,
                        std::vector<CollectiveInfo> collectives) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  if (size != placement.processes())
    return Status::error(std::string(size == 1 ? "there is " : "there are ") +
                         abi::countOf(size, "process", "es") +
                         ", and devices for " +
                         std::to_string(placement.processes()));
  void *attribute = nullptr;
  int found = 0;
  MPI_Comm_get_attr(comm, MPI_TAG_UB, &attribute, &found);
  const int64_t largest = found ? *static_cast<int *>(attribute) : 32767;
  const int64_t sends = int64_t(channels.size()) * micro_batches;
  const int64_t tags = sends + int64_t(collectives.size()) *
                                   mpi::Collectives::tagsEach(placement);
  if (tags - 1 > largest)
    return Status::error(
        "the plan has " + std::to_string(channels.size()) + " channels, " +
        std::to_string(micro_batches) + " micro-batches and " +
        std::to_string(collectives.size()) +
        " collectives, which needs tags up to " + std::to_string(tags - 1) +
        ", but this MPI library ends at " + std::to_string(largest) +
        "; compile the model with fewer micro-batches or devices");
  std::shared_ptr<MpiCommunicator> made(new MpiCommunicator(placement));
  for (const ChannelInfo &channel : channels) {
    const int devices = placement.devices();
    if (channel.source < 0 || channel.source >= devices || channel.target < 0 ||
        channel.target >= devices)
      return Status::error("a channel of the plan joins devices " +
                           std::to_string(channel.source) + " and " +
                           std::to_string(channel.target) + ", but there are " +
                           std::to_string(devices));
    made->layouts.push_back(mpi::Layout::ofBytes(channel.bytes));
  }
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  made->comm = comm;
  made->channels = std::move(channels);
  made->unwaited.assign(size_t(sends), MPI_REQUEST_NULL);
  made->microBatches = micro_batches;
  made->patience = patience;
  made->progress = PARTITA_TRY(mpi::Progress::start(size));
  made->collectives = PARTITA_TRY(mpi::Collectives::create(
      comm, placement, std::move(collectives), int(sends), patience,
      made->aborted, *made->progress));
  return made;
}

MpiCommunicator::~MpiCommunicator() {
  for (mpi::Layout &layout : layouts)
    layout.free();
}

Status MpiCommunicator::checkKey(int channel, int micro_batch,
                                 int64_t bytes) const {
  if (aborted)
    return abortedError();
  if (channel < 0 || size_t(channel) >= channels.size() || micro_batch < 0 ||
      micro_batch >= microBatches)
    return Status::error("there is no channel " + std::to_string(channel) +
                         " for micro-batch " + std::to_string(micro_batch));
  if (bytes != 0 && bytes != channels[size_t(channel)].bytes)
    return Status::error("channel " + std::to_string(channel) + " carries " +
                         std::to_string(channels[size_t(channel)].bytes) +
                         " bytes, not " + std::to_string(bytes));
  return Status();
}

Status MpiCommunicator::send(int channel, int micro_batch, const void *data,
                             int64_t bytes) {
  PARTITA_TRY(checkKey(channel, micro_batch, bytes));
  const mpi::Layout &layout = layouts[size_t(channel)];
  MPI_Request &request = unwaited[size_t(tag(channel, micro_batch))];
  if (request != MPI_REQUEST_NULL)
    return Status::error("the send before has not been waited for");
  int code = MPI_Issend(data, bytes ? layout.count : 0, layout.type,
                        placement.processOf(channels[size_t(channel)].target),
                        tag(channel, micro_batch), comm, &request);
  if (code != MPI_SUCCESS)
    return mpi::failure("MPI_Issend", code);
  progress->posted();
  return Status();
}

Status MpiCommunicator::recv(int channel, int micro_batch, void *data,
                             int64_t bytes) {
  PARTITA_TRY(checkKey(channel, micro_batch, bytes));
  const mpi::Layout &layout = layouts[size_t(channel)];
  const int count = bytes ? layout.count : 0;
  MPI_Request request;
  const int source = channels[size_t(channel)].source;
  int code = MPI_Irecv(data, count, layout.type, placement.processOf(source),
                       tag(channel, micro_batch), comm, &request);
  if (code != MPI_SUCCESS)
    return mpi::failure("MPI_Irecv", code);
  MPI_Status status;
  mpi::Progress::Polling polling(*progress);
  if (Status waited = mpi::wait(request, patience, &aborted, &status);
      !waited.ok()) {
    if (request != MPI_REQUEST_NULL) {
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
    return explain(waited, source);
  }
  int arrived = 0;
  MPI_Get_count(&status, layout.type, &arrived);
  if (arrived != count)
    return Status::error("a message of another size arrived; all processes "
                         "must run the same artifact");
  return Status();
}

Status MpiCommunicator::waitSent(int channel, int micro_batch) {
  PARTITA_TRY(checkKey(channel, micro_batch, 0));
  MPI_Request &request = unwaited[size_t(tag(channel, micro_batch))];
  if (request == MPI_REQUEST_NULL)
    return Status();
  mpi::Progress::Polling polling(*progress);
  if (Status waited = mpi::wait(request, patience, &aborted); !waited.ok())
    return explain(waited, channels[size_t(channel)].target);
  progress->waited();
  return Status();
}

Status MpiCommunicator::explain(const Status &status, int device) const {
  return aborted ? status
                 : Status::error(status.message() + ", waiting for " +
                                 placement.text({device}));
}

std::unique_ptr<Sender> MpiCommunicator::sender(int channel,
                                                const EndMemory &memory) {
  return staged(
      std::make_unique<ChannelSender<MpiCommunicator>>(*this, channel), memory);
}

std::unique_ptr<Receiver> MpiCommunicator::receiver(int channel,
                                                    const EndMemory &memory) {
  return staged(
      std::make_unique<ChannelReceiver<MpiCommunicator>>(*this, channel),
      memory);
}

std::unique_ptr<Participant>
MpiCommunicator::participant(int collective, int device,
                             const EndMemory &memory) {
  return staged(std::make_unique<GroupParticipant<MpiCommunicator>>(
                    *this, collective, device),
                memory);
}

Status MpiCommunicator::start(int collective, int device, int,
                              const void *source, void *target) {
  if (aborted)
    return abortedError();
  return collectives->start(collective, device, source, target);
}

Status MpiCommunicator::finish(int collective, int device, int) {
  if (aborted)
    return abortedError();
  return collectives->finish(collective, device);
}

void MpiCommunicator::abort() {
  aborted = true;
  collectives->wake();
}

} // namespace partita::runtime
