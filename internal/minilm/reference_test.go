package minilm

import "math"

// reference is the encoder by its formulas.
func reference(w map[string][]float32, ids []int) []float64 {
	var x [][]float64
	for i, id := range ids {
		row := make([]float64, tinyWidth)
		for j := range row {
			row[j] = float64(w["embeddings.word_embeddings.weight"][id*tinyWidth+j]) +
				float64(w["embeddings.position_embeddings.weight"][i*tinyWidth+j]) + float64(w["embeddings.token_type_embeddings.weight"][j])
		}
		x = append(x, refNorm(w, "embeddings.LayerNorm", row))
	}
	for _, at := range []string{"encoder.layer.0.", "encoder.layer.1."} {
		q, k, v := refDense(w, at+"attention.self.query", x), refDense(w, at+"attention.self.key", x), refDense(w, at+"attention.self.value", x)
		mixed := refDense(w, at+"attention.output.dense", refAttention(q, k, v))
		for i := range x {
			x[i] = refNorm(w, at+"attention.output.LayerNorm", refSum(x[i], mixed[i]))
		}
		inner := refDense(w, at+"intermediate.dense", x)
		for _, row := range inner {
			for j, a := range row {
				row[j] = a * math.Erfc(-a/math.Sqrt2) / 2
			}
		}
		out := refDense(w, at+"output.dense", inner)
		for i := range x {
			x[i] = refNorm(w, at+"output.LayerNorm", refSum(x[i], out[i]))
		}
	}
	mean, norm := make([]float64, tinyWidth), 0.0
	for _, row := range x {
		mean = refSum(mean, row)
	}
	for _, a := range mean {
		norm += a * a
	}
	for j := range mean {
		mean[j] /= math.Sqrt(norm)
	}
	return mean
}

func refAttention(q, k, v [][]float64) (out [][]float64) {
	const d = tinyWidth / tinyHeads
	for i := range q {
		row := make([]float64, tinyWidth)
		for h := 0; h < tinyWidth; h += d {
			var weights []float64
			sum := 0.0
			for j := range k {
				dot := 0.0
				for c := h; c < h+d; c++ {
					dot += q[i][c] * k[j][c]
				}
				weights = append(weights, math.Exp(dot/math.Sqrt(d)))
				sum += weights[j]
			}
			for j := range v {
				for c := h; c < h+d; c++ {
					row[c] += weights[j] / sum * v[j][c]
				}
			}
		}
		out = append(out, row)
	}
	return out
}

func refDense(w map[string][]float32, name string, x [][]float64) (out [][]float64) {
	weight, bias := w[name+".weight"], w[name+".bias"]
	for _, row := range x {
		y := make([]float64, len(bias))
		for j := range y {
			y[j] = float64(bias[j])
			for c, a := range row {
				y[j] += a * float64(weight[j*len(row)+c])
			}
		}
		out = append(out, y)
	}
	return out
}

func refNorm(w map[string][]float32, name string, x []float64) []float64 {
	mean, variance := 0.0, 0.0
	for _, a := range x {
		mean += a / float64(len(x))
	}
	for _, a := range x {
		variance += (a - mean) * (a - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for j, a := range x {
		y[j] = (a-mean)/math.Sqrt(variance+tinyEps)*float64(w[name+".weight"][j]) + float64(w[name+".bias"][j])
	}
	return y
}

func refSum(a, b []float64) []float64 {
	sum := make([]float64, len(a))
	for j := range sum {
		sum[j] = a[j] + b[j]
	}
	return sum
}
