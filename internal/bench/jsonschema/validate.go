package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Validate returns what is wrong with a document, nil if it follows the schema.
func Validate(schema, document []byte) []error {
	var s map[string]any
	if err := decode(schema, &s); err != nil {
		return []error{fmt.Errorf("schema: %w", err)}
	}
	var d any
	if err := decode(document, &d); err != nil {
		return []error{fmt.Errorf("document: %w", err)}
	}
	v := validator{root: s}
	v.check(s, d, "$")
	return v.errs
}

func decode(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.More() {
		return fmt.Errorf("more than one value")
	}
	return nil
}

type validator struct {
	root map[string]any
	errs []error
}

func (v *validator) fail(path, format string, args ...any) {
	v.errs = append(v.errs, fmt.Errorf("%s: %s", path, fmt.Sprintf(format, args...)))
}

// check compares value with every keyword of a schema.
func (v *validator) check(schema map[string]any, value any, path string) {
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		arg := schema[keyword]
		switch keyword {
		case "$schema", "$id", "$defs", "title", "description":
		case "$ref":
			v.reference(arg.(string), value, path)
		case "const":
			if !reflect.DeepEqual(arg, value) {
				v.fail(path, "is %v, not %v", value, arg)
			}
		case "enum":
			if !slices.ContainsFunc(arg.([]any), func(a any) bool { return reflect.DeepEqual(a, value) }) {
				v.fail(path, "is %v, not one of %v", value, arg)
			}
		case "type":
			v.typed(arg, value, path)
		case "minimum":
			v.minimum(arg.(json.Number), value, path)
		case "pattern":
			if s, ok := value.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(s) {
				v.fail(path, "%q does not match %s", s, arg)
			}
		case "items", "minItems", "maxItems":
			if list, ok := value.([]any); ok {
				v.list(keyword, arg, list, path)
			}
		case "properties", "required", "additionalProperties":
			if object, ok := value.(map[string]any); ok {
				v.object(keyword, arg, schema, object, path)
			}
		default:
			v.fail(path, "the schema uses %q, which is not known", keyword)
		}
	}
}

func (v *validator) reference(ref string, value any, path string) {
	name, local := strings.CutPrefix(ref, "#/$defs/")
	defs, _ := v.root["$defs"].(map[string]any)
	def, ok := defs[name].(map[string]any)
	if !local || !ok {
		v.fail(path, "the schema refers to %q, which is not there", ref)
		return
	}
	v.check(def, value, path)
}

func (v *validator) typed(arg, value any, path string) {
	names, ok := arg.([]any)
	if !ok {
		names = []any{arg}
	}
	if !slices.ContainsFunc(names, func(name any) bool { return isType(name.(string), value) }) {
		v.fail(path, "%v is not of type %v", value, arg)
	}
}

func isType(name string, value any) bool {
	switch value := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case json.Number:
		return name == "number" || name == "integer" && !strings.ContainsAny(value.String(), ".eE")
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	}
	return false
}

func (v *validator) minimum(arg json.Number, value any, path string) {
	number, ok := value.(json.Number)
	if !ok {
		return
	}
	least, _ := new(big.Rat).SetString(arg.String())
	got, _ := new(big.Rat).SetString(number.String())
	if got.Cmp(least) < 0 {
		v.fail(path, "%s is below %s", number, arg)
	}
}

func (v *validator) list(keyword string, arg any, list []any, path string) {
	if keyword == "items" {
		for i, item := range list {
			v.check(arg.(map[string]any), item, fmt.Sprintf("%s[%d]", path, i))
		}
		return
	}
	n, _ := arg.(json.Number).Int64()
	if keyword == "minItems" && int64(len(list)) < n || keyword == "maxItems" && int64(len(list)) > n {
		v.fail(path, "has %d items, %s is %d", len(list), keyword, n)
	}
}

func (v *validator) object(keyword string, arg any, schema, object map[string]any, path string) {
	properties, _ := schema["properties"].(map[string]any)
	switch keyword {
	case "required":
		for _, name := range arg.([]any) {
			if _, ok := object[name.(string)]; !ok {
				v.fail(path, "%s is missing", name)
			}
		}
	case "properties":
		for name, sub := range properties {
			if value, ok := object[name]; ok {
				v.check(sub.(map[string]any), value, path+"."+name)
			}
		}
	case "additionalProperties":
		for name, value := range object {
			if _, known := properties[name]; known {
				continue
			}
			if sub, ok := arg.(map[string]any); ok {
				v.check(sub, value, path+"."+name)
			} else if arg == false {
				v.fail(path, "%s is not in the schema", name)
			}
		}
	}
}
