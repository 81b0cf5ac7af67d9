"""A first adaptation: a black-box digit classifier fails under haze and recovers.

    python examples/first_adaptation.py

Nothing is downloaded: the digits come with scikit-learn and the model is trained in seconds.
"""

import tempfile

from soda_tta import adapt, load_box
from soda_tta.zoo.digits import hazy_digits, load_digits

BUDGET = 10  # queries per image, all purposes together

with tempfile.TemporaryDirectory() as folder:
    model, images = hazy_digits(folder)  # an ONNX file and an .npy file of hazy images
    box = load_box(model)  # from here on, only probabilities come back
    run = adapt(images, box, budget=BUDGET)
    run.save(f"{folder}/run")
    run.report(f"{folder}/report.html", images=images)

labels = load_digits(seed=0).test_labels  # only to measure; adapt() never sees them
before = (run.before.argmax(axis=1) == labels).mean()
after = (run.predictions == labels).mean()

print(f"accuracy    {before:.1%} -> {after:.1%}")
print(f"queries     {run.queries_per_image:.1f} per image: {run.ledger}")
print(f"adaptor     {run.adaptor.describe()}")
print(f"verdict     {run.verdict.sentence}")
