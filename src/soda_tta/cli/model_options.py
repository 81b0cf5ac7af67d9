"""Options that say which model, what it expects and how to reach it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from soda_tta.box.facts import FACTS, Fact
from soda_tta.cli.options import argument_type, at_least_one

if TYPE_CHECKING:
    from soda_tta.box import Box


def add_model(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """Add the options that say which model, what it expects and how to reach it."""
    group = parser.add_argument_group("the model")
    group.add_argument(
        "--model",
        required=required,
        metavar="MODEL",
        help="an .onnx or .tflite file; http(s)://host:port/v2/models/NAME or "
        "grpc(s)://host:port/NAME (Open Inference Protocol: Triton, KServe, MLServer), or several "
        "servers of one model as URL1,URL2,...; a .toml "
        "file that describes a REST API (see 'soda-tta describe'); or "
        "file.py:function / package.module:function",
    )
    add_facts(group)
    group.add_argument(
        "--class-count",
        type=at_least_one,
        metavar="N",
        help="number of all classes, if an ONNX file returns only its top classes and their "
        "indices",
    )
    group.add_argument(
        "--request-size",
        type=int,
        dest="batch",
        metavar="N",
        help="images per request (default: 64; 256 for a function)",
    )
    group.add_argument(
        "--device",
        metavar="NAME",
        help="where adaptors and PyTorch modules run: cpu, cuda or mps (default: cpu)",
    )
    group.add_argument(
        "--provider",
        metavar="NAME",
        help="what runs an ONNX file: an execution provider of ONNX Runtime, such as cuda "
        "(default: cpu)",
    )
    add_remote(parser)


def add_remote(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how to reach a model on a server."""
    remote = parser.add_argument_group("a model on a server, over HTTP or gRPC")
    remote.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help="seconds for a whole request (default: 30; no limit for a function)",
    )
    remote.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="requests in flight at once (default: 4 per server, at most 64)",
    )
    remote.add_argument(
        "--max-qps",
        type=float,
        metavar="N",
        help="queries (images) per second, at most (default: no limit)",
    )
    remote.add_argument(
        "--max-concurrent",
        type=int,
        metavar="N",
        help="requests in flight at once, at most, hedges included (default: no limit)",
    )
    remote.add_argument(
        "--replicas",
        choices=["dns"],
        help="dns: every IP address behind the name in --model is a server of its own",
    )
    remote.add_argument(
        "--hedge",
        type=float,
        metavar="SHARE",
        help="share of requests that may be sent to a second server if the first takes long; each "
        "counts against the budget (default: 0)",
    )
    remote.add_argument(
        "--retries",
        type=int,
        metavar="N",
        help="how often a request without a response is sent again; each time counts against the "
        "budget (default: 4; 0: never)",
    )
    remote.add_argument(
        "--tensors",
        choices=["binary", "json"],
        help="how images are sent over HTTP (default: binary if the server offers it)",
    )
    remote.add_argument(
        "--api-key-env", metavar="VAR", help="environment variable that holds the API key"
    )
    remote.add_argument(
        "--api-key-header",
        metavar="H",
        help="HTTP header, or gRPC metadata, for the key (default: Authorization, as a bearer "
        "token)",
    )
    remote.add_argument(
        "--ca",
        dest="certificate_authority",
        metavar="FILE",
        help="certificate authority to trust (PEM)",
    )


def add_facts(group: argparse._ArgumentGroup) -> None:
    """Add the options of the table in box/facts.py, and the output that they are about."""
    for fact in FACTS.values():
        if fact.flag is not None:
            add_fact(group, fact)
    group.add_argument(
        "--output",
        metavar="NAME",
        help="the output with the class scores, if the model has several",
    )


def add_fact(group: argparse._ArgumentGroup, fact: Fact) -> None:
    """Add the option of one entry of the table in box/facts.py."""
    assert fact.flag is not None and fact.parse is not None
    if fact.parse is bool:
        group.add_argument(fact.flag, action="store_true", default=None, help=fact.meaning)
        return
    group.add_argument(
        fact.flag,
        type=argument_type(fact.parse),
        metavar=fact.metavar,
        choices=fact.choices,
        help=fact.meaning,
    )


# The flag of each option of `load_box`, for messages that name an option.
MODEL_FLAGS = {
    **{name: fact.flag for name, fact in FACTS.items() if fact.flag is not None},
    "output": "--output",
    "class_count": "--class-count",
    "batch": "--request-size",
    "provider": "--provider",
    "timeout": "--timeout",
    "workers": "--workers",
    "retries": "--retries",
    "max_qps": "--max-qps",
    "max_concurrent": "--max-concurrent",
    "replicas": "--replicas",
    "hedge": "--hedge",
    "api_key_env": "--api-key-env",
    "api_key_header": "--api-key-header",
    "certificate_authority": "--ca",
}


MODEL_OPTIONS = tuple(MODEL_FLAGS)


def model_options(options: argparse.Namespace) -> dict[str, Any]:
    """What the user specified about the model, as `load_box` takes it."""
    facts = {name: getattr(options, name, None) for name in MODEL_OPTIONS}
    if options.tensors is not None:
        facts["binary"] = options.tensors == "binary"
    return facts


def model_from(options: argparse.Namespace, *, auto: bool = False) -> Box:
    """The box of the model that the options describe; `auto`: its convention is to be found."""
    from soda_tta.box import load_box

    facts = model_options(options)
    if auto:
        facts |= {"input": "auto", "conventions": conventions_from(options)}
    return load_box(options.model, **facts)


def conventions_from(options: argparse.Namespace) -> dict[str, Any] | None:
    """The user's own normalisations in the file of --conventions."""
    if options.conventions is None:
        return None
    from soda_tta.conventions.own import read_conventions

    return read_conventions(options.conventions)


def add_input(parser: argparse.ArgumentParser | argparse._ArgumentGroup, default: str) -> None:
    """Add --input and --conventions, for commands that can find the input convention."""
    parser.add_argument(
        "--input",
        choices=["auto", "stated"],
        default=default,
        help="auto: find what the model expects of its pixels, with at most 1,000 queries and "
        f"without labels; stated: as the options of the model say (default: {default})",
    )
    parser.add_argument(
        "--conventions",
        metavar="FILE",
        help="with --input auto: a TOML file with your own normalisations to try, such as "
        "[mine] with mean = 0.13 and std = 0.31",
    )
