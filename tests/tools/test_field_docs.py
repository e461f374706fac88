"""The sentences below fields are found as they stand in the source."""

from pydantic import BaseModel

from stitch_tui.tools.field_docs import sentences


class Base(BaseModel):
    device: str = ""
    """Where it ran."""


class Timed(Base):
    """Not a field's."""

    time_us: float = 0.0
    """Median,
    in microseconds."""
    runs: int = 1

    def __call__(self) -> None:
        """Not a field's either."""


def test_each_field_has_the_string_below_it_and_inherits_others() -> None:
    assert sentences(Timed) == {"device": "Where it ran.", "time_us": "Median,\nin microseconds."}
