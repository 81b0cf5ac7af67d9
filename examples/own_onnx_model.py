"""Your own ONNX model and your own folder of images.

    python examples/own_onnx_model.py model.onnx night/ --out night --budget 5
    python examples/own_onnx_model.py                       # without arguments: the demo's digits

What the file does not declare (normalisation, logits ...), you specify to `load_box`.
"""

import argparse
import tempfile
from pathlib import Path

from soda_tta import adapt, apply, examine, load_box
from soda_tta.zoo.digits import hazy_digits

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("model", nargs="?", help="an .onnx file")
parser.add_argument("images", nargs="?", help="a folder of images")
parser.add_argument("--out", help="where to write the adaptor and the answers")
parser.add_argument("--budget", type=float, default=10, help="queries per image (default 10)")
options = parser.parse_args()

folder = Path(options.out or tempfile.mkdtemp())
folder.mkdir(exist_ok=True)
if options.model is None:
    options.model, options.images = hazy_digits(folder)

# mean=, std=, pixel_range=, channels="BGR", logits=True ... go here if the model needs them
box = load_box(options.model)

# Is it worth trying? About two queries per image.
examination = examine(options.images, box)
for finding in examination.findings:
    print(f"{finding.state:8} {finding.sentence}")

run = adapt(options.images, box, budget=options.budget)
print(f"\n{run.reason}\n{run.queries_per_image:.1f} queries per image were sent.")

if run.verdict is not None and run.verdict.adopt:
    run.adaptor.save(folder / "adaptor.safetensors")
    deviation = run.adaptor.to_onnx(folder / "adaptor.onnx")  # runs in front of the model
    print(f"{folder}/adaptor.onnx deviates from PyTorch by at most {deviation:.1e}")

# New images later: one query per image.
answers = apply(run, options.images, box, out=folder / "answers.csv", force=True)
print(f"{len(answers.names)} answers -> {folder}/answers.csv")
