package configs

import "github.com/rubicon-rl/rubicon/grpo"

// Config is the whole configuration of a run.
type Config struct {
	RunName   string `yaml:"run_name" doc:"Name of the run. Empty: the name of the first configuration file without its ending."`
	OutputDir string `yaml:"output_dir" doc:"Folder of the run. Empty: runs/ and run_name."`
	Seed      int64  `yaml:"seed" min:"0" doc:"Seed of every random number: sampling, order of the data, new adapters, dropout."`
	Device    string `yaml:"device" enum:"auto|cpu|cuda" doc:"Where the model computes. auto: an NVIDIA GPU that can be used (rubicon doctor looks), else the CPU; the run prints which and why. With several GPUs LOCAL_RANK chooses."`
	Threads   int    `yaml:"threads" min:"0" doc:"CPU threads that compute. 0: one for each core."`

	Model      Model       `yaml:"model" doc:"The model and what of it is trained."`
	LoRA       LoRA        `yaml:"lora" doc:"The adapter, as in PEFT. Used if model.trainable is lora."`
	Data       Data        `yaml:"data" doc:"Training data: files, columns, order."`
	Rollout    Rollout     `yaml:"rollout" doc:"How completions are sampled for training."`
	GRPO       grpo.Config `yaml:"grpo" doc:"Groups, advantages and the objective."`
	Optim      Optim       `yaml:"optim" doc:"Batch sizes, length of the run, AdamW and its learning rate."`
	Reward     Reward      `yaml:"reward" doc:"What scores a completion."`
	Judge      Judge       `yaml:"judge" doc:"The language model that judges."`
	Embedder   Embedder    `yaml:"embedder" doc:"What turns texts into vectors, for rewards that search a memory by meaning."`
	Env        Env         `yaml:"env" doc:"The environment of episodes with several turns."`
	Dist       Dist        `yaml:"dist" doc:"Several processes."`
	Checkpoint Checkpoint  `yaml:"checkpoint" doc:"What is saved, when, and what is kept."`
	Eval       Eval        `yaml:"eval" doc:"Evaluation on held-out prompts."`
	Track      Track       `yaml:"track" doc:"What is logged and shown."`
}

// Default is the configuration of a run that sets nothing: TRL 1.16's defaults, except that a LoRA adapter is trained, at
// a learning rate of 1e-5, and saved every 50 steps.
func Default() *Config {
	sampling := Sampling{MaxCompletionLength: 512, Temperature: 1, TopP: 1, RepetitionPenalty: 1}
	greedy := Sampling{TopP: 1, RepetitionPenalty: 1}
	c := &Config{
		Seed:   42,
		Device: "auto",
		Model:  Model{DType: "auto", ComputeDType: "float32", Trainable: "lora", Init: "weights", GradientCheckpointing: true},
		LoRA:   LoRA{R: 16, Alpha: 32, TargetModules: []string{"all-linear"}},
		Data: Data{
			Format: "auto", PromptColumn: "prompt", MessagesColumn: "messages", CompletionColumn: "completion",
			Shuffle: true, OnBadRow: "fail", OnLongPrompt: "fail", MaxLength: 1024,
		},
		Rollout: Rollout{Sampling: sampling, Engine: "local", Server: RolloutServer{Timeout: 600, MaxConcurrency: 64, MaxRetries: 6}},
		Env:     Env{Retries: 2},
		GRPO:    grpo.Default(),
		Optim: Optim{
			PerDeviceTrainBatchSize: 8, GradientAccumulationSteps: 1, MaxSteps: -1, NumTrainEpochs: 3,
			LearningRate: loraLearningRate, LRSchedulerType: "linear",
			AdamBeta1: 0.9, AdamBeta2: 0.999, AdamEpsilon: 1e-8, MaxGradNorm: 1, MaxBadSteps: 3,
		},
		Reward: Reward{RewardPart: RewardPart{Kind: "verify", Weight: 1}, MaxUnscorable: 0.5, ScoreRetries: 1},
		Judge: Judge{
			JudgeModel:     JudgeModel{MaxTokens: 2048, Timeout: 120, MaxConcurrency: 16},
			ResponseFormat: "auto", SendSeed: true, MaxRetries: 5, RetryMin: 1, RetryMax: 60, MaxElapsed: 600,
			MaxFailures: 20, Cooldown: 30, MaxOutage: 300, CacheMB: 1024,
			Audit: JudgeAudit{Samples: 16, JudgeModel: JudgeModel{MaxTokens: 2048, Timeout: 120, MaxConcurrency: 16}},
		},
		Dist:       Dist{Backend: "auto", Timeout: 1800},
		Embedder:   Embedder{Timeout: 60, MaxConcurrency: 4},
		Checkpoint: Checkpoint{SaveSteps: 50},
		Eval:       Eval{DataDir: "data", EvalOnEnd: true, NumGenerationsEval: 1, Sampling: greedy, Server: EvalServer{Timeout: 600, MaxConcurrency: 16}},
		Track:      Track{LoggingSteps: 10, Progress: "auto", Project: "rubicon", PrometheusAddr: "127.0.0.1:9464", Python: "python3"},
	}
	c.complete()
	return c
}

// Learning rates if none is set: an adapter takes about ten times the rate of the whole model.
const (
	loraLearningRate = 1e-5
	fullLearningRate = 1e-6
)
