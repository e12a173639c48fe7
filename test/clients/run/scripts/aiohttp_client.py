import asyncio

import aiohttp

from calls import main


async def request(method, url, body=None):
    async with aiohttp.ClientSession(trust_env=True) as session:
        async with session.request(method, url, data=body) as answer:
            return answer.status, await answer.text()


def call(url, method, body):
    return asyncio.run(request(method, url, body))


def stream(url):
    loop = asyncio.new_event_loop()

    async def chunks():
        async with aiohttp.ClientSession(trust_env=True) as session:
            async with session.get(url) as answer:
                async for chunk in answer.content.iter_any():
                    yield chunk

    each = chunks()
    while True:
        try:
            yield loop.run_until_complete(each.__anext__())
        except StopAsyncIteration:
            return


def up(url, file):
    with open(file, "rb") as body:
        return asyncio.run(request("POST", url, body))[1]


main(call, stream, up)
