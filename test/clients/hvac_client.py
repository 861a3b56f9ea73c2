"""Does with hvac what existing services do with it, and prints what came of it as JSON.

Usage: hvac_client.py URL, with the token in HVAC_TOKEN, and a secret to plant in HVAC_PLANTED.
"""

import base64
import json
import os
import sys

import hvac
from hvac.exceptions import Forbidden, InvalidPath, InvalidRequest


def b64(text):
    return base64.b64encode(text.encode()).decode()


def refusal(call, *args, **kwargs):
    """The name of the exception by which the client tells a refusal."""
    try:
        call(*args, **kwargs)
    except (Forbidden, InvalidPath, InvalidRequest) as error:
        return type(error).__name__
    return None


def status(client):
    return {
        "health": client.sys.read_health_status(method="GET")["sealed"],
        "health_head": client.sys.read_health_status(method="HEAD").status_code,
        "initialized": client.sys.is_initialized(),
        "sealed": client.sys.is_sealed(),
        "leader": client.sys.read_leader_status()["is_self"],
        "authenticated": client.is_authenticated(),
    }


def keys(client):
    transit = client.secrets.transit
    transit.create_key(name="orders")
    transit.create_key(name="letters", key_type="chacha20-poly1305", exportable=True, allow_plaintext_backup=True)
    listed = transit.list_keys()["data"]["keys"]
    generic = client.list("transit/keys")["data"]["keys"]
    transit.rotate_key(name="orders")
    latest = transit.read_key(name="orders")["data"]["latest_version"]
    exported = list(transit.export_key(name="letters", key_type="encryption-key")["data"]["keys"])
    refused = refusal(transit.delete_key, name="letters")
    transit.update_key_configuration(name="letters", deletion_allowed=True)
    backup = transit.backup_key(name="letters")["data"]["backup"]
    transit.delete_key(name="letters")
    transit.restore_key(backup=backup, name="letters")
    client.delete("transit/keys/letters")
    return {
        "listed": listed,
        "generic": generic,
        "latest": latest,
        "exported": exported,
        "refused": refused,
        "missing": client.read("transit/keys/letters"),
        "missing_key": refusal(transit.read_key, name="letters"),
    }


def data(client):
    transit = client.secrets.transit
    transit.create_key(name="notes")
    plaintext = b64("hello " + os.environ.get("HVAC_PLANTED", ""))
    first = transit.encrypt_data(name="notes", plaintext=plaintext)["data"]["ciphertext"]
    transit.rotate_key(name="notes")
    second = transit.rewrap_data(name="notes", ciphertext=first)["data"]["ciphertext"]
    batch = transit.encrypt_data(name="notes", plaintext=None, batch_input=[{"plaintext": plaintext}] * 2)
    items = [{"ciphertext": item["ciphertext"]} for item in batch["data"]["batch_results"]]
    opened = transit.decrypt_data(name="notes", ciphertext=None, batch_input=items)["data"]["batch_results"]
    hmac = transit.generate_hmac(name="notes", hash_input=plaintext, algorithm="sha2-512")["data"]["hmac"]
    data_key = transit.generate_data_key(name="notes", key_type="plaintext")["data"]
    data_key_opened = transit.decrypt_data(name="notes", ciphertext=data_key["ciphertext"])["data"]
    return {
        "prefixes": [first[:7], second[:7]],
        "decrypted": transit.decrypt_data(name="notes", ciphertext=second)["data"]["plaintext"] == plaintext,
        "generic": client.write_data("transit/decrypt/notes", data={"ciphertext": first})["data"]["plaintext"] == plaintext,
        "batch": [item["plaintext"] == plaintext for item in opened],
        "verified": transit.verify_signed_data(
            name="notes", hash_input=plaintext, hmac=hmac, hash_algorithm="sha2-512"
        )["data"]["valid"],
        "not_verified": transit.verify_signed_data(
            name="notes", hash_input=b64("other"), hmac=hmac, hash_algorithm="sha2-512"
        )["data"]["valid"],
        "data_key": data_key_opened["plaintext"] == data_key["plaintext"],
        "random": len(base64.b64decode(transit.generate_random_bytes(n_bytes=16)["data"]["random_bytes"])),
        "hash": len(transit.hash_data(hash_input=plaintext, algorithm="sha2-256")["data"]["sum"]),
        "refused": refusal(transit.decrypt_data, name="notes", ciphertext="x"),
    }


def policies(client):
    text = 'path "transit/encrypt/orders" { capabilities = ["update"] }'
    client.sys.create_or_update_policy(name="writer", policy=text)
    client.sys.create_or_update_acl_policy(name="reader", policy={"path": {"transit/keys": {"capabilities": ["list"]}}})
    listed = client.sys.list_policies()["data"]["policies"]
    client.sys.delete_policy(name="reader")
    return {
        "read": client.sys.read_policy(name="writer")["data"]["rules"] == text,
        "listed": sorted(listed),
        "removed": refusal(client.sys.read_acl_policy, name="reader"),
        "broken": refusal(client.sys.create_or_update_acl_policy, name="broken", policy='path "x" {'),
    }


def tokens(client, url):
    token = client.auth.token
    made = token.create(policies=["writer"], ttl="10m")["auth"]
    limited = hvac.Client(url=url, token=made["client_token"])
    limited.secrets.transit.encrypt_data(name="orders", plaintext=b64("x"))
    outcome = {
        "policies": limited.auth.token.lookup_self()["data"]["policies"],
        "looked_up": token.lookup(token=made["client_token"])["data"]["accessor"] == made["accessor"],
        "renewed_self": limited.auth.token.renew_self(increment="20m")["auth"]["lease_duration"],
        "renewed": token.renew(token=made["client_token"], increment="5m")["auth"]["lease_duration"],
        "by_accessor": token.lookup_accessor(accessor=made["accessor"])["data"]["id"],
        "listed": made["accessor"] in token.list_accessors()["data"]["keys"],
        "capabilities": limited.sys.get_capabilities(paths=["transit/encrypt/orders"])["data"]["capabilities"],
        "refused": refusal(limited.secrets.transit.read_key, name="orders"),
    }
    token.revoke(token=made["client_token"])
    outcome["revoked"] = refusal(limited.auth.token.lookup_self)
    orphan = hvac.Client(url=url, token=token.create_orphan(ttl="10m")["auth"]["client_token"])
    orphan.auth.token.revoke_self()
    outcome["revoked_self"] = orphan.is_authenticated()
    return outcome


def main(url):
    client = hvac.Client(url=url, token=os.environ["HVAC_TOKEN"])
    outcome = {
        "status": status(client),
        "keys": keys(client),
        "data": data(client),
        "policies": policies(client),
        "tokens": tokens(client, url),
    }
    json.dump(outcome, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
