package instruct

import "testing"

// The number of single characters in PyPI emoji 2.16.0, and characters next to ends of its ranges.
func TestEmojiTable(t *testing.T) {
	n := 0
	for r := range rune(0x110000) {
		if isEmoji(r) {
			n++
		}
	}
	if n != 1409 {
		t.Errorf("%d emoji, the list has 1,409", n)
	}
	for r, want := range map[rune]bool{'©': true, '®': true, '#': false, '1': false, '☀': true, '★': false, '😀': true, '🏽': true, 0x200d: false, 0xfe0f: false} {
		if isEmoji(r) != want {
			t.Errorf("isEmoji(%U) = %v", r, !want)
		}
	}
}
