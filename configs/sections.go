package configs

import "math"

// Model is the policy.
type Model struct {
	Path                  string `yaml:"path" doc:"Hugging Face folder of the model (config.json, *.safetensors, tokenizer.json), a GGUF file (F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q6_K), ORG/NAME of a model that rubicon pull fetched (hub:ORG/NAME@REVISION for a certain revision), or embedded:quickstart for the small model inside this binary."`
	Adapter               string `yaml:"adapter" doc:"PEFT adapter folder that training starts from. Empty: a new adapter that changes nothing yet."`
	DType                 string `yaml:"dtype" enum:"auto|float32|bfloat16|int8|int4" doc:"How weights are kept in memory. auto: as stored, a GGUF file's quantised ones too. int8, int4: the frozen matrices of the layers in 8.5 or 5 bits a weight, embedding and head in bfloat16. compute_dtype says how they are multiplied."`
	ComputeDType          string `yaml:"compute_dtype" enum:"float32|bfloat16" doc:"Arithmetic of products with weights that are kept in bfloat16 or fewer bits. bfloat16: activations (and, with dtype auto, weights) are rounded to it first, where the processor multiplies bfloat16 directly the adapter's matrices too; faster there, and about as exact as TRL's bf16. Sums, losses, what is trained and the optimiser are float32 in any case."`
	Trainable             string `yaml:"trainable" enum:"lora|full" doc:"What learns: a LoRA adapter on frozen weights, or all weights."`
	Init                  string `yaml:"init" enum:"weights|random" doc:"Where the weights come from: the folder's files, or random numbers in the shape that config.json gives (training from scratch)."`
	GradientCheckpointing bool   `yaml:"gradient_checkpointing" doc:"Keep only each layer's input and compute the layer again in the backward pass: much less memory for about a third more time, same numbers."`
}

// WeightDType is how weights are kept, as policy.LoadOptions has it: DType, and where that is auto what ComputeDType needs.
// Of weights that are trained, the copy that is multiplied is meant; what is trained is float32.
func (m Model) WeightDType() string {
	bf16 := m.ComputeDType == "bfloat16"
	switch {
	case m.DType != "auto":
		return m.DType
	case m.Trainable == "full" && bf16:
		return "bfloat16"
	case m.Trainable == "full":
		return "float32"
	case bf16:
		return "auto16"
	}
	return "auto"
}

// LoRA is the adapter's shape.
type LoRA struct {
	R             int      `yaml:"r" min:"1" doc:"Rank."`
	Alpha         float64  `yaml:"alpha" above:"0" doc:"Scale: the update counts alpha/r times, with rslora alpha/sqrt(r)."`
	RSLoRA        bool     `yaml:"rslora" doc:"Rank-stabilised scale, alpha/sqrt(r)."`
	Dropout       float64  `yaml:"dropout" min:"0" max:"0.99" doc:"Share of the adapter's inputs dropped in training. Above 0, the sampler's log-probabilities are no longer exactly the trainer's."`
	TargetModules []string `yaml:"target_modules" doc:"Linear layers that get an adapter: names such as q_proj, or all-linear for all seven of a layer."`
}

// Data says what to train on. Evaluation data is in Eval.
type Data struct {
	TrainFiles         []string          `yaml:"train_files" doc:"Files of training rows: .jsonl, .json, either with .gz, or .parquet."`
	Format             string            `yaml:"format" enum:"auto|jsonl|json|parquet" doc:"Format of all data files. auto: by the file's ending."`
	PromptColumn       string            `yaml:"prompt_column" doc:"Column with the prompt: text, or a list of {role, content}."`
	MessagesColumn     string            `yaml:"messages_column" doc:"Column with a conversation, read in rows that have no prompt column."`
	CompletionColumn   string            `yaml:"completion_column" doc:"Column with the completion to learn, in sft."`
	IDColumn           string            `yaml:"id_column" doc:"Column that names the row, unique in its files. Empty: the file's name and the row's line."`
	Columns            map[string]string `yaml:"columns" doc:"Further names for columns, as rewards want them: {reference: answer} gives column answer also as reference; a.b reaches into an object."`
	Chat               bool              `yaml:"chat" doc:"Take a prompt that is text as the one message of a user, so that the chat template applies."`
	SystemPrompt       string            `yaml:"system_prompt" doc:"System message put before every conversation that has none. Implies chat. Empty: none."`
	ChatTemplateKwargs map[string]any    `yaml:"chat_template_kwargs" doc:"Variables given to the chat template, such as {enable_thinking: false}."`
	Shuffle            bool              `yaml:"shuffle" doc:"New order in every epoch, drawn from the seed; else the files' order."`
	Seed               *int64            `yaml:"seed" min:"0" doc:"Seed of the order. null: the run's seed."`
	OnBadRow           string            `yaml:"on_bad_row" enum:"fail|skip" doc:"What to do with a row that cannot be used: stop and name file and line, or leave it out and count it."`
	TrainBatchSize     int               `yaml:"train_batch_size" min:"0" doc:"Prompts sampled at a time (verl's count). 0: as many as optim.per_device_train_batch_size and grpo.steps_per_generation give, which count completions (TRL's)."`
	MaxPromptLength    int               `yaml:"max_prompt_length" min:"0" doc:"Longest prompt, tokens. 0: what the model's context leaves beside the completion. Prompts are never cut."`
	OnLongPrompt       string            `yaml:"on_long_prompt" enum:"fail|skip" doc:"What to do with a longer prompt: stop, or leave it out and count it."`
	MaxLength          int               `yaml:"max_length" min:"0" doc:"Longest example of sft, tokens; the rest is cut off. 0: the model's context."`
	Packing            bool              `yaml:"packing" doc:"In sft, fill rows of max_length tokens with several whole examples; the batch size then counts rows."`
}

// Sampling is how tokens are drawn; the names are TRL's and transformers'.
type Sampling struct {
	MaxCompletionLength int      `yaml:"max_completion_length" min:"0" doc:"Longest completion, tokens. 0 in eval: as in rollout."`
	Temperature         float64  `yaml:"temperature" min:"0" doc:"Logits are divided by it. 0, allowed in eval only: always the likeliest token."`
	TopP                float64  `yaml:"top_p" above:"0" max:"1" doc:"Keep the likeliest tokens that together have this probability. 1: all."`
	TopK                int      `yaml:"top_k" min:"0" doc:"Keep this many of the likeliest tokens. 0: all."`
	MinP                float64  `yaml:"min_p" min:"0" max:"1" doc:"Drop tokens less likely than this share of the likeliest one's probability. 0: none."`
	RepetitionPenalty   float64  `yaml:"repetition_penalty" above:"0" doc:"Positive logits of tokens seen before are divided by it, negative ones multiplied. 1: off."`
	Stop                []string `yaml:"stop" doc:"Texts that end a completion, beside the model's end tokens. Empty in eval: as in rollout."`
}

// Rollout is the sampling of training completions.
type Rollout struct {
	Sampling `yaml:",inline"`
	MaxBatch int           `yaml:"max_batch" min:"0" doc:"Completions sampled at the same time. 0: up to 64. Changes memory and speed, never the samples."`
	KVTokens int           `yaml:"kv_tokens" min:"0" doc:"Size of the key/value cache, tokens. 0: what the completions sampled at the same time can need."`
	Engine   string        `yaml:"engine" enum:"local|openai" doc:"Who samples, held-out completions too. local: the run's own model. openai: the servers of rollout.server, rubicon serve or vLLM, which are given each new adapter; docs/engines.md."`
	Server   RolloutServer `yaml:"server" doc:"The servers of engine openai."`
}

// RolloutServer is servers that sample.
type RolloutServer struct {
	URLs           []string `yaml:"urls" doc:"Base URLs of servers of the same base model, up to and with /v1. They have to see the folder rollout in the run's folder under the same path."`
	APIKeyEnv      string   `yaml:"api_key_env" doc:"Environment variable with their key. Empty: no key is sent."`
	Timeout        float64  `yaml:"timeout" above:"0" doc:"Longest time for the completions of one prompt, seconds."`
	MaxConcurrency int      `yaml:"max_concurrency" min:"1" doc:"Prompts in flight."`
	MaxRetries     int      `yaml:"max_retries" min:"0" doc:"Further tries of a prompt after 429, a 5xx, a time-out, a network error or an adapter that a server has lost, each at the next server."`
}

// Optim is the optimiser and the size and number of its steps.
type Optim struct {
	PerDeviceTrainBatchSize   int               `yaml:"per_device_train_batch_size" min:"0" doc:"Completions (in sft: rows) in one backward pass of one process. 0: derived from data.train_batch_size."`
	GradientAccumulationSteps int               `yaml:"gradient_accumulation_steps" min:"0" doc:"Backward passes in one optimiser step. 0: derived from data.train_batch_size."`
	MaxSteps                  int               `yaml:"max_steps" min:"-1" doc:"Optimiser steps of the run. -1: num_train_epochs decides."`
	NumTrainEpochs            float64           `yaml:"num_train_epochs" min:"0" doc:"Passes over the training data, if max_steps is -1."`
	LearningRate              float64           `yaml:"learning_rate" min:"0" doc:"Highest learning rate. If not set: 1e-5 for an adapter, 1e-6 for all weights."`
	LRSchedulerType           string            `yaml:"lr_scheduler_type" enum:"linear|cosine|cosine_with_restarts|polynomial|constant|constant_with_warmup|inverse_sqrt|cosine_with_min_lr|warmup_stable_decay" doc:"Course of the learning rate after the warm-up, as in transformers. constant has no warm-up."`
	LRSchedulerKwargs         LRSchedulerKwargs `yaml:"lr_scheduler_kwargs" doc:"What single courses of the learning rate take. null: transformers' default."`
	WarmupSteps               float64           `yaml:"warmup_steps" min:"0" doc:"Steps in which the learning rate rises from 0. Below 1: a share of all steps, rounded up."`
	WeightDecay               float64           `yaml:"weight_decay" min:"0" doc:"AdamW's decoupled decay, per unit of learning rate."`
	AdamBeta1                 float64           `yaml:"adam_beta1" min:"0" max:"1" doc:"Memory of AdamW's first moment."`
	AdamBeta2                 float64           `yaml:"adam_beta2" min:"0" max:"1" doc:"Memory of AdamW's second moment."`
	AdamEpsilon               float64           `yaml:"adam_epsilon" above:"0" doc:"AdamW's epsilon."`
	MaxGradNorm               float64           `yaml:"max_grad_norm" min:"0" doc:"The gradient is scaled down to this L2 norm. 0: never."`
	MaxBadSteps               int               `yaml:"max_bad_steps" min:"1" doc:"Steps in a row with a loss or gradient that is not finite after which the run stops. Such a step changes nothing and writes down its batch."`
	Stages                    []Stage           `yaml:"stages" doc:"Settings that change in the course of the run: a list of {from_step, learning_rate, num_generations, advantage, beta}; what a stage leaves out is as the sections say. Needs max_steps."`
}

// Stage is what changes from a step on, until the next stage; nil: as the sections say.
type Stage struct {
	FromStep       int      `yaml:"from_step" doc:"Steps that are made before it."`
	LearningRate   *float64 `yaml:"learning_rate" doc:"optim.learning_rate, whose course goes on."`
	NumGenerations *int     `yaml:"num_generations" doc:"grpo.num_generations; the batch stays as large."`
	Advantage      *string  `yaml:"advantage" doc:"grpo.advantage."`
	Beta           *float64 `yaml:"beta" doc:"grpo.beta."`
}

// LRSchedulerKwargs are the settings of single schedules; nil: transformers' default.
type LRSchedulerKwargs struct {
	NumCycles      *float64 `yaml:"num_cycles" above:"0" doc:"cosine, cosine_with_min_lr, warmup_stable_decay: waves (0.5). cosine_with_restarts: restarts (1)."`
	Power          *float64 `yaml:"power" min:"0" doc:"polynomial: exponent (1)."`
	LREnd          *float64 `yaml:"lr_end" min:"0" doc:"polynomial: last learning rate (1e-7)."`
	Timescale      *int     `yaml:"timescale" min:"1" doc:"inverse_sqrt: steps (the warm-up's, or 10000 without one)."`
	MinLR          *float64 `yaml:"min_lr" min:"0" doc:"cosine_with_min_lr: last learning rate. Either this or min_lr_rate."`
	MinLRRate      *float64 `yaml:"min_lr_rate" min:"0" max:"1" doc:"cosine_with_min_lr: last learning rate as a share of the highest."`
	NumDecaySteps  *int     `yaml:"num_decay_steps" min:"0" doc:"warmup_stable_decay: steps of the decay. Required there."`
	NumStableSteps *int     `yaml:"num_stable_steps" min:"0" doc:"warmup_stable_decay: steps at the highest rate (all that warm-up and decay leave)."`
	WarmupType     *string  `yaml:"warmup_type" enum:"linear|cosine|1-sqrt" doc:"warmup_stable_decay: form of the warm-up (linear)."`
	DecayType      *string  `yaml:"decay_type" enum:"linear|cosine|1-sqrt" doc:"warmup_stable_decay: form of the decay (cosine)."`
	MinLRRatio     *float64 `yaml:"min_lr_ratio" min:"0" max:"1" doc:"warmup_stable_decay: lowest rate as a share of the highest (0)."`
}

// Reward is what scores a completion: one provider, or several of them weighed.
type Reward struct {
	RewardPart    `yaml:",inline"`
	Parts         []RewardPart `yaml:"parts" doc:"The providers of a mix: a list of {kind, name, weight, options}."`
	MaxUnscorable float64      `yaml:"max_unscorable" min:"0" max:"1" doc:"Share of a generation's completions that may be unscorable. If it is more, the generation is scored again; then the run pauses with a checkpoint."`
	ScoreRetries  int          `yaml:"score_retries" min:"0" doc:"How often such a generation is scored again before the run pauses."`
}

// RewardPart is one reward provider.
type RewardPart struct {
	Kind    string         `yaml:"kind" enum:"verify|rubric|amaris|rare|arco|http|exec|mix" doc:"Provider. verify: checks by programs. rubric: criteria that a judge scores. amaris: such criteria, improved beside the training from analyses and a memory of them. rare: such criteria, of which those that the current completions saturate are replaced. arco: episodes, whose turns are scored by a rubric model that learns beside the policy. http: a reward server of your own. exec: a command of your own. mix: the weighted sum of parts."`
	Name    string         `yaml:"name" doc:"Name in metrics (rewards/NAME/mean). Empty: its kind."`
	Weight  float64        `yaml:"weight" doc:"What its value is multiplied by."`
	Options map[string]any `yaml:"options" doc:"The provider's own settings; docs/rewards.md lists them."`
}

func (r *RewardPart) setDefaults() { r.Weight = 1 }

// Judge is the language model that scores by criteria and works on rubrics. A provider that needs one asks for it.
type Judge struct {
	JudgeModel     `yaml:",inline"`
	ResponseFormat string                `yaml:"response_format" enum:"auto|json_schema|json_object|none" doc:"How a server is told the form of an answer. auto: the strictest that it knows, found out before the run. The instructions say it in any case."`
	SendSeed       bool                  `yaml:"send_seed" doc:"Send the run's seed with every request; false for servers that refuse it."`
	MaxRetries     int                   `yaml:"max_retries" min:"0" doc:"Further tries of a request after 429, a 5xx, a time-out or a network error. Retry-After is heeded."`
	RetryMin       float64               `yaml:"retry_min" above:"0" doc:"First pause before another try on average, seconds; each next one is twice as long."`
	RetryMax       float64               `yaml:"retry_max" above:"0" doc:"Longest such pause on average, seconds, unless the server asks for more."`
	MaxElapsed     float64               `yaml:"max_elapsed" above:"0" doc:"Seconds after the first try after which none is begun."`
	MaxFailures    int                   `yaml:"max_failures" min:"0" doc:"Failures in a row after which a server is left alone for a while. 0: it never is."`
	Cooldown       float64               `yaml:"cooldown" above:"0" doc:"How long it is left alone before one request tries it, seconds."`
	MaxOutage      float64               `yaml:"max_outage" min:"0" doc:"How long questions wait for a server that is left alone, seconds; then the run pauses."`
	BudgetTokens   int                   `yaml:"budget_tokens" min:"0" doc:"Tokens after which the run pauses. 0: no limit."`
	BudgetMoney    float64               `yaml:"budget_money" min:"0" doc:"Money after which the run pauses, in the currency of the prices. 0: no limit."`
	Cache          string                `yaml:"cache" doc:"Folder in which answers are kept, so that no request is made twice; several runs may share it. Empty: judge/cache in the run's folder. none: no answers are kept."`
	CacheMB        int                   `yaml:"cache_mb" min:"1" doc:"Size of the cache, MiB; the oldest answers go first."`
	Record         string                `yaml:"record" doc:"File that every question and its answer are added to. Empty: none."`
	Replay         string                `yaml:"replay" doc:"File of recorded answers to take instead of asking; an unknown question is an error. Empty: ask."`
	Audit          JudgeAudit            `yaml:"audit" doc:"An independent judge, which now and then answers a sample of the questions too (docs/health.md#judge-drift). Its tokens do not count in the budget."`
	Tiers          map[string]JudgeModel `yaml:"tiers" doc:"Other models or limits for single kinds of question, score, analyze, summarize, query or update: a map of each to the first twelve keys of this section. What it leaves out is as in this section."`
}

// JudgeAudit is how an independent judge is asked.
type JudgeAudit struct {
	Steps      Period `yaml:"steps" min:"0" doc:"Steps between two audits. Below 1: a share of all steps. 0: none."`
	Samples    int    `yaml:"samples" min:"1" doc:"Questions that it is asked in an audit."`
	JudgeModel `yaml:",inline"`
}

// JudgeModel is one model that can be asked, and how.
type JudgeModel struct {
	URL               string   `yaml:"url" doc:"Base URL of an OpenAI-compatible server, up to and with /v1, or local: the run's own base model without its adapter; or embedded:quickstart: rules instead of a model, for the quickstart's tasks only."`
	Model             string   `yaml:"model" doc:"Name of the model on that server."`
	APIKeyEnv         string   `yaml:"api_key_env" doc:"Environment variable with that server's key. Empty: no key is sent."`
	Temperature       *float64 `yaml:"temperature" min:"0" max:"2" doc:"Sampling temperature of answers. null: 0, always the likeliest token."`
	TopP              *float64 `yaml:"top_p" above:"0" max:"1" doc:"Keep the likeliest tokens that together have this probability. null: 1, all."`
	MaxTokens         int      `yaml:"max_tokens" min:"0" doc:"Longest answer, tokens."`
	PromptPrice       *float64 `yaml:"prompt_price" min:"0" doc:"Price of a million prompt tokens. null: 0."`
	CompletionPrice   *float64 `yaml:"completion_price" min:"0" doc:"Price of a million answer tokens. null: 0."`
	Timeout           float64  `yaml:"timeout" min:"0" doc:"Longest time for one request, seconds."`
	MaxConcurrency    int      `yaml:"max_concurrency" min:"0" doc:"Requests in flight."`
	RequestsPerMinute int      `yaml:"requests_per_minute" min:"0" doc:"Rate limit. 0: none."`
	TokensPerMinute   int      `yaml:"tokens_per_minute" min:"0" doc:"Rate limit, tokens of prompts and answers. 0: none."`
}

// Embedder says where the embedders openai and minilm are, which a reward's options name; lexical and policy need nothing.
type Embedder struct {
	Path              string  `yaml:"path" doc:"minilm: sentence-transformers folder of a BERT encoder, such as all-MiniLM-L6-v2."`
	URL               string  `yaml:"url" doc:"openai: base URL of an OpenAI-compatible server, up to and with /v1."`
	Model             string  `yaml:"model" doc:"openai: name of the model on that server."`
	APIKeyEnv         string  `yaml:"api_key_env" doc:"openai: environment variable with that server's key. Empty: no key is sent."`
	Dimensions        int     `yaml:"dimensions" min:"0" doc:"openai: length of the vectors, for models that can shorten them. 0: the model's own."`
	Timeout           float64 `yaml:"timeout" above:"0" doc:"openai: longest time for one request, seconds."`
	MaxConcurrency    int     `yaml:"max_concurrency" min:"1" doc:"openai: requests in flight."`
	RequestsPerMinute int     `yaml:"requests_per_minute" min:"0" doc:"openai: rate limit. 0: none."`
}

// Env is what answers the policy in tasks of several turns.
type Env struct {
	Kind          string         `yaml:"kind" enum:"|qa|tools" doc:"Environment. Empty: none, a completion is one turn. qa: multi-hop questions, with Search[words] over each row's own paragraphs and Finish[answer]. tools: questions that are answered with tools in OpenAI's function format."`
	Options       map[string]any `yaml:"options" doc:"The environment's own settings; docs/environments.md lists them."`
	MaxTurnLength int            `yaml:"max_turn_length" min:"0" doc:"Longest turn, tokens. 0: what max_completion_length leaves, which bounds a whole episode with the observations in it."`
	Retries       int            `yaml:"retries" min:"0" doc:"Further tries of a turn at which the environment itself fails. Then the episode is given up: it is not scored, and counted in episode/lost_frac."`
}

// Dist is how the processes of a run are connected. How many there are, and which is which, the launcher says.
type Dist struct {
	Backend string  `yaml:"backend" enum:"auto|tcp|mpi" doc:"What connects the processes. tcp: connections of their own; rank 0 is met at MASTER_ADDR and MASTER_PORT. mpi: the MPI library of the launcher. auto: mpi if mpirun or another MPI launcher has started them, else tcp."`
	Timeout float64 `yaml:"timeout" above:"0" doc:"Seconds that a process waits for the others at one place before the run ends. It has to be longer than scoring a generation takes."`
}

// Period is how often something happens: every so many steps; below 1: a share of the run's steps; 0: never.
type Period float64

// Every is the period in steps of a run of totalSteps, rounded up as in transformers; 0: never.
func (p Period) Every(totalSteps int) int {
	if p < 1 {
		return int(math.Ceil(float64(p) * float64(totalSteps)))
	}
	return int(p)
}

// Checkpoint says what is saved. A checkpoint is always written whole or not at all.
type Checkpoint struct {
	Dir                string `yaml:"dir" doc:"Folder of the checkpoints. Empty: checkpoints in the run's folder."`
	SaveSteps          Period `yaml:"save_steps" min:"0" doc:"Steps between two checkpoints. Below 1: a share of all steps. 0: only the last one."`
	SaveTotalLimit     int    `yaml:"save_total_limit" min:"0" doc:"Checkpoints kept, the newest; the best one is kept beside them. 0: all."`
	SaveOnlyModel      bool   `yaml:"save_only_model" doc:"Leave out everything that only a resumed run needs. Such a checkpoint cannot be resumed."`
	MetricForBestModel string `yaml:"metric_for_best_model" doc:"Metric of the held-out evaluation, such as eval_reward: each time it is the best so far, a checkpoint is saved, and the best one is kept. Empty: off."`
	GreaterIsBetter    *bool  `yaml:"greater_is_better" doc:"Whether that metric should rise. null: yes, unless its name ends in loss."`
	Resume             string `yaml:"resume" doc:"Go on from a checkpoint: newest, its path, or auto (newest, or start if there is none). Empty: start; a folder with a run in it is an error."`
}

// Eval is the evaluation on held-out prompts. Its sampling settings are its own; the default is greedy.
type Eval struct {
	Files              []string `yaml:"files" doc:"Files of held-out rows, read as data.train_files are. Empty: no evaluation."`
	Benchmarks         []string `yaml:"benchmarks" doc:"Benchmarks to measure the policy on, by name (docs/evaluation.md), or NAME=FILE for an official file that is elsewhere."`
	DataDir            string   `yaml:"data_dir" doc:"Folder in which rubicon data get has put the benchmarks' files."`
	Repeats            int      `yaml:"repeats" min:"0" doc:"Measurements of each benchmark, with random numbers of their own. 0: as many as the benchmark's authors make, mostly one."`
	MaxRows            int      `yaml:"max_rows" min:"0" doc:"Rows used of the files together and of each benchmark, the first ones. 0: all."`
	OfficialSampling   bool     `yaml:"official_sampling" doc:"Sample answers as a benchmark's authors do, where they say how (docs/evaluation.md): temperature, top_p, top_k, min_p and length."`
	EvalSteps          Period   `yaml:"eval_steps" min:"0" doc:"Steps between two evaluations. Below 1: a share of all steps. 0: none in between."`
	EvalOnStart        bool     `yaml:"eval_on_start" doc:"Evaluate before the first step."`
	EvalOnEnd          bool     `yaml:"eval_on_end" doc:"Evaluate after the last step."`
	NumGenerationsEval int      `yaml:"num_generations_eval" min:"1" doc:"Completions sampled for each held-out prompt."`
	Sampling           `yaml:",inline"`
	Server             EvalServer `yaml:"server" doc:"Who answers benchmarks in rubicon eval, in place of the run's own model."`
}

// EvalServer is a server that answers benchmarks.
type EvalServer struct {
	URL            string  `yaml:"url" doc:"Base URL of an OpenAI-compatible server, up to and with /v1. Empty: the run's own model answers."`
	Model          string  `yaml:"model" doc:"Name of the model on that server."`
	APIKeyEnv      string  `yaml:"api_key_env" doc:"Environment variable with that server's key. Empty: no key is sent."`
	Timeout        float64 `yaml:"timeout" above:"0" doc:"Longest time for one answer, seconds."`
	MaxConcurrency int     `yaml:"max_concurrency" min:"1" doc:"Questions in flight."`
}

// Track is what a run tells.
type Track struct {
	LoggingSteps          Period   `yaml:"logging_steps" min:"0" doc:"Steps that one line of metrics is the mean of. Below 1: a share of all steps. 0: none."`
	LoggingFirstStep      bool     `yaml:"logging_first_step" doc:"Log the first step by itself too."`
	LogCompletions        bool     `yaml:"log_completions" doc:"Show a table of prompts, completions and rewards with every line of metrics. All of them are in completions/ in any case."`
	NumCompletionsToPrint int      `yaml:"num_completions_to_print" min:"0" doc:"Rows of that table. 0: all."`
	LogUniquePrompts      bool     `yaml:"log_unique_prompts" doc:"Only one row for each prompt in that table."`
	To                    []string `yaml:"to" doc:"Trackers that metrics go to besides metrics.jsonl: tensorboard, wandb, mlflow, prometheus (docs/trackers.md). One that is slow or gone never stops a run."`
	Project               string   `yaml:"project" doc:"Project of wandb, and experiment of mlflow, that the run belongs to."`
	MLflowURI             string   `yaml:"mlflow_uri" doc:"URL of the tracking server of mlflow. Empty: the environment's MLFLOW_TRACKING_URI."`
	PrometheusAddr        string   `yaml:"prometheus_addr" doc:"Address at which prometheus finds /metrics while the run goes on. Without a host name, as in :9464, other machines reach it too."`
	Python                string   `yaml:"python" doc:"Python that has the client of wandb."`
	Progress              string   `yaml:"progress" enum:"auto|bar|plain|off" doc:"Progress on the terminal. auto: a bar on a terminal, plain lines otherwise."`
}
