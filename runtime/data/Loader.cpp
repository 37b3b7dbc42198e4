//===- Loader.cpp - Steps of samples, filled ahead ------------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

namespace partita::data {

using runtime::Expected;
using runtime::Status;
using runtime::Tensor;

namespace {

std::string typeText(abi::DType dtype, const std::vector<int64_t> &shape) {
  return std::string(runtime::dtypeName(dtype)) + " " +
         runtime::shapeText(shape);
}

/// How many epochs there can be: the running number of a sample must fit into
/// 63 bits.
int64_t mostEpochs(int64_t samples) {
  return std::min(Order::kEpochs,
                  std::numeric_limits<int64_t>::max() / samples);
}

/// The fewest samples of a step.
int64_t partOf(const LoaderOptions &options) {
  return options.samplesPerPart > 0 ? options.samplesPerPart
                                    : options.samplesPerStep;
}

Status checkInputs(const std::vector<LoaderInput> &inputs,
                   const LoaderOptions &options) {
  if (inputs.empty())
    return Status::error("there are no samples to load; name a file for each "
                         "input of the model");
  const Dataset &first = *inputs.front().samples;
  std::set<std::string> names;
  for (const LoaderInput &input : inputs) {
    if (!names.insert(input.name).second)
      return Status::error("input '" + input.name +
                           "' has samples twice; leave out one of them");
    if (input.samples->count() != first.count())
      return Status::error(
          "the numbers of samples differ: " + first.name() + " has " +
          std::to_string(first.count()) + " and " + input.samples->name() +
          " has " + std::to_string(input.samples->count()) +
          "; sample i of one belongs to sample i of the other");
  }
  if (options.samplesPerStep < 1 || options.buffers < 1)
    return Status::error("a loader needs at least one sample a step, and one "
                         "buffer");
  if (options.samplesPerPart < 0 ||
      options.samplesPerStep % partOf(options) != 0)
    return Status::error("a step has no whole number of parts");
  if (first.count() < partOf(options))
    return Status::error("a step takes " + std::to_string(partOf(options)) +
                         " samples, but " + first.name() + " has only " +
                         std::to_string(first.count()));
  if (options.epoch < 0 || options.epoch >= mostEpochs(first.count()) ||
      options.position < 0 || options.position > first.count())
    return Status::error("cannot begin at position " +
                         std::to_string(options.position) + " of epoch " +
                         std::to_string(options.epoch) + ": an epoch has " +
                         std::to_string(first.count()) + " samples");
  return Status();
}

} // namespace

struct Loader::Impl {
  /// A step's buffer and who has it.
  struct Buffer {
    enum class Owner { thread, ring, caller };

    LoadedStep step;
    Owner owner = Owner::thread;
  };

  /// How samples of an input get into a buffer.
  struct Route {
    LoaderInput input;
    Conversion conversion;
    int64_t bytes = 0; ///< of a sample of the input
  };

  ~Impl();

  static Expected<Route> makeRoute(LoaderInput input);

  Status prepare(std::vector<LoaderInput> inputs, const LoaderOptions &options,
                 int64_t samples);
  /// What the thread does.
  void run();
  /// Fills steps from a position to the end of an epoch. False if there are to
  /// be no more.
  bool fillEpoch(int64_t position);
  Status fill(Buffer &buffer);
  Status copy(const Route &route, int64_t sample, uint8_t *to);
  /// Waits until a buffer may be filled. Null if the loader is to end.
  Buffer *waitForRoom();

  LoaderOptions options;
  int64_t count = 0;
  std::vector<Route> routes;
  std::vector<Buffer> buffers;
  Tensor scratch; ///< a sample before its conversion
  std::optional<Order> order;
  size_t toFill = 0; ///< of the thread
  size_t toGive = 0; ///< of whoever calls `next`
  std::atomic<int64_t> waited = 0;

  std::mutex mutex; ///< for owners of buffers, `ended` and `failure`
  std::condition_variable changed;
  std::atomic<bool> stopping = false; ///< set under the mutex
  bool ended = false;                 ///< the thread fills no more steps
  Status failure;
  std::jthread thread; ///< the last, so that it ends before all else
};

Loader::Impl::~Impl() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
}

Expected<Loader::Impl::Route> Loader::Impl::makeRoute(LoaderInput input) {
  const Dataset &from = *input.samples;
  const std::string refused = "input '" + input.name +
                              "' cannot have the samples of " + from.name() +
                              ": ";
  std::optional<int64_t> elements = runtime::elementCount(input.shape);
  if (!elements || *elements != from.sampleElements())
    return Status::error(
        refused + "a sample is " + typeText(from.dtype(), from.sampleShape()) +
        ", and the input's is " + typeText(input.dtype, input.shape) +
        "; both must have the same number of elements");
  Route route;
  route.conversion = PARTITA_TRY(within(
      refused, Conversion::create(from.dtype(), input.dtype, input.scale)));
  route.bytes = *elements * runtime::elementBytes(input.dtype);
  route.input = std::move(input);
  return route;
}

Status Loader::Impl::prepare(std::vector<LoaderInput> inputs,
                             const LoaderOptions &given, int64_t samples) {
  options = given;
  count = samples;
  int64_t largest = 0;
  for (LoaderInput &input : inputs) {
    Route route = PARTITA_TRY(makeRoute(std::move(input)));
    if (!route.conversion.isCopy())
      largest = std::max(largest, route.input.samples->sampleBytes());
    routes.push_back(std::move(route));
  }
  scratch = PARTITA_TRY(Tensor::allocate(abi::DType::u8, {largest},
                                         "a sample before its conversion"));
  order = PARTITA_TRY(Order::create(options.order, count, options.seed));

  buffers.resize(size_t(options.buffers));
  for (Buffer &buffer : buffers)
    for (const Route &route : routes) {
      std::vector<int64_t> shape = {options.samplesPerStep};
      shape.insert(shape.end(), route.input.shape.begin(),
                   route.input.shape.end());
      buffer.step.inputs.push_back(PARTITA_TRY(Tensor::allocate(
          route.input.dtype, std::move(shape),
          "a step's samples of input '" + route.input.name + "'")));
    }
  return Status();
}

void Loader::Impl::run() {
  int64_t position = options.position;
  int64_t end = mostEpochs(count);
  if (options.endEpoch >= 0)
    end = std::min(end, options.endEpoch);
  for (int64_t epoch = options.epoch; epoch < end; ++epoch) {
    order->begin(epoch, &stopping);
    if (!fillEpoch(position))
      break;
    position = 0;
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    ended = true;
  }
  changed.notify_all();
}

bool Loader::Impl::fillEpoch(int64_t position) {
  const int64_t part = partOf(options);
  int64_t filled = 0;
  for (; part <= count - position; position += filled) {
    filled = std::min(options.samplesPerStep, (count - position) / part * part);
    Buffer *buffer = waitForRoom();
    if (!buffer)
      return false;
    buffer->step.epoch = order->epoch();
    buffer->step.position = position;
    buffer->step.firstSample = order->epoch() * count + position;
    buffer->step.samples = filled;
    Status status = fill(*buffer);
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (status.ok())
        buffer->owner = Buffer::Owner::ring;
      else
        failure = status;
    }
    if (!status.ok())
      return false;
    changed.notify_all();
    toFill = (toFill + 1) % buffers.size();
  }
  return !stopping;
}

Loader::Impl::Buffer *Loader::Impl::waitForRoom() {
  Buffer &buffer = buffers[toFill];
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(
      lock, [&] { return stopping || buffer.owner == Buffer::Owner::thread; });
  return stopping ? nullptr : &buffer;
}

Status Loader::Impl::fill(Buffer &buffer) {
  for (size_t i = 0; i < routes.size(); ++i) {
    uint8_t *to = buffer.step.inputs[i].mutableData();
    for (int64_t s = 0; s < buffer.step.samples; ++s) {
      // What is filled when the loader ends is thrown away.
      if (stopping.load(std::memory_order_relaxed))
        return Status();
      PARTITA_TRY(copy(routes[i], order->at(buffer.step.position + s), to));
      to += routes[i].bytes;
    }
  }
  return Status();
}

Status Loader::Impl::copy(const Route &route, int64_t sample, uint8_t *to) {
  const Dataset &from = *route.input.samples;
  if (route.conversion.isCopy()) {
    from.copySample(sample, to);
    return Status();
  }
  uint8_t *const before = scratch.mutableData();
  from.copySample(sample, before);
  const int64_t wrong =
      route.conversion.convert(before, to, from.sampleElements());
  if (wrong < 0)
    return Status();
  const uint8_t *element = before + wrong * runtime::elementBytes(from.dtype());
  uint64_t unsignedValue = 0;
  if (from.dtype() == abi::DType::u64)
    std::memcpy(&unsignedValue, element, sizeof(unsignedValue));
  return Status::error(
      "sample " + std::to_string(sample) + " of " + from.name() +
      ": its element " + std::to_string(wrong) + " is " +
      (from.dtype() == abi::DType::u64
           ? std::to_string(unsignedValue)
           : std::to_string(runtime::toInteger(from.dtype(), element))) +
      ", which does not fit into " + runtime::dtypeName(route.input.dtype) +
      ", the type of input '" + route.input.name + "'");
}

Loader::Loader(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Loader::~Loader() = default;

Expected<std::unique_ptr<Loader>>
Loader::create(std::vector<LoaderInput> inputs, const LoaderOptions &options) {
  PARTITA_TRY(checkInputs(inputs, options));
  const int64_t samples = inputs.front().samples->count();
  auto impl = std::make_unique<Impl>();
  PARTITA_TRY(impl->prepare(std::move(inputs), options, samples));
  Impl *self = impl.get();
  impl->thread = std::jthread([self] { self->run(); });
  return std::unique_ptr<Loader>(new Loader(std::move(impl)));
}

Expected<const LoadedStep *> Loader::next() {
  using Buffer = Impl::Buffer;
  Buffer &buffer = impl->buffers[impl->toGive];
  std::unique_lock<std::mutex> lock(impl->mutex);
  auto isReady = [&] {
    return buffer.owner == Buffer::Owner::ring || impl->ended;
  };
  if (!isReady()) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    impl->changed.wait(lock, isReady);
    impl->waited += std::chrono::nanoseconds(Clock::now() - begin).count();
  }
  if (buffer.owner == Buffer::Owner::ring) {
    buffer.owner = Buffer::Owner::caller;
    impl->toGive = (impl->toGive + 1) % impl->buffers.size();
    return &buffer.step;
  }
  if (!impl->failure.ok())
    return impl->failure;
  return nullptr;
}

void Loader::release(const LoadedStep *step) {
  {
    std::lock_guard<std::mutex> lock(impl->mutex);
    for (Impl::Buffer &buffer : impl->buffers)
      if (&buffer.step == step)
        buffer.owner = Impl::Buffer::Owner::thread;
  }
  impl->changed.notify_all();
}

int64_t Loader::samples() const { return impl->count; }
int64_t Loader::stepsPerEpoch() const {
  const int64_t used = impl->count - samplesDropped();
  return (used + impl->options.samplesPerStep - 1) /
         impl->options.samplesPerStep;
}
int64_t Loader::samplesDropped() const {
  return impl->count % partOf(impl->options);
}
int64_t Loader::waitedNs() const { return impl->waited; }

} // namespace partita::data
