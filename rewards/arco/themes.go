package arco

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards"
)

// Width says what the K criteria of steps have in common (ARCO, sec. 4.5, Figure 4): means over steps.
type Width struct {
	Steps      int     `json:"steps"`
	K          float64 `json:"k"`
	Themes     float64 `json:"themes"`      // distinct ones, clusters of a step's criteria
	ThemeRatio float64 `json:"theme_ratio"` // themes by K
	Exact      float64 `json:"exact"`       // share of criteria whose text an earlier one of the step has
	Duplicates float64 `json:"duplicates"`  // share of criteria whose theme an earlier one of the step has
	Range      float64 `json:"range"`       // highest minus lowest score within a theme of several criteria; 0 if there is none
}

// themeCosine is the least cosine of a criterion to the centre of its theme. The paper does not say how it chose the number of clusters: here it is
// the smallest with which every criterion is so near.
const themeCosine = 0.8

// Themes measures the criteria of steps, whose texts embedder compares.
func Themes(ctx context.Context, steps []Step, embedder rewards.Embedder, seed uint64) (Width, error) {
	var w Width
	ranges := 0.0
	for _, s := range steps {
		texts, scores := s.written()
		if len(texts) == 0 {
			continue
		}
		vectors, err := embedder.Embed(ctx, texts)
		if err != nil {
			return w, fmt.Errorf("embed criteria: %w", err)
		}
		theme := cluster(vectors, rand.New(rand.NewPCG(seed, uint64(w.Steps))))
		k, n := float64(slices.Max(theme)+1), float64(len(texts))
		w.Steps++
		w.K += n
		w.Themes += k
		w.ThemeRatio += k / n
		w.Duplicates += 1 - k/n
		w.Exact += 1 - float64(len(slices.Compact(slices.Sorted(slices.Values(texts)))))/n
		for c := range int(k) {
			low, high, in := math.Inf(1), math.Inf(-1), 0
			for i, at := range theme {
				if at == c {
					low, high, in = math.Min(low, scores[i]), math.Max(high, scores[i]), in+1
				}
			}
			if in > 1 {
				w.Range += high - low
				ranges++
			}
		}
	}
	n := math.Max(1, float64(w.Steps))
	for _, v := range []*float64{&w.K, &w.Themes, &w.ThemeRatio, &w.Exact, &w.Duplicates} {
		*v /= n
	}
	w.Range /= math.Max(1, ranges)
	return w, nil
}

// written are a step's criteria that are there, with their scores.
func (s Step) written() (texts []string, scores []float64) {
	for i, c := range s.Criteria {
		if strings.TrimSpace(c) != "" && i < len(s.Scores) {
			texts, scores = append(texts, c), append(scores, s.Scores[i])
		}
	}
	return texts, scores
}

// cluster numbers the theme of each vector: k-means with the fewest clusters that keep every vector near its centre.
func cluster(vectors [][]float32, random *rand.Rand) []int {
	unit := make([][]float64, len(vectors))
	for i, v := range vectors {
		unit[i] = normed(v)
	}
	for k := 1; ; k++ {
		theme, near := means(unit, k, random)
		if near || k == len(unit) {
			return renumbered(theme)
		}
	}
}

func normed(v []float32) []float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x) / math.Max(math.Sqrt(sum), 1e-30)
	}
	return out
}

// tries of k-means from different beginnings, and rounds of each.
const tries, rounds = 8, 20

// means is k-means of unit vectors by cosine; near tells whether all are near their centre in one of the tries.
func means(unit [][]float64, k int, random *rand.Rand) (theme []int, near bool) {
	for range tries {
		centres := make([][]float64, k)
		for c, i := range random.Perm(len(unit))[:k] {
			centres[c] = unit[i]
		}
		theme = make([]int, len(unit))
		for range rounds {
			for i, v := range unit {
				theme[i] = closest(centres, v)
			}
			for c := range centres {
				centres[c] = centre(unit, theme, c, centres[c])
			}
		}
		near = true
		for i, v := range unit {
			near = near && dot(centres[theme[i]], v) >= themeCosine
		}
		if near {
			return theme, true
		}
	}
	return theme, false
}

func closest(centres [][]float64, v []float64) int {
	best := 0
	for c := range centres {
		if dot(centres[c], v) > dot(centres[best], v) {
			best = c
		}
	}
	return best
}

// centre is the direction of the mean of theme c, or was if it is empty.
func centre(unit [][]float64, theme []int, c int, was []float64) []float64 {
	sum := make([]float64, len(unit[0]))
	for i, v := range unit {
		if theme[i] != c {
			continue
		}
		for d, x := range v {
			sum[d] += x
		}
	}
	length := math.Sqrt(dot(sum, sum))
	if length == 0 {
		return was
	}
	for d := range sum {
		sum[d] /= length
	}
	return sum
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// renumbered are themes by their first appearance, without gaps.
func renumbered(theme []int) []int {
	number := map[int]int{}
	out := make([]int, len(theme))
	for i, c := range theme {
		if _, seen := number[c]; !seen {
			number[c] = len(number)
		}
		out[i] = number[c]
	}
	return out
}
