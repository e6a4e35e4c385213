package data

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// readParquet reads the rows of a Parquet file. The library panics on some files that are not whole; here that is an error.
func readParquet(r io.ReaderAt, size int64, row yield) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("is not a whole Parquet file: %v", p)
		}
	}()
	if err := checkFooter(r, size); err != nil {
		return fmt.Errorf("is not a whole Parquet file: %w", err)
	}
	file, err := parquet.OpenFile(r, size)
	if err != nil {
		return fmt.Errorf("is not a whole Parquet file: %w", err)
	}
	for _, e := range file.Metadata().Schema {
		if _, ok := e.LogicalType.Value.(*format.Float16Type); ok {
			return fmt.Errorf("column %s holds 16-bit floats, which are not supported: store it as float32", e.Name)
		}
	}
	for _, group := range file.Metadata().RowGroups {
		for _, c := range group.Columns {
			// The library's decoder takes more and more memory for a damaged LZ4 page, until there is none.
			if c.MetaData.Codec == format.Lz4Raw {
				return fmt.Errorf("is compressed with LZ4, which is not supported: write it with zstd or snappy")
			}
		}
	}
	n := 0
	for _, group := range file.RowGroups() {
		if err := readGroup(file.Schema(), group, &n, row); err != nil {
			return fmt.Errorf("is not a whole Parquet file: after row %d: %w", n, err)
		}
	}
	return nil
}

// checkFooter checks the length that the end of the file gives for the footer, as the library takes as much memory as it says.
func checkFooter(r io.ReaderAt, size int64) error {
	var end [8]byte // length, magic
	if size < 12 {
		return io.ErrUnexpectedEOF
	}
	if _, err := r.ReadAt(end[:], size-8); err != nil {
		return err
	}
	if n := int64(binary.LittleEndian.Uint32(end[:4])); n > size-12 {
		return fmt.Errorf("its footer of %d bytes does not fit in its %d bytes", n, size)
	}
	return nil
}

// readGroup reads a row group; n counts the rows.
func readGroup(schema *parquet.Schema, group parquet.RowGroup, n *int, row yield) error {
	rows := group.Rows()
	defer rows.Close()
	buf := make([]parquet.Row, 64)
	left := group.NumRows()
	for left > 0 {
		k, err := rows.ReadRows(buf)
		for _, r := range buf[:k] {
			*n++
			if err := checkRow(r, len(schema.Columns())); err != nil {
				return err
			}
			var v any
			if err := schema.Reconstruct(&v, r); err != nil {
				return err
			}
			m, err := plain(v, schema)
			values, ok := m.(map[string]any)
			if err == nil && !ok {
				err = errors.New("is no object")
			}
			row(" row "+strconv.Itoa(*n), values, err)
		}
		left -= int64(k)
		if errors.Is(err, io.EOF) || err == nil && k == 0 {
			break
		} else if err != nil {
			return err
		}
	}
	if left != 0 {
		return fmt.Errorf("%d rows were announced, not that many are there", group.NumRows())
	}
	return nil
}

// checkRow checks that each column has values in the row. Of a row with a gap, the library would give one column's values
// to another.
func checkRow(row parquet.Row, columns int) error {
	seen := 0
	for _, v := range row {
		if c := v.Column(); c == seen {
			seen++
		} else if c != seen-1 {
			break
		}
	}
	if seen != columns {
		return fmt.Errorf("column %d has no value in the row", seen+1)
	}
	return nil
}

// plain turns what the library gives for node into what JSON would have given: nil, bool, int64, float64, string, lists, objects.
func plain(v any, node parquet.Node) (any, error) {
	x := reflect.ValueOf(v)
	for x.IsValid() && x.Kind() == reflect.Pointer {
		x = x.Elem()
	}
	switch {
	case !x.IsValid():
		return nil, nil
	case x.Kind() == reflect.Map:
		out := map[string]any{}
		for it := x.MapRange(); it.Next(); {
			key := fmt.Sprint(it.Key().Interface())
			item, err := plain(it.Value().Interface(), child(node, key))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			out[key] = item
		}
		return out, nil
	case x.Kind() == reflect.Slice && x.Type().Elem().Kind() != reflect.Uint8:
		out := make([]any, x.Len())
		for i := range out {
			item, err := plain(x.Index(i).Interface(), element(node))
			if err != nil {
				return nil, fmt.Errorf("item %d: %w", i+1, err)
			}
			out[i] = item
		}
		return out, nil
	}
	return scalar(x, node)
}

func scalar(x reflect.Value, node parquet.Node) (any, error) {
	switch {
	case x.Kind() == reflect.Bool:
		return x.Bool(), nil
	case x.Kind() == reflect.String:
		return x.String(), nil
	case x.Kind() == reflect.Slice:
		return string(x.Bytes()), nil
	case x.CanInt() && x.Int() < 0 && unsigned(node):
		return json.Number(strconv.FormatUint(uint64(x.Int()), 10)), nil
	case x.CanInt():
		return x.Int(), nil
	case x.CanUint():
		return int64(x.Uint()), nil // of 32 bits; those of 64 come as Int
	case x.CanFloat():
		return finite(x.Float())
	}
	return nil, fmt.Errorf("values of type %s are not supported", x.Type())
}

// finite is x, nil for NaN, which is how missing numbers are often stored.
func finite(x float64) (any, error) {
	if math.IsInf(x, 0) {
		return nil, errors.New("is infinite")
	}
	if math.IsNaN(x) {
		return nil, nil
	}
	return x, nil
}

// unsigned tells whether a column's whole numbers have no sign.
func unsigned(node parquet.Node) bool {
	if node == nil || !node.Leaf() || node.Type().LogicalType() == nil {
		return false
	}
	i, ok := node.Type().LogicalType().Value.(*format.IntType)
	return ok && !i.IsSigned
}

// child is the node of an object's key; nil if it has none, as in a map, whose values all have the same.
func child(node parquet.Node, key string) parquet.Node {
	if node == nil || node.Leaf() {
		return nil
	}
	for _, f := range node.Fields() {
		if f.Name() == key {
			return f
		}
	}
	if inner := node.Fields(); len(inner) == 1 && len(inner[0].Fields()) == 2 {
		return inner[0].Fields()[1] // map: key_value {key, value}
	}
	return nil
}

// element is the node of a list's items; the node itself if it is just repeated.
func element(node parquet.Node) parquet.Node {
	for range 2 { // list {element}
		if node == nil || node.Leaf() || len(node.Fields()) != 1 {
			return node
		}
		node = node.Fields()[0]
	}
	return node
}
