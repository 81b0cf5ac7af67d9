"""NVIDIA's own client against a proxy: `python triton_client.py HTTP GRPC IMAGES.npy`.

With the python of .venv-triton. HTTP and GRPC are host:port. Prints the probabilities of every form
of request as JSON.
"""

import json
import sys

import numpy as np
import tritonclient.grpc as over_grpc
import tritonclient.http as over_http


def infer(library, client, images, binary=True, **options):
    tensor = library.InferInput("images", list(images.shape), "FP32")
    output = library.InferRequestedOutput("probabilities")
    if library is over_http:
        tensor.set_data_from_numpy(images, binary_data=binary)
        output = library.InferRequestedOutput("probabilities", binary_data=binary)
    else:
        tensor.set_data_from_numpy(images)
    result = client.infer("digits", [tensor], outputs=[output], request_id="a7", **options)
    response = result.get_response()
    assert (response["id"] if library is over_http else response.id) == "a7"
    return result.as_numpy("probabilities").tolist()


def main(http_place, grpc_place, path, binary_too):
    images = np.load(path)
    client = over_http.InferenceServerClient(http_place)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits")
    answers = {"json": infer(over_http, client, images, binary=False)}
    if binary_too:
        answers["binary"] = infer(over_http, client, images)
        answers["version"] = infer(over_http, client, images, model_version="1")
        packed = dict(request_compression_algorithm="gzip", response_compression_algorithm="gzip")
        answers["gzip"] = infer(over_http, client, images, **packed)
    remote = over_grpc.InferenceServerClient(grpc_place)
    assert remote.is_server_live() and remote.is_server_ready() and remote.is_model_ready("digits")
    answers["grpc"] = infer(over_grpc, remote, images)
    metadata = remote.get_model_metadata("digits")
    print(
        json.dumps(
            {
                "answers": answers,
                "http": client.get_model_metadata("digits"),
                "grpc": [metadata.name, metadata.inputs[0].name, list(metadata.inputs[0].shape)],
            }
        )
    )


if __name__ == "__main__":
    http_place, grpc_place, path, binary = sys.argv[1:]
    main(http_place, grpc_place, path, binary == "binary")
