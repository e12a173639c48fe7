import anthropic

from calls import main

asked = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}


def client(url):
    return anthropic.Anthropic(api_key="unused", base_url=url)


def call(url, method, body):
    try:
        return 200, client(url).messages.create(**asked).content[0].text
    except anthropic.APIStatusError as error:
        return error.status_code, error.message


def stream(url):
    if "/down/" in url:
        with client(url).beta.files.with_streaming_response.download("large") as answer:
            yield from answer.iter_bytes()
    else:
        with client(url).messages.stream(**asked) as events:
            yield from events.text_stream


def up(url, file):
    with open(file, "rb") as body:
        return client(url).beta.files.upload(file=body).filename


main(call, stream, up)
