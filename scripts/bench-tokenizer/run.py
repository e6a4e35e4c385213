"""Compares the speed of policy/token with Hugging Face tokenizers: processor time of one thread, in one run.

usage: RAYON_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false python scripts/bench-tokenizer/run.py TOKENIZERS_DIR [NAME...]

TOKENIZERS_DIR is what scripts/fetch-tokenizers.sh filled. Needs tokenizers==0.23.3 and go; run.sh sees to both.
Exits 1 if ids differ or a ratio is below what is promised: 10 on English and code, 3 on multilingual text, 1 on all.
"""
import gzip
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time
import zlib

from tokenizers import Tokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
WANT = {"english": 10, "code": 10, "multilingual": 3}


def documents(paths, size, limit):
    """Texts of about size characters from files, limit characters in all."""
    out, total = [], 0
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        for i in range(0, len(text), size):
            if total >= limit:
                return out
            out.append(text[i : i + size])
            total += len(out[-1])
    return out


def corpora():
    goroot = pathlib.Path(subprocess.check_output(["go", "env", "GOROOT"], text=True).strip())
    rng = random.Random(7)
    prose = sorted((goroot / "doc").rglob("*.html")) + sorted(goroot.rglob("README*")) + sorted(ROOT.rglob("*.md"))
    modules = pathlib.Path(subprocess.check_output(["go", "env", "GOMODCACHE"], text=True).strip())
    yield "english", documents(prose + sorted(modules.rglob("*.md")), 4000, 2_000_000)
    yield "code", documents(sorted((goroot / "src").rglob("*.go"))[::7], 4000, 4_000_000)
    by_category = {}
    with gzip.open(ROOT / "policy/token/testdata/tokenizer_hard_strings.jsonl.gz", "rt", encoding="utf-8") as f:
        for line in f:
            row = json.loads(line)
            by_category.setdefault(row["category"], []).append(row["text"])
    many = [t for c in ("cjk", "rtl", "indic_etc", "emoji", "combining") for t in by_category[c]]
    yield "multilingual", [" ".join(rng.choices(many, k=12)) for _ in range(400)]
    yield "vocabulary", by_category["vocab_join"]
    yield "random unicode", by_category["random_unicode"] + by_category["new_unicode"]
    yield "random ascii", by_category["random_ascii"]
    yield "white space", by_category["whitespace"] + by_category["control"]
    yield "repeats", by_category["repeat"]
    yield "special tokens", by_category["special"] * 10
    letters = "abcdefghijklmnopqrstuvwxyz"
    yield "one letter x 1M", ["a" * 1_000_000]
    yield "one word of 1M", ["".join(rng.choices(letters, k=1_000_000))]
    yield "1M spaces", [" " * 1_000_000]
    yield "1M digits", ["".join(rng.choices("0123456789", k=1_000_000))]
    yield "1M CJK", ["".join(chr(rng.randint(0x4E00, 0x9FA5)) for _ in range(350_000))]
    yield "1M decomposed", ["".join("e" + chr(rng.randint(0x300, 0x333)) for _ in range(350_000))]


def peer(tokenizer, texts):
    """First and best processor time, number and a checksum of the ids. encode_batch_fast computes no offsets, as we do not."""
    best, first = float("inf"), None
    start_all = time.perf_counter()
    while best == float("inf") or time.perf_counter() - start_all < 6:
        start = time.process_time()
        out = [tokenizer.encode_batch_fast([t], add_special_tokens=False)[0] for t in texts]
        took = time.process_time() - start
        first, best = first or took, min(best, took)
    crc, n = 0, 0
    for e in out:
        ids = e.ids
        n += len(ids)
        crc = zlib.crc32(struct.pack(f"<{len(ids)}i", *ids), crc)
    return first, best, n, crc


def main():
    root, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or ["qwen3", "llama3", "smollm2"]
    texts = dict(corpora())
    failed = False
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        subprocess.run(["go", "build", "-o", tmp / "bench", "./scripts/bench-tokenizer"], cwd=ROOT, check=True)
        with open(tmp / "corpora.jsonl", "w", encoding="utf-8") as f:
            for name, t in texts.items():
                f.write(json.dumps({"Name": name, "Texts": t}) + "\n")
        for name in names:
            print(f"\n{name:18} {'MB':>6} {'ours MB/s':>10} {'first':>7} {'decode':>7} {'HF MB/s':>8} {'first':>7} {'ratio':>7} {'first':>7}")
            out = subprocess.check_output([tmp / "bench", root / name, tmp / "corpora.jsonl"], text=True)
            tokenizer = Tokenizer.from_file(str(root / name / "tokenizer.json"))
            for r in map(json.loads, out.splitlines()):
                mb = sum(len(t.encode()) for t in texts[r["Name"]]) / 1e6
                first, best, n, crc = peer(tokenizer, texts[r["Name"]])
                same = (n, crc) == (r["Tokens"], r["Checksum"])
                ratio, cold = best / r["Best"], first / r["First"]
                bad = not same or ratio < WANT.get(r["Name"], 1)
                failed |= bad
                print(f"{r['Name']:18} {mb:6.2f} {mb / r['Best']:10.1f} {mb / r['First']:7.1f} {mb / r['Decode']:7.0f} "
                      f"{mb / best:8.2f} {mb / first:7.2f} {ratio:7.1f} {cold:7.1f}"
                      + ("" if same else "  IDS DIFFER") + ("  TOO SLOW" if bad and same else ""), flush=True)
    sys.exit(failed)


main()
