package policy

// Qwen3 is the dense Qwen3.
const Qwen3 Arch = "qwen3"

var qwen3 = family{class: "Qwen3ForCausalLM", attentionBias: true, qkNorm: true, headDim: 128}
