//go:build !openbao

package main

import (
	"context"

	"github.com/hashicorp/vault/api"
	"github.com/hashicorp/vault/api/auth/approle"
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
)

// newClient returns a client with the option to read its own writes on every node.
func newClient(address string) (*Client, error) {
	config := api.DefaultConfig()
	config.Address = address
	config.HttpClient.Transport = over(config.HttpClient.Transport)
	config.ReadYourWrites = true
	return api.NewClient(config)
}

func mountAt(c *Client, path string) (*MountOutput, error) { return c.Sys().GetMount(path) }

func loginUserpass(c *Client, name, password string) (*Secret, error) {
	method, err := userpass.NewUserpassAuth(name, &userpass.Password{FromString: password})
	if err != nil {
		return nil, err
	}
	return c.Auth().Login(context.Background(), method)
}

// loginApprole logs in with a wrapped secret id.
func loginApprole(c *Client, roleID, wrappedSecretID string) (*Secret, error) {
	method, err := approle.NewAppRoleAuth(roleID, &approle.SecretID{FromString: wrappedSecretID}, approle.WithWrappingToken())
	if err != nil {
		return nil, err
	}
	return c.Auth().Login(context.Background(), method)
}

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
