//go:build !slow

package policy

// thorough says that the tests of equal bits try many shapes and all batch sizes.
const thorough = false
