"""What our parameters are called in a checkpoint: GPT-2's names, matrices [out, in] as torch.nn.Linear has them."""

from __future__ import annotations

EXP_AVG, EXP_AVG_SQ = "optimizer.exp_avg.", "optimizer.exp_avg_sq."
"""Before a parameter's name: AdamW's first and second moment, under the names that PyTorch has for them."""
_OUTER = {"embed": "transformer.wte.weight", "norm": "transformer.ln_f.weight", "head": "lm_head.weight"}
_OF_LAYER = {
    "norm1": "ln_1.weight", "qkv": "attn.c_attn.weight", "proj": "attn.c_proj.weight",
    "norm2": "ln_2.weight", "fc1": "mlp.c_fc.weight", "fc2": "mlp.c_proj.weight",
}  # fmt: skip


def tensor_name(parameter: str) -> str:
    """Of one of program.graph's parameters, such as "layers.3.qkv"."""
    if parameter in _OUTER:
        return _OUTER[parameter]
    _, layer, part = parameter.split(".")
    return f"transformer.h.{layer}.{_OF_LAYER[part]}"


def serving_name(stream: int, name: str) -> str:
    """Of what a checkpoint says of a stream: "tokens", "versions", "prompt"."""
    return f"serving.{stream}.{name}"


def cache_name(stream: int, layer: int, which: str) -> str:
    """`which`: "key" or "value"."""
    return serving_name(stream, f"h.{layer}.{which}_cache")
