"""Mixed conditions: clean, hazy and noisy images in one folder.

    python examples/mixed_conditions.py

One adaptor for all images helps some and harms others. `adapt` tells the conditions apart by the
pixels, without a label and without a query, and learns an adaptor for each.
"""

# %% [markdown]
# ## A mixed folder
#
# A third of the digits each is clean, hazy and noisy, in random order. Only the last cell uses
# which is which.

# %%
import tempfile

import numpy as np

from soda_tta import adapt, find_conditions, load_box
from soda_tta.demo import picture_grid
from soda_tta.zoo.digits import CONDITIONS, hazy_digits, load_digits, mixed

model, _ = hazy_digits(tempfile.mkdtemp())
box = load_box(model)
digits = load_digits(seed=0)
images, truth = mixed(digits.test, seed=0)
picture_grid([images[:12]])

# %% [markdown]
# ## Which conditions are there?
#
# This needs no model. The words describe how a condition differs from the others.

# %%
conditions = find_conditions(images)
for words, size in zip(conditions.words, conditions.sizes(), strict=True):
    print(f"{size} images: {words}")

# %% [markdown]
# ## Adapt
#
# `adapt` does the same by itself. Each condition has its own search and its own verdict, within
# one budget.

# %%
run = adapt(images, box, budget=15)
print(f"{run.queries_per_image:.1f} queries per image")
print(run.adaptor.describe())

# %%
hazy = np.flatnonzero(truth == CONDITIONS.index("hazy"))[:4]
noisy = np.flatnonzero(truth == CONDITIONS.index("noisy"))[:4]
clean = np.flatnonzero(truth == CONDITIONS.index("clean"))[:4]
shown = images[np.concatenate([clean, hazy, noisy])]
picture_grid([shown, run.adaptor(shown)])

# %% [markdown]
# ## One adaptor for all, or one for each?

# %%
single = adapt(images, box, budget=15, conditions=1)
print(f"{'':8}{'before':>8}{'one':>8}{'each':>8}")
for place, name in enumerate(CONDITIONS):
    own = truth == place
    rows = [
        each[own].argmax(axis=1) for each in (run.before, single.probabilities, run.probabilities)
    ]
    shares = [(row == digits.test_labels[own]).mean() for row in rows]
    print(f"{name:8}" + "".join(f"{share:8.1%}" for share in shares))
