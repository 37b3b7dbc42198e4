"""Ops that sample images, and transforms of signals."""

import numpy as np
from elementwise import calm, epilogue
from graph import MOST_ELEMENTS, Unsuitable, count
from shapes import like


def picture(g, types=("f32",), most=2000):
    x = g.take(types, rank=4, most=most, suits=lambda v: min(v.shape) > 0)
    return calm(g, x, 8) if x.mag > 100 and g.values_kind != "special" else x


def resize(g):
    x = picture(g)
    mode = g.choose("nearest", "linear", "linear", "cubic")
    ratio = [1.0, 1.0] + [g.choose(0.5, 2.0, 1.5, 3.0, 0.75, 1.0) for _ in range(2)]
    transform = g.choose("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", None)
    more = dict(mode=mode, coordinate_transformation_mode=transform)
    if mode == "nearest":
        more["nearest_mode"] = g.choose("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", None)
    if mode == "cubic":
        more["cubic_coeff_a"] = g.choose(None, -0.5)
        more["exclude_outside"] = g.choose(None, 1)
    if g.opset >= 18 and mode != "nearest" and g.chance(0.25):
        more["antialias"] = 1
    shape = [int(np.floor(s * r)) for s, r in zip(x.shape, ratio)]
    if min(shape) < 1 or count(shape) > MOST_ELEMENTS:
        raise Unsuitable("size")
    doubt = ""
    if any(s * r != int(s * r) for s, r in zip(x.shape, ratio)) and transform in ("align_corners", "pytorch_half_pixel"):
        doubt = "Resize: of a scaled size that is no whole number it takes the whole number, ONNX's reference does not"
    if g.chance(0.5):
        inputs = [x, None, g.constant(ratio, "f32")]
    else:
        inputs = [x, None, None, g.constant(shape)]
    y = g.node("Resize", inputs, dict(dtype=x.dtype, shape=shape, mag=1.5 * x.mag, doubt=doubt or x.doubt, fuzzy=mode == "nearest"), **more)
    return epilogue(g, y, 2)


def grid_sample(g):
    if g.opset < 20:
        raise Unsuitable("opset")
    x = picture(g)
    h, w = g.size(8), g.size(8)
    grid = g.leaf("f32", (x.shape[0], h, w, 2), 1.2)
    mode = g.choose("linear", "linear", "nearest", "cubic")
    padding = g.choose("zeros", "border", "reflection")
    doubt = "GridSample, cubic: beyond the border it is not what ONNX's reference computes" if mode == "cubic" and padding != "zeros" else x.doubt
    y = g.node("GridSample", [x, grid], dict(dtype="f32", shape=(*x.shape[:2], h, w), mag=2 * x.mag, fuzzy=mode == "nearest", doubt=doubt),
               mode=mode, padding_mode=padding, align_corners=g.choose(0, 1), sharp=mode == "nearest")
    return epilogue(g, y, 2)


def roi_align(g):
    x = picture(g)
    n = g.rng.randint(1, 3)
    corners = g.noise.random((n, 4)).astype(np.float32)
    corners[:, 2:] += corners[:, :2] + 1
    rois = g.constant(corners * 2, "f32")
    where = g.leaf("i64", (n,), x.shape[0] - 1, 0)
    h, w = g.size(4), g.size(4)
    mode = g.choose("avg", "avg", "max")
    y = g.node("RoiAlign", [x, rois, where], dict(dtype="f32", shape=(n, x.shape[1], h, w), mag=x.mag, doubt=x.doubt),
               output_height=h, output_width=w, sampling_ratio=g.choose(1, 2, 3), spatial_scale=g.choose(None, 1.0, 0.5), mode=mode,
               coordinate_transformation_mode=g.choose(None, "half_pixel", "output_half_pixel") if g.opset >= 16 else None)
    return epilogue(g, y, 2)


def affine_grid(g):
    if g.opset < 20:
        raise Unsuitable("opset")
    n, image = g.size(3), [g.size(8) for _ in range(g.choose(2, 2, 3))]
    rank = len(image)
    theta = g.leaf("f32", (n, rank, rank + 1), 1)
    return g.node("AffineGrid", [theta, g.constant([n, 3, *image])], dict(dtype="f32", shape=(n, *image, rank), mag=rank + 1), align_corners=g.choose(0, 1))


def dft(g):
    if g.opset < 17:
        raise Unsuitable("opset")
    n, length = g.size(3), g.choose(2, 3, 4, 5, 8, 12, 16, 17)
    real = g.chance(0.6)
    x = g.leaf("f32", (n, length, 1 if real else 2), 1)
    onesided = 1 if real and g.chance(0.4) else None
    inverse = 1 if not real and g.chance(0.4) else None
    out = length // 2 + 1 if onesided else length
    # Its convolution with chirps loses three digits; a sum in f64 agrees with Partita.
    doubt = "DFT of a length that is no power of two: it is less exact" if length & (length - 1) else x.doubt
    result = dict(dtype="f32", shape=(n, out, 2), mag=length, doubt=doubt)
    if g.opset >= 20:
        return g.node("DFT", [x, None, g.constant(1)], result, onesided=onesided, inverse=inverse)
    return g.node("DFT", [x], result, axis=1, onesided=onesided, inverse=inverse)


def stft(g):
    if g.opset < 17:
        raise Unsuitable("opset")
    n, length, frame, step = g.size(2), g.choose(16, 20, 32), g.choose(4, 8), g.choose(2, 4, 3)
    x = g.leaf("f32", (n, length, 1), 1)
    window = g.leaf("f32", (frame,), 1, 0, constant=True)
    onesided = g.choose(None, 1, 0)
    bins = frame if onesided == 0 else frame // 2 + 1
    return g.node("STFT", [x, g.constant(step), window, g.constant(frame)], dict(dtype="f32", shape=(n, (length - frame) // step + 1, bins, 2), mag=frame), onesided=onesided)


def col2im(g):
    if g.opset < 18:
        raise Unsuitable("opset")
    n, c, h, w, kh, kw = g.size(2), g.size(3), g.rng.randint(3, 8), g.rng.randint(3, 8), g.choose(1, 2, 3), g.choose(1, 2)
    stride, pads = g.choose(1, 2), g.choose(0, 0, 1)
    if kh <= pads or kw <= pads:
        pads = 0
    places = ((h + 2 * pads - kh) // stride + 1) * ((w + 2 * pads - kw) // stride + 1)
    x = g.leaf("f32", (n, c * kh * kw, places), 1)
    return g.node("Col2Im", [x, g.constant([h, w]), g.constant([kh, kw])], dict(dtype="f32", shape=(n, c, h, w), mag=kh * kw),
                  strides=[stride] * 2, pads=[pads] * 4)
