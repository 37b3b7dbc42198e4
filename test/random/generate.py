"""Random models: which ops, how often, in which surroundings."""

import contraction
import elementwise
import images
import indexing
import quantize
import recurrent
import reduction
import shapes
import structure
import versions
from graph import Graph, Model, Unsuitable

# What is made, and how often. Library calls with what may be fused to them come first: there most can go wrong.
MAKERS = {
    contraction.conv: 14, contraction.matmul: 9, contraction.gemm: 4, contraction.chain: 7, contraction.residual: 7, contraction.attention: 4, contraction.scaled_terms: 2, contraction.between: 4,
    contraction.attention_op: 1, contraction.einsum: 2, contraction.conv_transpose: 3, contraction.experts: 2,
    reduction.pool: 6, reduction.softmax: 3, reduction.norm: 5, reduction.centred: 2, reduction.across: 2, reduction.reduce: 6, reduction.running: 1, reduction.ranking: 2,
    elementwise.unary: 7, elementwise.binary: 10, elementwise.variadic: 2, elementwise.clip: 1, elementwise.where: 2, elementwise.compare: 1,
    elementwise.rounding: 1, elementwise.classify: 1, elementwise.logic: 1, elementwise.integer: 3, elementwise.cast: 2,
    shapes.transpose: 4, shapes.reshape: 3, shapes.flatten: 1, shapes.squeeze: 1, shapes.unsqueeze: 1, shapes.slice_: 3, shapes.concat: 3, shapes.split: 2,
    shapes.pad: 4, shapes.tile: 1, shapes.expand: 2, shapes.depth: 3, shapes.trilu: 1, shapes.identity: 1, shapes.made: 1,
    indexing.gather: 2, indexing.gather_elements: 1, indexing.gather_nd: 1, indexing.scatter_elements: 1, indexing.scatter_nd: 1, indexing.tensor_scatter: 2,
    indexing.compress: 1, indexing.reverse_sequence: 1, indexing.one_nonzero: 1,
    images.resize: 1, images.grid_sample: 1, images.roi_align: 1, images.affine_grid: 1, images.dft: 1, images.stft: 1, images.col2im: 1,
    quantize.fake: 1, quantize.dequantize: 1, quantize.qdq: 2, quantize.integer_product: 2, quantize.dynamic: 1,
    recurrent.recurrent: 5, structure.branch: 1, structure.loop: 1, structure.sequence: 1, structure.edited_sequence: 1, structure.mapped: 1, structure.optional: 1,
}


def generate(seed, values="finite", zero=False, only=None):
    """The model of a seed. `values`: finite, or special (NaN, infinities, overflow). `zero`: with dimensions of 0. `only`: names of makers."""
    for attempt in range(50):
        graph = Graph(seed * 64 + attempt, values, zero)
        makers = {m: w for m, w in versions.MAKERS.get(graph.opset, MAKERS).items() if not only or m.__name__ in only}
        if not makers:
            continue
        wanted = graph.rng.choices((1, 2, 3, 4, 6, 9), (3, 4, 4, 3, 2, 1))[0]
        made = 0
        for _ in range(6 * wanted):
            maker = graph.rng.choices(list(makers), list(makers.values()))[0]
            state = len(graph.nodes), len(graph.values)
            try:
                maker(graph)
                made += 1
            except Unsuitable:
                # What a maker left half done is of no use, but right: it stays where somebody uses it.
                pass
            if made >= wanted or len(graph.nodes) > 30:
                break
        if graph.nodes:
            model = Model.of(graph)
            if model.outputs and model.inputs and model.nodes:
                return model
    raise RuntimeError(f"seed {seed} makes no model")
