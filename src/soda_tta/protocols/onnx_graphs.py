"""ONNX graphs made here, node by node, and joined to the graph of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from soda_tta.errors import SodaError
from soda_tta.foreign_text import quoted
from soda_tta.types import Array

# With this version of the operators everything here can be written; older models are converted.
OLDEST_OPSET = 12
NEWEST_EXPORTED = 20  # by the exporter of PyTorch
AXES_ARE_INPUTS = 13  # from this version on, the axes of a sum are an input, not an attribute
DEFAULT_DOMAIN = ("", "ai.onnx")
PREFIX = "soda_tta"


class GraphBuilder:
    """Nodes one after the other. Each method adds some and returns the name of their output.

    Parameters
    ----------
    opset : int
        Version of the ONNX operators.
    prefix : str, default "soda_tta"
        Stands in front of every name, so that none is also a name of the model.

    Examples
    --------
    >>> graph = GraphBuilder(17)
    >>> graph.node("Div", "bytes", graph.constant(np.float32(255)))
    'soda_tta/Div_2'
    """

    def __init__(self, opset: int, prefix: str = PREFIX) -> None:
        self.opset = opset
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names = 0

    def name(self, kind: str) -> str:
        """A name that is not used yet."""
        self._names += 1
        return f"{self.prefix}/{kind}_{self._names}"

    def constant(self, values: Any) -> str:
        """Add fixed numbers, with the element type of the numpy array or scalar."""
        from onnx import numpy_helper

        name = self.name("constant")
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator with one output."""
        from onnx import helper

        name = self.name(kind)
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def cast(self, tensor: str, dtype: str) -> str:
        """Add a change of the element type, which is the name of a numpy type."""
        return self.node("Cast", tensor, to=element_type(dtype))

    def row_sums(self, matrix: str) -> str:
        """Add the sums over the last axis, which stays with extent 1."""
        if self.opset < AXES_ARE_INPUTS:
            return self.node("ReduceSum", matrix, axes=[-1], keepdims=1)
        return self.node("ReduceSum", matrix, self.constant(np.array([-1])), keepdims=1)

    def extent(self, tensor: str, axis: int) -> str:
        """Add the extent of one axis, as float64."""
        extent = self.node("Gather", self.node("Shape", tensor), self.constant(np.array(axis)))
        return self.cast(extent, "float64")

    def reversed(self, tensor: str, axis: int) -> str:
        """Add the same tensor with one axis in the opposite order."""
        first, last = np.array([-1]), np.array([np.iinfo(np.int64).min])
        bounds = [self.constant(each) for each in (first, last, np.array([axis]), np.array([-1]))]
        return self.node("Slice", tensor, *bounds)

    def only_if(self, condition: str, images: str, change: Callable[[GraphBuilder], str]) -> str:
        """Add a change of images that is computed only if a condition holds.

        Parameters
        ----------
        condition : str
            Name of a boolean.
        images : str
            Name of four-dimensional float32 images: the result if the condition does not hold.
        change : callable
            Adds the nodes of the change to the builder it gets, which may use all names so far.
        """
        changed = self._branch(change)
        unchanged = self._branch(lambda graph: graph.node("Identity", images))
        return self.node("If", condition, then_branch=changed, else_branch=unchanged)

    def _branch(self, content: Callable[[GraphBuilder], str]) -> Any:
        from onnx import helper

        inner = GraphBuilder(self.opset, self.name("branch"))
        output = tensor_info(content(inner), "float32", [None] * 4)
        return helper.make_graph(inner.nodes, inner.prefix, [], [output], inner.constants)

    def include(self, model: Any, tensor: str) -> str:
        """Add a whole model of the same opset, with one input and one output."""
        from onnx import compose

        part = compose.add_prefix(model, f"{self.name('part')}/").graph
        rename(part, part.input[0].name, tensor)
        self.nodes.extend(part.node)
        self.constants.extend(part.initializer)
        return str(part.output[0].name)

    def name_it(self, tensor: str, name: str) -> None:
        """Add a second name for a tensor, by which other graphs know it."""
        from onnx import helper

        self.nodes.append(helper.make_node("Identity", [tensor], [name], name=self.name("name")))

    def as_model(self, inputs: list[Any], outputs: list[Any]) -> Any:
        """These nodes as a model of their own."""
        from onnx import helper

        graph = helper.make_graph(self.nodes, self.prefix, inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", self.opset)]
        oldest = helper.find_min_ir_version_for(opsets)
        return helper.make_model(graph, opset_imports=opsets, ir_version=oldest)


def tensor_info(name: str, dtype: str, shape: list[Any]) -> Any:
    """The description of an input or output; a text or None is any extent."""
    from onnx import helper

    return helper.make_tensor_value_info(name, element_type(dtype), shape)


def element_type(dtype: str) -> int:
    """The number that ONNX has for a numpy type."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def opset_of(model: Any) -> int:
    """The version of the standard operators that a model uses."""
    versions = [each.version for each in model.opset_import if each.domain in DEFAULT_DOMAIN]
    return max(versions, default=OLDEST_OPSET)


def at_opset(model: Any, opset: int) -> Any:
    """The same model with the operators of another version."""
    from onnx import version_converter

    if opset_of(model) == opset:
        return model
    try:
        return version_converter.convert_version(model, opset)
    except Exception as error:  # of C++, of several kinds
        raise SodaError(
            f"the model has the operators of ONNX opset {opset_of(model)}, which onnx could not "
            f"convert to opset {opset} ({quoted(error)}); export it again with opset 17."
        ) from error


def enclose(before: GraphBuilder, model: Any, after: GraphBuilder) -> None:
    """Put nodes in front of a model and behind it; its own nodes stay as they are.

    The names connect them: the nodes in front make the model's input, and the nodes behind use its
    outputs. The caller replaces the inputs and outputs of the whole.
    """
    from onnx import helper

    nodes = [*before.nodes, *model.graph.node, *after.nodes]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend([*before.constants, *after.constants])
    if not any(each.domain in DEFAULT_DOMAIN for each in model.opset_import):
        model.opset_import.append(helper.make_opsetid("", before.opset))
    standard = [each for each in model.opset_import if each.domain in DEFAULT_DOMAIN]
    model.ir_version = max(model.ir_version, helper.find_min_ir_version_for(standard))


def names_in(graph: Any) -> set[str]:
    """The names of all tensors in a graph, and in the graphs inside it."""
    names: set[str] = set()
    for each in all_graphs(graph):
        names |= {entry.name for entry in (*each.input, *each.initializer)}
        names |= {name for node in each.node for name in (*node.input, *node.output)}
    return names


def rename(graph: Any, name: str, other: str) -> None:
    """Give a tensor of a graph another name, wherever it is used."""
    for each in all_graphs(graph):
        for node in each.node:
            node.input[:] = [other if used == name else used for used in node.input]
            node.output[:] = [other if made == name else made for made in node.output]
        for entry in (*each.input, *each.output, *each.value_info, *each.initializer):
            if entry.name == name:
                entry.name = other


def all_graphs(graph: Any) -> Iterator[Any]:
    """A graph and all graphs inside its nodes (If, Loop)."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from all_graphs(inner)


def answers(model: Any, tensor: Array) -> Array:
    """What a small model with one input and one output returns, in ONNX Runtime."""
    session = session_of(model.SerializeToString(deterministic=True))
    result: Array = session.run(None, {session.get_inputs()[0].name: tensor})[0]
    return result


@lru_cache(maxsize=3)  # the parts of one deployed file
def session_of(content: bytes) -> Any:
    """A session on the CPU; for a graph with a router it takes a tenth of a second to make."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
