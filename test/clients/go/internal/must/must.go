// Package must ends a program at the first unexpected error and prints the line where it occurred.
package must

import (
	"log"
	"os"
)

var errors = log.New(os.Stderr, "", log.Lshortfile)

// Do checks a call without a result.
func Do(err error) {
	if err != nil {
		end(err)
	}
}

// Get returns the result of a call.
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
