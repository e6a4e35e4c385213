// Package serve answers OpenAI's HTTP protocol with a model in this process and its adapters: chat and text completions, streamed or
// whole, embeddings, the list of models, adapters that come and go while it runs. Requests are generated together (policy.Session) and share
// what they have in common; what one gets does not depend on the others.
package serve
