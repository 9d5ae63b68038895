"""What a request asks of a check, and in which form it wants to hear of it. Pure. [spec webapi 6, 6.1]"""

from __future__ import annotations

from attrs import frozen

from grid.gateway.faults import BadRequest
from grid.gateway.http.arguments import Arguments


@frozen(kw_only=True)
class CheckOptions:
    """What a check is to do besides looking for shares."""

    verify: bool
    repair: bool
    add_lease: bool

    @classmethod
    def of(cls, arguments: Arguments) -> CheckOptions:
        """What a request asks for; BadRequest."""
        return cls(
            verify=arguments.flag("verify", False),
            repair=arguments.flag("repair", False),
            add_lease=arguments.flag("add-lease", False),
        )


def output_of(arguments: Arguments, *others: str) -> str:
    """`output=` in lower case: "" for a page, "json", or one of the others; BadRequest."""
    output = (arguments.text("output") or "").strip().lower()
    if output == "html":
        output = ""
    if output not in ("", "json", *others):
        raise BadRequest("output= is JSON, or left out")
    return output
