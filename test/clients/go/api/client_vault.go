//go:build !openbao

package main

import (
	"github.com/hashicorp/vault/api"
	"github.com/hashicorp/vault/api/auth/approle"
	"github.com/hashicorp/vault/api/auth/kubernetes"
	"github.com/hashicorp/vault/api/auth/userpass"
)

type (
	Client               = api.Client
	Secret               = api.Secret
	Response             = api.Response
	ResponseError        = api.ResponseError
	InitRequest          = api.InitRequest
	MountInput           = api.MountInput
	MountOutput          = api.MountOutput
	MountConfigInput     = api.MountConfigInput
	EnableAuthOptions    = api.EnableAuthOptions
	TokenCreateRequest   = api.TokenCreateRequest
	LifetimeWatcherInput = api.LifetimeWatcherInput
	TLSConfig            = api.TLSConfig
	AuthMethod           = api.AuthMethod
	Password             = userpass.Password
	SecretID             = approle.SecretID
)

// The client's own helpers for logins.
var (
	newUserpassAuth             = userpass.NewUserpassAuth
	newAppRoleAuth              = approle.NewAppRoleAuth
	withWrappingToken           = approle.WithWrappingToken
	newKubernetesAuth           = kubernetes.NewKubernetesAuth
	withServiceAccountTokenPath = kubernetes.WithServiceAccountTokenPath
)

// newClient returns a client with the option to read its own writes on every node.
func newClient(address string, tls *TLSConfig) (*Client, error) {
	config := api.DefaultConfig()
	config.Address = address
	if err := config.ConfigureTLS(tls); err != nil {
		return nil, err
	}
	config.HttpClient.Transport = recorder{config.HttpClient.Transport}
	config.ReadYourWrites = true
	return api.NewClient(config)
}

func mountAt(c *Client, path string) (*MountOutput, error) { return c.Sys().GetMount(path) }

// newShares replaces the shares of the seal by two new ones. The client's own functions use paths that transitd does not serve.
func newShares(c *Client, shares []string) ([]any, error) {
	updated, err := c.Logical().Write("sys/rotate/root/init", map[string]any{"secret_shares": 2, "secret_threshold": 2})
	if err != nil {
		return nil, err
	}
	nonce := updated.Data["nonce"]
	for _, share := range shares {
		if updated, err = c.Logical().Write("sys/rotate/root/update", map[string]any{"key": share, "nonce": nonce}); err != nil {
			return nil, err
		}
	}
	return updated.Data["keys"].([]any), nil
}
