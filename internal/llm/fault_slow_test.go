//go:build slow

package llm

// faultQuestions is how many questions TestFaults asks.
const faultQuestions = 10000
