"""An S3 server in memory: python moto_server.py FOLDER HTTP_PORT OTHER_PORT."""

import sys

from moto.server import main

main(["--host", "127.0.0.1", "--port", sys.argv[2]])
