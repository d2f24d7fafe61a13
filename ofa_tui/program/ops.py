"""The task types: name, operands and what each operand is used for. An opcode is a row's index.

A row is the contract between the lowering (which fills the operands in this order), the validator (which reads the
access regions) and the body in `cuda/ops/<file>.h` (a function `op_<name>(Block&, const TaskContext&)`).

A region (regions.py) says which part of its operand a task touches, in terms of the task's tile (row0, rows, col0,
cols):

- "tile": the tile itself        - "rows": the tile's rows, all columns     - "cols": rows col0..col0+cols of the
- "all": the whole operand         operand, all columns (a weight [out, in]    whose output columns are the tile's)
- "columns": all rows, the tile's columns             - "transposed": all rows, columns row0..row0+rows
- "heads": the tile's rows and, of each of q, k, v, the tile's columns (operand is [rows, 3 * width])
- "row_head": the tile's rows, one column: col0 / cols     - "part": row `row0 / rows`, all columns
- "statistics": the tile's rows, the two columns from 2 * (col0 / STATISTICS_TILE) on

Streamed decoding divides each head among one or two units. The tile of a unit is (half, halves, first column of the
head, head size); its elements are two runs of size / (2 * halves) columns, size / 2 apart, so that rotary partners stay
together.

- "unit_columns": all rows, the unit's columns     - "unit_rows": of each of q, k, v, the unit's rows (a weight)
- "unit": one row, that of the unit                - "head_units": the rows of all units of the unit's head

An operand named with a star is moved by the copy engine on targets that have one.
"""

from __future__ import annotations

from dataclasses import dataclass

from ofa_tui.program.regions import REGIONS
from ofa_tui.program.regions import STATISTICS_TILE as STATISTICS_TILE


@dataclass(frozen=True)
class Access:
    name: str
    mode: str  # "r", "w" or "rw"
    region: str
    optional: bool = False
    copied: bool = False
    """Moved by the copy engine where the target has one."""


@dataclass(frozen=True)
class Op:
    name: str
    file: str
    accesses: tuple[Access, ...]
    summary: str
    program: str = ""
    """The only program it may stand in; empty: no such limit."""
    place: str = ""
    """Of an opcode that stands in its program exactly once: "first", "last" or "any"; empty: any number of times."""
    target: str = ""
    """The only target in whose programs it has its place; empty: all."""

    @property
    def symbol(self) -> str:
        return f"op_{self.name}"

    @property
    def output(self) -> int | None:
        """The operand whose elements the tiles divide: the first one written, else the first; None without operands."""
        written = [slot for slot, access in enumerate(self.accesses)
                   if access.mode == "w" and REGIONS[access.region].divides]
        return written[0] if written else 0 if self.accesses else None


def _op(
    name: str, file: str, accesses: str, summary: str, program: str = "", place: str = "", target: str = ""
) -> Op:
    """`accesses` is a list like "x*:r:rows gain:r:all y:w:rows skip?:r:rows"."""
    parsed = []
    for item in accesses.split():
        label, mode, region = item.split(":")
        parsed.append(Access(label.rstrip("?*"), mode, region, "?" in label, "*" in label))
    return Op(name, file, tuple(parsed), summary, program, place, target)


# BT = batch * context rows, C = width, F = feed_forward, V = vocab, H = heads. All matrices are row-major.
OPS: tuple[Op, ...] = (
    # --- control of a step -------------------------------------------------------------------------------
    _op("step_begin", "step", "", "apply step events, pause, stop; opens the step", "train", "first"),
    _op("publish", "step", "", "the new weight version is complete: publish it, wait for the pin to move on",
        "train", "last"),
    # --- forward ------------------------------------------------------------------------------------------
    _op("embed", "embed", "table:r:all x:w:rows", "x[r] = table[token of row r]"),
    _op("norm", "norm", "x:r:rows gain:r:all y:w:rows rstd:w:rows", "RMSNorm; rstd [BT, 1]"),
    _op("matmul", "matmul", "x*:r:rows w*:r:cols y*:w:tile", "y = x w^T, w [out, in]"),
    _op("matmul_residual", "matmul", "x*:r:rows w*:r:cols skip*:r:tile y*:w:tile", "y = skip + x w^T"),
    _op("matmul_gelu", "matmul", "x*:r:rows w*:r:cols u*:w:tile a*:w:tile", "u = x w^T, a = gelu(u), tanh form"),
    _op("matmul_statistics", "matmul", "x*:r:rows w*:r:cols y*:w:tile statistics:w:statistics",
        "y = x w^T; of each row of the tile the largest output and the sum of exp(output - largest)"),
    _op("attention", "attention", "qkv*:r:heads o*:w:tile lse:w:row_head",
        "one sequence and head: rotary q, k; causal softmax; lse [BT, H] natural log"),
    _op("cross_entropy", "cross_entropy", "logits:rw:rows losses:w:rows",
        "loss of each row and, in place, the gradient of the mean loss; losses [BT, 1]"),
    _op("cross_entropy_loss", "cross_entropy", "logits:r:rows losses:w:rows", "losses only, for sweeps"),
    _op("cross_entropy_statistics", "cross_entropy", "logits:rw:rows statistics:r:rows losses:w:rows",
        "as cross_entropy, in one pass over the logits"),
    _op("cross_entropy_loss_statistics", "cross_entropy", "logits:r:rows statistics:r:rows losses:w:rows",
        "losses only, from the statistics and the target's logit"),
    _op("loss", "step", "losses:r:all", "mean of the counted rows, in row order, into the loss log",
        "train", "any"),
    # --- backward -----------------------------------------------------------------------------------------
    _op("matmul_dx", "matmul", "dy*:r:rows w*:r:columns dx*:w:tile", "dx = dy w, w [out, in]"),
    _op("matmul_dx_gelu", "matmul", "dy*:r:rows w*:r:columns u*:r:tile du*:w:tile", "du = (dy w) gelu'(u)"),
    _op("matmul_dw", "matmul", "dy:r:transposed x:r:columns dw:w:tile", "dw = dy^T x over all rows"),
    _op("matmul_dw_adamw", "adamw",
        "dy*:r:transposed x*:r:columns master*:rw:tile m*:rw:tile v*:rw:tile w*:w:tile stream:w:tile",
        "dw = dy^T x, then AdamW on the tile; writes the next weight version in both orders"),
    _op("norm_backward", "norm", "dy:r:rows x:r:rows rstd:r:rows gain:r:all skip?:r:rows dx:w:rows dgain:w:part",
        "dx = skip + gradient through the norm; partial gain gradient of the row block, dgain [blocks, C]"),
    _op("attention_backward", "attention", "qkv*:r:heads o*:r:tile lse:r:row_head do*:r:tile dqkv*:w:heads",
        "one sequence and head; probabilities are recomputed from lse"),
    _op("embed_backward", "embed", "dx:r:all dtable:w:rows", "row t of the table: sum of dx over the rows of token t"),
    _op("embed_adamw", "embed", "dx:r:all master:rw:rows m:rw:rows v:rw:rows table:w:rows",
        "embed_backward, then AdamW on the rows; writes the next weight version"),
    # --- optimiser ----------------------------------------------------------------------------------------
    _op("adamw", "adamw", "grad:r:tile p:r:tile p_next:w:tile m:rw:tile v:rw:tile",
        "AdamW on a tile; flag 1 = with weight decay; writes the next weight version"),
    _op("adamw_gain", "adamw", "dgain:r:all p:r:all p_next:w:all m:rw:all v:rw:all grad:w:all",
        "sums the partial gain gradients in block order, then AdamW without decay; grad [1, C]"),
    # --- held-out sweep -----------------------------------------------------------------------------------
    _op("sweep_begin", "step", "", "opens one batch of the held-out sweep", "sweep", "first"),
    _op("sweep_loss", "step", "losses:r:all", "sum and count of the batch, in row order", "sweep", "last"),
    # --- one decoded token --------------------------------------------------------------------------------
    _op("token_begin", "decode", "table:r:all x:w:all", "pace, apply token events, pin a version; x [1, C]",
        "decode", "first", "host"),
    _op("decode_norm_matmul", "decode", "x:r:all gain:r:all w:r:cols y:w:columns", "y = norm(x) w^T"),
    _op("decode_norm_matmul_gelu", "decode", "x:r:all gain:r:all w:r:cols a:w:columns", "a = gelu(norm(x) w^T)"),
    _op("decode_matmul_residual", "decode", "x:r:all w:r:cols skip:r:columns y:w:columns", "y = skip + x w^T"),
    _op("decode_attention", "decode", "qkv:r:heads k:rw:columns v:rw:columns o:w:columns",
        "one head: appends the rotated key and the value to the cache [context, C], attends to it"),
    # --- one decoded token, streamed: messages carry their own flags; weights are read in stream order ----------
    _op("stream_begin", "stream", "table:r:all x:w:all",
        "as token_begin, into a message; seats the next token's blocks", "decode", "first", "sm90"),
    _op("stream_qkv", "stream", "x:r:all gain:r:all w*:r:unit_rows k*:rw:unit_columns v*:rw:unit_columns scores:w:unit",
        "a unit's rotated q, k and its v, appended to the cache [context, C]; its part of q k^T for every position"),
    _op("stream_attention", "stream", "scores:r:head_units v*:r:unit_columns o:w:unit_columns",
        "softmax over the summed parts, times the unit's columns of v"),
    _op("stream_matmul_residual", "stream", "x:r:all w*:r:cols skip:r:columns y:w:columns", "y = skip + x w^T"),
    _op("stream_norm_matmul_gelu", "stream", "x:r:all gain:r:all w*:r:cols a:w:columns", "a = gelu(norm(x) w^T)"),
    _op("stream_norm_matmul", "stream", "x:r:all gain:r:all w*:r:cols y:w:columns", "y = norm(x) w^T, no message"),
    _op("sample_row", "sample", "logits:r:rows next:w:rows",
        "a row's next token by temperature, top-k, top-p; next [8, 1]", "decode"),
    _op("sample", "sample", "logits:r:all next:r:all", "ends a pass: sample its row if it has but one; log the tokens; "
        "release the pin", "decode", "last"),
    # --- Doom ---------------------------------------------------------------------------------------------
    _op("doom_tic", "doom_tic", "", "one tic and one frame of game `row0`", "doom"),
)

OPCODES: dict[str, int] = {op.name: index for index, op in enumerate(OPS)}
ADAMW_DECAY = 1
"""Flag of tasks that update weights: with decay."""
FENCE_BEFORE, FENCE_AFTER = 0x40, 0x80
"""Flags of any task: an async-proxy fence between its waits and its first bulk copy; its bulk stores are drained and
fenced before it signals."""
