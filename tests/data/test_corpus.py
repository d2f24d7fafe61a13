"""Which files are trained on, how they are read, and what is said about files that cannot be."""

import lzma

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ofa_tui.data.corpus import find_files, join_documents, read_documents, read_text, split_documents
from ofa_tui.errors import OfaError

_LINES = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\0")).filter(
    lambda line: line != "<|endoftext|>"
)
_DOCUMENTS = st.lists(st.lists(_LINES, min_size=1).map("\n".join).map(lambda t: t.strip("\n")).filter(bool))


@given(_DOCUMENTS)
def test_separators_round_trip(documents):
    documents = [d for d in documents if "<|endoftext|>" not in d.split("\n")]
    assert split_documents(join_documents(documents)) == documents


def test_separators_only_as_whole_lines():
    text = "\n\na <|endoftext|> b\n<|endoftext|>\n<|endoftext|>\n\nc\n\nd\n<|endoftext|>x\n<|endoftext|>"
    assert split_documents(text) == ["a <|endoftext|> b", "c\n\nd\n<|endoftext|>x"]


def test_plain_xz_and_zst_read_alike(tmp_path):
    text = "Ein Märchen.\n<|endoftext|>\nZwei.\n"
    raw = text.encode()
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n"))
    (tmp_path / "b.txt.xz").write_bytes(lzma.compress(raw))
    pack = zstandard.ZstdCompressor()
    (tmp_path / "c.txt.zst").write_bytes(pack.compress(raw[:9]) + pack.compress(raw[9:]))
    results = [read_documents(tmp_path / name) for name in ("a.txt", "b.txt.xz", "c.txt.zst")]
    assert all(documents == ["Ein Märchen.", "Zwei."] for documents, _ in results)
    assert len({info.text_sha256 for _, info in results}) == 1


def test_a_folder_holds_out_its_valid_files_and_ignores_the_rest(tmp_path):
    for name in ("b.txt", "a.txt.xz", "a.valid.txt", "README.md", "notes.txt.gz", ".hidden.txt"):
        (tmp_path / name).write_bytes(b"text of " + name.encode())
    extra = tmp_path.parent / "extra.txt"
    extra.write_text("extra")
    found = find_files([extra, tmp_path], [])
    assert [(f.info.name, f.info.held_out) for f in found] == [
        ("extra.txt", False), ("a.txt.xz", False), ("a.valid.txt", True), ("b.txt", False),
    ]


def _bad(tmp_path, kind):
    path = tmp_path / {"xz": "t.txt.xz", "zst": "t.txt.zst", "plain xz": "t.txt.xz"}.get(kind, "t.txt")
    text = b"once upon a time " * 500
    contents = {
        "empty": b"", "blank": b"\n\n\n", "binary": b"PWAD\x00\x01\xff\xfe" * 9, "nul": b"text\0text",
        "latin-1": "Märchen".encode("latin-1"), "xz": lzma.compress(text)[:-30],
        "zst": zstandard.ZstdCompressor().compress(text)[:-3], "plain xz": text,
    }
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes(contents[kind])
    return path


@pytest.mark.parametrize(
    "kind, said",
    [("empty", "is empty"), ("blank", "holds no text"), ("binary", "not UTF-8"), ("nul", "binary"),
     ("latin-1", "not UTF-8"), ("xz", "cut short"), ("zst", "cut short"), ("plain xz", "cut short"),
     ("missing", "there is no"), ("folder", "no training text")],
)
def test_bad_input_is_a_sentence_that_names_the_file(tmp_path, kind, said):
    path = _bad(tmp_path, kind)
    with pytest.raises(OfaError) as error:
        for source in find_files([path], []):
            read_documents(source.path)
    assert said in str(error.value) and path.name in str(error.value) and "\n" not in str(error.value)


@given(st.data())
def test_no_cut_of_a_packed_file_reads_as_whole(tmp_path_factory, data):
    text = b"the fox and the lantern, " * 40
    for suffix, packed in ((".xz", lzma.compress(text)), (".zst", zstandard.ZstdCompressor().compress(text))):
        path = tmp_path_factory.mktemp("cut") / f"t.txt{suffix}"
        path.write_bytes(packed[: data.draw(st.integers(1, len(packed) - 1))])
        with pytest.raises(OfaError):
            read_text(path)


def test_held_out_text_is_never_trained_on(tmp_path):
    one, copy = tmp_path / "one.txt", tmp_path / "copy.valid.txt"
    one.write_text("same")
    copy.write_text("same")
    with pytest.raises(OfaError, match="same content"):
        find_files([one], [copy])
    with pytest.raises(OfaError, match="held-out text by its name"):
        find_files([copy], [])
