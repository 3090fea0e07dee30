"""How ids stand in the paths of the API."""

from __future__ import annotations

from starlette.convertors import Convertor, register_url_convertor


class IdConvertor(Convertor[str]):
    """A path segment without a colon: `/runs/{run_id:id}` is not `/runs/run_x:stop`, which is a door of its own."""

    regex = "[^/:]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("id", IdConvertor())
