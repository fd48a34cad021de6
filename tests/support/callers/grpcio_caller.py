"""Python's grpcio, told what to call by lines of JSON: see process.mjs.

Messages are bytes to it, as they are to every caller here; what they mean is for the test to say.
"""

import base64
import json
import sys
import threading
from queue import SimpleQueue

import grpc

HALF_CLOSE = object()
DETAILS = "grpc-status-details-bin"
MAX_MESSAGE_BYTES = 26_214_400

said = threading.Lock()


def say(line):
    with said:
        print(json.dumps(line), flush=True)


def encode(message):
    return base64.b64encode(message).decode()


def headers(metadata):
    return {key: value for key, value in metadata or () if isinstance(value, str)}


def end(number, call):
    """Says how a call ended."""
    trailing = dict(call.trailing_metadata() or ())
    say({
        "call": number,
        "end": {
            "code": call.code().value[0],
            "text": call.details() or "",
            "details": encode(trailing.get(DETAILS, b"")),
        },
    })


class Caller:
    def __init__(self, address):
        bounds = [("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)]
        self.channel = grpc.insecure_channel(address, options=bounds)
        self.calls = {}

    def begin(self, number, command):
        """Begins a call of any kind as a bidirectional one: on the wire they are the same."""
        requests = SimpleQueue()
        seconds = command["timeoutMs"] / 1000 if "timeoutMs" in command else None
        method = self.channel.stream_stream(command["path"])
        metadata = tuple(command.get("headers", {}).items())
        call = method(iter(requests.get, HALF_CLOSE), timeout=seconds, metadata=metadata)
        self.calls[number] = (call, requests)
        threading.Thread(target=self.follow, args=(number, call), daemon=True).start()

    def follow(self, number, call):
        try:
            say({"call": number, "headers": headers(call.initial_metadata())})
            for message in call:
                say({"call": number, "message": encode(message)})
        except grpc.RpcError:
            pass
        end(number, call)

    def obey(self, command):
        number = command["call"]
        if "begin" in command:
            self.begin(number, command["begin"])
        call, requests = self.calls[number]
        if "send" in command:
            requests.put(base64.b64decode(command["send"]))
        if command.get("halfClose"):
            requests.put(HALF_CLOSE)
        if command.get("cancel"):
            call.cancel()


def main():
    caller = Caller(sys.argv[1])
    for line in sys.stdin:
        caller.obey(json.loads(line))
    for call, requests in caller.calls.values():
        call.cancel()
        requests.put(HALF_CLOSE)
    caller.channel.close()


main()
