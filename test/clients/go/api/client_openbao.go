//go:build openbao

package main

import (
	"github.com/openbao/openbao/api/auth/approle/v2"
	"github.com/openbao/openbao/api/auth/kubernetes/v2"
	"github.com/openbao/openbao/api/auth/userpass/v2"
	"github.com/openbao/openbao/api/v2"
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
	config.DefaultStrongConsistency = true
	if err := config.ConfigureTLS(tls); err != nil {
		return nil, err
	}
	config.HttpClient.Transport = recorder{config.HttpClient.Transport}
	return api.NewClient(config)
}

func mountAt(c *Client, path string) (*MountOutput, error) { return c.Sys().MountInfo(path) }

// newShares replaces the shares of the seal by two new ones.
func newShares(c *Client, shares []string) ([]string, error) {
	begun, err := c.Sys().RotateRootInit(&api.RotateInitRequest{SecretShares: 2, SecretThreshold: 2})
	if err != nil {
		return nil, err
	}
	var updated *api.RotateUpdateResponse
	for _, share := range shares {
		if updated, err = c.Sys().RotateRootUpdate(share, begun.Nonce); err != nil {
			return nil, err
		}
	}
	return updated.Keys, nil
}
