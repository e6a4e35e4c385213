package ptxsim

import (
	"crypto/sha256"
	"sync"
)

// Cache keeps parsed modules by their content, so that many devices in a process parse each once. The zero value is ready;
// devices may use it at the same time.
type Cache struct {
	mu      sync.Mutex
	modules map[[sha256.Size]byte]*module
}

// parse is the module of PTX.
func (c *Cache) parse(ptx []byte) (*module, error) {
	key := sha256.Sum256(ptx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.modules[key]; ok {
		return m, nil
	}
	m, err := parse(string(ptx))
	if err != nil {
		return nil, err
	}
	if c.modules == nil {
		c.modules = map[[sha256.Size]byte]*module{}
	}
	c.modules[key] = m
	return m, nil
}
