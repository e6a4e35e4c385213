"""Writes policy/token/testdata/peer.jsonl.gz: what Hugging Face tokenizers and transformers make of odd tokenizers, of
text that is hard to normalise and of chat templates that lean on Python.

usage: python scripts/token-golden.py     (needs tokenizers==0.23.3, transformers==5.24.0, jinja2==3.1.6)
"""
import copy
import gzip
import json
import pathlib
import random
import unicodedata

from tokenizers import Tokenizer, normalizers
from transformers.utils.chat_template_utils import _compile_jinja_template

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = ROOT / "policy/token/testdata"
RNG = random.Random(11)

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASED = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTION}"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
MARKED = r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def steps(*parts, prefix=False, regex=False):
    last = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": False, "use_regex": regex}
    return {"type": "Sequence", "pretokenizers": [*parts, last]}


def added(id, content, **flags):
    base = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    return {"id": id, "content": content, **base, **flags}


def without(file, tokens):
    """file without some tokens of one byte and what merges make of them, ids closed up."""
    model = file["model"]
    model["vocab"] = {t: i for i, t in enumerate(t for t in model["vocab"] if not any(c in t for c in tokens))}
    model["merges"] = [m for m in model["merges"] if not any(c in "".join(m) for c in tokens)]
    for i, t in enumerate(file["added_tokens"]):
        t["id"] = len(model["vocab"]) + i


def variants():
    base = json.loads((ROOT / "internal/golden/testdata/models/qwen2/tokenizer.json").read_text())
    size = 1000

    def variant(name, change):
        file = copy.deepcopy(base)
        change(file)
        return name, file

    yield variant("pattern by case", lambda f: f.update(pre_tokenizer=steps(split(CASED))))
    yield variant("three patterns", lambda f: f.update(pre_tokenizer=steps(
        split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(MARKED))))
    yield variant("removed", lambda f: f.update(pre_tokenizer=steps(split(r"\s+", "Removed"))))
    yield variant("removed, inverted", lambda f: f.update(pre_tokenizer=steps(split(r"\p{L}+|\p{N}", "Removed", True))))
    yield variant("literal", lambda f: f.update(pre_tokenizer=steps(split("e.", kind="String"), split(" ", kind="String"))))
    yield variant("runs of digits", lambda f: f.update(
        normalizer=None, pre_tokenizer=steps({"type": "Digits", "individual_digits": False}, regex=True)))
    yield variant("space before", lambda f: f.update(pre_tokenizer=steps(prefix=True, regex=True)))
    yield variant("whole words", lambda f: f["model"].update(ignore_merges=True))
    yield variant("bytes dropped", lambda f: without(f, "eÃ"))
    yield variant("bytes unknown", lambda f: (without(f, "eÃ"), f["model"].update(unk_token="!")))
    yield variant("bytes unknown, fused", lambda f: (without(f, "eÃ"), f["model"].update(unk_token="!", fuse_unk=True)))
    yield variant("framed", lambda f: f.update(post_processor={
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                   {"SpecialToken": {"id": "<|im_end|>", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]} for t, i in (("<|im_start|>", 998), ("<|im_end|>", 999))}}))
    yield variant("added tokens", lambda f: f["added_tokens"].extend([
        added(size, "<a>"), added(size + 1, "<a>b"), added(size + 2, "word", single_word=True),
        added(size + 3, "<l>", lstrip=True), added(size + 4, "<r>", rstrip=True, special=True),
        added(size + 5, "caf\u00e9", normalized=True), added(size + 6, "\u00e9t\u00e9"), added(size + 7, "  "),
        added(size + 8, "<b", lstrip=True, rstrip=True)]))


def texts():
    rows = [json.loads(line) for line in gzip.open(DATA / "tokenizer_hard_strings.jsonl.gz", "rt", encoding="utf-8")]
    for category in sorted({r["category"] for r in rows}):
        group = [r["text"] for r in rows if r["category"] == category and len(r["text"]) < 200]
        yield from RNG.sample(group, min(12, len(group)))
    yield from ("<a>b<a>c<a", "word words sword word, a word", " \n<l>  <r> \t x<r>", "cafe\u0301 caf\u00e9 \u00e9t\u00e9 e\u0301te\u0301",
                "a    b  <l>", "<|im_start|>  <l><r>  <|im_end|>", "\u00e9e e\u00c3e", "x <b  <b\n<b", "wordé éword word\u0301", "")


def tokenizers():
    sample = list(texts())
    for name, file in variants():
        t = Tokenizer.from_str(json.dumps(file))
        rows = []
        for s in sample:
            ids = t.encode(s, add_special_tokens=False).ids
            rows.append({"text": s, "ids": ids, "special": t.encode(s).ids, "decoded": t.decode(ids),
                         "raw": t.decode(ids, skip_special_tokens=False)})
        yield {"kind": "tokenizer", "name": name, "file": file, "rows": rows}


def normal_forms():
    nfc = normalizers.NFC().normalize_str
    marks = [c for c in range(0x300, 0x1E950) if unicodedata.combining(chr(c))]
    parts = [c for c in range(0xA0, 0x30000) if not 0xD800 <= c <= 0xDFFF and unicodedata.decomposition(chr(c))]
    odd = [0x898, 0x1ABF, 0x1DF6, 0x1E130, 0x11935, 0x11930, 0x11938, 0x9FE, 0x16FF0, 0x344, 0x958, 0xFB1D, 0x2ADC]

    def character():
        x = RNG.random()
        if x < 0.3:
            return chr(RNG.choice(marks))
        if x < 0.5:
            return unicodedata.normalize("NFD", chr(RNG.choice(parts)))
        if x < 0.65:
            return chr(RNG.choice(parts))
        if x < 0.75:
            return chr(RNG.randint(0x300, 0x36F))
        if x < 0.85:
            return RNG.choice("aeiouAEqx ")
        if x < 0.9:
            return chr(RNG.choice(odd))
        if x < 0.95:
            return chr(RNG.randint(0x1100, 0x11FF))
        return chr(RNG.choice([RNG.randint(0xAC00, 0xD7A3), RNG.randint(0x20, 0xD7FF), RNG.randint(0xE000, 0x10FFFF)]))

    rows = []
    for i in range(5000):
        s = "".join(character() for _ in range(RNG.randint(1, 12))) + ("\u0301" * RNG.randint(25, 80) if i % 50 == 0 else "")
        rows.append({"text": s, "decoded": nfc(s)})
    return {"kind": "nfc", "rows": rows}


TEMPLATES = [
    "{{ messages[-1].role }}{{ messages[-2].content }}{{ messages[0]['content'][0] }}{{ (messages | last).role }}",
    "{{ messages[0].content.strip() }}|{{ messages[0].content.lstrip() }}|{{ messages[0].content.rstrip('!\\n ') }}|",
    "{% for w in messages[0].content.split() %}[{{ w }}]{% endfor %}{{ 'a-b-c'.split('-', 1)[1] }}{{ 'a-b-c'.rsplit('-', 1)[0] }}",
    "{{ 'a\\nb\\r\\nc'.splitlines() | length }}{{ 'abcabc'.replace('b', 'x') }}{{ 'abcabc'.replace('b', 'x', 1) }}",
    "{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'bc')) }}{{ 'abc'.removeprefix('a') }}{{ 'abc'.removesuffix('c') }}",
    "{{ ', '.join(['a', 'b']) }}{{ 'abc'.upper() }}{{ 'ABC'.lower() }}{{ 'abc'.find('c') }}{{ 'a' in 'abc' }}{{ 'abc'.title() }}",
    "{% if messages[0].content.strip() == 'Hello!  World' %}same{% else %}differs{% endif %}",
    "{% for k, v in tool.items() %}{{ k }}:{{ v }};{% endfor %}{{ tool.keys() | list }}{{ tool.get('nope', 'd') }}{{ tool.get('z') }}",
    "{% for k, v in tool | items %}{{ k }}={{ v }} {% endfor %}{{ 'z' in tool }}{{ tool is mapping }}{{ tool.inner is sequence }}",
    "{{ tool | tojson }}\n{{ tool | tojson(indent=2) }}\n{{ tool | tojson(ensure_ascii=True) }}{{ tool | tojson(separators=(',', ':')) }}",
    "{% set ns = namespace(n=0, found=false) %}{% for m in messages[::-1] %}{% set ns.n = ns.n + loop.index %}{% if m.role == 'user' "
    "and not ns.found %}{% set ns.found = true %}{{ loop.index0 }}{% endif %}{% endfor %}{{ ns.n }}{{ ns.found }}",
    "{% macro show(m, upper=false) %}<{{ m.content | trim | upper if upper else m.content | trim }}>{% endmacro %}{{ show(messages[0]) }}"
    "{{ show(messages[1], upper=true) }}",
    "{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(5, 1, -2) %}{{ i }}{% endfor %}{{ range(4) | list }}",
    "{%- for m in messages %}\n    {%- if loop.first %}\n        {{- 'F' }}\n    {%- endif %}\n    {{- m.role }}\n{%- endfor %}\n",
    "  {% if true %}\n  x\n  {% endif %}\n{# note #}\n  y {%- if false %} z {% endif %}\n\n",
    "{% generation %}{{ messages[1].content }}{% endgeneration %}{{ messages | map(attribute='role') | join('/') }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ messages | rejectattr('role', 'equalto', 'user') | list | length }}",
    "{{ 3 // 2 }}{{ -3 + 1 }}{{ 7 % 3 }}{{ 1.5 * 2 }}{{ 2 == 2.0 }}{{ 'b' > 'a' }}{{ 1 < 2 <= 2 }}{{ not none }}{{ 10 / 4 }}",
    "{% if tools %}T{% endif %}{% if tools is defined %}D{% endif %}{{ x is defined }}{{ x | default('dflt') }}{{ '' or 'e' }}",
    "{% set first, second = 'a', 'b' %}{{ first }}{{ second }}",
    "{% set x %}block{% endset %}{{ x }}{% with y = 2 %}{{ y }}{% endwith %}{{ 'yes' if y is defined else 'no' }}",
    "{% for m in messages if m.role != 'system' %}{{ loop.index }}{{ m.role }}{% if not loop.last %},{% endif %}{% else %}none{% endfor %}",
    "{% for m in messages %}{% if loop.index0 == 1 %}{% continue %}{% endif %}{{ m.role }}{% if loop.index0 == 2 %}{% break %}{% endif %}{% endfor %}",
    "{{ tool.big }}{{ tool.small }}{{ tool.f }}{{ tool.e }}{{ tool.inner }}{{ tool.t }}",
    "{{ messages[0].content | trim | length }}{{ 'héllo' | length }}{{ messages | length }}{{ tool | length }}{{ 'a b' | replace(' ', '_') }}",
    "{{ '%s:%d' | format('a', 1) }}{{ 'abc' | first }}{{ [1, 2, 3] | last }}{{ [3, 1, 2] | sort | join(',') }}{{ ['a'] + ['b'] }}",
    "{{ raise_exception('no ' + messages[0].role) }}",
    "{{ 'x' * 3 }}{{ 'abcdef'[1:3] }}{{ 'abcdef'[:-1] }}{{ 'abcdef'[-2:] }}{{ messages[1:] | length }}{{ messages[:-1] | length }}",
    "{{ messages[0]['nope'] is defined }}{{ messages[0].content is string }}{{ 1 is number }}{{ tool.t is true }}",
    "{{ messages[0].nope is none }}",
    "{% raw %}a{{% endraw %}b{ {%- raw %} c\n  {% endraw %}\n d",
    "{{- '<|im_start|>' + messages[0].role + '\\n' -}}\n  {{- messages[0].content | trim }}{{ '<|im_end|>\\n' }}\n{%- if add_generation_prompt %}{{ 'P' }}{% endif -%}  \n",
]


def spacing():
    """Templates of random pieces around white space."""
    tags = ["{{ 'v' }}", "{{- 'v' }}", "{{ 'v' -}}", "{% if true %}", "{%- if true %}", "{% if true -%}", "{%+ if true %}",
            "{% if true +%}", "{# c #}", "{#- c -#}", "{# c +#}", "{% raw %}{{ x }}{% endraw %}", "{% raw -%} {% a {%- endraw %}",
            "{{ {'a': {'b': '}}'}}['a']['b'] }}", "{{ '%}' }}", "{% set q = '%}' %}"]
    gaps = ["", " ", "  ", "\n", "\n\n", " \n", "\n ", " \n  ", "x", " x ", "x\n", "\t", "\r\n", "\u00a0", "{ ", "}"]
    for _ in range(600):
        opened, parts = 0, []
        for _ in range(RNG.randint(1, 5)):
            tag = RNG.choice(tags)
            opened += " if true" in tag
            parts += [RNG.choice(gaps), tag]
        for _ in range(opened):
            parts += [RNG.choice(gaps), RNG.choice(["{% endif %}", "{%- endif %}", "{% endif -%}", "{%+ endif %}", "{% endif +%}"])]
        yield "".join(parts) + RNG.choice(gaps)


def chats():
    variables = {
        "messages": [{"role": "user", "content": "  Hello!  World\n"}, {"role": "assistant", "content": "Yes é"},
                     {"role": "user", "content": "x"}],
        "tool": {"z": 1, "a": "q\"'<é>\n", "inner": [1, 2.5, None, True, "s"], "big": 12345678901234567890, "small": 1e-7, "f": 2.0,
                 "e": 1e22, "t": True, "d": {"y": {}, "x": []}},
        "add_generation_prompt": True,
    }
    rows = []
    for source in (*TEMPLATES, *spacing()):
        try:
            want = _compile_jinja_template(source).render(**variables)
        except Exception as e:  # the message is for who reads the file
            want = None
            print("error:", source[:60], e)
        rows.append({"text": source, "decoded": want})
    return {"kind": "chat", "variables": variables, "rows": rows}


def main():
    with gzip.GzipFile(DATA / "peer.jsonl.gz", "wb", mtime=0) as out:
        for record in (*tokenizers(), normal_forms(), chats()):
            out.write((json.dumps(record, ensure_ascii=False) + "\n").encode())


main()
