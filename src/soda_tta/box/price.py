"""What a deployed model charges: per image, per call or per hour."""

from __future__ import annotations

import re
from dataclasses import dataclass

from soda_tta.errors import BoxError

UNITS = {"image": "image", "query": "image", "queries": "image"} | {
    "call": "call",
    "request": "call",
    "hour": "hour",
}
FORMS = "1.5 (per 1000 images), '0.002 per call', '1.5 per 1000 calls' or '2.10 per hour'"
TEXT = re.compile(
    r"(?P<amount>[\d.]+(?:e-?\d+)?)"
    r"(?:\s*(?:\bper\b|/)\s*(?P<count>[\d,_]*)\s*"
    r"(?P<unit>image|query|queries|call|request|hour)s?)?"
)
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class Price:
    """A price in any currency.

    Parameters
    ----------
    amount : float
        For `count` units.
    unit : {"image", "call", "hour"}, default "image"
        An image is a query; a call is a request, with one image or several.
    count : int, default 1000
        How many units the amount is for.

    Examples
    --------
    >>> Price.parse("1.5")
    Price(amount=1.5, unit='image', count=1000)
    >>> str(Price.parse("0.002 per call"))
    '0.002 per call'
    >>> Price.parse("2 per hour").cost(queries=5000, seconds=1800)
    1.0
    """

    amount: float
    unit: str = "image"
    count: int = 1000

    @staticmethod
    def parse(text: str | float | Price) -> Price:
        """Read a price; a number alone is per 1,000 images. ValueError if it is not a price."""
        if isinstance(text, Price):
            return text
        match = TEXT.fullmatch(str(text).strip())
        try:
            amount = float(match["amount"]) if match else float("nan")
        except ValueError:
            amount = float("nan")
        if match is None or not 0 <= amount < float("inf"):
            raise ValueError(f"{text!r} is not a valid price; write {FORMS}")
        if match["unit"] is None:
            return Price(amount)
        count = int(re.sub("[,_]", "", match["count"]) or 1)
        if count < 1:
            raise ValueError(f"{text!r} is not a valid price: it is for nothing; write {FORMS}")
        return Price(amount, UNITS[match["unit"]], count)

    def cost(
        self, queries: int, *, calls: int | None = None, seconds: float | None = None
    ) -> float | None:
        """What so many queries cost; None if the price needs what is not known.

        Parameters
        ----------
        queries : images that were sent.
        calls : requests; needed by a price per call.
        seconds : how long the model was in use; needed by a price per hour.
        """
        units: float | None = queries
        if self.unit == "call":
            units = calls
        elif self.unit == "hour":
            units = None if seconds is None else seconds / SECONDS_PER_HOUR
        return None if units is None else units / self.count * self.amount

    @property
    def number(self) -> float | str:
        """The price as JSON: a number if it is per 1,000 images, otherwise its text."""
        return self.amount if (self.unit, self.count) == ("image", 1000) else str(self)

    def __str__(self) -> str:
        if self.unit == "image":
            noun = "query" if self.count == 1 else f"{self.count:,} queries"
        else:
            noun = self.unit if self.count == 1 else f"{self.count:,} {self.unit}s"
        return f"{self.amount:g} per {noun}"

    def sentence(
        self, queries: int, *, calls: int | None = None, seconds: float | None = None
    ) -> str:
        """What queries cost, or why that is not known; parameters as in `cost`.

        >>> Price(1.5).sentence(2000)
        '3.00 in total at 1.5 per 1,000 queries'
        """
        cost = self.cost(queries, calls=calls, seconds=seconds)
        if cost is not None:
            return f"{in_digits(cost)} in total at {self}"
        known = "requests" if self.unit == "call" else "time"
        return f"at {self}, but the {known} it takes cannot be known before the first response"


def in_digits(cost: float) -> str:
    """A cost with two decimals, or with two digits if it is smaller than that.

    >>> in_digits(1234.5), in_digits(0.00123)
    ('1,234.50', '0.0012')
    """
    return f"{cost:,.2f}" if cost >= 0.01 or not cost else f"{cost:.2g}"


def as_price(price: Price | float | str | None) -> Price | None:
    """A price from what a user specifies; BoxError if it is not one.

    >>> as_price(1.5)
    Price(amount=1.5, unit='image', count=1000)
    """
    try:
        return None if price is None else Price.parse(price)
    except ValueError as error:
        raise BoxError(f"{error}.") from error
