#!/usr/bin/env python3
"""How good the random models are: puts faults into a copy of the sources, one at a time, and says which the bounded run finds. By hand, not a test:
each fault takes a build and a run.

    mutants.py SCRATCH                 all faults; SCRATCH becomes a clone of this repository, and keeps its build for the next time
    mutants.py SCRATCH --only 3,7      some of them
    mutants.py SCRATCH --models 2000   longer runs
    mutants.py SCRATCH --gradients     other faults, in derivatives: by test/executed/gradients.py and run.py --gradients, or else the tests of passes
    mutants.py --places                only sees that the place of each fault is in the sources, once (a test)

A fault is found if a model differs that does not without it, or if a test fails that passes without it. The sources of SCRATCH are as they were when
this ends, also by a signal. Exit status 1: more than one fault in twenty was not found.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]

# file, what is there, what stands there instead, what that is. The text is there once.
FAULTS = [
    ("dialects/nn/StridedLayout.cpp", "if (!first && stride != strides[i] * shape[i])", "if (false)", "dimensions are merged that do not follow each other"),
    ("dialects/nn/StridedLayout.cpp", "view.strides[i] *= getStrides()[i];", "", "a slice's step is forgotten"),
    ("dialects/nn/StridedLayout.cpp", "result.permute(invertPermutationVector(getPermutation()))", "result.permute(getPermutation())", "a transpose of a result is undone the wrong way"),
    ("dialects/nn/StridedLayout.cpp", "view.offset += getStarts()[i] * view.strides[i];", "view.offset += getStarts()[i];", "a slice's start is no address"),
    ("compiler/codegen/calls/Activation.cpp", "if (count == 1 && passes)", "if (passes)", "what came before an exp, sqrt or log is forgotten"),
    ("compiler/codegen/calls/Activation.cpp", "<= 2e-6 * std::fabs(wanted)", "<= 2e-2 * std::fabs(wanted)", "functions that are nearly the same are the same"),
    ("compiler/codegen/calls/CallMatcher.cpp", "plan::PostOpKind::linear, -1.0, 0.0", "plan::PostOpKind::linear, 1.0, 0.0", "y - product is y + product"),
    ("compiler/codegen/calls/PoolViews.cpp", "std::abs(postOp.alpha * llvm::product_of(sizes) - 1) <= 1e-6", "true", "any scaled sum of a window is an average"),
    ("dialects/nn/emit/ShapeElements.cpp", "inRange(b, {}, position[dim], start, end);", "inRange(b, {}, position[dim], start, end + 1);", "a concatenation reads one past a part"),
    ("dialects/nn/emit/ShapeElements.cpp", "getShape(getX())[dim] - 1);", "getShape(getX())[dim] - 2);", "a reversal is one off"),
    ("compiler/codegen/kernels/KernelSchedule.cpp", "if (map != written || target.op.getNumReductionLoops() != 0)", "if (target.op.getNumReductionLoops() != 0)", "a result takes the bytes of an operand that is read elsewhere"),
    ("compiler/codegen/kernels/EmitBody.cpp", "if (point.high <= range->first || point.low >= range->second)", "if (point.high < range->first || point.low >= range->second)", "the end of a range of a condition is off by one"),
    ("compiler/codegen/cpu/onednn/ConvRule.cpp", "if (dim != 1 && view.shape[dim] != 1 && stride != 0)\n      return {};", "(void)dim, (void)stride;", "what differs from pixel to pixel is a bias"),
    ("compiler/codegen/cpu/onednn/CallRule.cpp", "view.shape == call.output.shape && view.strides == call.output.strides &&", "view.shape == call.output.shape &&", "a tensor of another order is summed in place"),
    ("compiler/simplify/FoldScale.cpp", "Value scaled = nn::MulOp::create(b, loc, broadcast.getX(), smallFactor);", "Value scaled = broadcast.getX();", "a bias is not scaled"),
    ("compiler/simplify/FoldScale.cpp", "return x.getDims() == y.getDims() && x.getX().getType() == y.getX().getType();", "return x.getX().getType() == y.getX().getType();", "terms along different dimensions are merged"),
    ("compiler/simplify/ChannelsLast.cpp", "Operation *moved = permutable.buildPermuted(b, inverse, operands);", "Operation *moved = permutable.buildPermuted(b, order, operands);", "an op's dimensions are permuted the wrong way"),
    ("compiler/simplify/ChannelsLast.cpp", "nn::permuted(inner.getPermutation(), perm);", "nn::permuted(perm, inner.getPermutation());", "two transposes are composed the wrong way"),
    ("compiler/simplify/RaiseAttention.cpp", "scores.negateMaskAdd = isa<nn::SubOp>(op);", "scores.negateMaskAdd = false;", "a mask is added that should be subtracted"),
    ("compiler/simplify/RaiseAttention.cpp", "if (seenFactor || scores.maskAdd || scores.select)\n      return nullptr;\n    bool swapped", "if (scores.maskAdd || scores.select)\n      return nullptr;\n    bool swapped", "a mask is added after the scale, not before"),
    ("compiler/simplify/DelayBroadcasts.cpp", "if (broadcast.getDims() != like.getDims() ||\n          ", "if (", "broadcasts along other dimensions are one"),
    ("runtime/device/cpu/own/OrderedCalls.cpp", "if (places[i] < begin || places[i] >= end)", "if (places[i] < begin || places[i] + 1 >= end)", "a scatter forgets the last row"),
    ("runtime/device/cpu/own/OrderedCalls.cpp", "(!isBefore(x[j], x[i]) && i < j)", "(!isBefore(x[j], x[i]) && i > j)", "of equal elements the last comes first"),
    ("runtime/device/cpu/onednn/RecurrentCall.cpp", "return direction.reversed ? count - 1 - step : step;", "return direction.reversed ? steps - 1 - step : step;", "a short sequence begins in its padding when reversed"),
    ("runtime/device/cpu/onednn/RecurrentCall.cpp", "which * hidden * all.strides[1];", "which * hidden;", "strides of peepholes"),
    ("runtime/device/cpu/onednn/AttentionCall.cpp", "k().strides[3], k().strides[2]},", "k().strides[3], q().strides[2]},", "the keys' strides are the queries'"),
]

CONTRACTION, ORDERED, REDUCTION, SHAPE, TERM = (f"dialects/nn/grad/{name}.cpp" for name in ("ContractionGradients", "OrderedGradients", "ReductionGradients", "ShapeGradients", "Term"))
POINTWISE, DIFFERENTIATE = "dialects/nn/NNPointwise.td", "compiler/autodiff/Differentiate.cpp"
CONVOLUTION, WEIGHTS = "compiler/simplify/ExpandConvGradients.cpp", "runtime/device/cpu/onednn/ConvDwCall.cpp"
EMITTER, TERMS = (f"dialects/nn/emit/{name}.cpp" for name in ("ElementEmitter", "ReductionTerms"))

# The same, of derivatives.
GRADIENT_FAULTS = [
    (CONVOLUTION, "weights.reshape(grouped).transpose(order).reshape(turned).reverse(\n            windows);", "weights.reshape(grouped).transpose(order).reshape(turned);", "the window is not reversed"),
    (CONVOLUTION, "order.append({channelDim, 0});", "order.append({0, channelDim});", "groups and samples change places"),
    (CONVOLUTION, "dy.transpose(kernelOrder), op.getDilations(),\n                    op.getStrides(), low", "dy.transpose(kernelOrder), op.getDilations(),\n                    Shape(numSpatial(), 1), low", "the weights' derivative forgets the strides"),
    (CONVOLUTION, "low.push_back(reach(i) - op.getPadsLow()[i]);", "low.push_back(reach(i) - op.getPadsHigh()[i]);", "borders above are taken for those below"),
    (EMITTER, "inside = arith::AndIOp::create(b, loc, inside, meets);", "(void)meets;", "pixels that strides skip get derivatives"),
    (EMITTER, "mul(b, inner, -window.dilation)", "mul(b, inner, -1)", "derivatives forget the dilation"),
    (TERMS, "return ReduceKind::min;", "return ReduceKind::max;", "of equal elements of a window the last one gets all"),
    (WEIGHTS, "sum[i] += part[i];", "sum[i] = part[i];", "only the last images of a slice count"),
    (WEIGHTS, "firstOut = slice * outWidth,", "firstOut = 0 * slice * outWidth,", "all slices read the first channels"),
    (CONTRACTION, "return otherContract[a] < otherContract[b];", "return otherContract[a] > otherContract[b];", "contracted dimensions in the wrong order"),
    (ORDERED, "getDim())\n                        .reverse(getDim())};", "getDim())};", "sums from the other end stay reversed"),
    (ORDERED, "lookUp(dy, places, isWritten, updates.shape())", "lookUp(dy, places, isInside, updates.shape())", "an update that is overwritten gets a derivative"),
    (ORDERED, "Cotangents{kept, Value(),", "Cotangents{dy, Value(),", "an element that is overwritten gets a derivative"),
    (REDUCTION, "spread(dy / count)", "spread(dy)", "each of equal maxima gets all"),
    (REDUCTION, "dy - grad::exp(y) * sum(dy)", "dy - y * sum(dy)", "the logarithm of a softmax for the softmax"),
    (REDUCTION, "between.append({0, strides[i] - window[i]});", "between.append({strides[i] - window[i], 0});", "gaps between windows come before them"),
    (REDUCTION, "below = reach - this->low[i],", "below = reach,", "pools forget their borders"),
    (REDUCTION, "Term ofOthers = spread(y) / select(isZero, x.splat(1), x);", "Term ofOthers = spread(y);", "a product of all is one of the others"),
    (SHAPE, "taken.padOrCrop(getStarts(), high)", "taken.padOrCrop(high, getStarts())", "a slice's derivative is at the other end"),
    (SHAPE, "Cotangents{inner, border.sum(allDims(dy.rank()))};", "Cotangents{inner, dy.sum(allDims(dy.rank()))};", "what is inside belongs to the border"),
    (SHAPE, "stride *= from.getDimSize(i);", "stride *= dy.shape()[i];", "strides of the indices for those of the elements"),
    (TERM, "select(indices < 0.0, fromEnd, indices)", "indices", "negative indices are not counted from the end"),
    (TERM, "Term ofEqual = dy * 0.5;", "Term ofEqual = dy;", "both of equal operands get all"),
    (POINTWISE, "-dy * round((x[0] - y) / x[1])", "-dy * (x[0] / x[1])", "a remainder's quotient is not rounded"),
    (POINTWISE, "1.1283791670955126", "1.1284", "a constant of erf has few digits"),
    (POINTWISE, "-(dy / x[1]) * y", "-dy * y", "a quotient's divisor is forgotten"),
    (POINTWISE, "dy / sqrt((x[0] - 1.0) * (x[0] + 1.0))", "dy / sqrt(x[0] * x[0] + 1.0)", "acosh has the derivative of asinh"),
    ("compiler/autodiff/Cotangents.cpp", "sum = sum ? (Term(b, sum) + Term(b, part)).get() : part;", "sum = part;", "of several uses of a value the last one counts"),
    ("compiler/autodiff/Cotangents.cpp", "addTo(all.whole, part);", "all.whole = part;", "of several uses of a parameter the last one counts"),
    ("compiler/autodiff/Losses.cpp", "return {sumAll(terms), spec.mean ? sumAll(counts) : Term()};", "return {sumAll(terms), spec.mean ? sumAll(counts.splat(1)) : Term()};", "the mean counts samples that do not count"),
    (REDUCTION, "y * (dy - sum(dy * y))", "y * (dy - sum(dy))", "a softmax's rows are not weighted"),
    (SHAPE, "dy.transpose(invertPermutationVector(getPermutation()))", "dy.transpose(getPermutation())", "a transpose is not undone"),
    (SHAPE, "starts[getDim()] = limits[getDim()];", "", "parts of a concatenation begin at the first"),
    (POINTWISE, "dy * (x[1] * pow(x[0], x[1] - 1.0))", "dy * pow(x[0], x[1] - 1.0)", "a power forgets its exponent"),
]


def run(command, **more):
    return subprocess.run([str(w) for w in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def build(folder):
    done = run(["nice", "ninja", "-C", folder, "-j2", "partita-test-worker"])
    return None if done.returncode == 0 else done.stdout[-2000:]


def differing(binaries, options, first, models, skip=()):
    """Seeds of models that differ, from `first` on."""
    done = run(["nice", sys.executable, HERE / "run.py", "--first", first, "--models", models, "--seconds", options.seconds, "--jobs", options.jobs, "--no-found",
                "--most", options.most, *(["--gradients"] if options.gradients else []), "--shrink", "0", "--timeout", "20",
                "--skip", ",".join(map(str, sorted(skip)))], env=dict(os.environ, PARTITA_BIN=str(binaries)))
    return sorted(int(s) for s in re.findall(r"^seed (\d+):", done.stdout, re.M))


def find_seed(binaries, clean, options, known):
    """The first seed that differs with the fault and not without it, or None. `known`: seeds that differ anyway."""
    first = 0
    while first < options.models:
        seeds = differing(binaries, options, first, options.models - first, known)
        for seed in seeds:
            if not differing(clean, options, seed, 1):
                return seed
            known.add(seed)
        if not seeds:
            break
        first = max(seeds) + 1
    return None


def fail_examples(binaries):
    """What the tests of derivatives, op by op, say first; None if they pass."""
    for test in (["gradients.py", "--first"], ["conv_gradients.py"]):
        done = run(["nice", sys.executable, REPOSITORY / "test" / "executed" / test[0], *test[1:]], env=dict(os.environ, PARTITA_BIN=str(binaries)))
        if done.returncode:
            break
    else:
        return None
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    return (done.returncode, next((line for line in lines if ":" in line), "no message")[:150], done.stdout[-2000:])


def fail_passes(folder):
    """The first test of the pass of differentiation, on IR, that fails; None if all pass. It sees what models never have: a parameter that is read twice."""
    done = run(["nice", "ninja", "-C", folder, "-j2", "partita-opt"])
    if done.returncode:
        sys.exit(f"partita-opt does not build:\n{done.stdout[-2000:]}")
    lit = re.search(r"^PARTITA_LIT:FILEPATH=(.+)$", (folder / "CMakeCache.txt").read_text(), re.M).group(1)
    done = run([lit, "-v", "--filter", "compiler/autodiff/", folder / "test"])
    failed = re.search(r"^FAIL: Partita :: (\S+)", done.stdout, re.M)
    if done.returncode and not failed:
        sys.exit(f"the tests of passes do not run:\n{done.stdout[-2000:]}")
    return failed and failed.group(1)


def find(folder, clean, options, known):
    """What finds a fault, in words."""
    binaries = folder / "bin"
    found, begin = [], time.monotonic()
    if options.gradients:
        if failed := fail_examples(binaries):
            found.append(f"an example in {time.monotonic() - begin:.0f} s ({failed[1]})")
        begin = time.monotonic()
    seed = find_seed(binaries, clean, options, known)
    if seed is not None:
        found.append(f"run.py in {time.monotonic() - begin:.0f} s (seed {seed})")
    if options.gradients and not found and (failed := fail_passes(folder)):
        found.append(f"the test {failed}")
    return found


def prepare(scratch, options):
    """A clone of the newest commit, without what another run has left in it."""
    if options.stay:
        return
    if not scratch.exists():
        subprocess.run(["git", "clone", "-q", REPOSITORY, scratch], check=True)
    subprocess.run(["git", "-C", scratch, "fetch", "-q", REPOSITORY, "HEAD"], check=True)
    subprocess.run(["git", "-C", scratch, "reset", "-q", "--hard", "FETCH_HEAD"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scratch", type=pathlib.Path, nargs="?")
    parser.add_argument("--places", action="store_true", help="only see that each place is there")
    parser.add_argument("--only", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--models", type=int, help="models of a run (default: those of the bounded run, 600, of gradients 300)")
    parser.add_argument("--seconds", type=float, default=600, help="most seconds of a run")
    parser.add_argument("--gradients", action="store_true", help="faults in derivatives")
    parser.add_argument("--stay", action="store_true", help="do not bring SCRATCH to the newest commit")
    parser.add_argument("--build", default="build", help="folder in SCRATCH that is built in")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--most", type=int, default=1, help="differences after which a run ends")
    options = parser.parse_args()
    if options.places:
        gone = [f"{file}: {what}" for file, old, _, what in FAULTS + GRADIENT_FAULTS if (REPOSITORY / file).read_text().count(old) != 1]
        sys.exit("the place is not there any more:\n" + "\n".join(gone) if gone else print(f"{len(FAULTS) + len(GRADIENT_FAULTS)} places are there"))
    if not options.scratch:
        parser.error("give a folder for the clone")
    options.models = options.models or (300 if options.gradients else 600)
    faults = GRADIENT_FAULTS if options.gradients else FAULTS
    scratch = options.scratch.resolve()
    if scratch == REPOSITORY:
        sys.exit("faults are put into a copy: name another folder than the repository's")
    prepare(scratch, options)
    folder = scratch / options.build
    if not folder.exists():
        subprocess.run(["cmake", "-S", scratch, "-B", folder, "-G", "Ninja"], check=True, stdout=subprocess.DEVNULL)
    if error := build(folder):
        sys.exit(f"the sources do not build:\n{error}")
    clean = scratch / "clean"
    clean.mkdir(exist_ok=True)
    shutil.copy2(folder / "bin" / "partita-test-worker", clean)
    if options.gradients and (failed := fail_examples(clean)):
        sys.exit(f"an example fails without a fault, too:\n{failed[2]}")
    if options.gradients and (failed := fail_passes(folder)):
        sys.exit(f"{failed} fails without a fault, too")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    known, found, unfit = set(), [], 0
    for number in options.only or range(1, len(faults) + 1):
        file, old, new, what = faults[number - 1]
        path = scratch / file
        text = path.read_text()
        if text.count(old) != 1:
            print(f"{number:3} {file}: {what}: the place is not there any more", flush=True)
            unfit += 1
            continue
        begin = time.monotonic()
        try:
            path.write_text(text.replace(old, new))
            if error := build(folder):
                print(f"{number:3} {file}: {what}: does not build\n{error[-500:]}", flush=True)
                unfit += 1
                continue
            built = time.monotonic() - begin
            ways = find(folder, clean, options, known)
        finally:
            path.write_text(text)
        found.append(bool(ways))
        print(f"{number:3} {'found' if ways else 'NOT found'}  {file}: {what} (built in {built:.0f} s)", *(f"\n      by {way}" for way in ways), sep="", flush=True)
    print(f"{sum(found)} of {len(found)} faults found" + (f"; {unfit} could not be put in" if unfit else ""))
    sys.exit(1 if unfit or sum(found) < 0.95 * len(found) else 0)


if __name__ == "__main__":
    main()
