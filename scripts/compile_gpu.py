#!/usr/bin/env python3
"""Compiles the kernel for a GPU without having one, and reads the assembler's report.

    scripts/compile_gpu.py [--arch 90a] [--variant NAME | --products] [--nvcc PATH] [--disassembler PATH] [--keep FILE]

Without --variant each that the architecture runs, in processes of their own. Prints registers, stack and spills of the
entry and, apart from it, the called functions that spill most. Fails when the entry spills registers, when the
assembler says that it ignored a request for registers or serialised matrix instructions (C75xx) or that it cannot tell
the size of the stack (recursion), or on an error. Where there is a disassembler (cuobjdump), it also fails when the
Hopper entry lacks matrix instructions or requests for registers, or when a loop around matrix instructions reads or
writes local memory. --products compiles a Hopper kernel for each kind of product alone: where the entry is unfit, the
one at fault stands out.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui.engine import cuda_compiler, cuda_maps
from ofa_tui.engine.cuda_compiler import Variant
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
    if "cannot be statically determined" in text:
        found.append("the size of the stack is not known: a function calls itself, or one through a pointer")
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


def find_disassembler(nvcc: str) -> str | None:
    """cuobjdump on the PATH or beside nvcc."""
    place = Path(shutil.which(nvcc) or nvcc).resolve().parent
    return shutil.which("cuobjdump") or shutil.which("cuobjdump", path=str(place))


def disassemble(disassembler: str, code: bytes) -> str:
    """The entry's instructions. Raises OfaError where the disassembler fails."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        try:
            done = subprocess.run([disassembler, "-sass", "-fun", ENTRY, file.name], capture_output=True, text=True)
        except OSError as error:
            raise OfaError(f"{disassembler} cannot be started: {error.strerror or error}") from error
    if done.returncode != 0:
        raise OfaError(f"{disassembler} cannot read the cubin: {done.stderr.strip() or 'it says nothing'}")
    return done.stdout


def read_instructions(sass: str) -> dict[int, str]:
    """Instructions by their addresses."""
    return {int(at, 16): text for at, text in re.findall(r"/\*([0-9a-f]{4,})\*/\s+(\S.*?)\s*;", sass)}


def loops_around(instructions: dict[int, str], places: list[int]) -> list[range]:
    """The innermost loop that each place is part of, in order, each once: addresses, the last instruction included."""
    branches = {at: re.search(r"\bBRA\b.*\b0x([0-9a-f]+)", text) for at, text in instructions.items()}
    loops = [range(int(to[1], 16), at + 1) for at, to in branches.items() if to and int(to[1], 16) <= at]
    innermost = (min((loop for loop in loops if place in loop), key=len, default=range(0)) for place in places)
    return sorted(set(innermost), key=lambda loop: loop.start)


def sass_faults(sass: str, variant: Variant) -> list[str]:
    """What the instructions of the entry lack, or have where it costs time, as sentences."""
    if variant.capability is None:
        return []
    instructions = read_instructions(sass)
    products = [at for at, text in instructions.items() if "HGMMA" in text]
    found = [] if products else [f"{ENTRY} has no matrix instructions (HGMMA)"]
    requests = " ".join(text for text in instructions.values() if "USETMAXREG" in text)
    if "ALLOC" not in requests.replace("DEALLOC", "") or "DEALLOC" not in requests:
        found.append(f"{ENTRY} does not give registers from one warpgroup to the others (USETMAXREG)")
    for loop in loops_around(instructions, products):
        local = [at for at in loop if re.search(r"\b(LDL|STL)\b", instructions.get(at, ""))]
        if local:
            found.append(f"the loop of matrix instructions at {loop.start:#x} uses local memory at {local[0]:#x}")
    return found


def product_alone(name: str) -> Variant:
    """A Hopper kernel that takes every task for this kind of product, and calls nothing but its second half."""
    hopper = cuda_compiler.VARIANTS["sm90"]
    return replace(hopper, name=name, defines=(*hopper.defines, f"OFA_ONLY_PRODUCT=OPCODE_{name.upper()}"))


def compile_products(architecture: str, nvcc: str) -> int:
    """Every kind of product alone. What the assembler says of one is no fault: only of the kernel it is."""
    print(f"products alone, sm_{architecture}")
    for name in cuda_maps.USES:
        report = cuda_compiler.cubin_for(product_alone(name), architecture, nvcc=nvcc).report
        entry = next(function for function in read_report(report) if function.name == ENTRY)
        notes = "".join(f", {note}" for note in sorted(set(re.findall(r"\bC75\d\d\b", report))))
        print(f"    {name:18} {entry.registers} registers, {entry.spill_bytes} bytes of spills{notes}")
    return 0


def compile_each(choices: list[list[str]], arguments: list[str]) -> int:
    """A process for each choice of options, all at once; what they print comes one after the other."""
    processes = [
        subprocess.Popen([sys.executable, __file__, *arguments, *choice],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for choice in choices
    ]
    for process in processes:
        out, error = process.communicate()
        sys.stdout.write(out)
        sys.stdout.flush()
        sys.stderr.write(error)
    return max(process.returncode for process in processes)


def runs_on(variant: Variant, architecture: str) -> bool:
    """Whether the variant can be compiled for an architecture, like `90a`."""
    number = int(architecture.rstrip("af"))
    return variant.runs_on((number // 10, number % 10)) and (variant.capability is None or architecture.endswith("a"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--arch", default="90a", help="GPU architecture (default: 90a)")
    parser.add_argument("--nvcc", default=cuda_compiler.find_nvcc(), help="CUDA compiler (default: the one on PATH)")
    parser.add_argument("--disassembler", help="cuobjdump (default: the one on PATH or beside nvcc)")
    parser.add_argument("--variant", choices=[v.name for v in cuda_compiler.VARIANTS.values()],
                        help="which form of the kernel (default: each; with --keep sm90)")
    parser.add_argument("--products", action="store_true", help="each kind of product alone, to see which one spills")
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
    name = options.variant or ("sm90" if options.keep else None)
    known = cuda_compiler.VARIANTS.values()
    variants = [v for v in known if v.name == name or (not name and runs_on(v, options.arch))]
    if len(variants) > 1 and not options.products:
        choices = [["--variant", variant.name] for variant in variants]
        if cuda_compiler.VARIANTS["sm90"] in variants:
            choices.append(["--products"])
        return compile_each(choices, sys.argv[1:])
    variant = variants[0]
    disassembler = options.disassembler or find_disassembler(options.nvcc)
    try:
        if options.products:
            return compile_products(options.arch, options.nvcc)
        cubin = cuda_compiler.cubin_for(variant, options.arch, nvcc=options.nvcc)
        found = faults(cubin.report)
        if disassembler:
            found += sass_faults(disassemble(disassembler, cubin.code), variant)
        if options.keep:
            options.keep.write_bytes(cubin.code)
            options.keep.with_suffix(".txt").write_text(cubin.report)
    except OfaError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{variant.name}, sm_{options.arch}")
    print(summary(cubin.report))
    if not disassembler:
        print("no cuobjdump was found: the instructions were not looked at")
    for fault in found:
        print(f"unfit: {variant.name}: {fault}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
