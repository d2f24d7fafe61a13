#!/usr/bin/env python3
"""Compiles the kernel for a GPU without having one, and reads the assembler's report.

    scripts/compile_gpu.py [--arch 90a] [--variant portable|sm90|sm80] [--nvcc PATH] [--keep FILE]

Prints registers, stack and spills of the entry and, apart from it, the called functions that spill most. Fails when
the entry spills registers, when the assembler says that it ignored a request for registers or serialised matrix
instructions (C75xx), or on an error.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui import abi_header, locations
from ofa_tui.engine import compiler, cuda_compiler
from ofa_tui.errors import OfaError

ENTRY = "megakernel"


@dataclass(frozen=True)
class FunctionReport:
    """What ptxas says of one function; `registers` only of an entry."""

    name: str
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    registers: int | None = None

    @property
    def spill_bytes(self) -> int:
        return self.spill_store_bytes + self.spill_load_bytes


def read_report(text: str) -> list[FunctionReport]:
    """The functions of an `-Xptxas -v` report."""
    properties = re.compile(
        r"Function properties for (\S+)\s+(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
        r"(?:\s*ptxas info\s*: Used (\d+) registers)?"
    )
    return [
        FunctionReport(name, int(stack), int(stores), int(loads), int(registers) if registers else None)
        for name, stack, stores, loads, registers in properties.findall(text)
    ]


def faults(text: str) -> list[str]:
    """What makes a build unfit, as sentences."""
    found = [line.strip() for line in text.splitlines() if re.search(r"\bC75\d\d\b", line)]
    entries = [function for function in read_report(text) if function.name == ENTRY]
    if not entries:
        found.append(f"the report does not mention the entry {ENTRY}")
    for entry in entries:
        if entry.spill_store_bytes or entry.spill_load_bytes:
            found.append(
                f"{ENTRY} spills registers: {entry.spill_store_bytes} bytes stored, "
                f"{entry.spill_load_bytes} bytes loaded"
            )
    return found


def short_name(name: str) -> str:
    """`ofa::op_norm` of `_ZN3ofa7op_normERN...`, without parameters; other names as they are."""
    match = re.match(r"_ZNK?(?=\d)", name)
    if not match:
        return name
    rest = name[match.end() :]
    parts: list[str] = []
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        parts.append(rest[length.end() : end])
        rest = rest[end:]
    return "::".join(parts)


def summary(text: str, worst: int = 10) -> str:
    """The entry, and apart from it the called functions that spill most.

    The assembler lays the stack frames of called functions out in the entry's, so that only the entry's has a size;
    in a called function saved registers count as spills.
    """
    functions = read_report(text)
    lines = [
        f"{function.name}: {function.registers} registers, {function.stack_bytes} bytes of stack with all it calls, "
        f"{function.spill_bytes} bytes of spills"
        for function in functions
        if function.name == ENTRY
    ]
    called = [function for function in functions if function.name != ENTRY]
    spilling = sorted((function for function in called if function.spill_bytes), key=lambda f: -f.spill_bytes)
    lines.append(f"{len(called)} called functions, {len(spilling)} of them save or spill registers")
    lines += [f"    {function.spill_bytes:5} bytes  {short_name(function.name)}" for function in spilling[:worst]]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--arch", default="90a", help="GPU architecture (default: 90a)")
    parser.add_argument("--nvcc", default=cuda_compiler.find_nvcc(), help="CUDA compiler (default: the one on PATH)")
    parser.add_argument("--variant", choices=[v.name for v in cuda_compiler.VARIANTS.values()], default="sm90",
                        help="which form of the kernel (default: sm90)")
    parser.add_argument("--keep", type=Path, help="where to put the cubin; its report goes beside it as .txt")
    options = parser.parse_args()
    if not options.nvcc:
        print("no nvcc was found; install the CUDA toolkit or give --nvcc PATH", file=sys.stderr)
        return 2
    if not shutil.which(options.nvcc):
        print(f"{options.nvcc} cannot be run; name a CUDA compiler with --nvcc", file=sys.stderr)
        return 2
    if options.keep and (options.keep.is_dir() or not options.keep.parent.is_dir()):
        print(f"the cubin cannot be kept as {options.keep}; give --keep a file in a folder that exists",
              file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        abi_header.write_headers(work / "generated")
        cubin = work / "megakernel.cubin"
        variant = next(v for v in cuda_compiler.VARIANTS.values() if v.name == options.variant)
        (work / "kernel.cu").write_text(variant.text)
        include = [locations.cuda_sources(), work / "generated"]
        arguments = cuda_compiler.nvcc_arguments(
            options.nvcc, variant, options.arch, include, "kernel.cu", cubin.name
        )
        try:
            text = compiler.run_compiler(arguments, work)
        except OfaError as error:
            print(error, file=sys.stderr)
            return 1
        if options.keep:
            shutil.copy(cubin, options.keep)
            options.keep.with_suffix(".txt").write_text(text)
    print(summary(text))
    found = faults(text)
    for fault in found:
        print(f"unfit: {fault}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
