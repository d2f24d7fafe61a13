"""Short stories for children, made by a grammar of our own: the corpus of a machine that has no other.

The grammar is `assets/stories.grammar`. A rule is a name followed by indented alternatives; inside an alternative

- `<rule>` is a fresh choice from a rule, `{name:rule}` one that is made once a story, `{name}` that choice again
  (without one, `{name}` is a member of the cast, see `_cast`, or else means `{name:name}`),
- `[this|that|]` is a choice on the spot, `^` after `<` or `{` makes the first letter a capital,
- ` // ` begins a paragraph.

`rule@world` takes the place of `rule` in stories of that world.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from ofa_tui import locations

WORLDS = ("village", "beast", "sea", "castle", "beast")
"""Where a story plays; in the beast world everybody is an animal."""

PARAGRAPH = " // "
_TOKEN = re.compile(r"<(?P<fresh>\^?[\w.]+)>|\{(?P<kept>\^?\w+)(?::(?P<rule>[\w.]+))?\}|(?P<mark>[\[\]|])")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeiou])")
_PRONOUNS = {"she": ("she", "her", "her", "herself"), "he": ("he", "him", "his", "himself")}
_KEEP_TRIES = 8


class Fresh:
    """A choice from a rule's alternatives."""

    def __init__(self, alternatives: list[list[Any]], capital: bool):
        self.alternatives = alternatives
        self.capital = capital


class Kept:
    """A choice that a story makes once; without alternatives, a reference to it."""

    def __init__(self, name: str, alternatives: list[list[Any]] | None, capital: bool):
        self.name = name
        self.alternatives = alternatives
        self.capital = capital


class Grammar:
    """The rules as seen from one world."""

    def __init__(self, text: str, world: str):
        self._bodies = _read_rules(text)
        self._world = world
        self._compiled: dict[str, list[list[Any]]] = {}

    def rule(self, name: str) -> list[list[Any]]:
        """The alternatives of a rule, each a list of texts, choices (lists of alternatives) and references."""
        if name not in self._compiled:
            compiled = self._compiled[name] = []
            bodies = self._bodies.get(f"{name}@{self._world}") or self._bodies[name]
            compiled.extend(self._compile(body) for body in bodies)
        return self._compiled[name]

    def _compile(self, body: str) -> list[Any]:
        stack: list[list[list[Any]]] = [[[]]]
        position = 0
        for match in _TOKEN.finditer(body):
            current = stack[-1][-1]
            if match.start() > position:
                current.append(body[position : match.start()])
            position = match.end()
            if match["fresh"]:
                name = match["fresh"]
                current.append(Fresh(self.rule(name.lstrip("^")), name.startswith("^")))
            elif match["kept"]:
                name = match["kept"]
                alternatives = self.rule(match["rule"]) if match["rule"] else None
                current.append(Kept(name.lstrip("^"), alternatives, name.startswith("^")))
            elif match["mark"] == "[":
                stack.append([[]])
            elif match["mark"] == "|" and len(stack) > 1:
                stack[-1].append([])
            elif match["mark"] == "]":
                choice = stack.pop()
                stack[-1][-1].append(choice)
            else:
                current.append(match["mark"])
        stack[-1][-1].append(body[position:])
        return stack[-1][-1]


def _read_rules(text: str) -> dict[str, list[str]]:
    rules: dict[str, list[str]] = {}
    alternatives: list[str] = []
    for line in text.splitlines():
        if line.startswith("  "):
            alternatives.append(line[2:])
        elif line and not line.startswith("#"):
            alternatives = rules[line] = []
    return rules


class Teller:
    """One story in the making: the choices it has kept and its source of chance."""

    def __init__(self, grammar: Grammar, chance: random.Random, cast: dict[str, str]):
        self.grammar = grammar
        self.random = chance.random
        self.kept = dict(cast)

    def choose(self, alternatives: list[list[Any]]) -> list[Any]:
        return alternatives[int(self.random() * len(alternatives))]

    def expand(self, parts: list[Any], out: list[str]) -> None:
        for part in parts:
            kind = type(part)
            if kind is str:
                out.append(part)
            elif kind is list:
                self.expand(self.choose(part), out)
            elif kind is Fresh:
                if part.capital:
                    out.append(_capital(self.text(self.choose(part.alternatives))))
                else:
                    self.expand(self.choose(part.alternatives), out)
            else:
                value = self.kept.get(part.name)
                if value is None:
                    value = self._keep(part)
                out.append(_capital(value) if part.capital else value)

    def text(self, parts: list[Any]) -> str:
        out: list[str] = []
        self.expand(parts, out)
        return "".join(out)

    def _keep(self, part: Kept) -> str:
        taken = self.kept.values()
        value = ""
        for _ in range(_KEEP_TRIES):
            value = self.text(self.choose(part.alternatives or self.grammar.rule(part.name)))
            if value not in taken:
                break
        self.kept[part.name] = value
        return value


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _person(cast: dict[str, str], prefix: str, letter: str, name: str, gender: str, who: str) -> None:
    subject, object_, possessive, reflexive = _PRONOUNS[gender]
    cast[letter] = name
    cast[prefix + "he"], cast[prefix + "him"], cast[prefix + "his"] = subject, object_, possessive
    cast[prefix + "self"], cast[prefix + "who"] = reflexive, who


def _cast(grammar: Grammar, world: str, chance: random.Random) -> dict[str, str]:
    """Names, kinds and pronouns of the hero ("", H), friend (f, F) and elder (e, E).

    Hero and friend are always the same pairs, and there are few of them: a model of a million parameters learns in a
    few thousand steps to keep to the names of a story, which it does not with fifty.
    """

    def pick(rule: str) -> str:
        alternatives = grammar.rule(rule)
        return "".join(alternatives[int(chance.random() * len(alternatives))])

    cast: dict[str, str] = {}
    pair = pick("pair").split(", ")
    if chance.random() < 0.5:
        pair.reverse()
    for (prefix, letter), person in zip((("", "H"), ("f", "F")), pair, strict=True):
        name, gender, who = person.split()
        _person(cast, prefix, letter, name, gender, who)
    gender = "she" if chance.random() < 0.5 else "he"
    teller = Teller(grammar, chance, cast)
    elder = teller.text(teller.choose(grammar.rule(f"elder.{gender}")))
    _person(cast, "e", "E", elder, gender, "")
    cast["E2"] = elder + ("'" if elder.endswith("s") else "'s")
    cast["trait"], cast["ftrait"] = pick("trait"), pick("ftrait")
    return cast


@cache
def _grammar(world: str) -> Grammar:
    return Grammar((locations.assets() / "stories.grammar").read_text("utf-8"), world)


def story(seed: int, index: int) -> str:
    """Story `index` of the endless collection `seed`: paragraphs divided by an empty line, no newline at the end."""
    chance = random.Random((seed << 40) + index)
    world = WORLDS[int(chance.random() * len(WORLDS))]
    grammar = _grammar(world)
    teller = Teller(grammar, chance, _cast(grammar, world, chance))
    text = teller.text(teller.choose(grammar.rule("story")))
    return _ARTICLE.sub(r"\1n ", text.replace(PARAGRAPH, "\n\n").replace("  ", " "))


def stories(seed: int) -> Iterator[str]:
    """The endless collection `seed`, in order."""
    index = 0
    while True:
        yield story(seed, index)
        index += 1


def generate(seed: int, n_bytes: int) -> list[str]:
    """The first stories of collection `seed`, as many as reach `n_bytes` of UTF-8 text together."""
    chosen: list[str] = []
    total = 0
    for text in stories(seed):
        if total >= n_bytes:
            break
        chosen.append(text)
        total += len(text)
    return chosen
