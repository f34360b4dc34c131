"""The pipeline: crawl a site, make checks of what was found, run them."""

from typing import Any
from urllib.parse import urljoin

import aiohttp

from fairlane import Fairlane, JobContext

MOST_PAGES = 50

app = Fairlane()


@app.job("pipeline.crawl", timeout=600, max_attempts=3, dead_letter=False)
async def crawl(ctx: JobContext, project_id: int, url: str) -> dict[str, Any]:
    """Every page that can be reached from the first one."""
    pages: list[str] = []
    waiting = [url]
    async with aiohttp.ClientSession(raise_for_status=True) as http:
        while waiting and len(pages) < MOST_PAGES:
            page = waiting.pop()
            async with http.get(page) as answer:
                links = (await answer.text()).split('href="')[1:]
            pages.append(page)
            found = (urljoin(page, link.partition('"')[0]) for link in links)
            waiting += sorted({link for link in found if link.startswith(url)} - {*pages, *waiting})
            ctx.progress(len(pages), len(pages) + len(waiting), page)
    return {"pages": sorted(pages)}


@app.job("pipeline.generate", timeout=600, max_attempts=3, dead_letter=False)
def generate(project_id: int, pages: list[str], rules_yaml: str = "") -> dict[str, Any]:
    """One check a page, but for those that the rules leave out."""
    left_out = [line.removeprefix("- skip: ") for line in rules_yaml.splitlines()]
    kept = [page for page in pages if not any(word and word in page for word in left_out)]
    return {"checks": [{"get": page, "expect": 200} for page in kept]}


@app.job("pipeline.run", queue="bulk", timeout=600, max_attempts=3, dead_letter=False)
async def run(ctx: JobContext, project_id: int, checks: list[dict[str, Any]]) -> dict[str, Any]:
    """Each check against the site as it is now."""
    failed = []
    async with aiohttp.ClientSession() as http:
        for done, check in enumerate(checks, start=1):
            async with http.get(check["get"]) as answer:
                if answer.status != check["expect"]:
                    failed.append({**check, "got": answer.status})
            ctx.progress(done, len(checks))
    return {"success": not failed, "failed": failed}
