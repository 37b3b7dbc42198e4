//===- PlanMutator.cpp - Mutations of an encoded plan ---------------------===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/PlanMutator.h"

#include "runtime/abi/plan_generated.h"
#include "test/fuzz/Target.h"

#include <flatbuffers/reflection.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

namespace partita::fuzz {
namespace {

using flatbuffers::Table;
using flatbuffers::uoffset_t;
using flatbuffers::voffset_t;

const reflection::Schema &schema() {
  static const std::string bytes = [] {
    std::ifstream file(PARTITA_PLAN_SCHEMA, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  require(!bytes.empty(), "the plan's schema is there");
  return *reflection::GetSchema(bytes.data());
}

class Mutator {
public:
  Mutator(uint8_t *data, uint64_t seed) : data(data), random(seed) {}

  void mutate() {
    visit(flatbuffers::GetAnyRoot(data), *schema().root_table());
    switch (random.below(10)) {
    case 0:
      return changeLength();
    case 1:
      return changeReference();
    case 2:
      return dropField();
    default:
      return changeNumber();
    }
  }

private:
  struct Number {
    uint8_t *at;
    reflection::BaseType type;
  };
  /// A field or element that refers to something of kind `kind`.
  struct Reference {
    uint8_t *at;
    int kind;
  };

  static int kindOf(const reflection::Type &type, reflection::BaseType base) {
    return base == reflection::Obj      ? 1000 + type.index()
           : base == reflection::Vector ? 100 + static_cast<int>(type.element())
                                        : static_cast<int>(base);
  }

  void visit(Table *table, const reflection::Object &object) {
    if (!seen.insert(table).second)
      return;
    for (const reflection::Field *field : *object.fields()) {
      uint8_t *at = table->GetAddressOf(field->offset());
      if (!at)
        continue;
      fields.push_back({table, field->offset()});
      reflection::BaseType base = field->type()->base_type();
      if (flatbuffers::IsScalar(base)) {
        numbers.push_back({at, base});
        continue;
      }
      if (base == reflection::Union) {
        visitUnion(table, *field, at);
        continue;
      }
      if (base == reflection::Obj && structOf(*field->type())) {
        visitStruct(at, *structOf(*field->type()));
        continue;
      }
      int kind = kindOf(*field->type(), base);
      references.push_back({at, kind});
      uint8_t *to = at + flatbuffers::ReadScalar<uoffset_t>(at);
      if (base == reflection::Obj)
        visit(reinterpret_cast<Table *>(to),
              *schema().objects()->Get(
                  static_cast<uoffset_t>(field->type()->index())));
      else if (base == reflection::Vector)
        visitVector(to, *field->type());
    }
  }

  /// Of an object that lies in its place; null for a table.
  static const reflection::Object *structOf(const reflection::Type &type) {
    const auto *object =
        schema().objects()->Get(static_cast<uoffset_t>(type.index()));
    return object->is_struct() ? object : nullptr;
  }

  void visitStruct(uint8_t *data, const reflection::Object &object) {
    for (const reflection::Field *field : *object.fields())
      if (flatbuffers::IsScalar(field->type()->base_type()))
        numbers.push_back({data + field->offset(), field->type()->base_type()});
  }

  void visitUnion(Table *table, const reflection::Field &field, uint8_t *at) {
    const auto *work =
        schema().enums()->Get(static_cast<uoffset_t>(field.type()->index()));
    // The type's own field comes just before.
    uint8_t type = table->GetField<uint8_t>(
        static_cast<voffset_t>(field.offset() - sizeof(voffset_t)), 0);
    const auto *value = work->values()->LookupByKey(type);
    if (value && type != 0)
      visit(reinterpret_cast<Table *>(at +
                                      flatbuffers::ReadScalar<uoffset_t>(at)),
            *schema().objects()->Get(
                static_cast<uoffset_t>(value->union_type()->index())));
  }

  void visitVector(uint8_t *to, const reflection::Type &type) {
    lengths.push_back(to);
    uoffset_t count = flatbuffers::ReadScalar<uoffset_t>(to);
    reflection::BaseType element = type.element();
    const reflection::Object *inlined =
        element == reflection::Obj ? structOf(type) : nullptr;
    size_t size = inlined ? static_cast<size_t>(inlined->bytesize())
                          : flatbuffers::GetTypeSize(element);
    for (uoffset_t i = 0; i < count; ++i) {
      uint8_t *at = to + sizeof(uoffset_t) + i * size;
      if (flatbuffers::IsScalar(element)) {
        numbers.push_back({at, element});
        continue;
      }
      if (inlined) {
        visitStruct(at, *inlined);
        continue;
      }
      references.push_back({at, kindOf(type, element)});
      if (element == reflection::Obj)
        visit(reinterpret_cast<Table *>(at +
                                        flatbuffers::ReadScalar<uoffset_t>(at)),
              *schema().objects()->Get(static_cast<uoffset_t>(type.index())));
    }
  }

  void changeNumber() {
    if (numbers.empty())
      return;
    auto [at, type] = numbers[random.below(numbers.size())];
    size_t size = flatbuffers::GetTypeSize(type);
    if (flatbuffers::IsFloat(type)) {
      static constexpr float kReals[] = {0, -1, 1e30f, -1e-30f};
      float value = kReals[random.below(4)];
      if (size == sizeof(value))
        std::memcpy(at, &value, size);
      return;
    }
    int64_t value = 0;
    std::memcpy(&value, at, size);
    if (size == 4)
      value = static_cast<int32_t>(value);
    // Or the number of another field, which may be an index or a size too.
    if (random.below(3) == 0) {
      Number other = numbers[random.below(numbers.size())];
      std::memcpy(&value, other.at,
                  std::min(size, flatbuffers::GetTypeSize(other.type)));
    } else {
      value = random.vary(value);
    }
    std::memcpy(at, &value, size);
  }

  void changeLength() {
    if (lengths.empty())
      return;
    uint8_t *at = lengths[random.below(lengths.size())];
    uoffset_t count = flatbuffers::ReadScalar<uoffset_t>(at);
    flatbuffers::WriteScalar(at,
                             static_cast<uoffset_t>(random.below(count + 2)));
  }

  void changeReference() {
    if (references.empty())
      return;
    Reference chosen = references[random.below(references.size())];
    for (int tries = 0; tries < 64; ++tries) {
      Reference other = references[random.below(references.size())];
      uint8_t *to = other.at + flatbuffers::ReadScalar<uoffset_t>(other.at);
      if (other.kind != chosen.kind || to <= chosen.at)
        continue;
      flatbuffers::WriteScalar(chosen.at,
                               static_cast<uoffset_t>(to - chosen.at));
      return;
    }
  }

  void dropField() {
    if (fields.empty())
      return;
    auto [table, offset] = fields[random.below(fields.size())];
    auto *vtable = const_cast<uint8_t *>(table->GetVTable());
    flatbuffers::WriteScalar<voffset_t>(vtable + offset, 0);
  }

  uint8_t *data;
  Random random;
  std::set<Table *> seen;
  std::vector<Number> numbers;
  std::vector<Reference> references;
  std::vector<uint8_t *> lengths;
  std::vector<std::pair<Table *, voffset_t>> fields;
};

} // namespace

size_t mutatePlan(uint8_t *data, size_t size, size_t most, unsigned seed) {
  flatbuffers::Verifier verifier(data, size);
  if (seed % 8 == 0 || !abi::VerifyPlanBuffer(verifier))
    return LLVMFuzzerMutate(data, size, most);
  Mutator(data, seed).mutate();
  return size;
}

} // namespace partita::fuzz
