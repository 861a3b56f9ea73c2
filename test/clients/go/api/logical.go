package main

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"

	"transitd.test/clients/internal/must"
)

func logical(c *Client) Outcome {
	must.Do(c.Sys().Mount("paths", &MountInput{Type: "transit"}))
	empty := must.Get(c.Logical().List("paths/keys"))
	created := must.Get(c.Logical().Write("paths/keys/plain", nil))
	must.Get(c.Logical().Write("paths/keys/other", map[string]any{"type": "ed25519"}))
	bytes := must.Get(c.Logical().WriteBytes("paths/encrypt/plain", []byte(`{"plaintext":"aGVsbG8="}`)))
	listed := must.Get(c.Logical().List("paths/keys"))
	paged := must.Get(c.Logical().ReadWithData("paths/keys", map[string][]string{"list": {"true"}, "after": {"other"}, "limit": {"1"}}))
	raw := must.Get(c.Logical().ReadRaw("paths/keys/plain"))
	raw.Body.Close()
	must.Get(c.Logical().Write("paths/keys/other/config", map[string]any{"deletion_allowed": true}))
	deleted := must.Get(c.Logical().Delete("paths/keys/other"))
	_, patched := c.Logical().JSONMergePatch(context.Background(), "paths/keys/plain", map[string]any{"exportable": true})
	outcome := Outcome{
		"created":      created.Data["name"],
		"request_id":   created.RequestID != "",
		"listed":       listed.Data["keys"],
		"paged":        paged.Data["keys"],
		"read":         must.Get(c.Logical().Read("paths/keys/plain")).Data["latest_version"],
		"bytes":        bytes.Data["key_version"],
		"raw":          raw.StatusCode,
		"deleted":      deleted == nil,
		"missing":      must.Get(c.Logical().Read("paths/keys/other")) == nil,
		"missing_list": empty == nil,
		"patched":      statusOf(patched),
	}
	must.Do(c.Sys().Unmount("paths"))
	return outcome
}

func wrapping(c *Client) Outcome {
	must.Get(c.Logical().Write("transit/keys/sealed", nil))
	wrapper := withToken(c, c.Token())
	wrapper.SetWrappingLookupFunc(func(operation, path string) string {
		if operation == http.MethodGet {
			return ""
		}
		return "90"
	})
	wrap := func() string {
		return must.Get(wrapper.Logical().Write("transit/datakey/plaintext/sealed", nil)).WrapInfo.Token
	}
	wrapped := must.Get(wrapper.Logical().Write("transit/datakey/plaintext/sealed", nil))
	own := withToken(c, wrap())
	by := must.Get(own.Logical().Unwrap(""))
	lookup := must.Get(c.Logical().Write("sys/wrapping/lookup", map[string]any{"token": wrapped.WrapInfo.Token}))
	opened := must.Get(c.Logical().Unwrap(wrapped.WrapInfo.Token))
	_, twice := c.Logical().Unwrap(wrapped.WrapInfo.Token)
	plain := must.Get(c.Logical().Write("sys/wrapping/wrap", map[string]any{"note": "hello"})) // the response is always wrapped
	login := must.Get(wrapper.Auth().Token().Create(&TokenCreateRequest{TTL: "5m"}))
	token := must.Get(c.Logical().Unwrap(login.WrapInfo.Token))
	return Outcome{
		"ttl":          wrapped.WrapInfo.TTL,
		"path":         wrapped.WrapInfo.CreationPath,
		"empty":        wrapped.Data == nil,
		"not_for_read": must.Get(wrapper.Logical().Read("transit/keys/sealed")).WrapInfo == nil,
		"lookup":       lookup.Data["creation_path"],
		"opened":       len(must.Get(base64.StdEncoding.DecodeString(opened.Data["plaintext"].(string)))),
		"by_itself":    by.Data["ciphertext"] != nil,
		"twice":        statusOf(twice),
		"note":         must.Get(c.Logical().Unwrap(plain.WrapInfo.Token)).Data["note"],
		"accessor":     login.WrapInfo.WrappedAccessor == token.Auth.Accessor,
	}
}

func refusals(c *Client) Outcome {
	_, unknown := c.Logical().Write("transit/encrypt/none/sub", nil)
	_, invalid := c.Logical().Write("transit/decrypt/none", map[string]any{"ciphertext": "vault:v1:AAAA"})
	_, stranger := withToken(c, "s.nobody").Logical().Read("transit/keys/plain")
	_, nobody := withToken(c, "").Logical().Read("transit/keys/plain")
	elsewhere := withToken(c, c.Token())
	elsewhere.SetNamespace("team")
	_, namespace := elsewhere.Logical().Write("transit/random/8", nil)
	elsewhere.SetNamespace("root")
	_, rootNamespace := elsewhere.Logical().List("sys/policies/acl")
	return Outcome{
		"unknown":        statusOf(unknown),
		"invalid":        refusal(invalid),
		"stranger":       refusal(stranger),
		"nobody":         refusal(nobody),
		"namespace":      refusal(namespace),
		"root_namespace": refusal(rootNamespace),
		"raw":            refusal(c.Sys().Unmount("sys")),
	}
}

func limits(c *Client) Outcome {
	must.Get(c.Logical().Write("sys/quotas/config", map[string]any{"enable_rate_limit_response_headers": true}))
	must.Get(c.Logical().Write("sys/quotas/rate-limit/random", map[string]any{"path": "transit/random/8", "rate": 1, "interval": "1s"}))
	hasty := withToken(c, c.Token())
	hasty.SetMaxRetries(0)
	ask := func(c *Client) (*Response, error) {
		return c.RawRequest(c.NewRequest(http.MethodPost, "/v1/transit/random/8"))
	}
	first := must.Get(ask(hasty))
	var refused *Response
	var err error
	for asked := 0; err == nil && asked < 1_000; asked++ {
		refused, err = ask(hasty)
	}
	_, patient := ask(c) // this client waits for Retry-After and repeats the request
	return Outcome{
		"limit":       first.Header.Get("X-Ratelimit-Limit"),
		"remaining":   refused.Header.Get("X-Ratelimit-Remaining"),
		"retry_after": refused.Header.Get("Retry-After"),
		"refused":     statusOf(err),
		"patient":     statusOf(patient),
		"cleared":     must.Get(c.Logical().Delete("sys/quotas/rate-limit/random")) == nil,
	}
}

// index reads its own write: the client sends back the index header of the response to the write.
func index(c *Client) Outcome {
	must.Get(c.Logical().Write("transit/keys/indexed", nil))
	told := traffic.answered.Get("X-Vault-Index")
	must.Get(c.Logical().Write("transit/keys/indexed/rotate", nil))
	sent, newer := traffic.asked.Values("X-Vault-Index"), traffic.answered.Get("X-Vault-Index")
	latest := must.Get(c.Logical().Read("transit/keys/indexed")).Data["latest_version"]
	resent := traffic.asked.Values("X-Vault-Index")
	return Outcome{
		"told":   told != "" && newer != told,
		"sent":   slices.Equal(sent, []string{told}),
		"resent": slices.Equal(resent, []string{newer}),
		"latest": latest,
	}
}
