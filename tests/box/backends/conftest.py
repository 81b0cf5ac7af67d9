"""Real counterparts of the back ends: a gRPC server in this process, and tiny TFLite files."""

from .grpc_server import failing_fixture, grpc_server, tls_grpc_server
from .tflite_models import tiny_tflite

__all__ = ["failing_fixture", "grpc_server", "tiny_tflite", "tls_grpc_server"]
