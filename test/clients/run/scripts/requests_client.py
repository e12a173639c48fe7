import requests

from calls import main


def call(url, method, body):
    answer = requests.request(method, url, data=body)
    return answer.status_code, answer.text


def stream(url):
    with requests.get(url, stream=True) as answer:
        yield from answer.iter_content(None)


def up(url, file):
    with open(file, "rb") as body:
        return requests.post(url, data=body).text


main(call, stream, up)
