"""What a worker runs that knows nothing of traces."""

import sys

from fairlane import Fairlane, JobContext

app = Fairlane()


@app.job("imports.below")
def below() -> None:
    """Nothing to do."""


@app.job("imports")
async def imports(ctx: JobContext) -> list[str]:
    await below.enqueue(tenant=ctx.tenant)
    return [name for name in sys.modules if name.startswith("opentelemetry")]
