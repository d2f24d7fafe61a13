"""The peer of bench_host.py and compare_training.py: the same model in PyTorch, in an interpreter of its own.

Needs PyTorch and NumPy. Reads one JSON object a line and answers each with one; see `JOBS`. The model: token table,
layers of RMSNorm with gains, rotary positions on column pairs i and i + d/2, causal attention and a tanh-GELU MLP, no
biases, an untied head. AdamW with decoupled decay, none of it on gains.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

LAYER_PARAMETERS = ("norm1", "qkv", "proj", "norm2", "fc1", "fc2")


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class Layer(nn.Module):
    """`parameters` f4 by name, matrices [out, in]."""

    def __init__(self, parameters: dict[str, Tensor], heads: int, epsilon: float) -> None:
        super().__init__()
        self.heads, self.epsilon = heads, epsilon
        for name in LAYER_PARAMETERS:
            setattr(self, name, nn.Parameter(parameters[name]))

    def qkv_of(self, x: Tensor) -> Iterable[Tensor]:
        """q, k and v [..., heads, T, head_dim] of x [..., T, width]."""
        normed = F.rms_norm(x, x.shape[-1:], self.norm1, self.epsilon)
        parts = F.linear(normed, self.qkv).unflatten(-1, (3, self.heads, -1))
        return [part.transpose(-3, -2) for part in parts.unbind(-3)]

    def output_of(self, x: Tensor, attended: Tensor) -> Tensor:
        """[..., T, width] of the layer's input x and attended [..., heads, T, head_dim]."""
        x = x + F.linear(attended.transpose(-3, -2).flatten(-2), self.proj)
        normed = F.rms_norm(x, x.shape[-1:], self.norm2, self.epsilon)
        return x + F.linear(F.gelu(F.linear(normed, self.fc1), approximate="tanh"), self.fc2)


class Model(nn.Module):
    """`file` holds `config`, a JSON object, and the parameters under ofa-tui's names."""

    cos: Tensor
    sin: Tensor

    def __init__(self, file: Mapping[str, Any]) -> None:
        super().__init__()
        config = json.loads(str(file["config"]))
        self.context, self.epsilon = config["context"], config["norm_epsilon"]

        def parameter(name: str) -> Tensor:
            array = torch.from_numpy(file[name])
            return array[0] if array.shape[0] == 1 else array

        self.embed = nn.Parameter(parameter("embed"))
        self.layers = nn.ModuleList(
            Layer({name: parameter(f"layers.{i}.{name}") for name in LAYER_PARAMETERS}, config["heads"], self.epsilon)
            for i in range(config["layers"])
        )
        self.norm, self.head = nn.Parameter(parameter("norm")), nn.Parameter(parameter("head"))
        size = config["width"] // config["heads"]
        frequency = config["rope_base"] ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
        angle = torch.arange(self.context, dtype=torch.float64)[:, None] * frequency
        self.register_buffer("cos", angle.cos().float())
        self.register_buffer("sin", angle.sin().float())

    def logits(self, x: Tensor) -> Tensor:
        return F.linear(F.rms_norm(x, x.shape[-1:], self.norm, self.epsilon), self.head)

    def all_logits(self, tokens: Tensor) -> Tensor:
        """[batch, context, vocab] of tokens [batch, context]."""
        x = F.embedding(tokens, self.embed)
        for layer in self.layers:
            q, k, v = layer.qkv_of(x)
            q, k = rotate(q, self.cos, self.sin), rotate(k, self.cos, self.sin)
            x = layer.output_of(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return self.logits(x)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Mean loss in nats of tokens and targets [batch, context]."""
        return F.cross_entropy(self.all_logits(tokens).flatten(0, 1), targets.flatten())

    def next_token(
        self, token: Tensor, position: Tensor, keys: list[Tensor], values: list[Tensor], cached: int,
        used: int | None = None
    ) -> Tensor:
        """The likeliest token, of the first `used` if given, after `token` [1] or [batch, 1] at `position` [1].

        `keys` and `values` have [..., heads, context, size] for each layer. Attends to their first `cached` rows, of
        which those after `position` are hidden.
        """
        cos, sin = self.cos[position], self.sin[position]
        x = F.embedding(token, self.embed)
        hidden = torch.where(torch.arange(cached, device=x.device) <= position[:, None], 0.0, -torch.inf).to(x.dtype)
        for layer, layer_keys, layer_values in zip(self.layers, keys, values, strict=True):
            q, k, v = layer.qkv_of(x)
            q, k = rotate(q, cos, sin).to(x.dtype), rotate(k, cos, sin).to(x.dtype)
            layer_keys.index_copy_(-2, position, k)
            layer_values.index_copy_(-2, position, v)
            attended = F.scaled_dot_product_attention(
                q, layer_keys[..., :cached, :], layer_values[..., :cached, :], attn_mask=hidden)
            x = layer.output_of(x, attended)
        return self.logits(x)[..., :used].argmax(-1)


class Training:
    """Steps over the windows in the order of the file: `train_tokens`, `windows` [steps, batch], `rates` [steps]."""

    def __init__(self, path: str, compiled: bool, threads: int, optimizer: str) -> None:
        file = np.load(path)
        self._threads = threads
        train = json.loads(str(file["train"]))
        self._model = Model(file)
        self._loss = torch.compile(self._model, dynamic=False) if compiled else self._model
        self._tokens = torch.from_numpy(file["train_tokens"].astype(np.int64))
        self._windows, self._rates = file["windows"], file["rates"]
        matrices = [p for p in self._model.parameters() if p.dim() > 1]
        gains = [p for p in self._model.parameters() if p.dim() == 1]
        self._optimizer = torch.optim.AdamW(
            [{"params": matrices}, {"params": gains, "weight_decay": 0.0}], betas=(train["beta1"], train["beta2"]),
            eps=train["epsilon"], weight_decay=train["weight_decay"], **{optimizer: True})
        self._step = 0

    def run(self, count: int) -> dict[str, Any]:
        """`count` more steps: milliseconds and loss of each. The windows begin again at their end."""
        torch.set_num_threads(self._threads)
        milliseconds, losses = [], []
        for _ in range(count):
            started = time.perf_counter()
            losses.append(self._one_step())
            milliseconds.append(1e3 * (time.perf_counter() - started))
        return {"ms": milliseconds, "losses": losses}

    def _one_step(self) -> float:
        row = self._step % len(self._windows)
        self._step += 1
        at = torch.from_numpy(self._windows[row])[:, None] + torch.arange(self._model.context)
        for group in self._optimizer.param_groups:
            group["lr"] = float(self._rates[row])
        self._optimizer.zero_grad(set_to_none=True)
        loss = self._loss(self._tokens[at], self._tokens[at + 1])
        loss.backward()
        self._optimizer.step()
        return loss.item()


class Decoding:
    """Greedy decoding of one sequence at a time; a new one begins at `end_of_text` and where the context is full."""

    def __init__(self, path: str, compiled: bool, threads: int) -> None:
        file = np.load(path)
        self._threads = threads
        config = json.loads(str(file["config"]))
        self._end_of_text, self._used = int(file["end_of_text"]), int(file["vocab_used"])
        self._model = Model(file).requires_grad_(False)
        self._model.head = nn.Parameter(self._model.head[: self._used], requires_grad=False)
        shape = (config["heads"], config["context"], config["width"] // config["heads"])
        self._keys, self._values = ([torch.zeros(shape) for _ in range(config["layers"])] for _ in "kv")
        self._compiled = compiled
        self._next = torch.compile(self._model.next_token, dynamic=False) if compiled else self._model.next_token
        self._start()

    def _start(self) -> None:
        self._token, self._position = torch.tensor([self._end_of_text]), 0

    @torch.inference_mode()
    def run(self, count: int) -> dict[str, Any]:
        """`count` more tokens, and the milliseconds that all of them took."""
        torch.set_num_threads(self._threads)
        tokens = []
        started = time.perf_counter()
        for _ in range(count):
            # Compiled code is made for one shape; without it, it pays to look at no more rows than there are.
            cached = self._model.context if self._compiled else self._position + 1
            self._token = self._next(self._token, torch.tensor([self._position]), self._keys, self._values, cached)
            tokens.append(self._token.item())
            self._position += 1
            if tokens[-1] == self._end_of_text or self._position == self._model.context:
                self._start()
        return {"ms": 1e3 * (time.perf_counter() - started), "tokens": tokens}


JOBS = {"train": Training, "decode": Decoding}
"""A request {"open": job, "as": name, ...arguments} makes a job, {"run": name, "count": n} goes on with it,
{"close": name} drops it."""


def answer(request: dict[str, Any], jobs: dict[str, Training | Decoding]) -> dict[str, Any]:
    if "open" in request:
        kind, name = JOBS[request.pop("open")], request.pop("as")
        jobs[name] = kind(**request)
    elif "close" in request:
        del jobs[request["close"]]
    else:
        return jobs[request["run"]].run(request["count"])
    return {"torch": torch.__version__}


def main() -> None:
    torch.set_flush_denormal(True)
    jobs: dict[str, Training | Decoding] = {}
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), jobs)), flush=True)


if __name__ == "__main__":
    main()
