"""The generated corpus: repeatable, endless in variety, and written in whole sentences."""

import math
import re
import time
from collections import Counter

from ofa_tui import locations
from ofa_tui.data import stories
from ofa_tui.data.tokenizers import train_bpe


def test_same_seed_same_stories_and_a_longer_corpus_begins_with_the_shorter():
    short, long = stories.generate(5, 50_000), stories.generate(5, 100_000)
    assert long[: len(short)] == short
    assert sum(map(len, long)) >= 100_000 > sum(map(len, long[:-1]))
    assert stories.generate(6, 50_000)[0] != short[0]


def test_collections_share_no_story_and_hardly_a_paragraph():
    first, second = stories.generate(1, 400_000), stories.generate(2, 400_000)
    assert len(set(first)) == len(first)
    assert not set(first) & set(second)
    openings = [{text.split("\n\n")[0] for text in collection} for collection in (first, second)]
    assert len(openings[0] & openings[1]) < 0.01 * len(openings[0])


def test_every_story_is_finished_text():
    for text in stories.generate(3, 400_000):
        assert not re.search(r"[<>{}\[\]|]|  |//", text), text
        assert re.match(r'["A-Z]', text) and re.search(r'[.!?]"?$', text), text
        for paragraph in text.split("\n\n"):
            assert re.match(r'["A-Z]', paragraph) and paragraph.count('"') % 2 == 0, text
            assert not re.search(r"\ba [aeiou]|[,.!?][,.]|[a-z]\.\" [a-z]", paragraph), text


def test_every_rule_of_the_grammar_is_used():
    text = (locations.assets() / "stories.grammar").read_text("utf-8")
    names = set(re.findall(r"^([a-z][\w.@]*)$", text, re.MULTILINE))
    used = set(re.findall(r"<\^?([\w.]+)>|:([\w.]+)\}", text))
    used_names = {name for pair in used for name in pair if name} | set(re.findall(r"\{\^?(\w+)\}", text))
    cast = {"story", "pair", "elder.she", "elder.he", "trait", "ftrait"}
    assert {name.split("@")[0] for name in names} <= used_names | cast
    assert {name for name in used_names if "." in name or f"<{name}>" in text} <= names


def test_entropy_of_its_tokens_is_at_least_five_nats():
    documents = stories.generate(1, 1_000_000)
    tokens = train_bpe(1024, documents).encode_documents(documents)
    counts = Counter(tokens.tolist())
    entropy = -sum(n / len(tokens) * math.log(n / len(tokens)) for n in counts.values())
    assert entropy >= 5.0


def test_a_megabyte_takes_less_than_a_second():
    best = min(_seconds_for_half_a_megabyte() for _ in range(3))
    assert best < 0.5


def _seconds_for_half_a_megabyte() -> float:
    started = time.process_time()
    stories.generate(9, 500_000)
    return time.process_time() - started
