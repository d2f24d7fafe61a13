"""Model and training presets. Parameters are counted from the shapes, never written down."""

from __future__ import annotations

from dataclasses import dataclass

from ofa_tui.errors import OfaError


@dataclass(frozen=True)
class ModelConfig:
    """A decoder-only transformer: RMSNorm with gains, rotary attention, GELU MLP, untied head, no biases."""

    layers: int
    width: int
    heads: int
    feed_forward: int
    context: int
    vocab: int
    """Rows of the embedding and of the head: the tokenizer's size, padded."""
    rope_base: float = 10_000.0
    norm_epsilon: float = 1e-5

    @property
    def head_dim(self) -> int:
        return self.width // self.heads

    def parameter_count(self) -> int:
        per_layer = 4 * self.width**2 + 2 * self.width * self.feed_forward
        gains = (2 * self.layers + 1) * self.width
        return 2 * self.vocab * self.width + self.layers * per_layer + gains


ALL_BATCHES = 1 << 53
"""More than any text has."""


@dataclass(frozen=True)
class TrainConfig:
    """AdamW with linear warm-up and a cosine to `final_lr_fraction` of the peak."""

    batch: int
    """Sequences of `context` tokens per step."""
    steps: int
    learning_rate: float
    warmup_steps: int
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    weight_decay: float = 0.1
    final_lr_fraction: float = 0.1
    init_std: float = 0.02
    sweep_every: int = 100
    """Steps between two held-out sweeps; one more always follows the last step."""
    sweep_batches: int = 8
    """Batches of an intermediate sweep; the last sweep covers every held-out window."""


@dataclass(frozen=True)
class Preset:
    name: str
    summary: str
    model: ModelConfig
    train: TrainConfig
    tokenizer: str
    """`bytes`, `bpe:N`, `gpt2` or a path."""
    vocab_multiple: int = 64
    sms: tuple[int, int, int] = (2, 1, 1)
    """Default host split: train, serve, Doom."""
    text_hint: str = ""
    """Said when the preset trains on generated stories because no --data was given."""


PRESETS: dict[str, Preset] = {
    p.name: p
    for p in (
        Preset(
            "tiny",
            "learns to tell our generated stories in minutes on two cores",
            ModelConfig(layers=4, width=128, heads=4, feed_forward=512, context=320, vocab=1024),
            TrainConfig(batch=4, steps=3000, learning_rate=3e-3, warmup_steps=50, init_std=0.05),
            tokenizer="bpe:1024",
        ),
        Preset(
            "shakespeare-char",
            "nanoGPT's published CPU example: characters of Shakespeare",
            ModelConfig(layers=4, width=128, heads=4, feed_forward=512, context=64, vocab=320),
            TrainConfig(batch=12, steps=2000, learning_rate=1e-3, warmup_steps=100, beta2=0.99,
                        sweep_every=250, sweep_batches=20),
            tokenizer="bytes",
            text_hint="no --data given: bytes of generated stories, not of Shakespeare; try --data tinyshakespeare.txt",
        ),
        Preset(
            "model-s",
            "162,417,408 parameters, the GPU's default",
            ModelConfig(layers=12, width=768, heads=12, feed_forward=3072, context=512, vocab=50_432),
            TrainConfig(batch=8, steps=4000, learning_rate=6e-4, warmup_steps=200, sweep_every=200),
            tokenizer="gpt2",
            vocab_multiple=256,
        ),
    )
}


def preset(name: str) -> Preset:
    """The preset called `name`. Raises OfaError for an unknown name."""
    try:
        return PRESETS[name]
    except KeyError:
        raise OfaError(f"unknown preset {name!r}; choose one of {', '.join(PRESETS)}") from None
