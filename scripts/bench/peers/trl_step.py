"""TRL's GRPOTrainer, one optimiser step a request. The spec names model, dtype (f32 or autocast), checkpointing, data."""
import json
import tempfile
import time

from pipe import answer, ask, spec

import torch
import trl
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

torch.set_num_threads(spec["threads"])
answer(ready=True, versions={"trl": trl.__version__, "torch": torch.__version__})
POINT = ask()
NEW, ROWS = POINT["new"], POINT["prompts"] * POINT["completions"]


class Phases:
    """Seconds of the calls of some methods since the step began."""

    def __init__(self):
        self.seconds = {}

    def watch(self, owner, method, phase):
        inner = getattr(owner, method)

        def timed(*args, **kwargs):
            start = time.perf_counter()
            out = inner(*args, **kwargs)
            self.seconds[phase] = self.seconds.get(phase, 0) + time.perf_counter() - start
            return out

        setattr(owner, method, timed)


class Paced(TrainerCallback):
    """Each step waits for a request and answers it."""

    def __init__(self, phases):
        self.phases, self.first = phases, True

    def on_step_begin(self, *_, **__):
        if not self.first:
            ask()
        self.first = False
        self.phases.seconds.clear()
        self.start = time.perf_counter()

    def on_step_end(self, *_, **__):
        seconds = time.perf_counter() - self.start
        p = self.phases.seconds
        learn = p["loss"] + p["backward"]
        values = {
            "seconds": seconds,
            "generate": p["generate"],
            "reference": p["rollout"] - p["generate"],
            "learn": learn,
            "forward": p["loss"],
            "backward": p["backward"],
            "rest": seconds - p["rollout"] - learn,
        }
        answer(values=values)


def thirds(completion_ids, **_):
    """The reward: the share of a completion's ids that 3 divides. Every completion has to be of full length."""
    assert all(len(c) == NEW for c in completion_ids)
    return [sum(t % 3 == 0 for t in c) / len(c) for c in completion_ids]


def main():
    model = AutoModelForCausalLM.from_pretrained(spec["model"], dtype=torch.float32)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=spec["model"] + "/tokenizer.json", eos_token="<|im_end|>", pad_token="<|endoftext|>", padding_side="left"
    )
    prompts = json.load(open(spec["data"]))["prompts"]
    assert all(tokenizer(p["text"])["input_ids"] == p["tokens"] for p in prompts)
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=spec["dtype"] == "autocast",
        gradient_checkpointing=spec["checkpointing"],
        per_device_train_batch_size=ROWS,
        num_generations=POINT["completions"],
        max_completion_length=NEW,
        generation_kwargs={"min_new_tokens": NEW},
        beta=0.04,
        learning_rate=1e-5,
        max_steps=1_000_000,
        logging_steps=1_000_000,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = GRPOTrainer(
        model=model,
        args=config,
        reward_funcs=thirds,
        train_dataset=Dataset.from_list([{"prompt": p["text"]} for p in prompts]),
        processing_class=tokenizer,
        peft_config=LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    phases = Phases()
    phases.watch(trainer, "_generate_single_turn", "generate")
    phases.watch(trainer, "_generate_and_score_completions", "rollout")
    phases.watch(trainer, "_compute_loss", "loss")
    phases.watch(trainer.accelerator, "backward", "backward")
    trainer.add_callback(Paced(phases))
    trainer.train()


main()
