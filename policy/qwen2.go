package policy

// Qwen2 is Qwen2 and Qwen2.5.
const Qwen2 Arch = "qwen2"

var qwen2 = family{class: "Qwen2ForCausalLM", qkvBias: true}
