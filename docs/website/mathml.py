"""Equations as MathML, which browsers draw by themselves: no script and no fonts from elsewhere."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def connect(app: Any) -> None:
    """Make this the way in which Sphinx writes equations."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))


def write_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def write_block(translator: Any, node: nodes.math_block) -> None:
    equation = convert(node.astext(), display="block")
    translator.body.append(f'<div class="equation table-wrapper">{equation}</div>')
    raise nodes.SkipNode
