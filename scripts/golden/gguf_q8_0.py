"""Writes policy/gguf/testdata/q8_0.json: blocks of Q8_0 by the gguf package's quantiser, values and bytes in hexadecimal.

    python3 scripts/golden/gguf_q8_0.py
"""
import json
from importlib.metadata import version

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import quantize

rng = np.random.default_rng(1)
halves = np.arange(-15.5, 16.5, dtype=np.float32)  # with 127 as the largest each is half way between two codes
halves[0] = 127
rows = [
    np.zeros(32),
    halves,
    -halves / 127,
    np.where(np.arange(32) == 7, -3e-5, 0),
    np.linspace(-1e-7, 1e-7, 32),  # d is below float16's smallest, the codes are not 0
    rng.standard_normal(32) * 8e6,  # d is near float16's largest
    *(rng.standard_normal((24, 32)) * np.exp2(rng.integers(-20, 10, (24, 1)))),
]
blocks = []
for row in rows:
    row = row.astype(np.float32)
    if np.abs(row).max() / 127 > 65504:
        row *= np.float32(65504 * 127) / np.abs(row).max()
    data = quantize(row[None], GGMLQuantizationType.Q8_0)
    blocks.append({"values": row.astype("<f4").tobytes().hex(), "bytes": data.tobytes().hex()})
with open("policy/gguf/testdata/q8_0.json", "w") as f:
    json.dump({"gguf": version("gguf"), "blocks": blocks}, f, indent=1)
    f.write("\n")
