"""A live stream: images arrive in batches, and haze comes on the way.

    python examples/live_stream.py

Each image is answered with one query. Behind that, the stream learns with at most two further
queries per image, and a change is promoted only after it has won a test on recent images.
"""

# %% [markdown]
# ## Traffic
#
# Digits arrive in batches of 100. The first 300 are clean; after that, there is haze. To have
# enough of them, the digits come more than once, each time with other noise.

# %%
import tempfile
from pathlib import Path

import numpy as np

from soda_tta import Stream, load_box
from soda_tta.engine.live_events import Promoted
from soda_tta.zoo.digits import haze, hazy_digits, load_digits

BATCH = 100
CLEAN = 300

folder = Path(tempfile.mkdtemp())
model, _ = hazy_digits(folder)
box = load_box(model)
digits = load_digits(seed=0)
images = np.concatenate([digits.test, digits.train, digits.test])
labels = np.concatenate([digits.test_labels, digits.train_labels, digits.test_labels])
traffic = np.concatenate([images[:CLEAN], haze(images[CLEAN:], seed=5)])

# %% [markdown]
# ## Answer and learn
#
# The learner runs inside `stream(batch)` here. In a server it has a thread of its own: see
# `fastapi_service.py`, or `soda-tta serve` for a proxy that needs no code.

# %%
events = []
stream = Stream(box, method="soda-e", directory=folder, listener=events.append)
for start in range(0, 2400, BATCH):
    place = slice(start, start + BATCH)
    answers = stream(traffic[place])
    accuracy = (answers.argmax(axis=1) == labels[place]).mean()
    per_image = stream.ledger.total / (start + BATCH)
    print(f"{start:5}  accuracy {accuracy:5.1%}  {per_image:.1f} queries per image so far")

# %% [markdown]
# ## What happened
#
# The test may be looked at after every image; over the whole life of the stream, an adaptor that
# is no better is promoted with probability 1 % at most. That is why it waits.

# %%
for event in events:
    if isinstance(event, Promoted):
        print(f"after {event.arrived} images: {event.adaptor} (p = {event.p_value:.1g})")

# %% [markdown]
# ## After a restart
#
# The state is one file. A stream that is loaded continues bit for bit.

# %%
stream.save()
again = Stream.load(folder / "stream.safetensors", box, method="soda-e")
place = slice(2400, 2400 + BATCH)
print((again(traffic[place]) == stream(traffic[place])).all())
