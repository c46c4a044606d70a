package rest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	yaml "go.yaml.in/yaml/v3"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bodies that are small and stand for something large. Decoders bound most of it
// themselves: nesting of JSON and YAML (10,000), of CBOR (64) and its arrays; what
// they leave open is bounded here. Compressed bodies are not decompressed at all.

// maxDepth bounds the nesting of a kind that contains itself (the schema of a
// definition): protobuf has no limit of its own, and validating takes time that grows
// with the square of it.
const maxDepth = 1000

// boundCopies bounds what the "copy" operations of a JSON patch may add up to; the
// library has one limit for the process, which upstream sets to the same.
func boundCopies() { atomic.StoreInt64(&jsonpatch.AccumulatedCopySizeLimit, maxBody) }

// checkAliases refuses YAML that would be larger than a body may be once its aliases
// are written out: the library bounds how many there are, not how long they are.
func checkAliases(body []byte) error {
	if !anchors(body) {
		return nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(body, &doc); err != nil {
		return nil //nolint:nilerr // whoever converts it says what is wrong
	}
	sizes := map[*yaml.Node]int{}
	if size, err := expanded(&doc, sizes); err != nil || size > maxBody {
		return apierrors.NewBadRequest(fmt.Sprintf("error converting YAML to JSON: the document contains excessive aliasing: with its aliases written out it is larger than %d bytes", maxBody))
	}
	return nil
}

// anchors reports whether YAML may define an anchor: "&" before a name, at the
// beginning of a word.
func anchors(body []byte) bool {
	for i, b := range body {
		if b != '&' || i+1 == len(body) {
			continue
		}
		if i > 0 {
			switch body[i-1] {
			case ' ', '\t', '\n', '\r', '[', '{', ',', ':', '-', '?':
			default:
				continue
			}
		}
		switch c := body[i+1]; {
		case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c == '_', c == '-':
			return true
		}
	}
	return false
}

var errAliases = errors.New("aliases contain themselves or are too large")

// expanded returns how many bytes a node's scalars take when aliases are written out.
// sizes holds those of nodes with an anchor; -1 while they are being measured.
func expanded(n *yaml.Node, sizes map[*yaml.Node]int) (int, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if size, ok := sizes[n]; ok {
		if size < 0 {
			return 0, errAliases
		}
		return size, nil
	}
	if n.Anchor != "" {
		sizes[n] = -1
	}
	size := len(n.Value) + 2
	for _, child := range n.Content {
		more, err := expanded(child, sizes)
		if err != nil {
			return 0, err
		}
		if size += more; size > 2*maxBody {
			return 0, errAliases
		}
	}
	if n.Anchor != "" {
		sizes[n] = size
	}
	return size, nil
}

// maxErrors bounds the errors that a refusal names, in bytes: a small body can be wrong
// in very many places with very long paths.
const maxErrors = 256 << 10

// bounded returns the first errors of a list and how many are left out.
func bounded(errs field.ErrorList) (first field.ErrorList, left int) {
	size := 0
	for i, e := range errs {
		size += len(e.Field) + len(e.Detail)
		if size > maxErrors && i > 0 {
			return errs[:i:i], len(errs) - i
		}
	}
	return errs, 0
}

// nests reports whether objects of a kind contain others of the same kind.
func nests(obj runtime.Object) bool {
	switch obj.(type) {
	case *apiextensionsv1.CustomResourceDefinition, *apiextensionsv1beta1.CustomResourceDefinition:
		return true
	}
	return false
}

func tooDeep() error {
	return apierrors.NewBadRequest(fmt.Sprintf("the body of the request is nested more than %d levels deep", maxDepth))
}

// checkJSONDepth is checkProtobufDepth for JSON, right or wrong.
func checkJSONDepth(body []byte, into runtime.Object) error {
	if !nests(into) {
		return nil
	}
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return tooDeep()
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return nil
}

// checkProtobufDepth refuses messages of kinds that contain themselves which are
// nested so deep that decoding them would take the stack.
func checkProtobufDepth(body []byte, into runtime.Object) error {
	if !nests(into) {
		return nil
	}
	raw, err := rawOf(body)
	if err != nil {
		return nil //nolint:nilerr // whoever decodes it says what is wrong
	}
	// Every byte is the head of a field in at most one reading, so that this takes no
	// longer than reading the body once.
	type level struct{ rest []byte }
	stack := []level{{raw}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		field, rest, ok := nextField(top.rest)
		if !ok {
			stack = stack[:len(stack)-1]
			continue
		}
		top.rest = rest
		if len(field) == 0 {
			continue
		}
		if len(stack) > maxDepth {
			return tooDeep()
		}
		stack = append(stack, level{field})
	}
	return nil
}

// nextField reads one field of a message: the content of one that has a length, and
// what follows it. ok is false at the end and where data is no message.
func nextField(data []byte) (content, rest []byte, ok bool) {
	tag, n := binary.Uvarint(data)
	if n <= 0 || tag>>3 == 0 {
		return nil, nil, false
	}
	data = data[n:]
	switch tag & 7 {
	case 0:
		_, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, nil, false
		}
		return nil, data[n:], true
	case 1:
		if len(data) < 8 {
			return nil, nil, false
		}
		return nil, data[8:], true
	case 2:
		size, n := binary.Uvarint(data)
		if n <= 0 || size > uint64(len(data)-n) {
			return nil, nil, false
		}
		data = data[n:]
		return data[:size], data[size:], true
	case 5:
		if len(data) < 4 {
			return nil, nil, false
		}
		return nil, data[4:], true
	}
	return nil, nil, false
}
