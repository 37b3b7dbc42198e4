//===- Format.h - Numbers and tables for people -----------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_PARTITA_RUN_SHOW_FORMAT_H
#define PARTITA_TOOLS_PARTITA_RUN_SHOW_FORMAT_H

#include "runtime/abi/Text.h"

#include <nlohmann/json.hpp>

namespace partita::run {

using abi::bytesText;
using abi::countOf;
using abi::numberText;
using abi::percentText;
using abi::Table;
using abi::timeText;

/// As text, in which U+FFFD stands for bytes of names that are no UTF-8.
inline std::string dump(const nlohmann::ordered_json &json, int indent = -1) {
  return json.dump(indent, ' ', false,
                   nlohmann::json::error_handler_t::replace);
}

} // namespace partita::run

#endif // PARTITA_TOOLS_PARTITA_RUN_SHOW_FORMAT_H
