"""torch, transformers and PEFT: what each case does with them. The spec names case, model, dtype, threads."""
import json

from pipe import clock, repeated, serve, spec, synthetic

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from transformers import AutoModelForCausalLM, GenerationConfig

# dtype of a spec -> weights; autocast is bfloat16 products on float32 weights, as TRL trains.
DTYPES = {"f32": torch.float32, "autocast": torch.float32, "bf16": torch.bfloat16}
DTYPE = DTYPES[spec["dtype"]]
torch.set_num_threads(spec["threads"])


def load():
    return AutoModelForCausalLM.from_pretrained(spec["model"], dtype=DTYPE)


def with_lora(model):
    """An adapter of rank 8 on all linear layers: the one of the spec, or a new one."""
    import peft

    if "adapter" in spec:
        return peft.PeftModel.from_pretrained(model, spec["adapter"], is_trainable=True)
    return peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"))


def autocast():
    return torch.autocast("cpu", torch.bfloat16, enabled=spec["dtype"] == "autocast")


def logprobs(model, ids, scored):
    """Log-probabilities of the last scored tokens of each row, float32, [rows, scored]."""
    logits = model(input_ids=ids, logits_to_keep=scored + 1).logits[:, :-1].float()
    return torch.log_softmax(logits, -1).gather(-1, ids[:, -scored:, None])[..., 0]


def forward_backward(model, ids, scored, rows):
    """Gradient of the mean negative log-probability, rows sequences at a time. Returns seconds and log-probabilities."""
    for p in model.parameters():
        p.grad = None
    forward = backward = 0.0
    out = []
    for part in ids.split(rows):
        with autocast():
            took, logp = clock(lambda: logprobs(model, part, scored))
        forward += took
        loss = -logp.sum() / (ids.shape[0] * scored)
        backward += clock(loss.backward)[0]
        out.append(logp.detach())
    return forward, backward, torch.cat(out)


def batch(point, vocab):
    return torch.tensor([synthetic(i + 1, point["length"], vocab) for i in range(point["sequences"])])


def fwd_bwd():
    model = with_lora(load()).train()

    def measure(point):
        forward, backward, _ = forward_backward(model, batch(point, model.config.vocab_size), point["scored"], point["sequences"])
        return {"seconds": forward + backward, "forward": forward, "backward": backward}

    return measure


def shared_prompt():
    model = with_lora(load()).train()

    def measure(point):
        vocab = model.config.vocab_size
        prompt = synthetic(1, point["prompt"], vocab)
        ids = torch.tensor([prompt + synthetic(2 + i, point["new"], vocab) for i in range(point["completions"])])
        forward, backward, _ = forward_backward(model, ids, point["new"], rows=2)  # all at once needs 13 GB
        return {"seconds": forward + backward}

    return measure


def generate(model, ids, new):
    config = GenerationConfig(
        do_sample=True, temperature=1.0, top_k=0, max_new_tokens=new, min_new_tokens=new, pad_token_id=0, eos_token_id=None
    )
    with torch.no_grad():
        out = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), generation_config=config)
    assert out.shape[1] == ids.shape[1] + new, out.shape


def decode():
    model = load().eval()

    def measure(point):
        ids = torch.tensor([synthetic(i + 1, point["prompt"], model.config.vocab_size) for i in range(point["batch"])])
        one, _ = clock(lambda: generate(model, ids, 1))
        all_, _ = clock(lambda: generate(model, ids, point["new"] + 1))
        return {"tok_s": point["batch"] * point["new"] / (all_ - one), "prefill": one, "seconds": all_}

    return measure


def load_time():
    def measure(_):
        seconds, model = clock(load)
        return {"seconds": seconds, "parameters": sum(p.numel() for p in model.parameters())}

    return measure


def gemm():
    """Products; with autocast of float32 inputs, rounded within the time, and bfloat16 weights."""
    generator = torch.Generator().manual_seed(1)
    weights = torch.bfloat16 if spec["dtype"] == "autocast" else DTYPE

    def measure(point):
        m, n, k = point["m"], point["n"], point["k"]
        w = torch.randn(n, k, generator=generator).to(weights)
        x, dy = (torch.randn(shape, generator=generator).to(DTYPE) for shape in ((m, k), (m, n)))
        work = (lambda: F.linear(x, w)) if point["op"] == "forward" else (lambda: torch.mm(dy, w))
        with torch.no_grad(), autocast():
            seconds = repeated(work)
        return {"gflops": 2 * m * n * k / seconds / 1e9}

    return measure


def stream():
    def measure(point):
        x = torch.ones(point["mib"] << 18)
        with torch.no_grad():
            return {"gb_s": 4 * x.numel() / repeated(x.sum, 0.5) / 1e9}

    return measure


def tiny():
    model = load()

    def measure(point):
        vocab, rows = model.config.vocab_size, point["prompts"] * point["completions"]
        ids = torch.tensor([synthetic(1 + i // point["completions"], point["prompt"], vocab) for i in range(rows)])
        model.eval()
        took, _ = clock(lambda: generate(model, ids, point["new"]))
        length = point["prompt"] + point["new"]
        x = torch.tensor([synthetic(100 + i, length, vocab) for i in range(rows)])
        adapted.train()
        forward, backward, _ = forward_backward(adapted, x, point["new"], rows)
        learn = forward + backward
        new = rows * point["new"]
        return {"generate_tok_s": new / took, "train_tok_s": rows * length / learn, "step_tok_s": new / (took + learn)}

    adapted = with_lora(load())
    return measure


def accuracy():
    """Distance of the adapter's gradient and of the log-probabilities from those in the file that the spec names."""
    model = with_lora(load()).train()
    want = np.fromfile(spec["reference"] + ".f64")
    index = json.load(open(spec["reference"] + ".json"))

    def measure(point):
        ids = torch.tensor(json.load(open(spec["data"]))["sequences"])
        _, _, logp = forward_backward(model, ids, point["scored"], len(ids))
        got, at = np.empty_like(want), index["offsets"]
        for name, p in model.named_parameters():
            if p.requires_grad:
                offset = at[name.replace(".default", "")]
                got[offset : offset + p.numel()] = p.grad.double().numpy().ravel()
        n = index["logp"]
        got[:n] = logp.double().numpy().ravel()
        g, w = got[n:], want[n:]
        return {
            "grad_error": np.linalg.norm(g - w) / np.linalg.norm(w),
            "grad_cosine_gap": 1 - g @ w / np.linalg.norm(g) / np.linalg.norm(w),
            "logp_rms": float(np.sqrt(np.mean((got[:n] - want[:n]) ** 2))),
            "logp_max": float(np.abs(got[:n] - want[:n]).max()),
        }

    return measure


CASES = {
    "fwd_bwd_lora": fwd_bwd,
    "shared_prompt": shared_prompt,
    "decode": decode,
    "load": load_time,
    "gemm": gemm,
    "stream": stream,
    "tiny": tiny,
    "accuracy": accuracy,
}

if __name__ == "__main__":
    serve(CASES[spec["case"]](), torch=torch.__version__, transformers=transformers.__version__)
