import openai

from calls import main

asked = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def client(url):
    return openai.OpenAI(api_key="unused", base_url=url + "/v1")


def call(url, method, body):
    try:
        return 200, client(url).chat.completions.create(**asked).choices[0].message.content
    except openai.APIStatusError as error:
        return error.status_code, error.message


def stream(url):
    if "/down/" in url:
        with client(url).files.with_streaming_response.content("large") as answer:
            yield from answer.iter_bytes()
    else:
        for chunk in client(url).chat.completions.create(**asked, stream=True):
            yield chunk.choices[0].delta.content or ""


def up(url, file):
    with open(file, "rb") as body:
        return client(url).files.create(file=body, purpose="batch").filename


main(call, stream, up)
