// Performs the usual operations of services with the Go client and prints the results as JSON. Built with the tag openbao it uses the
// client of OpenBao, otherwise that of Vault. The calls are the same, since one is a fork of the other.
//
// Usage: api EXERCISE, with the node's address in TRANSITD_ADDR, a token in TRANSITD_TOKEN, and in TRANSITD_CA the file of a private
// authority that certifies the node.
package main

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"

	"transitd.test/clients/internal/must"
)

// Outcome is the result that the test compares.
type Outcome map[string]any

var exercises = map[string]func(*Client) Outcome{
	"auth":     auth,
	"failover": failover,
	"init":     initialize,
	"limits":   limits,
	"logical":  logical,
	"logins":   logins,
	"mounts":   mounts,
	"policies": policies,
	"raft":     raft,
	"refusals": refusals,
	"status":   status,
	"tokens":   tokens,
	"transit":  transit,
	"import":   importKey,
	"index":    index,
	"watcher":  watcher,
	"wrapping": wrapping,
}

func main() {
	log.SetFlags(log.Lshortfile)
	exercise, known := exercises[os.Args[1]]
	if !known {
		log.Fatalf("no exercise %q", os.Args[1])
	}
	client := must.Get(newClient(os.Getenv("TRANSITD_ADDR"), &TLSConfig{CACert: os.Getenv("TRANSITD_CA")}))
	client.SetToken(os.Getenv("TRANSITD_TOKEN"))
	must.Do(json.NewEncoder(os.Stdout).Encode(exercise(client)))
}

// traffic has the headers of the last request of this program and of its response, as sent.
var traffic struct{ asked, answered http.Header }

// recorder is an HTTP transport that keeps the headers of each request in traffic.
type recorder struct{ next http.RoundTripper }

func (r recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil {
		traffic.asked, traffic.answered = request.Header, response.Header
	}
	return response, err
}

// withToken returns a client with another token for the same node.
func withToken(c *Client, token string) *Client {
	other := must.Get(c.Clone())
	other.SetToken(token)
	return other
}

// refusal returns the error that the client reports; nil if there is none.
func refusal(err error) any {
	if err == nil {
		return nil
	}
	var refused *ResponseError
	if !errors.As(err, &refused) {
		return err.Error()
	}
	return Outcome{"status": refused.StatusCode, "errors": refused.Errors}
}

// statusOf returns only the status, for errors whose text may change.
func statusOf(err error) int {
	var refused *ResponseError
	if !errors.As(err, &refused) {
		return 0
	}
	return refused.StatusCode
}
