"""Serve a model through a proxy that adapts its images: change one URL, get better answers."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from soda_tta.cli.answer_options import add_answers, answer_settings
from soda_tta.cli.model_options import add_model, model_options
from soda_tta.cli.options import add_json
from soda_tta.cli.spelling import as_flags
from soda_tta.errors import SodaError

if TYPE_CHECKING:
    from soda_tta.serve.grpc_upstream import GrpcUpstream
    from soda_tta.serve.proxy import Proxy
    from soda_tta.serve.server import Running

EXAMPLES = """\
examples:
  soda-tta serve --upstream http://host:8000/v2/models/NAME --adaptor runs/night --freeze
  soda-tta serve --model model.onnx --mean 0.5 --std 0.25 --port 9000

Clients then use http://127.0.0.1:9000/v2/models/NAME. The keys of clients and admins are read from
files, or from the environment variables SODA_TTA_CLIENT_KEY and SODA_TTA_ADMIN_KEY.
SIGTERM ends the proxy after its open requests; SIGHUP reads the limits of --config again.
"""


def add_to(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "serve",
        help="serve a model through a proxy that adapts its images",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_proxy(parser)
    add_model(parser, required=False)
    add_access(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def add_proxy(parser: argparse.ArgumentParser) -> None:
    """Add the options of the proxy itself."""
    group = parser.add_argument_group("the proxy")
    group.add_argument(
        "--upstream",
        metavar="URL",
        help="http(s)://host:port/v2/models/NAME of the server that has the model; "
        "or serve a file with --model",
    )
    group.add_argument(
        "--host", default="127.0.0.1", help="address to listen to (default: this machine only)"
    )
    group.add_argument(
        "--port", type=int, default=9000, metavar="N", help="port over HTTP (default: 9000; 0: any)"
    )
    group.add_argument(
        "--grpc-port", type=int, metavar="N", help="also serve over gRPC, on this port (0: any)"
    )
    group.add_argument(
        "--grpc-upstream",
        metavar="URL",
        help="grpc(s)://host:port/NAME of the same model; needed by --grpc-port with --upstream",
    )
    group.add_argument(
        "--adaptor", metavar="RUN", help="begin with the adaptor of a run folder or a file"
    )
    group.add_argument("--freeze", action="store_true", help="never learn")
    group.add_argument(
        "--learn-budget",
        type=float,
        default=2,
        metavar="Q",
        help="at most Q queries of the learner per image that arrives (default: 2)",
    )
    add_answers(group)
    group.add_argument(
        "--mode",
        choices=["follow", "strict"],
        default="follow",
        help="follow: answer first and learn behind; strict: learn from each batch before it is "
        "answered, about 500 queries per image (SODA-O) (default: follow)",
    )
    group.add_argument("--state", metavar="DIR", help="folder for what is learned, and audit log")
    group.add_argument("--config", metavar="FILE", help="TOML file with [limits]; see the manual")
    group.add_argument("--name", help="name of a served file (default: that of the file)")
    group.add_argument(
        "--key-header", metavar="H", help="header that names the source of images, such as a camera"
    )
    group.add_argument(
        "--key-parameter", metavar="P", help="parameter of a request that names the source"
    )
    group.add_argument("--log-requests", action="store_true", help="log each inference")
    group.add_argument(
        "--show-images",
        choices=["yes", "no"],
        help="recent images on the dashboard (default: yes, but no with a client key)",
    )


def add_access(parser: argparse.ArgumentParser) -> None:
    """Add the options that say who may do what."""
    group = parser.add_argument_group("who may do what")
    group.add_argument("--client-key-file", metavar="FILE", help="the API key of clients")
    group.add_argument(
        "--admin-key-file", metavar="FILE", help="the key for /control/ and /metrics"
    )
    group.add_argument("--tls-cert", metavar="FILE", help="certificate of the proxy (PEM)")
    group.add_argument("--tls-key", metavar="FILE", help="its private key (PEM)")
    group.add_argument(
        "--forward-header",
        action="append",
        default=[],
        metavar="H",
        help="a further header that passes through; may be repeated",
    )


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if (options.upstream is None) == (options.model is None):
        raise SodaError("give --upstream URL, or --model FILE to serve a file.")
    if options.name is not None and options.model is None:
        raise SodaError("--name is for a file (--model); a server has named its models.")
    if options.grpc_port is not None and options.upstream and not options.grpc_upstream:
        raise SodaError(
            "--grpc-port needs the address of the model over gRPC (--grpc-upstream "
            "grpc://host:8001/NAME)."
        )
    try:
        import aiohttp  # noqa: F401
    except ImportError as error:
        raise SodaError("serving needs aiohttp: pip install 'soda-tta[serve]'.") from error
    from soda_tta.serve.server import Listening, serve
    from soda_tta.serve.server import run as run_loop
    from soda_tta.serve.state import state_folder

    listening = Listening(
        options.host, options.port, options.tls_cert, options.tls_key, options.grpc_port
    )
    listening.context()  # refuses wrong files before anything else

    def ready(running: Running) -> None:
        announce(options, running)

    with state_folder(options.state) as folder:
        proxy = proxy_from(options, folder)
        grpc = None if options.grpc_port is None else grpc_from(options, proxy)
        run_loop(serve(proxy, listening, ready=ready, grpc=grpc))
    return 0


def grpc_from(options: argparse.Namespace, proxy: Proxy) -> GrpcUpstream:
    """The same model over gRPC."""
    from soda_tta.serve.grpc_upstream import LocalGrpc, RemoteGrpc
    from soda_tta.serve.local import LocalModel

    if isinstance(proxy.upstream, LocalModel):
        return LocalGrpc(proxy.upstream)
    return RemoteGrpc(
        options.grpc_upstream,
        timeout=options.timeout or 30.0,
        most=proxy.limits.response_bytes,
        certificate_authority=options.certificate_authority,
    )


def proxy_from(options: argparse.Namespace, folder: Path | None) -> Proxy:
    """The proxy that the options describe."""
    from soda_tta.box.backends.credentials import key_header
    from soda_tta.serve.headers import Passing
    from soda_tta.serve.keys import ADMIN_VARIABLE, CLIENT_VARIABLE, Keys, read_key
    from soda_tta.serve.limits import read_limits
    from soda_tta.serve.local import LocalModel
    from soda_tta.serve.logs import Log
    from soda_tta.serve.proxy import Proxy
    from soda_tta.serve.start import Model, begin, begin_when_ready
    from soda_tta.serve.state import AUDIT, Audit
    from soda_tta.serve.upstream import HttpUpstream

    keys = Keys(
        read_key(options.client_key_file, CLIENT_VARIABLE),
        read_key(options.admin_key_file, ADMIN_VARIABLE),
    )
    model = Model(
        model=options.upstream or options.model,
        facts=model_options(options),
        adaptor=options.adaptor,
        mode=options.mode,
        freeze=options.freeze,
        learn_budget=options.learn_budget,
        settings=answer_settings(options),
    )
    upstream: Any
    box = None
    if options.model is not None:
        box = model.box(model.saved(), print_notice)
        upstream = LocalModel(box, options.name)
        key = {}
    else:
        upstream = HttpUpstream(
            options.upstream,
            timeout=options.timeout or 30.0,
            most=read_limits(options.config).response_bytes,
            certificate_authority=options.certificate_authority,
        )
        key = key_header(options.api_key_env, options.api_key_header or "Authorization")
    proxy = Proxy(
        upstream,
        keys=keys,
        passing=Passing(options.forward_header, key, keeps_authorization=keys.client is not None),
        config=options.config,
        key_header=options.key_header,
        key_parameter=options.key_parameter,
        log=Log(spelling=as_flags),
        log_requests=options.log_requests,
        show_images=None if options.show_images is None else options.show_images == "yes",
    )
    if folder is not None:
        proxy.audit = Audit(folder / AUDIT, proxy.log, proxy.metrics)
    if box is not None:
        begin(proxy, model, folder, box)
    else:
        begin_when_ready(proxy, model, folder)
    return proxy


def print_notice(text: str) -> None:
    """Show a notice about the model."""
    print(f"soda-tta: {text}", file=sys.stderr)


def announce(options: argparse.Namespace, running: Running) -> None:
    """Say where the model can be reached now."""
    if options.json:
        places = {"http": running.url, "grpc": running.grpc_url, "upstream": options.upstream}
        print(json.dumps({**places, "dashboard": running.dashboard}), flush=True)
        return
    print(f"serving {running.url}", flush=True)
    if running.grpc_url is not None:
        print(f"serving {running.grpc_url}", flush=True)
    print(f"dashboard {running.dashboard}", flush=True)
