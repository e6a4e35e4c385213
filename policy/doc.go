// Package policy is the model: frozen weights and any number of named adapter sets on one device, forward and
// backward over a forest of token segments, and sampling over the same forest.
package policy
