package gguftest

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/half"
)

// Quantise turns float32 matrices into Q4_1, the embedding into Q8_0, and those whose rows are not whole blocks into
// BF16.
func (b *File) Quantise() error {
	const q4, q8, bf16, block = 3, 8, 30, 32
	for i := range b.Tensors {
		t := &b.Tensors[i]
		if len(t.Shape) != 2 {
			continue
		}
		values := make([]float32, len(t.Data)/4)
		for i := range values {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
		}
		t.Data = nil
		if t.Shape[1]%block != 0 {
			t.Type = bf16
			for _, v := range values {
				t.Data = binary.LittleEndian.AppendUint16(t.Data, half.ToBF16(v))
			}
			continue
		}
		dtype := device.Int4
		if t.Type = q4; strings.HasPrefix(t.Name, "token_embd") {
			t.Type, dtype = q8, device.Int8
		}
		q := device.NewQuant(dtype, len(values)/block, block)
		if err := q.Quantise(values); err != nil {
			return err
		}
		for r := range q.Rows {
			t.Data = append(t.Data, encode(q.RowsOf(r, r+1))...)
		}
	}
	return nil
}

// encode is a block of Q8_0 or Q4_1.
func encode(q device.Quant) []byte {
	b := binary.LittleEndian.AppendUint16(nil, q.Scale[0])
	if q.DType == device.Int8 {
		for _, c := range q.Codes {
			b = append(b, byte(c))
		}
		return b
	}
	b = binary.LittleEndian.AppendUint16(b, q.Min[0])
	for i := range len(q.Codes) / 2 {
		b = append(b, byte(q.Codes[i]|q.Codes[i+len(q.Codes)/2]<<4))
	}
	return b
}
