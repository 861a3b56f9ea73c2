package main

import (
	"bufio"
	"fmt"
	"os"

	"transitd.test/clients/internal/must"
)

// failover writes to a primary: one client before its secondary has the last state, another one after that. Both read from the secondary
// when it has been promoted. Before each step the program prints the name of the step, and reads a line.
func failover(c *Client) Outcome {
	address, input := os.Getenv("TRANSITD_SECONDARY_ADDR"), bufio.NewScanner(os.Stdin)
	name := os.Getenv("TRANSITD_KEY")
	step := func(does string) {
		fmt.Println(does)
		if !input.Scan() {
			os.Exit(1)
		}
	}
	early, late := c, must.Get(newClient(c.Address(), &TLSConfig{}))
	late.SetToken(c.Token())

	step("write")
	must.Get(early.Logical().Write("transit/keys/"+name+"-early", nil))
	told := traffic.answered.Get("X-Vault-Index")
	step("write what is lost")
	must.Get(late.Logical().Write("transit/keys/"+name+"-late", nil))
	lost := traffic.answered.Get("X-Vault-Index")
	step("read from the promoted cluster")
	must.Do(early.SetAddress(address))
	must.Do(late.SetAddress(address))

	contained := must.Get(early.Logical().Read("transit/keys/" + name + "-early"))
	outcome := Outcome{
		"contained": []any{traffic.asked.Get("X-Vault-Index") == told, len(contained.Warnings), traffic.answered.Get("X-Vault-Index")},
	}
	warned := must.Get(late.Logical().Read("transit/keys/" + name + "-early"))
	renewed := traffic.answered.Get("X-Vault-Index")
	outcome["lost"] = []any{traffic.asked.Get("X-Vault-Index") == lost, len(warned.Warnings), renewed != "" && renewed != lost}
	missing := must.Get(late.Logical().Read("transit/keys/" + name + "-late"))
	outcome["missing"] = missing == nil
	outcome["renewed"] = traffic.asked.Values("X-Vault-Index")[0] == renewed && len(traffic.asked.Values("X-Vault-Index")) == 1
	must.Get(late.Logical().Write("transit/keys/"+name+"-early/rotate", nil))
	newest := traffic.answered.Get("X-Vault-Index")
	read := must.Get(late.Logical().Read("transit/keys/" + name + "-early"))
	outcome["own"] = []any{traffic.asked.Get("X-Vault-Index") == newest, len(read.Warnings), read.Data["latest_version"]}
	return outcome
}
