//go:build !amd64 || purego

package cpu

// tiers are the kernels that this machine can run, best first.
func tiers() []tier { return []tier{{"portable", portable}} }

// pause gives the waiting loop of the pool something short to do.
func pause(n int) {
	for range n {
	}
}
