"""Adapt live images inside your own service: FastAPI around `LiveStream`.

    pip install fastapi uvicorn
    uvicorn --app-dir examples fastapi_service:service    # SODA_MODEL=model.onnx, SODA_STATE=state/
    curl --data-binary @photo.png http://127.0.0.1:8000/predict

    python examples/fastapi_service.py    # no server: asks the service a few times and prints

Each request costs one query and does not wait for the learner, which has a thread of its own.
"""

import io
import os
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from PIL import Image, UnidentifiedImageError

from soda_tta import load_box
from soda_tta.data import open_images
from soda_tta.engine.live import STATE, LiveStream
from soda_tta.engine.working_size import at_working_size
from soda_tta.errors import BoxError

IDLE = 0.2  # seconds between two looks at whether there is something to learn
MOST_BYTES = 10_000_000


class Adapted:
    """A model whose images are adapted while they arrive."""

    def __init__(self, model: str, folder: Path) -> None:
        self.box = load_box(model)
        known = (folder / STATE).exists()
        self.stream = (
            LiveStream.load(folder / STATE, self.box, directory=folder)
            if known
            else LiveStream(self.box, directory=folder)
        )
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.learn, daemon=True)

    def predict(self, image: np.ndarray, camera: str | None) -> np.ndarray:
        """The probabilities of one image; cameras are kept apart."""
        images = at_working_size(open_images(image[None]), self.box.input.view)[slice(0, 1)]
        adapted, routes = self.stream.adapted(images, camera)
        answers = self.box(adapted)
        self.stream.arrived(images, answers, camera, routes=routes)
        return answers[0]

    def learn(self) -> None:
        """In a thread of its own: learn within the budget whenever something arrived."""
        while not self.ended.is_set():
            try:
                busy = self.stream.learn()
            except BoxError:  # the model did not respond; later perhaps
                busy = False
            if not busy:
                self.ended.wait(IDLE)

    def close(self) -> None:
        """End the thread and save, so that a restart continues."""
        self.ended.set()
        self.thread.join()
        self.stream.save()


@asynccontextmanager
async def life(service: FastAPI) -> AsyncIterator[None]:
    folder = Path(os.environ.get("SODA_STATE", "state"))
    folder.mkdir(parents=True, exist_ok=True)
    service.state.model = Adapted(os.environ["SODA_MODEL"], folder)
    service.state.model.thread.start()
    yield
    service.state.model.close()


service = FastAPI(lifespan=life)


async def pixels(request: Request) -> np.ndarray:
    """The image of a request."""
    body = await request.body()
    if len(body) > MOST_BYTES:
        raise HTTPException(413, f"an image has at most {MOST_BYTES:,} bytes")
    try:
        return np.asarray(Image.open(io.BytesIO(body)).convert("RGB"))
    except (UnidentifiedImageError, OSError) as error:
        raise HTTPException(400, "this is not an image") from error


@service.post("/predict")
async def predict(request: Request) -> dict[str, Any]:
    image = await pixels(request)
    camera = request.headers.get("X-Camera-Id")
    answer = await run_in_threadpool(request.app.state.model.predict, image, camera)
    return {"class": int(answer.argmax()), "confidence": round(float(answer.max()), 4)}


@service.get("/live")
def live(request: Request) -> dict[str, Any]:
    """Conditions, adaptors, and queries by purpose."""
    return request.app.state.model.stream.facts()


def main() -> None:
    """Ask the service a few times, without a network."""
    from fastapi.testclient import TestClient

    from soda_tta.zoo.digits import hazy_digits

    folder = Path(tempfile.mkdtemp())
    model, file = hazy_digits(folder)
    os.environ |= {"SODA_MODEL": str(model), "SODA_STATE": str(folder / "state")}
    with TestClient(service) as client:
        for image in np.load(file)[:3]:
            buffer = io.BytesIO()
            Image.fromarray(image.transpose(1, 2, 0)).save(buffer, "PNG")
            print(client.post("/predict", content=buffer.getvalue()).json())
        facts = client.get("/live").json()
        print("arrived", facts["arrived"] + facts["waiting"])
    print("saved", (folder / "state" / STATE).name)


if __name__ == "__main__":
    main()
