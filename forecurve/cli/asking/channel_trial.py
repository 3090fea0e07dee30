"""A test message to a channel, waited for until it is known how it went."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from forecurve.signs import visible

from ..errors import CliError
from ..showing.alerts import answer

if TYPE_CHECKING:
    from forecurve.client.api import Api

EVERY_S = 0.5
LOOKS = 80
"""40 s: a worker takes it within seconds, and a receiver with several addresses has up to 20 s to answer."""


def send_and_wait(api: Api, channel_id: str) -> dict[str, Any]:
    """The delivery of the test, once the channel took it; CliError with the reason where it did not."""
    delivery = api.test_channel(channel_id)
    for _ in range(LOOKS):
        if delivery["status"] != "pending":
            break
        time.sleep(EVERY_S)
        delivery = api.delivery(delivery["id"])
    if delivery["status"] != "delivered":
        raise CliError(_failure(delivery))
    return delivery


def _failure(delivery: dict[str, Any]) -> str:
    if delivery["status"] == "failed":
        return f"the test did not arrive: {visible(answer(delivery))}"
    way_out = f"`forecurve status` says whether a worker runs, `forecurve alert deliveries` lists {delivery['id']}"
    return f"the test was not sent in {LOOKS * EVERY_S:.0f} s; {way_out}"
