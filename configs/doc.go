// Package configs is the configuration of a run: its structs with their defaults, and their loading from YAML files,
// RUBICON_ environment variables and key=value overrides, in that order of growing precedence.
//
// Every key has one place, one struct field. The field's tags are the only source of its name (yaml), its meaning (doc)
// and its bounds (enum, min, max, above), from which loading, Validate, Print, Schema and Reference are derived.
//
// Loading is strict. An unknown key, a wrong type, a fraction where a whole number is wanted, a null, a repeated key, an
// item of a list set by itself: each is an error with its place and, where one is near, the key that was meant. The
// names of TRL (GRPOConfig, TrainingArguments, ModelConfig) and some of verl's are accepted as well; see trl.go, verl.go.
//
// viper holds what files, environment and overrides have set. It lower-cases keys and converts values, so that what is
// put into it are opaque, already checked values under keys of our own, which are lower case.
package configs
