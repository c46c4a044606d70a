package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// Client speaks to a Handler on a Unix socket.
type Client struct {
	socket string
	http   http.Client
}

// NewClient makes a client for the socket at a path. It connects when it is used.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{socket, http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Import sends an archive. name is for an image that the archive has no name for; it may be empty.
func (c *Client) Import(ctx context.Context, r io.Reader, name string) ([]Imported, error) {
	resp, err := c.do(ctx, http.MethodPost, "import", url.Values{"name": {name}}, io.NopCloser(r))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var a importAnswer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", c.socket, err)
	}
	return a.Images, nil
}

// Export writes an archive of images to w.
func (c *Client) Export(ctx context.Context, w io.Writer, refs ...string) error {
	resp, err := c.do(ctx, http.MethodGet, "export", url.Values{"ref": refs}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(w, resp.Body)
	return err
}

// Open returns an archive of images. The caller closes it.
func (c *Client) Open(ctx context.Context, refs ...string) (io.ReadCloser, error) {
	resp, err := c.do(ctx, http.MethodGet, "export", url.Values{"ref": refs}, nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

func (c *Client) do(ctx context.Context, method, what string, query url.Values, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://images/v1/images/"+what+"?"+query.Encode(), body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, fmt.Errorf("cannot reach the image service at %s: %w (is peri running?)", c.socket, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	var a errorAnswer
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&a); err != nil || a.Error == "" {
		return nil, fmt.Errorf("%s: unexpected status %s", c.socket, resp.Status)
	}
	return nil, errors.New(a.Error)
}
