// Package jsonschema checks JSON documents against the schemas in
// docs/json-schema. It knows the part of JSON Schema that they use and refuses a
// schema that uses more. It serves the tests of the reports.
package jsonschema
