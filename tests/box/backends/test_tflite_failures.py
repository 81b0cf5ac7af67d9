"""TFLite files that are not valid, or not image classifiers: what happened, and the remedy."""

import subprocess
import sys

import pytest

from soda_tta.box import TfliteBox
from soda_tta.errors import BoxError


def test_a_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(BoxError, match=r"none.tflite does not exist"):
        TfliteBox(tmp_path / "none.tflite")


@pytest.mark.parametrize("content", [b"", b"TFL3", b"PK\x03\x04 a zip", b"\x00" * 4000])
def test_another_file_is_not_a_tflite_file(tiny_tflite, content: bytes) -> None:
    with pytest.raises(BoxError, match=r"is not a TFLite file.*download it again"):
        TfliteBox(tiny_tflite.write(content))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.99])
def test_a_file_that_is_cut_off_says_so(tiny_tflite, share: float) -> None:
    content = tiny_tflite().read_bytes()
    cut = tiny_tflite.write(content[: int(share * len(content))])
    with pytest.raises(BoxError, match=r"is cut off or damaged; copy or download it again"):
        TfliteBox(cut)


def test_a_file_that_is_cut_off_in_its_labels_says_so(tiny_tflite) -> None:
    archive = {"labels.txt": b"a\nb\nc\nd\n"}
    path = tiny_tflite(metadata=tiny_tflite.metadata(labels="labels.txt"), archive=archive)
    cut = tiny_tflite.write(path.read_bytes()[:-30])
    with pytest.raises(BoxError, match=r"labels.txt is missing.*cut off or damaged"):
        TfliteBox(cut)


def test_metadata_that_is_not_valid_is_an_error(tiny_tflite) -> None:
    with pytest.raises(BoxError, match=r"metadata of .* cannot be read .*outside of the file"):
        TfliteBox(tiny_tflite(metadata=b"\xff" * 40))


def test_a_std_of_0_in_the_metadata_is_an_error(tiny_tflite) -> None:
    with pytest.raises(BoxError, match=r"std is .*must be positive"):
        TfliteBox(tiny_tflite(metadata=tiny_tflite.metadata(mean=[0.0], std=[0.0])))


@pytest.mark.parametrize("names", [3, 5])
def test_a_label_file_of_the_wrong_length_is_an_error(tiny_tflite, names: int) -> None:
    archive = {"labels.txt": b"name\n" * names}
    path = tiny_tflite(archive=archive)
    with pytest.raises(BoxError, match=rf"labels.txt has {names} names for the 4 .*class_names="):
        TfliteBox(path)
    assert TfliteBox(path, class_names=list("abcd")).class_names == ("a", "b", "c", "d")
    with pytest.raises(BoxError, match="there are 2 class names for the 4 classes"):
        TfliteBox(path, class_names=["a", "b"])


def test_two_inputs_are_refused(tiny_tflite) -> None:
    with pytest.raises(BoxError, match=r"has 2 inputs \(image \(1x8x8x3\), spare0 \(1x4\)\)"):
        TfliteBox(tiny_tflite(inputs=2))


def test_an_input_of_a_type_that_cannot_be_sent_is_refused(tiny_tflite) -> None:
    with pytest.raises(BoxError, match="takes int16; this package sends float32"):
        TfliteBox(tiny_tflite(dtype="int16", quantisation=(1 / 255, 0)))


def test_two_outputs_need_a_name(tiny_tflite) -> None:
    path = tiny_tflite(outputs=("logits", "probabilities"))
    listed = r"logits \(1x4\), probabilities \(1x4\)"
    with pytest.raises(BoxError, match=rf"{listed}; choose the one .*output='NAME'"):
        TfliteBox(path)
    with pytest.raises(BoxError, match=rf"no output 'scores'; choose from: {listed}"):
        TfliteBox(path, output="scores")


def test_a_file_for_the_edge_tpu_names_the_remedy(tiny_tflite) -> None:
    with pytest.raises(BoxError, match=r"compiled for the Edge TPU.*without _edgetpu"):
        TfliteBox(tiny_tflite(custom="edgetpu-custom-op"))


@pytest.mark.parametrize(
    ("custom", "message"),
    [("MyOwn", "custom operator MyOwn"), ("FlexErf", "TensorFlow operators")],
)
def test_a_custom_operator_is_named(tiny_tflite, custom: str, message: str) -> None:
    with pytest.raises(BoxError, match=rf"{message}.*built-in operators only"):
        TfliteBox(tiny_tflite(custom=custom))


def test_images_that_do_not_fit_are_an_error_each_time(tiny_tflite, images) -> None:
    grey = TfliteBox(tiny_tflite(), channels="L")
    for _ in range(2):
        with pytest.raises(BoxError, match="LiteRT could not run"):
            grey(images[:2])


def test_a_missing_library_names_the_extra(tiny_tflite, monkeypatch) -> None:
    path = tiny_tflite()
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(BoxError, match=r"pip install 'soda-tta\[tflite\]'"):
        TfliteBox(path)


@pytest.mark.parametrize("quantisation", [(0.0, 0), (1 / 255, 4000)], ids=["scale", "zero point"])
def test_damage_that_would_crash_litert_is_found_first(tiny_tflite, quantisation) -> None:
    path = tiny_tflite(dtype="int8", quantisation=quantisation)
    with pytest.raises(BoxError, match="cut off or damaged"):
        TfliteBox(path)


FUZZ = """
import random, sys
import numpy as np
from soda_tta.box import TfliteBox
from soda_tta.errors import BoxError

content = open(sys.argv[1], "rb").read()
images = np.zeros((1, 3, 8, 8), np.float32)
refused = 0
for seed in range(200):
    draw = random.Random(seed)
    damaged = bytearray(content)
    for _ in range(draw.choice([1, 3, 10])):
        damaged[draw.randrange(8, len(damaged))] ^= 1 << draw.randrange(8)
    open(sys.argv[2], "wb").write(damaged)
    try:
        TfliteBox(sys.argv[2], threads=1)(images)
    except BoxError:
        refused += 1
print(refused)
"""


def test_damaged_files_are_refused_or_run_and_never_crash_the_process(tiny_tflite) -> None:
    archive = {"labels.txt": b"a\nb\nc\nd\n"}
    metadata = tiny_tflite.metadata(mean=[127.5], std=[127.5], labels="labels.txt")
    path = tiny_tflite(metadata=metadata, archive=archive)
    target = path.with_name("damaged.tflite")
    command = [sys.executable, "-c", FUZZ, str(path), str(target)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert finished.returncode == 0, finished.stderr[-2000:]
    assert 50 < int(finished.stdout) < 200
