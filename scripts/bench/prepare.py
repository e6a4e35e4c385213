"""prepare.py GGUF HF OUT: the files that all sides of the benchmark read.

GGUF is SmolLM2-135M-Instruct as fetched, HF the folder that rubicon imported from it. OUT gets
  hf/           the model with bfloat16 weights, and without end-of-sequence tokens, so that every completion is of full length
  BF16.gguf ... the same weights in llama.cpp's formats
  data.json     prompts of 128 tokens as text and ids, and sequences of 192 ids
  adapter/      an adapter that changes the model: both factors of every part random
  truth.f64     log-probabilities of the last 64 tokens of each sequence and the adapter's gradient of their negative mean,
  truth.json    in float64, and where each tensor begins
"""
import json
import pathlib
import random
import shutil
import sys

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize, quantize
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

PROMPTS, PROMPT, SEQUENCES, LENGTH, SCORED = 8, 128, 8, 192, 64


def make_folder(source, out):
    out.mkdir(parents=True, exist_ok=True)
    weights = {n: w.to(torch.bfloat16) for n, w in load_file(source / "model.safetensors").items()}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    config.pop("dtype", None)
    (out / "config.json").write_text(json.dumps(config | {"eos_token_id": None, "torch_dtype": "bfloat16"}, indent=1))
    (out / "generation_config.json").write_text("{}")
    tokenizer = json.loads((source / "tokenizer_config.json").read_text())
    tokenizer.pop("eos_token", None)
    (out / "tokenizer_config.json").write_text(json.dumps(tokenizer, indent=1))
    shutil.copy(source / "tokenizer.json", out)


def make_gguf(source, out):
    bf16 = GGMLQuantizationType.BF16
    reader, writer = GGUFReader(source), GGUFWriter(out, "llama")
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        if key == "general.file_type":
            writer.add_uint32(key, 32)  # llama.cpp's number of a file in bfloat16
        elif field.types[0] == GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), field.types[0])
    for tensor in reader.tensors:
        exact = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        rounded = torch.from_numpy(exact).to(torch.bfloat16).float().numpy()  # as in the folder
        if rounded.ndim == 1:
            writer.add_tensor(tensor.name, rounded)
        else:
            writer.add_tensor(tensor.name, quantize(rounded, bf16), raw_dtype=bf16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_data(tokenizer, out):
    rng = random.Random(0)
    words = sorted(t for t in tokenizer.get_vocab() if t.isascii() and t.isalpha() and 2 < len(t) < 8)

    def ids(text):
        return tokenizer.encode(text, add_special_tokens=False).ids

    def text(length):
        """Random words that are so many tokens, in one piece and in tokens alike."""
        while True:
            joined = " ".join(rng.choices(words, k=length))
            cut = tokenizer.decode(ids(joined)[:length])
            if len(ids(cut)) == length:
                return cut

    prompts = [text(PROMPT) for _ in range(PROMPTS)]
    data = {
        "prompts": [{"text": t, "tokens": ids(t)} for t in prompts],
        "sequences": [ids(text(LENGTH)) for _ in range(SEQUENCES)],
    }
    out.write_text(json.dumps(data))
    return data


def make_adapter(folder, out):
    import peft
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model = peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"))
    for name, p in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.02)
    model.save_pretrained(out)


def exact_norm(self, x):
    """LlamaRMSNorm without its step through float32."""
    return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)


def make_truth(folder, adapter, sequences, out):
    import peft
    from transformers import AutoModelForCausalLM
    from transformers.models.llama import modeling_llama

    modeling_llama.LlamaRMSNorm.forward = exact_norm
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="sdpa")
    model = peft.PeftModel.from_pretrained(model, adapter, is_trainable=True).double()
    logps = []
    for ids in torch.tensor(sequences).split(1):
        logits = model(input_ids=ids, logits_to_keep=SCORED + 1).logits[:, :-1]
        assert logits.dtype == torch.float64
        logp = torch.log_softmax(logits, -1).gather(-1, ids[:, -SCORED:, None])[..., 0]
        (-logp.sum() / (len(sequences) * SCORED)).backward()
        logps.append(logp.detach())
    parts, offsets, at = [torch.cat(logps).ravel()], {}, len(sequences) * SCORED
    index = {"logp": at, "offsets": offsets}
    for name, p in model.named_parameters():
        if p.requires_grad:
            offsets[name.replace(".default", "")] = at
            parts.append(p.grad.ravel())
            at += p.numel()
    torch.cat(parts).numpy().tofile(f"{out}.f64")
    pathlib.Path(f"{out}.json").write_text(json.dumps(index))


def main():
    gguf, hf, out = map(pathlib.Path, sys.argv[1:])
    make_folder(hf, out / "hf")
    make_gguf(gguf, out / "BF16.gguf")
    data = make_data(Tokenizer.from_file(str(hf / "tokenizer.json")), out / "data.json")
    make_adapter(out / "hf", out / "adapter")
    make_truth(out / "hf", out / "adapter", data["sequences"], out / "truth")


main()
