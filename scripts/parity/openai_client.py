"""openai_client.py URL MODEL: OpenAI's own Python client against rubicon serve."""
import json
import sys

import openai

url, model = sys.argv[1:]
client = openai.OpenAI(base_url=url, api_key="none")
messages = [{"role": "user", "content": "Name a city in France."}]

assert model in [m.id for m in client.models.list()]

whole = client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=24, logprobs=True, top_logprobs=2)
text = whole.choices[0].message.content
assert text and whole.usage.completion_tokens == len(whole.choices[0].logprobs.content), whole
assert all(len(t.top_logprobs) == 2 and t.logprob <= 0 for t in whole.choices[0].logprobs.content)

pieces, usage = [], None
for chunk in client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=24, stream=True, stream_options={"include_usage": True}):
    usage = chunk.usage or usage
    pieces += [c.delta.content or "" for c in chunk.choices]
assert "".join(pieces) == text, (pieces, text)
assert usage.completion_tokens == whole.usage.completion_tokens

schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}, "big": {"type": "boolean"}}, "required": ["city", "big"], "additionalProperties": False}
shaped = client.chat.completions.create(model=model, messages=messages, max_tokens=120, seed=1, n=3, response_format={"type": "json_schema", "json_schema": {"name": "city", "schema": schema, "strict": True}})
for choice in shaped.choices:
    answer = json.loads(choice.message.content)
    assert set(answer) == {"city", "big"} and isinstance(answer["big"], bool), answer

echoed = client.completions.create(model=model, prompt="The capital of France is Paris.", max_tokens=0, echo=True, logprobs=1)
said = echoed.choices[0].logprobs
assert said.token_logprobs[0] is None and len(said.tokens) == len(said.token_logprobs) == echoed.usage.prompt_tokens

vectors = client.embeddings.create(model=model, input=["one", "two"])
assert len(vectors.data) == 2 and len(vectors.data[0].embedding) == len(vectors.data[1].embedding) > 0

try:
    client.chat.completions.create(model="nobody", messages=messages)
    raise SystemExit("a model that is not there answers")
except openai.NotFoundError as e:
    assert e.code == "model_not_found", e

print("openai", openai.__version__, "agrees:", repr(text))
