import asyncio

from mcp.client.client import Client

from calls import main


async def say(url):
    async def on_progress(progress, total, message):
        # What comes before the end must be shown before it.
        print(message, flush=True)

    async with Client(url + "/mcp") as client:
        result = await client.call_tool("say", {"text": "hello"}, progress_callback=on_progress)
        return result.content[0].text


def call(url, method, body):
    return 200, asyncio.run(say(url))


def stream(url):
    yield asyncio.run(say(url))


main(call, stream, None)
