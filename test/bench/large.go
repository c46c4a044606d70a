package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// largeLists is how often a large collection is listed.
	largeLists = 5
	// forgetful is how long a server remembers changes, and then some.
	forgetful = 85 * time.Second
)

// measureLarge fills a server with pods and as many ConfigMaps: what a pod takes of
// memory, what lists cost, and what a start with all that does.
func measureLarge(ctx context.Context, b *bench) (err error) {
	s, err := b.openServer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	c, err := s.cluster()
	if err != nil {
		return err
	}
	spaces := max(1, b.many/5000) // of 5,000 each
	for i := range spaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space(i)}}
		if _, err := c.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := wait(ctx, b.settle); err != nil {
		return err
	}
	empty, err := s.usage()
	if err != nil {
		return err
	}
	b.memory("server without objects", empty, "", "")
	if err := s.fill(ctx, &subjects[1], spaces); err != nil {
		return err
	}
	if err := s.weigh(fmt.Sprintf("right after %d pods", b.many), empty); err != nil {
		return err
	}
	if err := wait(ctx, forgetful); err != nil {
		return err
	}
	if err := s.weigh(fmt.Sprintf("%d pods", b.many), empty); err != nil {
		return err
	}
	for _, media := range []string{mediaProtobuf, mediaJSON} {
		if err := s.lists(ctx, media); err != nil {
			return err
		}
	}
	if err := wait(ctx, b.settle); err != nil {
		return err
	}
	if err := s.weigh(fmt.Sprintf("%d pods, after lists in both forms", b.many), empty); err != nil {
		return err
	}
	if err := s.fill(ctx, &subjects[0], spaces); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	return s.again(ctx)
}

func space(i int) string { return fmt.Sprintf("space-%d", i) }

// fill makes as many objects of a kind.
func (s *server) fill(ctx context.Context, k *subject, spaces int) error {
	whole, err := encode(k.make("object-000000"), mediaProtobuf)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("create %d times %s", s.many, k.name)
	r, err := s.flood(ctx, what, s.many, func(i int) raw {
		// The names have the same length.
		body := strings.Replace(string(whole), "object-000000", fmt.Sprintf("object-%06d", i), 1)
		return raw{method: http.MethodPost, path: "/api/v1/namespaces/" + space(i%spaces) + "/" + k.resource, media: mediaProtobuf, body: []byte(body)}
	})
	if err != nil {
		return err
	}
	s.rate(what, r, 0)
	return nil
}

// weigh adds what is resident, for each object.
func (s *server) weigh(name string, empty usage) error {
	u, err := s.usage()
	if err != nil {
		return err
	}
	s.memory(name, u, "", "")
	s.results.add(figure{Name: name + ", memory of each", Unit: "KiB", Value: (u.Anon - empty.Anon) * 1024 / float64(s.many), Note: "anonymous, less that of the server without objects"})
	return nil
}

// lists lists a namespace and everything.
func (s *server) lists(ctx context.Context, media string) error {
	form := media[strings.LastIndexAny(media, "/.")+1:]
	for _, l := range []struct {
		name, path string
	}{
		{fmt.Sprintf("list %d pods, %s", min(5000, s.many), form), "/api/v1/namespaces/" + space(0) + "/pods"},
		{fmt.Sprintf("list %d pods, %s", s.many, form), "/api/v1/pods"},
	} {
		before, err := s.usage()
		if err != nil {
			return err
		}
		var took []time.Duration
		size := int64(0)
		for range largeLists {
			begin := time.Now()
			n, err := s.do(ctx, s.clients[0], raw{method: http.MethodGet, path: l.path, media: media})
			if err != nil {
				return err
			}
			took = append(took, time.Since(begin))
			size = n
		}
		after, err := s.usage()
		if err != nil {
			return err
		}
		s.results.durations(l.name, took, "", "")
		last := &s.results[len(s.results)-1]
		cpu := (after.CPU - before.CPU) / largeLists
		last.Note = fmt.Sprintf("%.1f MiB; %.0f ms of CPU each, %.0f MiB/s of it", float64(size)/(1<<20), ms(cpu), float64(size)/(1<<20)/max(cpu, tick/largeLists).Seconds())
	}
	return nil
}

// again starts the server with what has been stored.
func (s *server) again(ctx context.Context) error {
	begin := time.Now()
	up := make(chan error, 1)
	go func() { up <- s.start(ctx) }()
	if err := awaitReadyz(ctx, s.machine); err != nil {
		return errors.Join(err, <-up)
	}
	s.results.add(figure{Name: fmt.Sprintf("start with %d objects → /readyz", 2*s.many), Unit: "ms", Value: ms(time.Since(begin))})
	if err := <-up; err != nil {
		return err
	}
	u, err := s.usage()
	if err != nil {
		return err
	}
	s.memory(fmt.Sprintf("started with %d objects", 2*s.many), u, "", "")
	s.results[len(s.results)-1].Note += fmt.Sprintf("; %.1f s of CPU so far", u.CPU.Seconds())
	if err := wait(ctx, s.settle); err != nil {
		return err
	}
	if u, err = s.usage(); err != nil {
		return err
	}
	s.memory(fmt.Sprintf("%d objects, after a while", 2*s.many), u, "", "")
	return nil
}
