package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/client-go/kubernetes"
)

// measureWatchers has a thousand watchers see a thousand updates.
func measureWatchers(ctx context.Context, b *bench) (err error) {
	s, err := b.openServer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	c, err := s.cluster()
	if err != nil {
		return err
	}
	if err := c.makeNamespace(ctx); err != nil {
		return err
	}
	many := *b
	many.watches = b.watchers
	a := &api{bench: &many, cluster: c}
	if err := a.connect(ctx); err != nil {
		return err
	}
	if err := a.makeWatched(ctx); err != nil {
		return err
	}
	for _, form := range []struct {
		name string
		receiver
	}{{"protobuf", receiveRaw}, {"json", receiveLines}} {
		if err := a.deliver(ctx, form.name, "", form.receiver); err != nil {
			return fmt.Errorf("%s: %w", form.name, err)
		}
	}
	b.results = many.results
	return nil
}

// receiveLines looks for the time in the lines of a watch in JSON.
func receiveLines(ctx context.Context, c *kubernetes.Clientset, revision string, opened func(), seen func(int64)) error {
	body, err := c.CoreV1().RESTClient().Get().Namespace(namespace).Resource("configmaps").
		SetHeader("Accept", mediaJSON).Param("watch", "1").Param("resourceVersion", revision).Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	opened()
	r := bufio.NewReader(body)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if _, after, ok := bytes.Cut(line, []byte(sent)); ok && len(after) >= 19 {
			t, err := strconv.ParseInt(string(after[:19]), 10, 64)
			if err != nil {
				return err
			}
			seen(t)
		}
	}
}
