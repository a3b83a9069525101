"""Tests `vram mcp` with the protocol's official client: every tool is listed and answers. Usage: mcp_client.py VRAM RECORDING"""
import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def ask(session, name, **arguments):
    answer = await session.call_tool(name, arguments)
    text = answer.content[0].text
    assert not getattr(answer, "isError", False) and not getattr(answer, "is_error", False), text
    assert len(text.encode()) <= 4096 and "\nnext: " in "\n" + text, text
    return text


async def main(vram, recording):
    async with stdio_client(StdioServerParameters(command=vram, args=["mcp"])) as (reads, writes):
        async with ClientSession(reads, writes) as session:
            await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            assert names == ["open", "summary", "peak", "sites", "at", "lifetimes", "diff", "marks", "leaks", "why", "cure", "tune", "forecast", "fit"], names
            assert "r1" in await ask(session, "open", file=recording)
            for name in ("summary", "sites", "lifetimes", "marks", "leaks", "why", "cure", "tune"):
                await ask(session, name, file="r1")
            for by in ("role", "site", "stack", "annotation"):
                await ask(session, "peak", file="r1", by=by)
            await ask(session, "at", file="r1", event=100)
            await ask(session, "diff", before="r1", after="r1")
            await ask(session, "forecast", runs=["1=r1", "2=r1"], size=4)
            assert "expandable_segments:True" in await ask(session, "cure", file="r1")
    print("ok")


asyncio.run(main(*sys.argv[1:]))
