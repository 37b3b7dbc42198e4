//===- Matrix.cpp - mma, ldmatrix and stmatrix ------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The whole warp holds a matrix: in the manual's figures lane n is in group
// n / 4 and has number n % 4 there. Products are summed in double precision and
// rounded once; the manual leaves the order and the precision of sums open.
//
//===----------------------------------------------------------------------===//

#include "machine/Access.h"
#include "machine/Error.h"
#include "ops/Number.h"
#include "ptx/Forms.h"

#include <cstring>

using namespace gpuemu;

namespace {

constexpr unsigned rows = 16, columns = 8, mostDepth = 16;

/// What a lane's register holds of a factor: `per` values of consecutive depth.
float factor(Warp &w, uint32_t row, unsigned lane, unsigned i, Type type) {
  uint32_t bits = w.row<uint32_t>(row)[lane];
  switch (type) {
  case Type::F16:
    return toFloat(Half{uint16_t(bits >> 16 * i)});
  case Type::BF16:
    return toFloat(BFloat{uint16_t(bits >> 16 * i)});
  default:
    return bitsToFloat(bits & ~uint32_t(0x1fff)); // tf32
  }
}

/// d = a b + c; `count`: the depth; `type`: of the factors; `mode`: whether the
/// sums are f16. The list holds the rows of d, a, b and c.
void multiply(Warp &w, const Instruction &x) {
  if (w.active != allLanes)
    failAt(LaunchFailed, "mma by a part of a warp", w, x,
           unsigned(__builtin_ctz(w.active)));
  const uint32_t *list = &w.block->program->lists[x.list];
  unsigned depth = x.count, per = x.type == Type::TF32 ? 1 : 2;
  unsigned half = depth / 2 < 4 * per ? depth : 4 * per;
  unsigned steps = depth / half;
  const uint32_t *d = list, *a = d + (x.mode ? 2 : 4), *b = a + 2 * steps,
                 *c = b + steps;
  double left[rows][mostDepth], right[mostDepth][columns];
  for (unsigned n = 0; n < 32; ++n) {
    unsigned group = n / 4, number = n % 4;
    for (unsigned step = 0; step < steps; ++step)
      for (unsigned i = 0; i < per; ++i) {
        unsigned k = step * half + number * per + i;
        left[group][k] = factor(w, a[2 * step], n, i, x.type);
        left[group + 8][k] = factor(w, a[2 * step + 1], n, i, x.type);
        right[k][group] = factor(w, b[step], n, i, x.type);
      }
  }
  float result[32][4];
  for (unsigned n = 0; n < 32; ++n)
    for (unsigned i = 0; i < 4; ++i) {
      unsigned row = n / 4 + (i < 2 ? 0 : 8), column = n % 4 * 2 + i % 2;
      double sum = x.mode ? toFloat(Half{uint16_t(
                                w.row<uint32_t>(c[i / 2])[n] >> 16 * (i % 2))})
                          : w.row<float>(c[i])[n];
      for (unsigned k = 0; k < depth; ++k)
        sum += left[row][k] * right[k][column];
      result[n][i] = canonical(float(sum));
    }
  for (unsigned n = 0; n < 32; ++n)
    for (unsigned i = 0; i < 4; i += x.mode ? 2 : 1) {
      if (x.mode)
        w.row<uint32_t>(d[i / 2])[n] = uint32_t(roundHalf(result[n][i])) |
                                       uint32_t(roundHalf(result[n][i + 1]))
                                           << 16;
      else
        w.row<float>(d[i])[n] = result[n][i];
    }
}

void multiplyForm(const Match &m, Operands &o) {
  o.expect(4);
  // sync, aligned, shape, row, col, d, a, b, c
  Type type = m.type(6);
  unsigned depth = m[2] == "m16n8k16" ? 16 : m[2] == "m16n8k8" ? 8 : 4;
  bool narrowSums = m.type(5) == Type::F16;
  unsigned words = depth / (type == Type::TF32 ? 1 : 2);
  size_t leftCount = words / 2, rightCount = words / 4,
         sums = narrowSums ? 2 : 4;
  Type factors = type == Type::TF32 ? Type::B32 : Type::B32;
  Type sumType = narrowSums ? Type::B32 : Type::F32;
  std::vector<uint32_t> list = o.vectorResults(0, 4, sums);
  for (const auto &part : {o.vectorSources(1, factors, leftCount),
                           o.vectorSources(2, factors, rightCount),
                           o.vectorSources(3, sumType, sums)})
    list.insert(list.end(), part.begin(), part.end());
  o.x.list = o.list(list);
  o.x.count = uint8_t(depth);
  o.x.type = type;
  o.x.mode = narrowSums;
  o.x.flow = Flow::Together;
  o.x.run = multiply;
}

/// Moves 8x8 matrices of 16 bits: lane q * 8 + r gives the address of row r of
/// matrix q, and lane n holds two elements of row n / 4. `mode`: transposed;
/// `negated`: from registers to memory.
void moveMatrices(Warp &w, const Instruction &x) {
  if (w.active != allLanes)
    failAt(LaunchFailed, "matrices moved by a part of a warp", w, x,
           unsigned(__builtin_ctz(w.active)));
  const uint32_t *list = &w.block->program->lists[x.list];
  bool stores = x.negated;
  for (unsigned q = 0; q < x.count; ++q) {
    uint16_t matrix[8][8];
    uint32_t *row = w.row<uint32_t>(list[q]);
    auto each = [&](auto f) {
      for (unsigned n = 0; n < 32; ++n)
        for (unsigned i = 0; i < 2; ++i)
          f(n, i,
            x.mode ? matrix[n % 4 * 2 + i][n / 4]
                   : matrix[n / 4][n % 4 * 2 + i]);
    };
    if (stores)
      each([&](unsigned n, unsigned i, uint16_t &element) {
        element = uint16_t(row[n] >> 16 * i);
      });
    for (unsigned r = 0; r < 8; ++r) {
      uint64_t address = sharedAddress(addressOf(w, x, q * 8 + r));
      if (address % 16)
        failAt(MisalignedAddress,
               "a row of a matrix is not aligned to 16 bytes", w, x, q * 8 + r);
      // The lane that has the elements reads or writes them.
      for (unsigned part = 0; part < 4; ++part) {
        Reached found =
            reach(w, x, r * 4 + part, Space::Shared, address + 4 * part, 4,
                  stores ? AccessKind::Write : AccessKind::Read);
        if (stores) {
          memcpy(found.data, &matrix[r][2 * part], 4);
          if (found.written)
            memset(found.written, 1, 4);
        } else {
          memcpy(&matrix[r][2 * part], found.data, 4);
        }
      }
    }
    if (!stores) {
      memset(row, 0, 32 * sizeof *row);
      each([&](unsigned n, unsigned i, uint16_t element) {
        row[n] |= uint32_t(element) << 16 * i;
      });
    }
  }
}

void matricesForm(const Match &m, Operands &o, bool stores) {
  o.expect(2);
  size_t count = m.has("x4") ? 4 : m.has("x2") ? 2 : 1;
  Space space = Space::Shared;
  o.address(stores ? 0 : 1, space);
  o.x.list = o.list(stores ? o.vectorSources(1, Type::B32, count)
                           : o.vectorResults(0, 4, count));
  o.x.count = uint8_t(count);
  o.x.mode = m.has("trans");
  o.x.negated = stores;
  o.x.flow = Flow::Together;
  o.x.run = moveMatrices;
}

} // namespace

void gpuemu::addMatrixForms(FormTable &t) {
  t.add("mma.sync.aligned.(m16n8k16|m16n8k8).row.col.f32.f16.f16.f32",
        multiplyForm);
  t.add("mma.sync.aligned.(m16n8k16|m16n8k8).row.col.f16.f16.f16.f16",
        multiplyForm);
  t.add("mma.sync.aligned.(m16n8k16|m16n8k8).row.col.f32.bf16.bf16.f32",
        multiplyForm);
  t.add("mma.sync.aligned.(m16n8k8|m16n8k4).row.col.f32.tf32.tf32.f32",
        multiplyForm);
  t.add(
      "ldmatrix.sync.aligned.m8n8.(x1|x2|x4).[trans].(shared|shared::cta).b16",
      [](const Match &m, Operands &o) { matricesForm(m, o, false); });
  t.add(
      "stmatrix.sync.aligned.m8n8.(x1|x2|x4).[trans].(shared|shared::cta).b16",
      [](const Match &m, Operands &o) { matricesForm(m, o, true); });
}
