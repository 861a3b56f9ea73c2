package main

import (
	"slices"
	"time"

	"transitd.test/clients/internal/must"
)

func tokens(c *Client) Outcome {
	asRoot := c.Auth().Token()
	_, err := c.Logical().Write("auth/token/roles/batch", map[string]any{"allowed_policies": "default", "token_explicit_max_ttl": "5m"})
	must.Do(err)
	made := must.Get(asRoot.Create(&TokenCreateRequest{
		Policies: []string{"default"}, Metadata: map[string]string{"team": "orders"}, TTL: "10m", DisplayName: "orders",
	}))
	token, accessor := made.Auth.ClientToken, made.Auth.Accessor
	holder := withToken(c, token)
	self := must.Get(holder.Auth().Token().LookupSelf())
	looked := must.Get(asRoot.Lookup(token))
	byAccessor := must.Get(asRoot.LookupAccessor(accessor))
	byRole := must.Get(asRoot.CreateWithRole(&TokenCreateRequest{}, "batch"))
	orphan := must.Get(asRoot.CreateOrphan(&TokenCreateRequest{Policies: []string{"default"}, TTL: "10m"}))
	parent := must.Get(asRoot.Create(&TokenCreateRequest{TTL: "10m"}))
	child := must.Get(withToken(c, parent.Auth.ClientToken).Auth().Token().Create(&TokenCreateRequest{TTL: "5m"}))
	accessors := must.Get(c.Logical().List("auth/token/accessors")).Data["keys"].([]any)

	outcome := Outcome{
		"policies":     must.Get(self.TokenPolicies()),
		"metadata":     must.Get(looked.TokenMetadata()),
		"ttl":          within(must.Get(self.TokenTTL()), 10*time.Minute),
		"renewable":    must.Get(looked.TokenIsRenewable()),
		"by_accessor":  must.Get(byAccessor.TokenAccessor()) == accessor && must.Get(byAccessor.TokenID()) == "",
		"renewed":      must.Get(asRoot.Renew(token, 300)).Auth.LeaseDuration,
		"renewed_self": must.Get(holder.Auth().Token().RenewSelf(1_200)).Auth.LeaseDuration,
		"renewed_as":   must.Get(asRoot.RenewTokenAsSelf(token, 240)).Auth.LeaseDuration,
		"renewed_by":   must.Get(asRoot.RenewAccessor(accessor, 180)).Auth.LeaseDuration,
		"by_role":      byRole.Auth.LeaseDuration,
		"orphan":       must.Get(asRoot.Lookup(orphan.Auth.ClientToken)).Data["orphan"],
		"listed":       slices.Contains(accessors, any(accessor)),
	}
	must.Do(asRoot.RevokeAccessor(accessor))
	must.Do(asRoot.RevokeTree(parent.Auth.ClientToken))
	must.Do(withToken(c, orphan.Auth.ClientToken).Auth().Token().RevokeSelf(""))
	must.Do(asRoot.RevokeOrphan(byRole.Auth.ClientToken))
	revoked := []int{}
	for _, ended := range []*Secret{made, child, orphan, byRole} {
		_, err := withToken(c, ended.Auth.ClientToken).Auth().Token().LookupSelf()
		revoked = append(revoked, statusOf(err))
	}
	outcome["revoked"] = revoked
	return outcome
}

func within(ttl, full time.Duration) bool { return ttl > 0 && ttl <= full }

// watcher keeps a token alive, as long-running services do.
func watcher(c *Client) Outcome {
	made := must.Get(c.Auth().Token().Create(&TokenCreateRequest{Policies: []string{"default"}, TTL: "1h"}))
	holder := withToken(c, made.Auth.ClientToken)
	watching := must.Get(holder.NewLifetimeWatcher(&LifetimeWatcherInput{Secret: made, Increment: 7_200}))
	go watching.Start()
	renewed := <-watching.RenewCh()
	watching.Stop()
	must.Do(<-watching.DoneCh())

	no := false
	fixed := must.Get(c.Auth().Token().Create(&TokenCreateRequest{Policies: []string{"default"}, TTL: "1h", Renewable: &no}))
	renewer := must.Get(holder.NewRenewer(&LifetimeWatcherInput{Secret: fixed}))
	go renewer.Renew()
	return Outcome{
		"lease": renewed.Secret.Auth.LeaseDuration,
		"same":  renewed.Secret.Auth.ClientToken == made.Auth.ClientToken,
		"fixed": (<-renewer.DoneCh()).Error(),
	}
}
