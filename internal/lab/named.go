package lab

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// namedJSON decodes what is a name or an object in a plan. The name is a field of the object.
func namedJSON[T any](text []byte, what string, object *T, name *string) error {
	if len(text) > 0 && text[0] == '"' {
		*object = *new(T)
		return json.Unmarshal(text, name)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(object); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// namedYAML is namedJSON of YAML.
func namedYAML[T any](decode func(any) error, object *T, name *string) error {
	if err := decode(name); err == nil {
		return nil
	}
	return decode(object)
}
