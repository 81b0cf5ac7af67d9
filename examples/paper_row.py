"""One row of the paper: SODA and its relatives on one corruption of CIFAR-10-C.

    SODA_TTA_DATA=~/soda-data python examples/paper_row.py

The data folder holds cifar10-test.npz and the trained models (docs/how-to/data.md). The paper has
10,000 images and 150 epochs; `soda-tta bench run cifar10 --scale paper` is the whole table.
"""

# %% [markdown]
# ## Data and models
#
# The same ResNet-20 twice: as an ONNX file, of which only probabilities are seen, and as a
# PyTorch module for the methods that use gradients or batch statistics.

# %%
import warnings

from soda_tta import SodaError, adapt, load_dataset, zoo

CORRUPTION = "contrast"
IMAGES = 256
EPOCHS = 2  # 30 and 500 images come closer to the paper

warnings.simplefilter("ignore")  # notices about too few epochs, which is the point here
try:
    images = load_dataset("cifar10", corruption=CORRUPTION, severity=5)
    black_box = zoo.deployed("cifar10_resnet20", "onnx")
    white_box = zoo.deployed("cifar10_resnet20", "module")
except SodaError as error:
    raise SystemExit(f"This example needs CIFAR-10 and a trained model: {error}") from None
images = images.subset(slice(0, IMAGES))
print(f"{CORRUPTION}, severity 5, {len(images)} images of CIFAR-10, ResNet-20")

# %% [markdown]
# ## The row
#
# A method is a name and settings. Fewer steps than in the paper need a larger learning rate;
# `soda-e` has none. Every row states its queries, all purposes together.

# %%
LEARNING = {"epochs": EPOCHS, "lr": 0.03}
ROW = {
    "deployed": {},
    "soda-e": {"budget": 40},
    "soda": LEARNING,
    "soda-fo": LEARNING,
    "bn": {},
}

print(f"{'method':<10} {'accuracy':>8} {'queries per image':>18}")
for name, settings in ROW.items():
    box = white_box if name in ("soda-fo", "bn") else black_box
    run = adapt(images, box, method=name, **settings)
    accuracy = (run.predictions == images.labels).mean()
    print(f"{name:<10} {accuracy:>8.1%} {run.queries_per_image:>18.1f}")
