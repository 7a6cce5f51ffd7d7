"""`KeyTable` gives each distinct code one dense id, and keeps them dense."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.runtime.errors import SpecError
from engine.runtime.key_table import KeyTable

CODES = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=40)


def array(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@settings(deadline=None, max_examples=60)
@given(st.lists(CODES, max_size=4))
def test_ids_are_dense_and_in_order_of_first_appearance(batches: list[list[int]]) -> None:
    table, seen = KeyTable(), {}
    for batch in batches:
        ids = table.intern(array(batch))
        assert ids.dtype == np.int32
        for code in batch:
            seen.setdefault(code, len(seen))
        assert ids.tolist() == [seen[code] for code in batch]
    assert table.size == len(seen)
    assert table.keys.tolist() == list(seen)


@settings(deadline=None, max_examples=60)
@given(CODES, st.randoms(use_true_random=False), CODES)
def test_keep_renumbers_and_forgets(first: list[int], draw, then: list[int]) -> None:  # noqa: ANN001
    table = KeyTable()
    table.intern(array(first))
    before = table.keys.tolist()
    mask = np.array([draw.random() < 0.5 for _ in before], bool)
    old_to_new = table.keep(mask)
    kept = [code for code, keep in zip(before, mask, strict=True) if keep]
    assert old_to_new.dtype == np.int64
    assert [int(new) for new in old_to_new if new >= 0] == list(range(len(kept)))
    assert table.keys.tolist() == kept
    ids = table.intern(array(then))
    assert table.keys[ids].tolist() == then
    assert table.keys.tolist()[: len(kept)] == kept
    assert len(set(table.keys.tolist())) == table.size


@pytest.mark.parametrize("stride", [1, 1000003, 1 << 20, 1 << 44])
def test_growth_through_many_sizes(stride: int) -> None:
    table = KeyTable()
    codes = np.arange(-5000, 5000) * np.int64(stride)
    for part in np.array_split(codes, 7):
        table.intern(part)
    assert (table.intern(codes) == np.arange(len(codes))).all()
    assert (table.keep(np.zeros(len(codes), bool)) == -1).all()
    assert table.size == 0
    assert table.intern(codes[:2]).tolist() == [0, 1]


FIRST = [-(2**63), -3000, 0, 2**63 - 5000]
PATHS = {
    "spread": lambda draw, _: draw.integers(0, 5000, 300),
    "rising": lambda draw, step: 150 * step + draw.integers(0, 400, 300),
    "falling": lambda draw, step: 4999 - 150 * step - draw.integers(0, 400, 300),
    "far ones": lambda draw, step: np.r_[draw.integers(0, 5000, 300), 9_000_000 * (step % 7 == 6)],
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("first", FIRST)
def test_codes_close_together_have_ids_like_any_others(path: str, first: int) -> None:
    """Whether they have places or are hashed, and where they move from the one to the other."""
    draw, table, seen = np.random.default_rng(7), KeyTable(), []
    for step in range(30):
        offsets = np.clip(PATHS[path](draw, step), 0, 2**63 - 1 - first)
        codes = [first + int(offset) for offset in offsets]
        ids = table.intern(array(codes))
        seen += [code for code in dict.fromkeys(codes) if code not in set(seen)]
        assert table.keys.tolist() == seen
        assert table.keys[ids].tolist() == codes
        if step % 5 == 4:
            mask = draw.random(len(seen)) < 0.3
            table.keep(mask)
            seen = [code for code, kept in zip(seen, mask, strict=True) if kept]


def test_a_mask_of_another_size_is_refused() -> None:
    table = KeyTable()
    table.intern(array([4, 5]))
    with pytest.raises(SpecError, match="one entry an id, 2"):
        table.keep(np.ones(3, bool))


def test_input_may_be_strided_or_read_only() -> None:
    codes = np.arange(10)
    codes.flags.writeable = False
    assert KeyTable().intern(codes[::3]).tolist() == [0, 1, 2, 3]
