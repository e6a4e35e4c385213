// Package grammar makes samples say JSON that a JSON Schema accepts: Compile reads the schema, NewVocab a tokenizer, and
// their Constraint masks the tokens that may come next. A constrained sample is always valid, even if the model is weak:
// a token is allowed only if the tokens that are left suffice to finish the value behind it.
//
// # Schemas
//
//   - true, false, type (also a list), nullable, enum, const, anyOf, oneOf, allOf of one schema, $ref to a place in the
//     same document
//   - objects: properties, required, additionalProperties; arrays: items, minItems, maxItems
//   - strings: minLength, maxLength (code points); numbers: minimum, maximum, exclusiveMinimum, exclusiveMaximum
//
// Annotations ($schema, title, description, default, examples and the like, and names that begin with x-) say nothing of
// what is valid and are ignored. Anything else is an error that names the keyword and where it stands. So are the
// keywords of a type beside $ref, anyOf, oneOf, allOf, enum or const, and alternatives of oneOf of which it is not plain
// that no value meets two.
//
// Some valid values are never said:
//
//   - an object's properties come in the order of the schema, those that only required names behind them, additional
//     ones last. An object whose schema lists properties and does not mention additionalProperties has no others.
//     Additional names hold no escapes; nothing keeps two of them apart.
//   - numbers are written as [-]digits[.digits] with at most 15 digits in all and 6 behind the point, so that a float64
//     tells them apart; integers have no point, and neither -0 nor -0.0 is written
//   - the characters of names and of enum and const values are escaped where JSON demands it and nowhere else; numbers in
//     enum and const look as in the schema
//   - a type that only keywords hint at (properties without type) is that type
//   - a definition that contains itself is unfolded 16 times, a value of any type is at most 4 arrays or objects deep
//
// White space is at most one space behind a comma or colon.
//
// # How it works
//
// A schema becomes a regular expression over bytes (build.go), hash-consed. Its derivatives by bytes (derive.go) are
// the states of an automaton that is made as it is walked: what may follow. A mask is a walk of the automaton over a
// trie of the vocabulary (vocab.go, mask.go). It is kept with its state, in bounded memory, for all samples of a
// constraint. A state knows the fewest bytes that finish the value, and every byte that texts may hold is a token, so
// that what is left can be finished in as many tokens.
package grammar
