// Package must ends a program at the first error that is none of its outcomes, with the line that met it.
package must

import (
	"log"
	"os"
)

var errors = log.New(os.Stderr, "", log.Lshortfile)

// Do is for calls without a result.
func Do(err error) {
	if err != nil {
		end(err)
	}
}

// Get is the result.
func Get[T any](value T, err error) T {
	if err != nil {
		end(err)
	}
	return value
}

func end(err error) {
	errors.Output(3, err.Error())
	os.Exit(1)
}
