"""A first adaptation: a black-box digit classifier fails under haze and recovers.

    python examples/first_adaptation.py

Nothing is downloaded: the digits come with scikit-learn and the model is trained in seconds.
"""

# %% [markdown]
# ## A model and images
#
# `hazy_digits` trains a small network, writes it as an ONNX file and covers its test images with
# haze. From here on only probabilities come back. With a model of your own, give its path or its
# address to `load_box`.

# %%
import tempfile

from soda_tta import adapt, load_box, open_images
from soda_tta.demo import picture_grid
from soda_tta.zoo.digits import hazy_digits, load_digits

folder = tempfile.mkdtemp()
model, file = hazy_digits(folder)
box = load_box(model)
images = open_images(file)
print(f"{len(images)} images of {images.size[0]} x {images.size[1]} pixels")

# %% [markdown]
# ## Adapt
#
# No label is used. The budget is a hard limit: all queries count, whatever they are for.

# %%
BUDGET = 10  # queries per image, all purposes together

run = adapt(images, box, budget=BUDGET)
print(f"queries     {run.queries_per_image:.1f} per image: {run.ledger}")
print(f"adaptor     {run.adaptor.describe()}")
print(f"verdict     {run.verdict.sentence}")

# %% [markdown]
# ## Look
#
# The same digits as they are and adapted. The adaptor does not make them pretty: it makes them
# what this model can read.

# %%
first = images[slice(0, 12)]
picture_grid([first, run.adaptor(first)])

# %% [markdown]
# ## Measure
#
# Here the labels are known, so the accuracy can be measured. `adapt` never sees them.

# %%
labels = load_digits(seed=0).test_labels
before = (run.before.argmax(axis=1) == labels).mean()
after = (run.predictions == labels).mean()
print(f"accuracy    {before:.1%} -> {after:.1%}")

# %% [markdown]
# ## Keep
#
# `save` writes a folder that `soda-tta apply`, `export` and `report` read. The report is one HTML
# page.

# %%
run.save(f"{folder}/run")
report = run.report(f"{folder}/report.html", images=images)
print(report.name)
