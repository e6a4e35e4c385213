//go:build !race

package cpu

// underRace says that the race detector is on.
const underRace = false
