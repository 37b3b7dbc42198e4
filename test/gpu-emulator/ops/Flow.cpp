//===- Flow.cpp - Barriers, returns and traps -------------------*- C++ -*-===//
//
// Part of Partita, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What these instructions do is in machine/Interpreter.cpp, which knows where
// lanes go on.
//
//===----------------------------------------------------------------------===//

#include "machine/Error.h"
#include "machine/Interpreter.h"
#include "ptx/Forms.h"

using namespace gpuemu;

namespace {

void trap(Warp &w, const Instruction &x) {
  failAt(LaunchFailed, "a trap", w, x, unsigned(__builtin_ctz(w.active)));
}

/// bar.sync a{, b}: `a` names the barrier, `b` the number of threads.
void barrier(Operands &o, bool aligned, bool arrives) {
  o.expect(1, 2);
  if (arrives)
    o.expect(2);
  o.x.flow = Flow::Barrier;
  o.x.a = o.source(0, Type::B32);
  if (o.size() == 2)
    o.x.b = o.source(1, Type::B32);
  o.x.wide = aligned;
  o.x.mode = arrives ? BarrierArrive : BarrierSync;
}

/// bar.red.op d, a{, b}, {!}c: all threads get the reduction of c.
void barrierReduction(const Match &m, Operands &o, bool aligned) {
  o.expect(3, 4);
  size_t last = o.size() - 1;
  o.x.flow = Flow::Barrier;
  o.x.a = o.source(1, Type::B32);
  if (o.size() == 4)
    o.x.b = o.source(2, Type::B32);
  o.x.c = o.predicateSource(last, o.x.negated);
  o.x.wide = aligned;
  if (m.has("popc")) {
    o.x.mode = BarrierCount;
    o.x.d = o.result(0, 4);
  } else {
    o.x.mode = m.has("and") ? BarrierAnd : BarrierOr;
    o.x.d = o.predicateResult(0);
  }
}

} // namespace

void gpuemu::addFlowForms(FormTable &t) {
  auto flow = [](Flow kind) {
    return [kind](const Match &, Operands &o) {
      o.expect(0);
      o.x.flow = kind;
    };
  };
  t.add("ret.[uni]", flow(Flow::Return));
  t.add("exit", flow(Flow::Exit));
  auto trapForm = [](const Match &, Operands &o) {
    o.expect(0);
    o.x.run = trap;
  };
  t.add("trap", trapForm);
  t.add("nanosleep.u32", [](const Match &, Operands &o) {
    o.expect(1);
    o.source(0, Type::U32);
    o.x.run = [](Warp &, const Instruction &) {};
  });
  for (std::string name : {"bar", "bar.cta"}) {
    t.add(name + ".sync",
          [](const Match &, Operands &o) { barrier(o, true, false); });
    t.add(name + ".arrive",
          [](const Match &, Operands &o) { barrier(o, true, true); });
    t.add(name + ".red.popc.u32",
          [](const Match &m, Operands &o) { barrierReduction(m, o, true); });
    t.add(name + ".red.(and|or).pred",
          [](const Match &m, Operands &o) { barrierReduction(m, o, true); });
  }
  t.add("barrier.[cta].sync.[aligned]", [](const Match &m, Operands &o) {
    barrier(o, m.has("aligned"), false);
  });
  t.add("barrier.[cta].arrive.[aligned]", [](const Match &m, Operands &o) {
    barrier(o, m.has("aligned"), true);
  });
  t.add("barrier.[cta].red.popc.[aligned].u32",
        [](const Match &m, Operands &o) {
          barrierReduction(m, o, m.has("aligned"));
        });
  t.add("barrier.[cta].red.(and|or).[aligned].pred",
        [](const Match &m, Operands &o) {
          barrierReduction(m, o, m.has("aligned"));
        });
}
