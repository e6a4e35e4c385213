package eval

import "math"

// The settings of Creative Writing v3's ratings. It states no probability of a draw: there are none.
const (
	skillMu    = 1200 // of somebody who has not played
	skillSigma = 400
	skillBeta  = 200 // spread of what is shown in one match
	skillTau   = 4   // by which a skill may drift between two matches
)

// skill is a rating of TrueSkill (Herbrich, Minka and Graepel 2006): a normal distribution of what a player can do.
type skill struct{ mu, sigma float64 }

// beats updates two ratings after a match without a draw (ibid., eq. 2 to 5, with a draw margin of 0).
func (winner *skill) beats(loser *skill) {
	varW := winner.sigma*winner.sigma + skillTau*skillTau
	varL := loser.sigma*loser.sigma + skillTau*skillTau
	c := math.Sqrt(2*skillBeta*skillBeta + varW + varL)
	t := (winner.mu - loser.mu) / c
	density := math.Exp(-t*t/2) / math.Sqrt(2*math.Pi)
	v := density / (math.Erfc(-t/math.Sqrt2) / 2)
	w := v * (v + t)
	winner.mu += varW / c * v
	loser.mu -= varL / c * v
	winner.sigma = math.Sqrt(varW * (1 - varW/(c*c)*w))
	loser.sigma = math.Sqrt(varL * (1 - varL/(c*c)*w))
}
