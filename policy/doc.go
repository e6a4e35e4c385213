// Package policy is the model: frozen weights and any number of named adapter sets on one device, forward and
// backward over a forest of token segments, and sampling over the same forest.
//
// A Model computes everything through a device.Device, in the same few functions whatever it is asked for:
//
//	layout.go    a Forest as rows: tokens, positions, attention tasks, what each scored token is predicted from
//	layers.go    the layers, forward; backward.go the same, backward
//	net.go       the model as one pass sees it: an adapter's parts, dropout, where gradients go
//	forward.go   Forward and Pass: the head's outputs, KL against another set, pooled states (pooled.go)
//	decode.go    generation's step and the queue of samples; kvcache.go where their keys and values lie
//	params.go    what is trained, as one flat vector; optim.go moves it
//
// Without gradients nothing is kept of a layer. With them each layer's input is, and Backward computes the rest
// again; ForwardOptions.KeepAll keeps it. The q, k and v projections are one product, and so are gate and up.
//
// Generation feeds a prompt without its last token once for all its samples. A sample is a node below that begins with
// the last token, so that its first step is like all others, and that owns the pages of the tokens it adds. When pages
// run out the samples begun last give theirs back and are computed again later, which changes no bit of them on an
// Invariant device.
//
// An architecture is a file with a family (llama.go) and its line in arch.go.
package policy
