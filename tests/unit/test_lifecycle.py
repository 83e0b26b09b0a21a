"""The table of states and moves."""

from ostinato.lifecycle import BY_NAME, MOVES, ROOMS, State, allowed
from ostinato.store import moves
from ostinato.store.statements import load


def test_every_state_has_one_room() -> None:
    assert sorted(state for states in ROOMS.values() for state in states) == sorted(State)


def test_every_state_can_be_reached_and_only_finished_ones_cannot_be_left() -> None:
    assert {move.target for move in MOVES} == set(State)
    assert set(State) - {state for move in MOVES for state in move.sources} == {State.COMPLETED, State.CANCELLED}


def test_every_move_is_a_statement_and_a_function_of_the_same_name() -> None:
    assert set(BY_NAME) <= set(load("moves").statements)
    assert all(callable(getattr(moves, name)) for name in BY_NAME)


def test_back_to_pending_leads_only_what_the_design_names() -> None:
    back = {move.name for move in MOVES if move.target is State.PENDING}

    assert back == {"recover", "snooze", "release", "hasten", "redrive"}
    assert not allowed(State.PENDING, State.RETRYING)
    assert not allowed(State.COMPLETED, State.PENDING)
