# SPDX-License-Identifier: MIT
"""A server over stdin and stdout, one request a line, as a tool server of an agent is."""
import json
import os
import sys

for count, line in enumerate(sys.stdin, start=1):
    request = json.loads(line)
    reply = {"id": request["id"], "result": sum(request["add"]), "served": count,
             "pid": os.getpid()}
    print(json.dumps(reply), flush=True)
