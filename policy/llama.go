package policy

// Llama is Llama 2 and 3 and what is built like them, such as SmolLM2.
const Llama Arch = "llama"

var llama = family{class: "LlamaForCausalLM", attentionBias: true, mlpBias: true}
