#!/usr/bin/env python3
"""emulate.py KERNELS PTX OUT [FILE ...]: makes C++ for g++ of CUDA's kernels in the folder KERNELS, all or those of FILEs.

Inline assembly becomes a call of a function of instructions.h with the instruction's name, dynamic shared memory a pointer, and
each kernel is registered under its file and name, which are those of the file's PTX. In C++ it is called kernel_NAME, because
it may share NAME with a function."""
import gzip
import pathlib
import re
import sys

ASM = re.compile(r'\basm\s*(?:volatile)?\s*\(\s*"([^"]*)"(.*?)\)\s*;', re.S)
OPERAND = re.compile(r'"[^"]*"\s*\(')
SHARED = re.compile(r"extern\s+__shared__\s+(?:__align__\(\d+\)\s+)?(\w+)\s+(\w+)\[\]\s*;")
KERNEL = re.compile(r"\b((?:ROW_)?KERNEL(?:\s+__launch_bounds__\([^)]*\))?[\s\\]+)([\w#]+\(.*)$", re.M)


def operands(text):
    """The expressions in parentheses behind constraints, in their order."""
    found, at = [], 0
    while start := OPERAND.search(text, at):
        depth, at = 1, start.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        found.append(text[start.end() : at - 1])
    return ", ".join(found)


def instruction(m):
    name = re.sub(r"\W", "_", m[1].split(";")[0].split()[0])
    return f"emu::{name}({operands(m[2])});"


def kernel(m):
    paste = "##" if m[0].endswith("\\") else ""  # in a macro, NAME may be made of its arguments
    return f"{m[1]}kernel_{paste}{m[2]}"


def main(kernels, ptx, out, *files):
    for file in sorted(kernels.glob("*.cu*")):
        text = SHARED.sub(r"\1* \2 = (\1*)emu::block.shared;", ASM.sub(instruction, file.read_text()))
        text = text.replace('extern "C" __global__', "static __global__")
        if file.suffix == ".cuh":
            (out / file.name).write_text(text)
        elif not files or file.stem in files:
            text = KERNEL.sub(kernel, text)
            for name in re.findall(r"\.entry (\w+)\(", gzip.open(ptx / f"{file.stem}.ptx.gz", "rt").read()):
                text += f'static emu::Kernel<kernel_{name}> add_{name}("{file.stem}", "{name}");\n'
            (out / f"kernels_{file.stem}.cpp").write_text(text)


main(*map(pathlib.Path, sys.argv[1:4]), *sys.argv[4:])
