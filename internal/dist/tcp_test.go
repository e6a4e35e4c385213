package dist

import (
	"net"
	"testing"
)

// Whatever a stranger says to the port at which ranks meet is an error or a hello.
func FuzzHello(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.0\r\n\r\n"))
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, said []byte) {
		here, there := net.Pipe()
		go func() {
			there.Write(said)
			there.Close()
		}()
		defer here.Close()
		var h hello
		if err := hear(here, &h); err == nil && len(said) < len("........{}") {
			t.Errorf("%q is %+v", said, h)
		}
	})
}
