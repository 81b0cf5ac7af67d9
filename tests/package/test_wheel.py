"""The wheel, not the checkout: what is in it, and that it works with each extra alone.

One fresh environment gets the wheel and what its core needs; PyTorch takes most of that minute. For
each extra, a further environment adds the packages of that extra alone and sees those of the core
through a path file. Ray is left to the tests of clusters.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import tomllib
from PIL import Image

pytestmark = [pytest.mark.package, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[2]
SMOKE = Path(__file__).parent / "smoke.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_HERE = {"all", "dev", "docs", "ray"}
EXTRAS = ("core", *sorted(set(PROJECT["optional-dependencies"]) - NOT_HERE))
OUTSIDE = {
    name: value
    for name, value in os.environ.items()
    if name not in ("PYTHONPATH", "SODA_TTA_DATA", "VIRTUAL_ENV")
}


def run(*words: str | Path, folder: Path) -> str:
    """The output of a program that must not see the checkout."""
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=OUTSIDE, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def python_of(environment: Path) -> Path:
    return environment / "bin" / "python"


def packages_of(environment: Path) -> Path:
    (found,) = environment.glob("lib/python3*/site-packages")
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built as a release is: the source distribution first, and the wheel from that."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, folder=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory) -> Path:
    """An environment with the wheel and no extra."""
    environment = tmp_path_factory.mktemp("core") / "env"
    venv.create(environment, with_pip=True)
    install(environment, str(wheel))
    return environment


def install(environment: Path, what: str) -> None:
    pip = (python_of(environment), "-m", "pip", "install", "--quiet")
    run(*pip, "-c", ROOT / "constraints.txt", what, folder=environment)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """Small models and images."""
    folder = tmp_path_factory.mktemp("files")
    random = np.random.default_rng(1)
    pixels = random.integers(0, 255, (6, 8, 8, 3), np.uint8)
    (folder / "images").mkdir()
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(folder / "images" / f"{number}.png")
    write_photographs(folder, random)
    write_models(folder)
    return folder


def part_of_tests(path: str) -> ModuleType:
    """A module of the test suite that writes small files."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / "tests" / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def write_photographs(folder: Path, random: np.random.Generator) -> None:
    import pillow_heif

    (folder / "heic").mkdir()
    (folder / "dicom").mkdir()
    picture = Image.fromarray(random.integers(0, 255, (64, 64, 3), np.uint8))
    pillow_heif.from_pillow(picture).save(folder / "heic" / "photo.heic")
    values = random.integers(0, 4095, (8, 8), np.uint16)
    part_of_tests("data/test_dicom.py").write(folder / "dicom" / "scan.dcm", values)


def write_models(folder: Path) -> None:
    import torch

    written = part_of_tests("box/backends/tflite_models.py").TinyTflite(folder)()
    written.rename(folder / "model.tflite")
    network = torch.nn.Sequential(
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(3, 4),
        torch.nn.Softmax(dim=1),
    )
    torch.onnx.export(
        network,
        (torch.zeros(1, 3, 8, 8),),
        str(folder / "model.onnx"),
        dynamic_axes={"images": {0: "n"}},
        input_names=["images"],
        dynamo=False,
    )


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    places = {name.split("/")[0] for name in names}
    version = wheel.name.split("-")[1]
    assert places == {"soda_tta", f"soda_tta-{version}.dist-info"}
    source = ROOT / "src" / "soda_tta"
    tracked = {
        path.relative_to(source.parent).as_posix()
        for path in source.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {name for name in names if name.startswith("soda_tta/")} == tracked
    assert wheel.stat().st_size < 2e6


def test_the_source_distribution_has_no_results(wheel: Path) -> None:
    (source,) = wheel.parent.glob("*.tar.gz")
    assert source.stat().st_size < 3e6


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_is_enough_for_what_it_is_for(
    core: Path, wheel: Path, files: Path, tmp_path: Path, extra: str
) -> None:
    environment = core
    if extra != "core":
        environment = tmp_path / "env"
        venv.create(environment, with_pip=False)
        (packages_of(environment) / "core.pth").write_text(f"{packages_of(core)}\n")
        install(environment, f"{wheel}[{extra}]")
    place = tmp_path / "files"
    place.symlink_to(files)
    assert "works" in run(python_of(environment), SMOKE, extra, place, folder=tmp_path)


def test_the_command_is_installed(core: Path, tmp_path: Path) -> None:
    shown = run(core / "bin" / "soda-tta", "--version", folder=tmp_path)
    assert shown.split()[-1] == wheel_version()


def wheel_version() -> str:
    text = (ROOT / "src" / "soda_tta" / "_version.py").read_text()
    return text.partition('"')[2].rpartition('"')[0]
