"""The child process that serves a local model: run as a program, it imports nothing of this package.

Its settings come as one line of JSON on standard input (so that the access token is in no process list), the address goes
out as one line of JSON on standard output, and it ends when its standard input does, which is also what the death of
the parent looks like.
"""

import json
import os
import sys


def main() -> None:
    """Serve until standard input ends."""
    settings = json.loads(sys.stdin.readline())
    import xllamacpp  # type: ignore[import-untyped]

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["name"]}
    params.n_ctx = settings["context"] * settings["slots"]
    params.n_parallel = settings["slots"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["token"]]
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = 1
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = settings["threads"]
        cpu.poll = 0  # spinning threads starve each other and the containers on a small machine
    server = xllamacpp.Server(params)
    print(json.dumps({"address": server.listening_address}), flush=True)
    sys.stdin.read()
    os._exit(0)  # requests in progress belong to nobody any more


if __name__ == "__main__":
    main()
