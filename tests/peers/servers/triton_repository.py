"""Serve a model repository with a real Triton, from its own `config.pbtxt` files.

`python triton_repository.py REPOSITORY PORT`, with the python of .venv-triton, in an empty folder.

The server in PyPI's nvidia-pytriton has the ensemble scheduler and the Python back end, but not the
back end `onnxruntime`. `onnxruntime_backend.py` takes its place, so that the repository is served
unchanged: Triton calls a folder of back ends with a `model.py` a Python-based back end.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

PACKAGES = Path(sysconfig.get_paths()["purelib"])
SERVER = PACKAGES / "pytriton" / "tritonserver"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def backends(folder: Path) -> Path:
    """The folder of back ends; copies, because Triton refuses links that lead out of it."""
    shutil.copytree(SERVER / "backends" / "python", folder / "python")
    stub = SERVER / "python_backend_stubs" / VERSION / "triton_python_backend_stub"
    shutil.copy(stub, folder / "python")
    (folder / "onnxruntime").mkdir()
    backend = Path(__file__).with_name("onnxruntime_backend.py")
    shutil.copy(backend, folder / "onnxruntime" / "model.py")
    return folder


def serve(repository: str, port: str) -> None:
    program = SERVER / "bin" / "tritonserver"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(PACKAGES / "nvidia_pytriton.libs"),
        "PYTHONPATH": str(PACKAGES),
    }
    options = [
        f"--model-repository={repository}",
        f"--backend-directory={backends(Path.cwd() / 'backends')}",
        "--http-address=127.0.0.1",
        f"--http-port={port}",
        "--allow-grpc=false",
        "--allow-metrics=false",
        "--exit-timeout-secs=2",
    ]
    os.execve(program, [str(program), *options], environment)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
