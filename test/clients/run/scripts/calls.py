"""The modes of a client in Python, over what its library can do. Arguments: the URL, the mode, and a file that `up` sends.

The exit code is 0 when the server's answer came, and came whole."""
import hashlib
import sys


def measure(chunks):
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        digest.update(chunk)
        size += len(chunk)
    print(size, digest.hexdigest())


def show(chunks):
    for chunk in chunks:
        print(chunk.decode() if isinstance(chunk, bytes) else chunk, flush=True)


def main(call, stream, up):
    """call(url, method, body) gives status and text, stream(url) the body as it comes, up(url, file) the text."""
    url, mode, file = sys.argv[1:4]
    if mode == "up":
        print(up(url, file))
    elif mode == "down":
        measure(stream(url))
    elif mode in ("stream", "revoked"):
        show(stream(url))
    else:
        status, text = call(url, "POST", b"hello") if mode == "held" else call(url, "GET", None)
        print(status, text)
        sys.exit(0 if status == 200 else 1)
