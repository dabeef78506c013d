package jsonschema

import (
	"strings"
	"testing"

	"github.com/sluice-engine/sluice/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const schema = `{
  "$schema": "x", "title": "t", "type": "object", "required": ["n", "kind"], "additionalProperties": false,
  "properties": {
    "n": {"type": "integer", "minimum": 0},
    "kind": {"enum": ["a", "b"]}, "one": {"const": "1"},
    "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"$ref": "#/$defs/item"}},
    "any": {"type": ["string", "null"], "pattern": "^x"},
    "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
    "f": {"type": "number"}, "lost": {"$ref": "#/$defs/nowhere"}, "odd": {"format": "date"}
  },
  "$defs": {"item": {"type": "string"}}
}`

func TestValidate(t *testing.T) {
	for document, want := range map[string]string{
		`{"n": 0, "kind": "a"}`: "",
		`{"n": 9007199254740993, "kind": "b", "one": "1", "list": ["x", "y"], "any": null, "map": {"k": true}, "f": 1.5}`: "",
		`{"kind": "a"}`:                             "$: n is missing",
		`{"n": 1.5, "kind": "a"}`:                   "$.n: 1.5 is not of type integer",
		`{"n": -1, "kind": "a"}`:                    "$.n: -1 is below 0",
		`{"n": "1", "kind": "a"}`:                   "$.n: 1 is not of type integer",
		`{"n": 1, "kind": "c"}`:                     "$.kind: is c, not one of [a b]",
		`{"n": 1, "kind": "a", "one": "2"}`:         "$.one: is 2, not 1",
		`{"n": 1, "kind": "a", "list": []}`:         "$.list: has 0 items, minItems is 1",
		`{"n": 1, "kind": "a", "list": ["", 1]}`:    "$.list[1]: 1 is not of type string",
		`{"n": 1, "kind": "a", "list": ["","",""]}`: "$.list: has 3 items, maxItems is 2",
		`{"n": 1, "kind": "a", "any": "y"}`:         `$.any: "y" does not match ^x`,
		`{"n": 1, "kind": "a", "any": 1}`:           "$.any: 1 is not of type [string null]",
		`{"n": 1, "kind": "a", "map": {"k": 1}}`:    "$.map.k: 1 is not of type boolean",
		`{"n": 1, "kind": "a", "more": 1}`:          "$: more is not in the schema",
		`{"n": 1, "kind": "a", "lost": 1}`:          `$.lost: the schema refers to "#/$defs/nowhere", which is not there`,
		`{"n": 1, "kind": "a", "odd": 1}`:           `$.odd: the schema uses "format", which is not known`,
		`[]`:                                        "$: [] is not of type object",
		`{"n": 1`:                                   "document: unexpected EOF",
		`{} {}`:                                     "document: more than one value",
	} {
		var got []string
		for _, err := range Validate([]byte(schema), []byte(document)) {
			got = append(got, err.Error())
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s: %q, want %q", document, got, want)
		}
	}
	if errs := Validate([]byte("{"), []byte("{}")); len(errs) != 1 {
		t.Error(errs)
	}
}
