import httpx

from calls import main


def call(url, method, body):
    answer = httpx.request(method, url, content=body)
    return answer.status_code, answer.text


def stream(url):
    with httpx.stream("GET", url) as answer:
        yield from answer.iter_bytes()


def up(url, file):
    with open(file, "rb") as body:
        return httpx.post(url, content=body, timeout=60).text


main(call, stream, up)
