"""Orders in which an interpreter lets blocks move: random ones, and those that bad programs stumble over."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

MANY = 0
"""As many blocks as there are tasks."""
LATER = 1000.0


class Move(Protocol):
    """A block's next move as a policy sees it."""

    role: str  # "train", "serve" or "doom"
    place: float  # of the task in its role's queue, in iterations: 2.5 is the middle of the third
    opens_token: bool
    hurried: bool
    delayed: bool


Key = Callable[[Move, bool], float]
"""The smaller the earlier, among all that could be done now; True: the move ends a task, else it starts one."""


@dataclass(frozen=True)
class Schedule:
    name: str
    policy: Callable[[random.Random], Key]
    blocks: int
    """Of each role."""
    look_ahead: int = 0
    """Tasks that a block claims beyond the one it runs."""

    def __str__(self) -> str:
        return f"{self.name}, {self.blocks or 'many'} blocks a role, look-ahead {self.look_ahead}"


def in_order(rng: random.Random) -> Key:
    return lambda move, ends: move.place


def latest_first(rng: random.Random) -> Key:
    return lambda move, ends: -move.place


def mostly_latest(rng: random.Random) -> Key:
    return lambda move, ends: -move.place if rng.random() < 0.8 else -LATER * rng.random()


def at_random(rng: random.Random) -> Key:
    return lambda move, ends: rng.random()


def overlapping(rng: random.Random) -> Key:
    """Readers start as early and writers end as late as possible."""
    return lambda move, ends: rng.random() + LATER * ends


def latest_overlapping(rng: random.Random) -> Key:
    return lambda move, ends: LATER - move.place if ends else -move.place


def starved(role: str) -> Callable[[random.Random], Key]:
    return lambda rng: lambda move, ends: rng.random() + LATER * (move.role == role)


def slow_token(rng: random.Random) -> Key:
    """A token pins its version at once and is then decoded as slowly as possible."""

    def key(move: Move, ends: bool) -> float:
        if move.opens_token:
            return -LATER
        return rng.random() + LATER * (move.role == "serve")

    return key


def some_late(rng: random.Random) -> Key:
    """Hurried tasks as early as possible, delayed ones started last."""
    return lambda move, ends: LATER * (move.delayed - move.hurried) - move.place


def some_slow(rng: random.Random) -> Key:
    """Hurried tasks as early as possible, delayed ones started early and ended last."""
    return lambda move, ends: LATER * ((1 if ends else -2) * move.delayed - move.hurried) - move.place


def some_late_overlapping(rng: random.Random) -> Key:
    return lambda move, ends: LATER * (2 * move.delayed - 2 * move.hurried + ends) + rng.random()


SCHEDULES: tuple[Schedule, ...] = (
    Schedule("latest claim first", latest_first, MANY),
    Schedule("some tasks late, starts before ends", some_late_overlapping, MANY),
    Schedule("in order", in_order, 1),
    Schedule("some tasks late", some_late, MANY),
    Schedule("some tasks slow", some_slow, MANY),
    Schedule("slow token", slow_token, MANY),
    Schedule("random", at_random, 7, look_ahead=4),
    Schedule("latest starts before ends", latest_overlapping, MANY),
    Schedule("serving starved", starved("serve"), 3),
    Schedule("training starved", starved("train"), 3, look_ahead=4),
    Schedule("Doom starved", starved("doom"), 7),
    Schedule("random", at_random, MANY),
    Schedule("random", at_random, 2),
    Schedule("latest claim first", latest_first, 1, look_ahead=4),
    Schedule("latest claim first", latest_first, 3, look_ahead=4),
    Schedule("mostly the latest", mostly_latest, 7),
    Schedule("slow token", slow_token, 2),
    Schedule("starts before ends", overlapping, MANY),
    Schedule("starts before ends", overlapping, 3, look_ahead=4),
)
"""Those that most mistakes show in come first."""
