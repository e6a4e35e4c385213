package data

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

// Order is a permutation, another one in each epoch and for each seed, and the same one always.
func TestOrder(t *testing.T) {
	seen := map[string]bool{}
	for _, seed := range []uint64{0, 1, 42} {
		for epoch := range 5 {
			order := Order(100, seed, epoch)
			sorted := slices.Sorted(slices.Values(order))
			for i, x := range sorted {
				if i != x {
					t.Fatalf("seed %d, epoch %d: %v is no permutation", seed, epoch, order)
				}
			}
			key, err := json.Marshal(order)
			if err != nil {
				t.Fatal(err)
			}
			if seen[string(key)] {
				t.Errorf("seed %d, epoch %d repeats another order", seed, epoch)
			}
			seen[string(key)] = true
			if !reflect.DeepEqual(order, Order(100, seed, epoch)) {
				t.Error("the order is not a function of seed and epoch")
			}
		}
	}
	if len(Order(0, 1, 1)) != 0 || !reflect.DeepEqual(Order(1, 7, 3), []int{0}) {
		t.Error("no row and one row")
	}
}

// All 24 orders of 4 rows are equally likely: chi-square with 23 degrees of freedom stays below its 1-1e-6 quantile, 74.
func TestOrderUniform(t *testing.T) {
	const n = 24000
	count := map[[4]int]float64{}
	for epoch := range n {
		count[[4]int(Order(4, 99, epoch))]++
	}
	chi := 0.0
	for _, c := range count {
		chi += (c - n/24) * (c - n/24) / (n / 24)
	}
	if len(count) != 24 || chi > 74 {
		t.Errorf("%d orders, chi-square %v", len(count), chi)
	}
}

// As TRL's sampler: whole chunks of an epoch's order, the incomplete last one dropped, then the next epoch.
func TestCursor(t *testing.T) {
	c := NewCursor(7, true, 5)
	for epoch := range 3 {
		order := Order(7, 5, epoch)
		for k := range 2 {
			if got := c.Next(3); !reflect.DeepEqual(got, order[3*k:3*k+3]) {
				t.Errorf("epoch %d, chunk %d: %v, want %v", epoch, k, got, order[3*k:3*k+3])
			}
		}
	}
	c = NewCursor(4, false, 5)
	for range 2 {
		if a, b := c.Next(2), c.Next(2); !reflect.DeepEqual(append(a, b...), []int{0, 1, 2, 3}) {
			t.Errorf("without shuffle: %v %v", a, b)
		}
	}
	c = NewCursor(4, true, 5)
	if c.Next(5) != nil || c.Next(0) != nil {
		t.Error("more rows than there are, or none, cannot be had")
	}
}

// A cursor that was saved goes on where it was.
func TestCursorSave(t *testing.T) {
	a := NewCursor(10, true, 9)
	for range 7 {
		a.Next(4)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var b Cursor
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if x, y := a.Next(4), b.Next(4); !reflect.DeepEqual(x, y) {
			t.Errorf("%v after saving, %v without", y, x)
		}
	}
}
