"""The sm90 program on virtual SMs: the host program's losses, and tokens that do not depend on who decodes them."""

import subprocess
import time

import numpy as np
import pytest
from engine_runs import a_game, config, engine, finish, text_tokens, wait_for

from ofa_tui import abi
from ofa_tui.engine import compiler
from ofa_tui.engine.config import RunConfig, Sampling
from ofa_tui.engine.host import HostEngine
from ofa_tui.engine.layouts import to_stream
from ofa_tui.engine.protocol import Event
from ofa_tui.engine.steering import sampling_event
from ofa_tui.program.lowering import compile_programs

STEPS, FOREVER = 20, 100_000


def small(**changes) -> RunConfig:
    """Heads of two units, sequences that begin inside a row block, two column tiles of logits."""
    shape = {"layers": 2, "width": 128, "heads": 2, "feed_forward": 256, "context": 64, "vocab": 512, "batch": 4,
             "steps": STEPS, "warmup_steps": 5, "sweep_every": 5}
    return config(train_tokens=text_tokens(3000), valid_tokens=text_tokens(700, 1), **(shape | changes))


def moves(*triples: tuple[int, int, int]) -> tuple[Event, ...]:
    return tuple(Event("set_role", "step", when, sm, (role,)) for when, sm, role in triples)


# --- training -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [{}, {"heads": 4}, {"batch": 3, "context": 40, "vocab": 272}],
                         ids=["two units", "one unit", "cut tiles"])  # fmt: skip
def test_losses_are_those_of_the_host_program(kernel, shape):
    """Every step's loss and every held-out sweep within 1e-5, from the same weights."""
    measured = []
    for target in ("host", "sm90"):
        running = engine(kernel, small(sms=(2, 0, 0), **shape), target)
        sweeps = [sweep.loss for snapshot in finish(running) for sweep in snapshot.sweeps]
        measured.append((running.memory["losses"].copy(), sweeps))
    (losses, sweeps), (sm90_losses, sm90_sweeps) = measured
    assert losses[-1] < losses[0] - 1 and len(sweeps) == STEPS // 5
    assert sm90_losses == pytest.approx(losses, rel=1e-5)
    assert sm90_sweeps == pytest.approx(sweeps, rel=1e-5)


@pytest.fixture(scope="module")
def alone(kernel):
    """One SM that only trains."""
    running = engine(kernel, small(), "sm90")
    snapshots = finish(running)
    return running, [(sweep.step, sweep.loss) for s in snapshots for sweep in s.sweeps]


@pytest.mark.parametrize(
    "changes",
    [
        {"sms": (3, 0, 0)},
        {"sms": (7, 0, 0)},
        {"sms": (3, 2, 0), "jitter_seed": 7},
        {"sms": (4, 2, 0), "jitter_seed": 3, "events": moves((2, 0, abi.SERVE), (4, 4, abi.TRAIN), (9, 0, abi.TRAIN))},
    ],
    ids=["3", "7", "jitter", "moving"],
)  # fmt: skip
def test_training_is_bitwise_the_same_on_any_number_of_sms(kernel, alone, changes):
    running = engine(kernel, small(**changes), "sm90")
    sweeps = [(sweep.step, sweep.loss) for s in finish(running) for sweep in s.sweeps]
    expected, expected_sweeps = alone
    assert running.memory["losses"].tobytes() == expected.memory["losses"].tobytes()
    assert sweeps == expected_sweeps
    for buffer in expected.memory.programs.buffers.values():
        if buffer.kind in ("weight", "master", "moment"):
            assert np.array_equal(running.memory.buffer(buffer.name), expected.memory.buffer(buffer.name)), buffer.name


@pytest.mark.parametrize("steps", [0, STEPS])
def test_every_copy_of_a_weight_says_the_same(kernel, alone, steps):
    """The f4 master, the rows and the stream order, at the start and after training."""
    memory = alone[0].memory if steps else engine(kernel, small(), "sm90").memory
    weights, buffers = memory.weights(steps), memory.programs.buffers
    for name, weight in weights.items():
        if f"{name}.master" in buffers:
            assert np.array_equal(memory.buffer(f"{name}.master")[0], weight), name
        if f"{name}.stream" in buffers:
            assert np.array_equal(memory.buffer(f"{name}.stream")[steps % 3], to_stream(weight)), name
    assert sum(f"{name}.stream" in buffers for name in weights) == 2 * 4 + 1


# --- tokens ---------------------------------------------------------------------------------------------------------


def tokens_of(running: HostEngine, count: int) -> list[int]:
    """The first `count` tokens of a run whose weights stand still, every one of them logged once."""
    first = int(running.memory["serve"]["tokens"][0])
    running.start()
    snapshots = wait_for(running, lambda s: s.tokens_served >= first + count)
    running.stop()
    snapshots.append(running.poll())
    assert snapshots[-1].state == "stopped", snapshots[-1].message
    served = [token for s in snapshots for token in s.served]
    assert [token.index for token in served] == list(range(first, first + len(served)))
    return [token.token for token in served][:count]


def still(serving: int, temperature: float = 0.0, **changes) -> RunConfig:
    """A run that serves `prompt` and what follows, with a learning rate of 0."""
    return small(sms=(1, serving, 0), steps=FOREVER, learning_rate=0.0, sweep_every=0, prompt="ab",
                 sampling=Sampling(temperature, 0, 1.0), **changes)


@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_tokens_do_not_depend_on_how_many_serve(kernel, heads, temperature):
    """More than a context of them, those of the host program; 20 SMs are more than can have a part in a token."""
    expected = tokens_of(engine(kernel, still(1, temperature, heads=heads)), 90)
    assert len(set(expected)) > 3
    for serving in (1, 2, 5, 9, 20):
        assert tokens_of(engine(kernel, still(serving, temperature, heads=heads), "sm90"), 90) == expected, serving
    jittered = still(3, temperature, heads=heads, jitter_seed=5)
    assert tokens_of(engine(kernel, jittered, "sm90"), 90) == expected


@pytest.mark.parametrize("first_token", [2**31 - 1, 2**32 // 5 - 7, 2**32 + 3])
def test_tags_that_pass_their_last_number(kernel, first_token):
    """Tokens are those of a run from 0 where the tags of a message wrap, and where the first one waited for is 0."""
    expected = tokens_of(engine(kernel, still(1)), 20)
    assert tokens_of(engine(kernel, still(5, first_token=first_token, jitter_seed=2), "sm90"), 20) == expected


def test_no_token_is_lost_while_sms_come_and_go(kernel):
    """Serving SMs are added and taken away live, also all that began; the tokens are those of one that stays."""
    running = engine(kernel, still(2, 1.0, jitter_seed=6), "sm90")
    running.start()
    snapshots = wait_for(running, lambda s: s.tokens_served >= 3)
    rng = np.random.default_rng(0)
    roles, changes = snapshots[-1].roles.tolist(), 0
    while changes < 25:
        sm, role = int(rng.integers(3)), int(rng.choice([abi.TRAIN, abi.SERVE, abi.SERVE, abi.IDLE]))
        after = [*roles[:sm], role, *roles[sm + 1 :]]
        if {abi.TRAIN, abi.SERVE} - set(after):
            continue
        running.post(Event("set_role", "step", 0, sm, (role,)))
        roles, changes = after, changes + 1
        until = time.monotonic() + rng.random() * 0.1
        snapshots += wait_for(running, lambda s, until=until: time.monotonic() > until)
    enough = snapshots[-1].tokens_served + 20
    snapshots += wait_for(running, lambda s: s.tokens_served >= enough)
    running.stop()
    snapshots.append(running.poll())
    assert snapshots[-1].state == "stopped", snapshots[-1].message
    assert sum(a.event.action == "set_role" for s in snapshots for a in s.applied) == changes
    served = [token for s in snapshots for token in s.served]
    assert [token.index for token in served] == list(range(len(served)))
    assert [token.token for token in served] == tokens_of(engine(kernel, still(1, 1.0)), len(served))


def test_who_serves_later_takes_the_first_seat(kernel):
    running = engine(kernel, small(sms=(2, 0, 0), steps=FOREVER, sweep_every=0), "sm90")
    running.start()
    wait_for(running, lambda s: s.steps_done >= 1)
    running.post(Event("set_role", "step", 0, 1, (abi.SERVE,)))
    snapshots = wait_for(running, lambda s: s.tokens_served >= 5)
    running.stop()
    assert snapshots[-1].state == "running", snapshots[-1].message


def test_a_message_that_never_comes_is_reported(kernel):
    """The deadline names a task that reads it, the message, and how much of it was there."""
    run = small(sms=(1, 2, 0), steps=1, deadline_s=0.5)  # no second step, whose end would wait for the token's pin
    programs = compile_programs(run.model, run.train, games=0, target="sm90", storage="f4")
    decode = programs.programs["decode"]
    silent = decode.labels.index("layers.0.proj rows 0-7 columns 32-63")
    decode.tasks["operands"][silent, 3] = decode.tasks["operands"][silent, 2]  # writes the generation that it reads
    running = HostEngine(programs, run, library=kernel)
    running.start()
    message = wait_for(running, lambda s: s.state == "aborted")[-1].message
    assert "layers.0.fc1" in message and "token 0" in message, message
    assert "message 1 of decode.x to reach 128 until the deadline; it stood at 32" in message, message


# --- the kernel as a program of its own -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("sanitizer", compiler.SANITIZERS)
def test_fifty_steps_and_500_tokens_are_clean(kernel, tmp_path, sanitizer):
    doom = a_game(games=2)
    events = (
        *moves((1, 4, abi.TRAIN), (3, 0, abi.SERVE), (10, 4, abi.SERVE), (12, 3, abi.IDLE), (20, 3, abi.SERVE)),
        sampling_event(0.9, 0.8, 20, 5, when=3),
        Event("prompt", "token", 5, text="abc"),
    )
    run = small(sms=(3, 3, 2), steps=50, sweep_every=10, doom=doom, events=events, jitter_seed=4, deadline_s=300,
                tics_per_s=0)  # fmt: skip
    program = compiler.build(sanitizer=sanitizer)
    image = tmp_path / "image"
    engine(kernel, run, "sm90").memory.arena.save_image(image, "launch")
    command = [program, image, "500", "200"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("this system's address layout is not one that the thread sanitizer supports")
    report = (done.stderr + done.stdout)[-6000:]
    assert done.returncode == 0 and not done.stderr, report
    words = done.stdout.split("\n")[0].split()
    counted = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    assert counted["steps"] == 50 and counted["tokens"] >= 500 and counted["abort"] == 0, report
    assert counted["frames"] >= 200, report
    normal = engine(kernel, small(steps=50, sweep_every=10), "sm90")
    finish(normal)
    losses = [float(line.split()[1]) for line in done.stdout.splitlines()[1:]]
    assert losses == pytest.approx(normal.memory["losses"].tolist(), rel=1e-5)
