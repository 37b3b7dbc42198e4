//===- Artifact.cpp - A verified, mapped .partita file --------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/artifact/Artifact.h"

#include "runtime/artifact/PlanVerifier.h"
#include "runtime/artifact/SectionTable.h"
#include "runtime/base/Elements.h"
#include "runtime/base/MappedFile.h"
#include "runtime/base/StateParts.h"

#include <algorithm>
#include <map>

namespace partita::runtime {
namespace {

std::string directoryOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

} // namespace

struct Artifact::Impl {
  /// What the plans of a file share.
  struct Files {
    std::shared_ptr<const MappedFile> artifact;
    std::map<std::string, std::shared_ptr<const MappedFile>> weights;
  };

  std::string path;
  std::shared_ptr<Files> files;
  const abi::Plan *plan = nullptr;
  std::vector<ObjectSection> objects;
  PtxSection ptx;
  std::vector<const uint8_t *> weights;

  Status readPlan(const Section &section);
  Status mapWeight(const abi::Weight &weight, const Section &section);
};

Status Artifact::Impl::readPlan(const Section &section) {
  auto broken = [&](const std::string &why) {
    return Status::error("'" + path + "': its plan " + why +
                         ": compile the model again");
  };
  if (section.bytes >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return broken("is larger than 2 GiB");
  flatbuffers::Verifier::Options limits;
  limits.max_depth = 32;
  limits.max_tables = 32u << 20;
  flatbuffers::Verifier verifier(section.data, section.bytes, limits);
  if (!abi::VerifyPlanBuffer(verifier))
    return broken("is not well formed");
  plan = abi::GetPlan(section.data);
  return Status();
}

Status Artifact::Impl::mapWeight(const abi::Weight &weight,
                                 const Section &section) {
  const uint8_t *base = section.data;
  if (length(weight.file()) != 0) {
    std::string name = weight.file()->str();
    auto known = files->weights.find(name);
    if (known == files->weights.end()) {
      auto opened = PARTITA_TRY(
          within("'" + path + "': weight '" + text(weight.name()) + "': ",
                 MappedFile::openContained(directoryOf(path), name)));
      known = files->weights.emplace(name, opened).first;
    }
    uint64_t size = known->second->size();
    uint64_t offset = static_cast<uint64_t>(weight.offset());
    if (offset > size || static_cast<uint64_t>(weight.bytes()) > size - offset)
      return Status::error(
          "'" + path + "': weight '" + text(weight.name()) +
          "' lies at bytes " + std::to_string(offset) + " to " +
          std::to_string(offset + weight.bytes()) + " of '" + name +
          "', which has only " + std::to_string(size) +
          ": the file was cut off or changed; compile the model again");
    base = known->second->data();
  }
  weights.push_back(base ? base + weight.offset() : nullptr);
  return Status();
}

static std::string nameOf(const flatbuffers::String *name) {
  return text(name);
}

/// Why a plan is not for the same model as the first one of its file, or "".
static std::string differs(const abi::Plan &plan, const abi::Plan &first) {
  if (length(plan.dimensions()) != length(first.dimensions()))
    return "has other dimensions";
  for (int64_t i = 0; i < length(plan.dimensions()); ++i)
    if (nameOf(plan.dimensions()->Get(i)->name()) !=
        nameOf(first.dimensions()->Get(i)->name()))
      return "has other dimensions";
  for (auto [mine, others] : {std::pair(plan.inputs(), first.inputs()),
                              std::pair(plan.outputs(), first.outputs())}) {
    auto shown = [&](const abi::Plan &of, const auto *ports) {
      const bool isLast = ports == of.inputs() && of.step_sequences() > 1;
      return length(ports) - isLast;
    };
    if (shown(plan, mine) != shown(first, others))
      return "has other inputs or outputs";
    for (int64_t i = 0; i < shown(plan, mine); ++i)
      if (nameOf(mine->Get(i)->name()) != nameOf(others->Get(i)->name()) ||
          mine->Get(i)->dtype() != others->Get(i)->dtype() ||
          mine->Get(i)->batch_axis() != others->Get(i)->batch_axis() ||
          length(mine->Get(i)->shape()) != length(others->Get(i)->shape()))
        return "has other inputs or outputs";
  }
  return "";
}

static bool isCutAlike(const abi::State &a, const abi::State &b) {
  if (length(a.cuts()) != length(b.cuts()))
    return false;
  for (int64_t i = 0; i < length(a.cuts()); ++i) {
    const abi::Cut &x = at(a.cuts(), i), &y = at(b.cuts(), i);
    if (x.dim() != y.dim() || x.blocks() != y.blocks() ||
        x.part() != y.part() ||
        !std::equal(x.axes()->begin(), x.axes()->end(), y.axes()->begin(),
                    y.axes()->end()))
      return false;
  }
  return true;
}

/// The state that says where a ring begins; of no ring, "".
static std::string placeName(const abi::Plan &plan, const abi::State &state) {
  return state.ring_place() < 0
             ? ""
             : nameOf(plan.states()->Get(unsigned(state.ring_place()))->name());
}

/// Why a plan cannot have the devices of another one of its file, and the
/// states there, or "".
static std::string cannotShare(const abi::Plan &plan, const abi::Plan &other) {
  if (length(plan.devices()) != length(other.devices()))
    return "is for another number of devices";
  for (int64_t i = 0; i < length(plan.devices()); ++i)
    if (plan.devices()->Get(i)->kind() != other.devices()->Get(i)->kind())
      return "is for devices of other kinds";
  std::map<std::string, const abi::State *> others;
  for (const abi::State &state : each(other.states()))
    others[nameOf(state.name())] = &state;
  for (const abi::State &state : each(plan.states())) {
    const auto found = others.find(nameOf(state.name()));
    const bool isCarried = state.role() == abi::StateRole::carried;
    // Of the whole, and of what a device has.
    auto bytesOf = [&](const abi::State &of, const abi::Plan &in) {
      const int sequences = isCarried ? in.step_sequences() : 1;
      return std::pair(of.bytes() / sequences, partBytes(of) / sequences);
    };
    if (found != others.end() &&
        (found->second->dtype() != state.dtype() ||
         found->second->role() != state.role() ||
         bytesOf(*found->second, other) != bytesOf(state, plan) ||
         copiesOf(other, *found->second) != copiesOf(plan, state) ||
         int64_t(other.sequences()) * other.step_sequences() !=
             int64_t(plan.sequences()) * plan.step_sequences() ||
         found->second->ring_dim() != state.ring_dim() ||
         placeName(other, *found->second) != placeName(plan, state) ||
         !isCutAlike(*found->second, state)))
      return "has another state " + nameOf(state.name());
  }
  return "";
}

/// No hash covers the bytes between the weights of an artifact, so they must be
/// zero. Plans may share weights, which is why this looks at all of them.
static Status
checkPadding(const std::string &path, const Section &section,
             const std::vector<std::shared_ptr<const Artifact>> &artifacts) {
  std::vector<std::pair<size_t, size_t>> taken; // begin and end
  for (const auto &artifact : artifacts)
    for (const abi::Weight &weight : each(artifact->plan().weights())) {
      if (length(weight.file()) == 0)
        taken.emplace_back(weight.offset(), weight.offset() + weight.bytes());
    }
  taken.emplace_back(section.bytes, section.bytes);
  std::sort(taken.begin(), taken.end());
  size_t end = 0;
  for (const auto &[begin, next] : taken) {
    for (; end < begin; ++end)
      if (section.data[end] != 0)
        return Status::error("'" + path + "': byte " + std::to_string(end) +
                             " of its weights section belongs to no weight "
                             "and is not zero: restore the file or compile "
                             "the model again");
    end = std::max(end, next);
  }
  return Status();
}

namespace {

constexpr std::string_view kTrain = "train", kEval = "eval";

std::string_view entryOf(const Artifact &artifact) {
  return text(artifact.plan().entry());
}

} // namespace

/// All plans of a file, also those that learn.
Expected<std::vector<std::shared_ptr<const Artifact>>>
Artifact::openPlans(const std::string &path) {
  auto file = PARTITA_TRY(MappedFile::open(path));
  auto files = std::make_shared<Impl::Files>();
  files->artifact = file;
  auto table = PARTITA_TRY(
      readSectionTable(path, files->artifact->data(), files->artifact->size()));
  std::vector<std::shared_ptr<const Artifact>> artifacts;
  for (PlanSections &sections : table.plans) {
    auto impl = std::make_unique<Impl>();
    impl->path = path;
    impl->files = files;
    impl->objects = std::move(sections.objects);
    impl->ptx = sections.ptx;
    PARTITA_TRY(impl->readPlan(sections.plan));
    PARTITA_TRY(verifyPlan(*impl->plan, path,
                           static_cast<int64_t>(table.weights.bytes)));
    bool isFirst = true; // of those for the same
    for (size_t other = 0; other < artifacts.size(); ++other) {
      std::string why = cannotShare(*impl->plan, artifacts[other]->plan());
      if (why.empty() && isFirst &&
          entryOf(*artifacts[other]) == text(impl->plan->entry())) {
        isFirst = false;
        why = differs(*impl->plan, artifacts[other]->plan());
      }
      if (!why.empty())
        return Status::error("'" + path + "': plan " +
                             std::to_string(artifacts.size()) + " " + why +
                             " than plan " + std::to_string(other) +
                             ": compile the model again");
    }
    for (const abi::Weight &weight : each(impl->plan->weights()))
      PARTITA_TRY(impl->mapWeight(weight, table.weights));
    artifacts.push_back(std::make_shared<const Artifact>(std::move(impl)));
  }
  for (const auto &several : artifacts)
    if (several->plan().step_sequences() > 1 &&
        std::none_of(artifacts.begin(), artifacts.end(), [&](const auto &one) {
          return isOfSeveral(several->plan(), one->plan());
        }))
      return Status::error("'" + path +
                           "' has a plan for steps of several sequences, and "
                           "none for one of them: compile the model again");
  PARTITA_TRY(checkPadding(path, table.weights, artifacts));
  return artifacts;
}

Expected<std::vector<std::shared_ptr<const Artifact>>>
Artifact::openAll(const std::string &path) {
  auto artifacts = openPlans(path);
  if (artifacts)
    std::erase_if(*artifacts, [](const std::shared_ptr<const Artifact> &each) {
      return entryOf(*each) == kTrain;
    });
  if (artifacts && artifacts->empty())
    return Status::error("'" + path +
                         "' has no plan that computes outputs: "
                         "compile the model again");
  return artifacts;
}

Expected<Artifact::Training> Artifact::openTraining(const std::string &path) {
  auto artifacts = PARTITA_TRY(openPlans(path));
  Training training;
  for (const std::shared_ptr<const Artifact> &each : artifacts)
    (entryOf(*each) == kTrain ? training.train : training.eval) = each;
  if (!training.train || !training.eval || entryOf(*training.eval) != kEval)
    return Status::error("'" + path +
                         "' is of a model that is not trained: "
                         "compile it with --train or --optimizer");
  return training;
}

Expected<std::shared_ptr<const Artifact>>
Artifact::open(const std::string &path) {
  auto artifacts = PARTITA_TRY(openAll(path));
  // There is one for a step of one sequence.
  while (artifacts.back()->plan().step_sequences() > 1)
    artifacts.pop_back();
  return artifacts.back();
}

Artifact::Artifact(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Artifact::~Artifact() = default;

const std::string &Artifact::path() const { return impl->path; }
const abi::Plan &Artifact::plan() const { return *impl->plan; }
const std::vector<ObjectSection> &Artifact::objects() const {
  return impl->objects;
}
const PtxSection &Artifact::ptx() const { return impl->ptx; }
const uint8_t *Artifact::weight(int index) const {
  return impl->weights[index];
}

Status Artifact::verifyWeights(const std::vector<int> &indices,
                               int threads) const {
  std::vector<WeightBytes> weights;
  for (int index : indices) {
    const abi::Weight &weight = *impl->plan->weights()->Get(index);
    weights.push_back({impl->weights[index],
                       static_cast<size_t>(weight.bytes()), weight.hash()});
  }
  std::optional<size_t> changed = findChanged(weights, threads);
  if (!changed)
    return Status();
  const abi::Weight &weight = *impl->plan->weights()->Get(indices[*changed]);
  std::string file = length(weight.file())
                         ? directoryOf(path()) + "/" + weight.file()->str()
                         : path();
  return Status::error("'" + path() + "': the bytes of weight '" +
                       text(weight.name()) + "' in '" + file +
                       "' are not those the model was compiled with: restore "
                       "the file or compile the model again");
}

} // namespace partita::runtime
