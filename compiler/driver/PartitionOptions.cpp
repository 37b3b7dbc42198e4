//===- PartitionOptions.cpp - What is said of the partition ---------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PartitionOptions.h"

#include "compiler/model/PartitionFile.h"
#include "dialects/dist/DistDialect.h"
#include "dialects/support/Try.h"

using namespace mlir;

namespace partita::driver {

FailureOr<PartitionFacts> readPartitionFacts(Location loc,
                                             const PartitionOptions &options) {
  PartitionFile file = PARTITA_TRY(readPartitionFile(loc, options.file));
  PartitionFacts facts;
  if (options.replicas > 0) {
    facts.replicas = options.replicas;
  } else {
    for (const FileAxis &axis : file.mesh)
      if (axis.name.text == dist::kReplicaAxis)
        facts.replicas = axis.size;
  }
  auto addTarget = [&](const std::string &target) {
    if (!llvm::is_contained(facts.targets, target))
      facts.targets.push_back(target);
  };
  for (const FileText &target : file.targets)
    addTarget(target.text);
  if (facts.targets.empty())
    llvm::for_each(options.targets, addTarget);
  facts.schedule = options.schedule.empty() && file.schedule
                       ? file.schedule->text
                       : options.schedule;
  facts.zero = options.zero == -1 && file.zero ? static_cast<int>(*file.zero)
                                               : options.zero;
  return facts;
}

} // namespace partita::driver
