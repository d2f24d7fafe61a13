"""The one description of every struct that Python and the kernel share.

Each struct is a numpy dtype; `abi_header.py` writes the C++ of all of them, with a static_assert per offset,
and the kernel library exports the layout it was compiled with, which is compared when it is loaded.
Pointers are 64-bit addresses (host addresses for the CPU build, device addresses on a GPU).
"""

from __future__ import annotations

import numpy as np

from ofa_tui.program.ops import OPS

MAX_SMS = 256
MAX_WAITS = 3
MAX_OPERANDS = 7
MAX_GAMES = 16
NONE_U16 = 0xFFFF
NONE_U32 = 0xFFFF_FFFF
NONE_U64 = 0xFFFF_FFFF_FFFF_FFFF

ROLES = ("idle", "train", "serve", "doom")
IDLE, TRAIN, SERVE, DOOM = range(4)

PROGRAMS = ("train", "sweep", "decode", "doom")
"""The four task programs. The train role runs `train` and `sweep`, in the order of SCHEDULE."""

CLOCKS = ("step", "token", "tic")
"""What an event's `when` counts: training steps, decoded tokens, tics of the event's game."""

ACTIONS = (
    "set_role",       # clock step;  target = SM, args[0] = role
    "prompt",         # clock token; target = stream, args = number of tokens, prompt slot; 0 tokens: a story without
    "sampling",       # clock token; target = seed, args = temperature, top_p (float bits), top_k, stream or ALL_STREAMS
    "end_story",      # clock token; target = stream, which tells the next one or rests (STREAM.keeps_telling)
    "behaviour",      # clock tic;   target = game, args[0] = index into doom.player.BEHAVIOURS
    "keys",           # clock tic;   target = game, args = forward, side, turn, buttons (a manual command)
    "new_game",       # clock tic;   target = game, args = episode, map, skill, seed
    "rewind",         # clock tic;   target = game, args[0] = seconds back (negative: forward)
    "automap",        # clock tic;   target = game, args = mode (AUTOMAP_MODES), zoom, x, y (map units it was moved)
)

EVENT_RING = 256
MAX_STREAMS = 8
"""Stories that are told at the same time, each from a cache of its own."""
STREAM_PROMPTS = 16
PROMPT_SLOTS = MAX_STREAMS * STREAM_PROMPTS
"""Prompts that have room beside each other: the first STREAM_PROMPTS are those of stream 0, and so on."""
PASS_ROWS = 8
"""Tokens that one pass through the weights, an iteration of `decode`, takes in at most: one of each stream that tells,
and what else fits of the prompts that are being read."""
ALL_STREAMS = -1
SERVED_RING = 1 << 16
FRAME_SLOTS = 64
"""Frames of a game that are kept, 1.8 seconds of it: a reader that polls more often misses none."""
FRAME_WIDTH, FRAME_HEIGHT = 320, 200
AUTOMAP_MODES = ("off", "follow", "stay")
"""The map over the view is off, stays with the player, or stays where it was."""
AUTOMAP_ZOOMS = (-6, 18)
"""Lowest and highest zoom, in steps of 5/4; at 0 the level is a little larger than the view."""
COMMAND_RING = 1 << 16
"""Commands of a game that are kept: half an hour of it, or several seconds at full speed."""

COPIED_CLOCKS = CLOCKS[:2]
HOLD_NUMBERS = 256
"""Training, or serving, is held while the host copies its state. A hold is one word of CONTROL, first iteration *
HOLD_NUMBERS + number: the iteration, or the next one if that has begun, does not begin before the word has changed.
The kernel repeats the word in TELEMETRY.held once all earlier iterations are done. No two holds of a run that follow
each other have the same word, so that an old answer is never taken for a new one."""

COUNTER_STRIDE = 16
"""u8 words from one counter to the next: 128 bytes, so that no two counters share a cache line."""

TASK_WAIT = np.dtype([("first", "u4"), ("count", "u2"), ("n", "u1"), ("lag", "u1")])

TASK = np.dtype(
    [
        ("opcode", "u2"),
        ("n_waits", "u1"),
        ("flags", "u1"),           # per opcode, named in program/ops.py
        ("signal", "u4"),          # counter that grows by one when the task is done, or NONE_U32
        ("tile", "i4", (4,)),      # row0, rows, col0, cols: elements of the output the task owns
        ("operands", "u2", (7,)),  # indices into the operand table, NONE_U16 where absent
        ("lane", "u2"),            # of an owned task: block `lane mod blocks` of the role runs it; else 0
        ("waits", TASK_WAIT, (3,)),
    ]
)
"""64 bytes. A wait holds until each of the `n` counters from `first` on has reached
count * (iteration + 1 - lag): all its producers of this iteration (lag 0) or of the one before (lag 1)."""

OPERAND = np.dtype(
    [
        ("base", "u8"),        # address of element (0, 0) of copy 0
        ("copy_bytes", "u8"),  # distance of two copies
        ("pitch", "u4"),       # elements from one row to the next
        ("rows", "u4"),
        ("cols", "u4"),
        ("tensor_map", "u4"),  # index of its TMA descriptor, or NONE_U32
        ("copies", "u1"),      # 1, or 3 for weights in rotation
        ("rotation", "u1"),    # the copy used is (version + rotation) mod copies
        ("dtype", "u1"),       # index into DTYPES
        ("layout", "u1"),      # index into LAYOUTS
        ("generation", "u2"),  # of a message: its number in the iteration, and how many there are
        ("generations", "u2"),
    ]
)
ELEMENTS: dict[str, np.dtype] = {
    name: np.dtype(code) for name, code in
    (("f4", "f4"), ("bf16", "u2"), ("i4", "i4"), ("u1", "u1"), ("f8", "f8"), ("u8", "u8"), ("packet", "u8"))
}
"""The numpy dtype that stores an element of each dtype; bf16 and packets as their bits."""
DTYPES = tuple(ELEMENTS)
"""A packet is one element of a message: an f4 and the u4 tag that says which generation it belongs to,
iteration * generations + generation + 1 modulo 2^32."""
LAYOUTS = ("rows", "stream")
"""rows: row-major with a pitch. stream: blocks of 16 x 16 one after the other, row of blocks by row of blocks; in a
block the elements in the order in which the lanes of a warp hold the first operand of mma.m16n8k16. Lane l, with
r = l / 4 and c = 2 (l mod 4), has eight: (r, c), (r, c+1), (r+8, c), (r+8, c+1), and the same 8 columns further on."""

PROGRAM = np.dtype(
    [
        ("tasks", "u8"),
        ("n_tasks", "u4"),
        ("claims", "u4"),    # index into CLAIMS
    ]
)
CLAIMS = ("tickets", "whole", "owned")
CLAIM_TICKETS, CLAIM_WHOLE, CLAIM_OWNED = range(3)
"""tickets: any block takes the next task. whole: the same, but a block changes role only between two iterations.
owned: block `rank` of `n` runs the tasks whose lane mod n is its rank, in queue order; SEAT says who is what."""

MODEL = np.dtype(
    [
        ("layers", "u4"), ("width", "u4"), ("heads", "u4"), ("head_dim", "u4"),
        ("feed_forward", "u4"), ("context", "u4"), ("vocab", "u4"), ("batch", "u4"),
        ("rope_base", "f4"), ("norm_epsilon", "f4"),
    ]
)

OPTIMIZER = np.dtype(
    [
        ("learning_rate", "f8"), ("beta1", "f8"), ("beta2", "f8"), ("epsilon", "f8"),
        ("weight_decay", "f8"), ("final_fraction", "f8"), ("warmup_steps", "u8"), ("total_steps", "u8"),
    ]
)

SCHEDULE = np.dtype(
    [
        ("first_step", "u8"),        # of this run; the steps before it were done by another
        ("steps", "u8"),             # steps in all; the run ends before step `steps`
        ("sweep_every", "u8"),       # steps between two sweeps, 0 for none
        ("sweep_batches", "u8"),     # iterations of the sweep program per intermediate sweep
        ("final_batches", "u8"),     # iterations of the sweep after the last step
        ("first_batch", "u8"),       # iteration of the sweep program that this run begins with
    ]
)
"""Order of the train role: `sweep_every` steps, a sweep of `sweep_batches`, and so on; after the last step
one sweep of `final_batches` (and no intermediate one there). Tickets, counters and clocks of a run that begins at
`first_step` start at what an unbroken run would have; arrays of steps and of sweep batches begin with its own first."""

DATA = np.dtype(
    [
        ("train_tokens", "u8"),      # i4 [n_train]
        ("valid_tokens", "u8"),      # i4 [n_valid]
        ("train_windows", "u8"),     # i8 [steps - first_step, batch]: first token of each sequence
        ("valid_windows", "u8"),     # i8 [final_batches, batch]: first token, -1 for an empty row
        ("n_train", "u8"),
        ("n_valid", "u8"),
    ]
)
"""A window w predicts tokens w+1 .. w+context; targets at or past the end of the tokens do not count."""

EVENT = np.dtype(
    [
        ("when", "u8"),      # applied at the first boundary whose clock is >= when; 0 means now
        ("action", "u4"),
        ("target", "u4"),
        ("args", "i4", (4,)),
    ]
)

CONTROL = np.dtype(
    [
        ("stop", "u4"),                   # leave: training after its step, the others after their iteration
        ("pause", "u4"),                  # hold every role at its next iteration
        ("abort", "u4"),                  # leave at once
        ("single_tics", "u4"),            # tics Doom may run while it is held, counted since the launch
        ("hold_games", "u4"),             # hold Doom alone at its next tic
        ("passes", "u4"),                 # times that held games looked for events, counted since the launch
        ("deadline_ns", "u8"),            # of any wait
        ("token_interval_ns", "u8"),      # 0 = as fast as it goes
        ("tic_interval_ns", "u8"),        # 28,571,429 for 35 a second; 0 = as fast as it goes
        ("jitter_seed", "u8"),            # tests: random delays at claims, waits and signals; 0 = none
        ("hold", "u8", (len(COPIED_CLOCKS),)),  # see HOLD_NUMBERS; 0 = none
        ("posted", "u8", (3,)),           # events written so far, per clock
        ("events", EVENT, (3, EVENT_RING)),
    ]
)
"""Written by the host only. `posted[c]` is stored with release order after `events[c]`."""

QUEUE = np.dtype(
    [
        ("next", "u8"),        # the ticket that the next claim gets
        ("end", "u8"),         # 0 while open, else 1 + the first ticket that will not be run
        ("events_held", "u4"),  # 1 while a block applies events of the role's clock
        ("_pad", "u4"),
        ("_line", "u8", (13,)),
    ]
)
"""One role's queue, on its own cache line. Iteration = ticket div tasks, task = ticket mod tasks."""

PHASE_IDLE, PHASE_WAITING, PHASE_RUNNING = range(3)

SM_STATUS = np.dtype(
    [
        ("role", "u4"),
        ("opcode", "u4"),            # NONE_U32 between tasks
        ("task", "u4"),              # index in its program
        ("phase", "u4"),             # PHASE_IDLE, PHASE_WAITING, PHASE_RUNNING
        ("iteration", "u8"),
        ("tasks_done", "u8"),
        ("wait_ns", "u8"),           # time in dependency waits since the start
        ("heartbeat_ns", "u8"),
        ("op_ns", "u8", (len(OPS),)),  # time inside each opcode since the start
    ]
)

ABORT_DEADLINE, ABORT_OPCODE, ABORT_CHECK = 1, 2, 3

ABORT = np.dtype(
    [
        ("code", "u4"),          # 0 none, ABORT_DEADLINE, ABORT_OPCODE (unknown), ABORT_CHECK (failed in a task)
        ("role", "u4"),
        ("sm", "u4"),
        ("program", "u4"),
        ("task", "u4"),
        ("opcode", "u4"),
        ("counter", "u4"),       # from n_counters on: n_counters + the operand that is a message; NONE_U32: neither
        ("taken", "u4"),         # 1 once a block is writing the record: the first failure wins
        ("iteration", "u8"),
        ("expected", "u8"),
        ("seen", "u8"),
        ("time_ns", "u8"),
    ]
)

SERVED = np.dtype(
    [
        ("token", "i4"),
        ("flags", "u4"),         # SERVED_PROMPT: read from a prompt, not sampled; SERVED_FIRST: starts a story
        ("story", "u8"),         # counts stories from 0
        ("version", "u8"),       # complete weight version that computed it
        ("time_ns", "u8"),
        ("position", "u4"),      # in the story, from 0; the end-of-text token fed before it is not counted
        ("stream", "u4"),
    ]
)
SERVED_PROMPT, SERVED_FIRST = 1, 2

DOOM_STATUS = np.dtype(
    [
        ("tic", "u8"),           # its frame's number: tics played, and pictures shown again, since the launch
        ("time_ns", "u8"),
        ("render_ns", "u4"),
        ("think_ns", "u4"),
        ("seed", "u4"),
        ("leveltime", "u4"),
        ("episode", "u1"), ("map", "u1"), ("skill", "u1"), ("gamestate", "u1"),
        ("palette", "u1"), ("behaviour", "u1"), ("playerstate", "u1"), ("weapon", "u1"),
        ("health", "i2"), ("armor", "i2"), ("ammo", "i2", (4,)), ("ammo_max", "i2", (4,)),
        ("kills", "i2"), ("items", "i2"), ("secrets", "i2"),
        ("total_kills", "i2"), ("total_items", "i2"), ("total_secrets", "i2"),
        ("x", "i4"), ("y", "i4"), ("z", "i4"), ("angle", "u4"),   # 16.16 units, binary angle
        ("sector", "i4"),
        ("sectors_seen", "u4"), ("sectors_total", "u4"),
        ("stuck_tics", "u4"),
        ("forward", "i1"), ("side", "i1"), ("buttons", "u1"), ("keys", "u1"),
        ("turn", "i2"), ("weapons_owned", "u2"),
        ("behind", "u2"), ("ahead", "u2"),   # snapshots to go back to, and forward again
        ("automap", "u1"),       # index into AUTOMAP_MODES
        ("_pad", "u1", (3,)),
    ]
)
"""What a published frame shows; one per frame slot, so that picture and figures belong together."""

DOOM_COMMAND = np.dtype(
    [
        ("forward", "i1"), ("side", "i1"), ("turn", "i1"), ("buttons", "u1"),  # the four bytes of a demo
        ("starts", "u1"),        # 1: first tic of a new game, of which the rest says where it begins
        ("episode", "u1"), ("map", "u1"), ("skill", "u1"),
        ("undone", "i4"),        # tics that a rewind took back; negative: that it went forward again
        ("skipped", "u1"),       # 1: no tic was played, the game was rewound or its picture shown again
        ("_pad", "u1", (3,)),
    ]
)
"""What a game's player did in a tic. That of tic n (of the tic clock) is in place n mod COMMAND_RING; it is there
once TELEMETRY.frames is above n."""

DOOM_SEAT = np.dtype(
    [
        ("next_tic_ns", "u8"),     # pacing
        ("tics", "u8"),            # tics so far (the game's tic clock)
        ("single_tics", "u4"),     # of CONTROL.single_tics, how many are used up
        ("behaviour", "u4"),       # index into doom.player.BEHAVIOURS
        ("episode", "i4"), ("map", "i4"), ("skill", "i4"), ("seed", "u4"),  # of the next new game
        ("new_game", "u4"),        # 1: start it at the next tic
        ("passes", "u4"),          # of CONTROL.passes, how many are used up
        ("wind", "i4"),            # seconds back that a rewind asks for
        ("_pad", "u4"),
        # Snapshots are numbered in the order of their tics; number n is in slot n mod snapshot_slots.
        ("snapshots", "u8"),       # number of the next one
        ("oldest_snapshot", "u8"),
        ("restored", "u8"),        # 1 + number of the one that the game is equal to; 0: it has gone on since
    ]
)
"""What the kernel keeps of one game beside the engine's own Game; the host fills it in before the launch."""

TELEMETRY = np.dtype(
    [
        ("started_ns", "u8"),
        ("steps_done", "u8"),            # losses up to here are final
        ("sweep_batches_done", "u8"),
        ("tokens_served", "u8"),         # entries of the served ring written so far
        ("blocks_running", "u4"),
        ("finished", "u4"),              # 1 once training and its last sweep are done
        ("frames", "u8", (MAX_GAMES,)),  # published per game; frame n is in slot (n - 1) mod FRAME_SLOTS
        ("timeline", "u8", (MAX_SMS,)),  # entries of each SM's timeline so far, see TIMELINE_BATCH
        ("held", "u8", (len(COPIED_CLOCKS),)),  # the CONTROL.hold that holds the clock's iteration; see HOLD_NUMBERS
        ("events_taken", "u8", (3,)),        # events the kernel has seen, per clock
        ("events_first_open", "u8", (3,)),   # all events before this one are applied
        ("applied", "u8", (3, EVENT_RING)),  # clock at which that event took effect, NONE_U64 = not yet
        ("abort", ABORT),
        ("sms", SM_STATUS, (MAX_SMS,)),
    ]
)
"""Written by the kernel only."""

TIMELINE_BATCH = 8
"""Entries of an SM's timeline are published in batches of so many, and those that are left when it has nothing to do:
a release after every task would cost more than the entry."""
TIMELINE_TASKS, TIMELINE_TOGETHER = 1 << 26, 1 << 4
TIMELINE_SIZES = tuple(1 << n for n in range(6, 21))
"""Entries that an SM's ring may have, beside none: from a few batches to 32 MB."""

TIMELINE_ENTRY = np.dtype(
    [
        ("begin_ns", "u8"),      # on the kernel's clock, as TELEMETRY.started_ns; its inputs were there
        ("body_ns", "u4"),       # until its end
        ("held_ns", "u4"),       # of it: waits inside the body, such as those for a pin, a pace or a message
        ("waited_ns", "u4"),     # before it began its SM had nothing to do but wait for its inputs, for so long
        ("claimed_ns", "u4"),    # before it began it was claimed
        ("iteration", "u4"),     # modulo 2^32
        ("task", "u4"),          # (program * TIMELINE_TOGETHER + neighbours done with it) * TIMELINE_TASKS + task
    ]
)
"""One task that an SM has run, or several of a streamed token that it does as one: a sector of memory, so that an entry
is written whole. Durations of 4.29 s and more are cut off there."""

LAUNCH = np.dtype(
    [
        ("n_sms", "u4"),
        ("n_counters", "u4"),
        ("n_operands", "u4"),
        ("n_games", "u4"),
        ("programs", PROGRAM, (len(PROGRAMS),)),
        ("operands", "u8"),      # OPERAND [n_operands]
        ("counters", "u8"),      # u8 [n_counters, 16]: one 128-byte line each
        ("queues", "u8"),        # QUEUE [len(ROLES)]
        ("roles", "u8"),         # u4 [MAX_SMS]: the role table, changed by set_role events
        ("control", "u8"),       # CONTROL
        ("telemetry", "u8"),     # TELEMETRY
        ("losses", "u8"),        # f4 [steps - first_step]
        ("step_end_ns", "u8"),   # u8 [steps - first_step], nanoseconds since started_ns
        ("sweep_sums", "u8"),    # f8 [this run's sweep batches]: sum of token losses
        ("sweep_counts", "u8"),  # u8 [this run's sweep batches]: tokens counted
        ("serve", "u8"),         # SERVE_STATE
        ("served", "u8"),        # SERVED [SERVED_RING]
        ("prompts", "u8"),       # i4 [PROMPT_SLOTS, context]
        ("frames", "u8"),        # u1 [n_games, FRAME_SLOTS, 200, 320]
        ("doom_status", "u8"),   # DOOM_STATUS [n_games, FRAME_SLOTS]
        ("doom_commands", "u8"),  # DOOM_COMMAND [n_games, COMMAND_RING]
        ("doom_seats", "u8"),    # DOOM_SEAT [n_games]
        ("doom_wad", "u8"),      # packed WAD blob, or 0
        ("tensor_maps", "u8"),   # tensor maps of 128 bytes; see OPERAND.tensor_map
        ("seats", "u8"),         # SEAT [MAX_SMS]
        ("doom_games", "u8"),    # the engine's own Game structs, n_games * doom_game_bytes()
        ("doom_snapshots", "u8"),  # states to go back to, [n_games, snapshot_slots] of doom_snapshot_bytes()
        ("snapshot_slots", "u8"),
        ("scratch", "u8"),       # scratch memory of each SM, n_sms * scratch_bytes
        ("scratch_bytes", "u8"),
        ("timeline", "u8"),      # TIMELINE_ENTRY [n_sms, timeline_entries]: entry n of an SM is in row n mod entries
        ("timeline_entries", "u8"),  # a power of two; 0 where no timeline is kept
        ("model", MODEL),
        ("optimizer", OPTIMIZER),
        ("schedule", SCHEDULE),
        ("data", DATA),
    ]
)

STREAM = np.dtype(
    [
        ("story", "u8"),              # the one it tells, or will tell next
        ("tokens", "u8"),             # of this stream so far; its next one is drawn by random_unit(random_seed, tokens)
        ("random_seed", "u8"),
        ("input_token", "i4"),        # fed to the model next
        ("position", "u4"),           # of the input token: its row of the stream's cache
        ("prompt_slot", "u4"),        # prompt being read, or NONE_U32
        ("prompt_length", "u4"),
        ("prompt_read", "u4"),
        ("top_k", "u4"),              # 0 = all
        ("temperature", "f4"),        # 0 = greedy
        ("top_p", "f4"),
        ("telling", "u4"),            # 0: it rests, and no pass takes in a token of it
        ("keeps_telling", "u4"),      # 1: it begins a story when one ends; 0: it rests until a prompt comes
    ]
)

PASS_ROW = np.dtype(
    [
        ("stream", "u4"),
        ("position", "u4"),
        ("token", "i4"),              # fed to the model
        ("prompt_token", "i4"),       # what follows it, where that is still the prompt, or -1: then it is sampled
    ]
)
"""A token of the pass under way. Those of one stream are neighbours in the order of their positions."""

SERVE_STATE = np.dtype(
    [
        ("published", "u8"),          # newest complete weight version
        ("_line0", "u8", (15,)),
        ("pin", "u8"),                # version in use by the pass under way, or NONE_U64
        ("_line1", "u8", (15,)),
        ("tokens", "u8"),             # tokens of all streams so far (the token clock)
        ("stories", "u8"),            # number of the next story that begins
        ("opened", "u8"),             # owned claims: the passes before this one are open, or done
        ("members", "u4"),            # blocks that have a seat; 0: the next one to serve takes the first seat itself
        ("seats_asked", "u4"),        # 1: a block asks for a seat, or the role table has changed
        ("next_token_ns", "u8"),      # pacing
        ("end_of_text", "i4"),        # id that ends a story
        ("vocab_used", "u4"),         # ids the tokenizer has; padding is never sampled
        ("n_streams", "u4"),
        ("n_rows", "u4"),             # of the pass under way
        ("rows", PASS_ROW, (PASS_ROWS,)),
        ("streams", STREAM, (MAX_STREAMS,)),
    ]
)

SEAT = np.dtype([("first_token", "u8"), ("rank", "u4"), ("blocks", "u4")])
"""One SM's part in the tokens from `first_token` on: block `rank` of `blocks`, or none (blocks = 0); other values of
`blocks` and who writes what: cuda/sched/seats.h. Written by the task that opens a token, for the one after it."""

STRUCTS: dict[str, np.dtype] = {
    "TaskWait": TASK_WAIT, "Task": TASK, "Operand": OPERAND, "Program": PROGRAM, "Model": MODEL,
    "Optimizer": OPTIMIZER, "Schedule": SCHEDULE, "Data": DATA, "Event": EVENT, "Control": CONTROL,
    "Queue": QUEUE, "SmStatus": SM_STATUS, "Abort": ABORT, "Served": SERVED, "DoomStatus": DOOM_STATUS,
    "DoomCommand": DOOM_COMMAND, "DoomSeat": DOOM_SEAT, "Telemetry": TELEMETRY, "Stream": STREAM, "PassRow": PASS_ROW,
    "ServeState": SERVE_STATE, "Seat": SEAT, "TimelineEntry": TIMELINE_ENTRY, "Launch": LAUNCH,
}
