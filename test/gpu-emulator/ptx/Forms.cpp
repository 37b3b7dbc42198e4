//===- Forms.cpp - The instructions that the emulator knows -----*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ptx/Forms.h"

#include <algorithm>

using namespace gpuemu;

namespace {

/// The words between the dots; `shared::cta` is one.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> result;
  while (true) {
    size_t end = text.find(separator);
    result.push_back(text.substr(0, end));
    if (end == std::string_view::npos)
      return result;
    text.remove_prefix(end + 1);
  }
}

} // namespace

bool Match::has(std::string_view modifier) const {
  return std::find(parts.begin(), parts.end(), modifier) != parts.end();
}

Type Match::type(size_t i) const {
  return typeNamed(parts[i]).value_or(Type::None);
}

FormTable::FormTable() {
  addIntegerForms(*this);
  addBitForms(*this);
  addFloatForms(*this);
  addHalfForms(*this);
  addFunctionForms(*this);
  addCompareForms(*this);
  addMoveForms(*this);
  addConvertForms(*this);
  addMemoryForms(*this);
  addAtomicForms(*this);
  addCopyForms(*this);
  addWarpForms(*this);
  addMatrixForms(*this);
  addFlowForms(*this);
}

const FormTable &FormTable::get() {
  static const FormTable table;
  return table;
}

void FormTable::add(std::string_view pattern, Build build) {
  Form form;
  std::vector<std::string_view> words = split(pattern, '.');
  for (size_t i = 1; i < words.size(); ++i) {
    std::string_view word = words[i];
    Part part;
    part.optional = word.front() == '[';
    if (part.optional || word.front() == '(')
      word = word.substr(1, word.size() - 2);
    for (std::string_view alternative : split(word, '|'))
      part.alternatives.emplace_back(alternative);
    form.parts.push_back(std::move(part));
  }
  form.build = std::move(build);
  forms[std::string(words[0])].push_back(std::move(form));
}

bool FormTable::matches(const Form &form,
                        const std::vector<std::string_view> &words,
                        Match &match, size_t part, size_t word) {
  if (part == form.parts.size())
    return word == words.size();
  const Part &here = form.parts[part];
  match.parts[part] = {};
  if (word < words.size() &&
      std::find(here.alternatives.begin(), here.alternatives.end(),
                words[word]) != here.alternatives.end()) {
    match.parts[part] = words[word];
    if (matches(form, words, match, part + 1, word + 1))
      return true;
    match.parts[part] = {};
  }
  return here.optional && matches(form, words, match, part + 1, word);
}

bool FormTable::build(std::string_view opcode, Operands &operands) const {
  std::vector<std::string_view> words = split(opcode, '.');
  auto found = forms.find(std::string(words[0]));
  if (found == forms.end())
    return false;
  for (const Form &form : found->second) {
    Match match;
    match.parts.resize(form.parts.size());
    if (!matches(form, words, match, 0, 1))
      continue;
    form.build(match, operands);
    return true;
  }
  return false;
}

bool FormTable::knowsName(std::string_view name) const {
  return forms.count(std::string(name)) != 0;
}
