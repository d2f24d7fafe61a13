"""The model in float64 NumPy, written from the formulas: forward pass, every gradient, AdamW.

An oracle for the kernel's numerics. It shares nothing with the compiler but the names of parameters and activations
(those of `ofa_tui.program.graph`), so that any buffer of a run can be compared with the array of the same name here.
Rows are tokens: activations are [B * T, columns].
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ofa_tui.presets import ModelConfig, TrainConfig

Arrays = dict[str, np.ndarray]


@dataclass
class Trace:
    """Everything one forward and backward pass computed."""

    loss: float
    activations: Arrays = field(default_factory=dict)
    gradients: Arrays = field(default_factory=dict)  # of the parameters, by parameter name
    activation_gradients: Arrays = field(default_factory=dict)  # by activation name


def parameter_shapes(model: ModelConfig) -> dict[str, tuple[int, int]]:
    c, f, v = model.width, model.feed_forward, model.vocab
    shapes = {"embed": (v, c), "head": (v, c), "norm": (1, c)}
    for i in range(model.layers):
        shapes |= {
            f"layers.{i}.norm1": (1, c), f"layers.{i}.qkv": (3 * c, c), f"layers.{i}.proj": (c, c),
            f"layers.{i}.norm2": (1, c), f"layers.{i}.fc1": (f, c), f"layers.{i}.fc2": (c, f),
        }
    return shapes


def random_parameters(model: ModelConfig, seed: int, std: float = 0.02) -> Arrays:
    """Normal matrices and gains near 1 (not equal to 1, so that a gain that is ignored shows)."""
    rng = np.random.default_rng(seed)
    return {
        name: (1.0 if "norm" in name else 0.0) + std * rng.standard_normal(shape)
        for name, shape in parameter_shapes(model).items()
    }


def logits(params: Arrays, tokens: np.ndarray, model: ModelConfig) -> np.ndarray:
    """Logits [B, T, V] of `tokens` [B, T]."""
    return _forward(params, tokens, model)["logits"].reshape(*tokens.shape, model.vocab)


def decode(params: Arrays, token: int, keys: Arrays, values: Arrays, model: ModelConfig) -> np.ndarray:
    """Logits [V] behind `token`, whose key (rotated) and value are appended to each layer's cache [position, C]."""
    position = len(keys["layers.0"])
    cos, sin = (turn[position] for turn in _rotation(position + 1, model))
    x = params["embed"][[token]].astype(np.float64)
    for i in range(model.layers):
        p = f"layers.{i}"
        qkv = _norm(x, params[f"{p}.norm1"], model.norm_epsilon)[0] @ params[f"{p}.qkv"].T
        q, k, v = (part.reshape(model.heads, -1) for part in np.split(qkv[0], 3))
        keys[p] = np.vstack([keys[p], _rotate(k, cos, sin).reshape(1, -1)])
        values[p] = np.vstack([values[p], v.reshape(1, -1)])
        cached_k, cached_v = (cache.reshape(position + 1, model.heads, -1) for cache in (keys[p], values[p]))
        s = np.einsum("hd,thd->ht", _rotate(q, cos, sin), cached_k) / math.sqrt(model.head_dim)
        weights = np.exp(s - s.max(1, keepdims=True))
        o = np.einsum("ht,thd->hd", weights / weights.sum(1, keepdims=True), cached_v)
        mid = x + o.reshape(1, -1) @ params[f"{p}.proj"].T
        u = _norm(mid, params[f"{p}.norm2"], model.norm_epsilon)[0] @ params[f"{p}.fc1"].T
        x = mid + _gelu(u) @ params[f"{p}.fc2"].T
    return (_norm(x, params["norm"], model.norm_epsilon)[0] @ params["head"].T)[0]


def random_unit(seed: int, counter: int) -> float:
    """Uniform in [0, 1): two rounds of SplitMix64's finaliser (Steele, Lea, Flood 2014) over seed and counter."""

    def mixed(x: int) -> int:
        x = (x + 0x9E3779B97F4A7C15) % 2**64
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        return x ^ x >> 31

    return (mixed(mixed(seed) ^ counter) >> 11) * 2.0**-53


def loss_and_gradients(
    params: Arrays, tokens: np.ndarray, targets: np.ndarray, model: ModelConfig
) -> tuple[float, Arrays]:
    """Mean cross-entropy in nats over the targets that count (>= 0), and its gradient by parameter name.

    `tokens` and `targets` are integers [B, T]; targets below 0 do not count.
    """
    trace = trace_step(params, tokens, targets, model)
    return trace.loss, trace.gradients


def learning_rate(step: int, train: TrainConfig) -> float:
    """Linear warm-up, then half a cosine down to `final_lr_fraction` of the peak. `step` counts from 0."""
    f = train.final_lr_fraction
    warmup = min(1.0, (step + 1) / train.warmup_steps) if train.warmup_steps else 1.0
    return train.learning_rate * warmup * (f + (1 - f) / 2 * (1 + math.cos(math.pi * step / train.steps)))


def adamw_step(
    params: Arrays, grads: Arrays, m: Arrays, v: Arrays, step: int, train: TrainConfig
) -> tuple[Arrays, Arrays, Arrays]:
    """Parameters and moments after update `step` (counted from 0); nothing is changed in place.

    Decoupled weight decay (Loshchilov and Hutter, arXiv:1711.05101, with the decay scaled by the learning rate) on
    matrices only; gains do not decay.
    """
    lr = learning_rate(step, train)
    new_p, new_m, new_v = {}, {}, {}
    for name, p in params.items():
        g = grads[name]
        new_m[name] = train.beta1 * m[name] + (1 - train.beta1) * g
        new_v[name] = train.beta2 * v[name] + (1 - train.beta2) * g**2
        m_hat = new_m[name] / (1 - train.beta1 ** (step + 1))
        v_hat = new_v[name] / (1 - train.beta2 ** (step + 1))
        decay = 0.0 if "norm" in name else train.weight_decay
        new_p[name] = p - lr * (m_hat / (np.sqrt(v_hat) + train.epsilon) + decay * p)
    return new_p, new_m, new_v


def zeros_like(params: Arrays) -> Arrays:
    return {name: np.zeros_like(p) for name, p in params.items()}


def trace_step(params: Arrays, tokens: np.ndarray, targets: np.ndarray, model: ModelConfig) -> Trace:
    """One forward and backward pass with all its intermediate arrays."""
    act = _forward(params, tokens, model)
    goal = targets.reshape(-1)
    counted = goal >= 0
    rows = np.flatnonzero(counted)
    n = max(len(rows), 1)
    z = act["logits"] - act["logits"].max(axis=1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    act["losses"] = np.zeros((len(goal), 1))
    act["losses"][rows, 0] = -log_p[rows, goal[rows]]
    d_logits = np.exp(log_p) * counted[:, None] / n
    d_logits[rows, goal[rows]] -= 1.0 / n
    trace = Trace(float(act["losses"].sum() / n), act)
    _backward(trace, d_logits, params, tokens, model)
    return trace


# --- forward ---------------------------------------------------------------------------------------------------


def _forward(params: Arrays, tokens: np.ndarray, model: ModelConfig) -> Arrays:
    act: Arrays = {}
    x = params["embed"][tokens.reshape(-1)].astype(np.float64)
    for i in range(model.layers):
        p = f"layers.{i}"
        act[f"{p}.in"] = x
        h, act[f"{p}.norm1.rstd"] = _norm(x, params[f"{p}.norm1"], model.norm_epsilon)
        act[f"{p}.norm1.y"] = h
        act[f"{p}.qkv.y"] = h @ params[f"{p}.qkv"].T
        o, lse = _attention(act[f"{p}.qkv.y"], tokens.shape, model)
        act[f"{p}.attention"], act[f"{p}.attention.lse"] = o, lse
        mid = x + o @ params[f"{p}.proj"].T
        act[f"{p}.mid"] = mid
        h, act[f"{p}.norm2.rstd"] = _norm(mid, params[f"{p}.norm2"], model.norm_epsilon)
        act[f"{p}.norm2.y"] = h
        u = h @ params[f"{p}.fc1"].T
        act[f"{p}.fc1.y"], act[f"{p}.gelu"] = u, _gelu(u)
        x = mid + act[f"{p}.gelu"] @ params[f"{p}.fc2"].T
    act["norm.in"] = x
    act["norm.y"], act["norm.rstd"] = _norm(x, params["norm"], model.norm_epsilon)
    act["logits"] = act["norm.y"] @ params["head"].T
    return act


def _norm(x: np.ndarray, gain: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """RMSNorm (Zhang and Sennrich, arXiv:1910.07467) and 1 / rms of each row."""
    rstd = 1.0 / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + epsilon)
    return x * rstd * gain, rstd


_GELU_SCALE = math.sqrt(2 / math.pi)


def _gelu(u: np.ndarray) -> np.ndarray:
    """The tanh form (Hendrycks and Gimpel, arXiv:1606.08415)."""
    return 0.5 * u * (1 + np.tanh(_GELU_SCALE * (u + 0.044715 * u**3)))


def _gelu_slope(u: np.ndarray) -> np.ndarray:
    t = np.tanh(_GELU_SCALE * (u + 0.044715 * u**3))
    return 0.5 * (1 + t) + 0.5 * u * (1 - t**2) * _GELU_SCALE * (1 + 3 * 0.044715 * u**2)


def _rotation(length: int, model: ModelConfig) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin [length, D/2] of position * base^(-2i/D) (RoFormer, arXiv:2104.09864)."""
    half = model.head_dim // 2
    frequency = model.rope_base ** (-np.arange(half) / half)
    angle = np.arange(length)[:, None] * frequency
    return np.cos(angle), np.sin(angle)


def _rotate(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """Columns i and i + D/2 of x [..., T, D] turned together."""
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def _heads(x: np.ndarray, shape: tuple[int, ...], heads: int) -> np.ndarray:
    """[B * T, H * D] -> [B, H, T, D]"""
    return x.reshape(*shape, heads, -1).transpose(0, 2, 1, 3)


def _rows(x: np.ndarray) -> np.ndarray:
    """[B, H, T, D] -> [B * T, H * D]"""
    b, h, t, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b * t, h * d)


def _attention(qkv: np.ndarray, shape: tuple[int, ...], model: ModelConfig) -> tuple[np.ndarray, np.ndarray]:
    """Causal attention of each sequence, and the natural log of each row's softmax denominator [B * T, H]."""
    _, _, v, s = _scores(qkv, shape, model)
    lse = np.log(np.exp(s - s.max(-1, keepdims=True)).sum(-1, keepdims=True)) + s.max(-1, keepdims=True)
    return _rows(np.exp(s - lse) @ v), _rows(lse)


def _scores(qkv: np.ndarray, shape: tuple[int, ...], model: ModelConfig) -> tuple[np.ndarray, ...]:
    """Rotated queries and keys, values, and masked scores [B, H, T, T]."""
    q, k, v = (_heads(part, shape, model.heads) for part in np.split(qkv, 3, axis=1))
    cos, sin = _rotation(shape[1], model)
    q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
    s = q @ k.transpose(0, 1, 3, 2) / math.sqrt(model.head_dim)
    future = np.triu(np.ones((shape[1], shape[1]), bool), 1)
    return q, k, v, np.where(future, -np.inf, s)


# --- backward --------------------------------------------------------------------------------------------------


def _backward(trace: Trace, d_logits: np.ndarray, params: Arrays, tokens: np.ndarray, model: ModelConfig) -> None:
    act, grad, d = trace.activations, trace.gradients, trace.activation_gradients

    def product(weight: str, x: str, dy: np.ndarray) -> np.ndarray:
        """Gradient of x for y = x w^T; stores that of w."""
        grad[weight] = dy.T @ act[x]
        return dy @ params[weight]

    def norm(name: str, x: str, dy: np.ndarray) -> np.ndarray:
        rstd, gain = act[f"{name}.rstd"], params[name]
        normal = act[x] * rstd
        grad[name] = (dy * normal).sum(axis=0, keepdims=True)
        scaled = dy * gain
        return rstd * (scaled - normal * (scaled * normal).mean(axis=1, keepdims=True))

    d["logits"] = d_logits
    d["norm.y"] = product("head", "norm.y", d_logits)
    d["norm.in"] = dx = norm("norm", "norm.in", d["norm.y"])
    for i in reversed(range(model.layers)):
        p = f"layers.{i}"
        d[f"{p}.gelu"] = product(f"{p}.fc2", f"{p}.gelu", dx)
        d[f"{p}.fc1.y"] = d[f"{p}.gelu"] * _gelu_slope(act[f"{p}.fc1.y"])
        d[f"{p}.norm2.y"] = product(f"{p}.fc1", f"{p}.norm2.y", d[f"{p}.fc1.y"])
        d[f"{p}.mid"] = dx = dx + norm(f"{p}.norm2", f"{p}.mid", d[f"{p}.norm2.y"])
        d[f"{p}.attention"] = product(f"{p}.proj", f"{p}.attention", dx)
        d[f"{p}.qkv.y"] = _attention_backward(act[f"{p}.qkv.y"], d[f"{p}.attention"], tokens.shape, model)
        d[f"{p}.norm1.y"] = product(f"{p}.qkv", f"{p}.norm1.y", d[f"{p}.qkv.y"])
        d[f"{p}.in"] = dx = dx + norm(f"{p}.norm1", f"{p}.in", d[f"{p}.norm1.y"])
    grad["embed"] = np.zeros(params["embed"].shape)
    np.add.at(grad["embed"], tokens.reshape(-1), dx)


def _attention_backward(
    qkv: np.ndarray, d_out: np.ndarray, shape: tuple[int, ...], model: ModelConfig
) -> np.ndarray:
    q, k, v, s = _scores(qkv, shape, model)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    do = _heads(d_out, shape, model.heads)
    dv = p.transpose(0, 1, 3, 2) @ do
    dp = do @ v.transpose(0, 1, 3, 2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / math.sqrt(model.head_dim)
    cos, sin = _rotation(shape[1], model)
    dq, dk = _rotate(ds @ k, cos, -sin), _rotate(ds.transpose(0, 1, 3, 2) @ q, cos, -sin)
    return np.concatenate([_rows(part) for part in (dq, dk, dv)], axis=1)
