"""Ops in double precision by their definitions: those that ONNX Runtime computes with fewer digits than f64 has, or ONNX's reference implementation
otherwise than ONNX says (groups of a transposed convolution, windows beyond the image, LRN)."""

import math

import numpy as np

from graph import Unsuitable

BY_HAND = {}


def by_hand(f):
    BY_HAND[f.__name__] = f
    return f


def normalized(x, axes, epsilon):
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + epsilon)


@by_hand
def LayerNormalization(x, scale, bias=None, axis=-1, epsilon=1e-5):
    y = normalized(x, tuple(range(axis % x.ndim, x.ndim)), epsilon) * scale
    return y if bias is None else y + bias


@by_hand
def RMSNormalization(x, scale, axis=-1, epsilon=1e-5):
    return x / np.sqrt((x * x).mean(tuple(range(axis % x.ndim, x.ndim)), keepdims=True) + epsilon) * scale


@by_hand
def GroupNormalization(x, scale, bias, num_groups, epsilon=1e-5):
    y = normalized(x.reshape(x.shape[0], num_groups, -1), (2,), epsilon).reshape(x.shape)
    channels = (-1, *[1] * (x.ndim - 2))
    return y * scale.reshape(channels) + bias.reshape(channels)


@by_hand
def InstanceNormalization(x, scale, bias, epsilon=1e-5):
    channels = (-1, *[1] * (x.ndim - 2))
    return normalized(x, tuple(range(2, x.ndim)), epsilon) * scale.reshape(channels) + bias.reshape(channels)


erf = np.vectorize(math.erf, otypes=[np.float64])


@by_hand
def BatchNormalization(x, scale, bias, mean, variance, epsilon=1e-5, momentum=0.9, training_mode=0):
    channels = (-1, *[1] * (x.ndim - 2))
    if not training_mode:
        return (x - mean.reshape(channels)) / np.sqrt(variance.reshape(channels) + epsilon) * scale.reshape(channels) + bias.reshape(channels)
    axes = (0, *range(2, x.ndim))
    y = normalized(x, axes, epsilon) * scale.reshape(channels) + bias.reshape(channels)
    return y, momentum * mean + (1 - momentum) * x.mean(axes), momentum * variance + (1 - momentum) * x.var(axes)


@by_hand
def Erf(x):
    return erf(x)


@by_hand
def Gelu(x, approximate="none"):
    return x / 2 * (1 + (np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)) if approximate == "tanh" else erf(x / np.sqrt(2))))


@by_hand
def HardSwish(x):
    return x * np.clip(x / 6 + 0.5, 0, 1)


@by_hand
def Shrink(x, lambd, bias):
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0.0))


@by_hand
def GlobalMaxPool(x):
    return x.max(tuple(range(2, x.ndim)), keepdims=True)


@by_hand
def GlobalAveragePool(x):
    return x.mean(tuple(range(2, x.ndim)), keepdims=True)


@by_hand
def GlobalLpPool(x):
    return np.sqrt((x * x).sum(tuple(range(2, x.ndim)), keepdims=True))


@by_hand
def LRN(x, size, alpha, beta, bias):
    before, after = (size - 1) // 2, size // 2
    sums = np.stack([(x[:, max(0, c - before):c + after + 1] ** 2).sum(1) for c in range(x.shape[1])], 1)
    return x / (bias + alpha / size * sums) ** beta


def spatial(x, strides, dilations, pads):
    """The attributes of windows, with what ONNX takes where there are none."""
    n = x.ndim - 2
    return strides or [1] * n, dilations or [1] * n, pads or [0] * (2 * n)


def windows(strides, dilations, sizes, shape):
    """Each place in a window, with the elements that lie under it in a padded image."""
    for place in np.ndindex(*shape):
        yield place, tuple(slice(p * d, p * d + (o - 1) * s + 1, s) for p, d, s, o in zip(place, dilations, strides, sizes))


@by_hand
def Conv(x, weights, bias=None, kernel_shape=None, group=1, strides=None, dilations=None, pads=None):
    strides, dilations, pads = spatial(x, strides, dilations, pads)
    n = x.ndim - 2
    padded = np.pad(x, [(0, 0), (0, 0), *zip(pads[:n], pads[n:])])
    sizes = [(padded.shape[2 + i] - (weights.shape[2 + i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(n)]
    if min(sizes) < 1:
        raise Unsuitable
    y = np.zeros((x.shape[0], group, weights.shape[0] // group, *sizes))
    grouped = weights.reshape(group, -1, *weights.shape[1:])
    for place, under in windows(strides, dilations, sizes, weights.shape[2:]):
        part = padded[(slice(None), slice(None), *under)].reshape(x.shape[0], group, -1, *sizes)
        y += np.einsum("ngc...,goc->ngo...", part, grouped[(Ellipsis, *place)])
    y = y.reshape(x.shape[0], -1, *sizes)
    return y if bias is None else y + bias.reshape(-1, *[1] * n)


def pooled(x, kernel_shape, strides, pads, ceil_mode, auto_pad, dilations=None):
    """The elements under each place of a window, and whether they are in the image and in its border: of those that are nowhere the element is 0."""
    strides, dilations, pads = spatial(x, strides, dilations, pads)
    n, sizes = x.ndim - 2, []
    reach = [(k - 1) * d + 1 for k, d in zip(kernel_shape, dilations)]
    for i, k in enumerate(reach):
        size = x.shape[2 + i]
        if auto_pad.startswith("SAME"):
            sizes.append(-(-size // strides[i]))
            more = max((sizes[i] - 1) * strides[i] + k - size, 0)
            pads = [*pads]
            pads[i], pads[n + i] = (more // 2, more - more // 2) if auto_pad == "SAME_UPPER" else (more - more // 2, more // 2)
            continue
        room = size + pads[i] + pads[n + i] - k
        sizes.append((-(-room // strides[i]) if ceil_mode else room // strides[i]) + 1)
        if ceil_mode and (sizes[i] - 1) * strides[i] >= size + pads[i]:
            sizes[i] -= 1  # it would begin in the border above
        if room < 0:
            raise Unsuitable
    around = [(0, 0), (0, 0), *((pads[i], max(pads[n + i], (sizes[i] - 1) * strides[i] + k - x.shape[2 + i] - pads[i])) for i, k in enumerate(reach))]
    bordered = np.ones([s + pads[i] + pads[n + i] for i, s in enumerate(x.shape[2:])])
    image, border = np.pad(np.ones(x.shape[2:]), around[2:]), np.pad(bordered, [(0, b - pads[n + i]) for i, (_, b) in enumerate(around[2:])])
    for _, under in windows(strides, dilations, sizes, kernel_shape):
        yield np.pad(x, around)[(slice(None), slice(None), *under)], image[under], border[under]


@by_hand
def MaxPool(x, kernel_shape, strides=None, pads=None, ceil_mode=0, auto_pad="NOTSET", dilations=None):
    return np.max([np.where(image > 0, part, -np.inf) for part, image, _ in pooled(x, kernel_shape, strides, pads, ceil_mode, auto_pad, dilations)], 0)


@by_hand
def AveragePool(x, kernel_shape, strides=None, pads=None, ceil_mode=0, count_include_pad=0, auto_pad="NOTSET"):
    parts = list(pooled(x, kernel_shape, strides, pads, ceil_mode, auto_pad))
    return sum(p for p, _, _ in parts) / sum(border if count_include_pad else image for _, image, border in parts)


@by_hand
def LpPool(x, kernel_shape, strides=None, pads=None, ceil_mode=0, auto_pad="NOTSET", p=2):
    return sum(np.abs(part) ** p for part, _, _ in pooled(x, kernel_shape, strides, pads, ceil_mode, auto_pad)) ** (1 / p)


@by_hand
def ConvTranspose(x, weights, bias=None, kernel_shape=None, group=1, strides=None, dilations=None, pads=None, output_padding=None):
    strides, dilations, pads = spatial(x, strides, dilations, pads)
    n = x.ndim - 2
    whole = [(x.shape[2 + i] - 1) * strides[i] + (weights.shape[2 + i] - 1) * dilations[i] + 1 for i in range(n)]
    more = output_padding or [0] * n
    y = np.zeros((x.shape[0], group, weights.shape[1], *(w + m for w, m in zip(whole, more))))
    grouped = weights.reshape(group, -1, *weights.shape[1:])
    image = x.reshape(x.shape[0], group, -1, *x.shape[2:])
    for place, under in windows(strides, dilations, x.shape[2:], weights.shape[2:]):
        y[(slice(None), slice(None), slice(None), *under)] += np.einsum("ngc...,gco->ngo...", image, grouped[(Ellipsis, *place)])
    y = y.reshape(x.shape[0], -1, *y.shape[3:])
    y = y[(slice(None), slice(None), *(slice(pads[i], y.shape[2 + i] - pads[n + i]) for i in range(n)))]
    return y if bias is None else y + bias.reshape(-1, *[1] * n)
