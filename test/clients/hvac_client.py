"""Performs the usual operations of services with hvac, and prints the results as JSON.

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
    """Returns the name of the exception that the client raises."""
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


def signatures(client):
    transit = client.secrets.transit
    transit.create_key(name="ecdsa", key_type="ecdsa-p256")
    transit.create_key(name="rsa", key_type="rsa-2048")
    message, other = b64("hello"), b64("other")
    ecdsa = {"hash_algorithm": "sha2-256", "marshaling_algorithm": "jws"}
    rsa = {"hash_algorithm": "sha2-256", "signature_algorithm": "pss", "salt_length": "hash"}
    outcome = {}
    for name, options in [("ecdsa", ecdsa), ("rsa", rsa)]:
        signature = transit.sign_data(name=name, hash_input=message, **options)["data"]["signature"]
        outcome[name] = [
            transit.verify_signed_data(name=name, hash_input=text, signature=signature, **options)["data"]["valid"]
            for text in [message, other]
        ]
    batch = transit.sign_data(name="ecdsa", batch_input=[{"input": message}, {"input": other}])["data"]["batch_results"]
    verified = [
        transit.verify_signed_data(name="ecdsa", hash_input=message, signature=item["signature"])["data"]["valid"]
        for item in batch
    ]
    return outcome | {"batch": verified}


def derived(client):
    transit = client.secrets.transit
    transit.create_key(name="rows", derived=True, convergent_encryption=True)
    context, plaintext = b64("tenant 1"), b64("hello")
    encrypted = [
        transit.encrypt_data(name="rows", plaintext=plaintext, context=where)["data"]["ciphertext"]
        for where in [context, context, b64("tenant 2")]
    ]
    for _ in range(2):
        transit.rotate_key(name="rows")
    rewrapped = transit.rewrap_data(name="rows", ciphertext=encrypted[0], context=context)["data"]["ciphertext"]
    transit.update_key_configuration(name="rows", min_decryption_version=2, min_encryption_version=3)
    transit.trim_key(name="rows", min_version=2)
    return {
        "equal": [encrypted[0] == encrypted[1], encrypted[0] == encrypted[2]],
        "opened": transit.decrypt_data(name="rows", ciphertext=rewrapped, context=context)["data"]["plaintext"] == plaintext,
        "elsewhere": refusal(transit.decrypt_data, name="rows", ciphertext=rewrapped, context=b64("tenant 2")),
        "trimmed": refusal(transit.decrypt_data, name="rows", ciphertext=encrypted[0], context=context),
    }


def system(client):
    sys_api = client.sys
    sys_api.enable_secrets_engine("transit", path="team", description="keys", config={"ciphertext_prefix": "vault"})
    sys_api.tune_mount_configuration("team", max_lease_ttl="2h")
    client.secrets.transit.create_key(name="orders", mount_point="team")
    ciphertext = client.secrets.transit.encrypt_data(name="orders", plaintext=b64("x"), mount_point="team")["data"]["ciphertext"]
    tuned = sys_api.read_mount_configuration("team")["data"]["max_lease_ttl"]
    listed = sorted(sys_api.list_mounted_secrets_engines()["data"])
    sys_api.move_backend("team", "crew")
    moved = client.secrets.transit.list_keys(mount_point="crew")["data"]["keys"]
    sys_api.disable_secrets_engine("crew")
    term = sys_api.get_encryption_key_status()["data"]["term"]
    sys_api.rotate_encryption_key()
    rotated = sys_api.get_encryption_key_status()["data"]["term"] - term
    sys_api.create_or_update_quota(name="random", path="transit/random", rate=1000.0)
    quota = sys_api.read_quota("random")["data"]["rate"]
    sys_api.delete_quota("random")
    wrapping = sys_api.wrap(payload={"note": "hello"})["wrap_info"]["token"]
    note = sys_api.unwrap(token=wrapping)["data"]["note"]
    snapshot = sys_api.take_raft_snapshot().content
    client.secrets.transit.create_key(name="late")
    restored = len(sys_api.restore_raft_snapshot(snapshot)["warnings"])
    return {
        "prefix": ciphertext[:9],
        "tuned": tuned,
        "listed": listed,
        "moved": moved,
        "rotated": rotated,
        "quota": quota,
        "note": note,
        "twice": refusal(sys_api.unwrap, token=wrapping),
        "restored": restored,
        "late": refusal(client.secrets.transit.read_key, name="late"),
        "audit": sys_api.list_enabled_audit_devices()["data"],
    }


def logins(client, url):
    for method in ["userpass", "approle"]:
        client.sys.enable_auth_method(method)
    client.auth.userpass.create_or_update_user("ann", password="correct horse", policies="writer")
    approle = client.auth.approle
    approle.create_or_update_approle("shop", token_policies=["writer"], secret_id_num_uses=1, token_ttl="10m")
    role_id = approle.read_role_id("shop")["data"]["role_id"]
    secret_id = approle.generate_secret_id("shop", metadata={"host": "a"})["data"]["secret_id"]
    left = approle.read_secret_id("shop", secret_id)["data"]["secret_id_num_uses"]
    person, service = hvac.Client(url=url), hvac.Client(url=url)
    ann = person.auth.userpass.login("ann", "correct horse")["auth"]
    shop = service.auth.approle.login(role_id, secret_id)["auth"]
    person.secrets.transit.encrypt_data(name="orders", plaintext=b64("x"))
    outcome = {
        "policies": [ann["token_policies"], shop["token_policies"]],
        "metadata": [ann["metadata"]["username"], shop["metadata"]["host"]],
        "lease": shop["lease_duration"],
        "uses": left,
        "spent": refusal(service.auth.approle.login, role_id, secret_id),
        "wrong": refusal(hvac.Client(url=url).auth.userpass.login, "ann", "wrong"),
        "listed": [client.auth.userpass.list_user()["data"]["keys"], approle.list_roles()["data"]["keys"]],
    }
    client.sys.disable_auth_method("approle")
    return outcome | {"ended": service.is_authenticated(), "still": person.is_authenticated()}


def main(url):
    client = hvac.Client(url=url, token=os.environ["HVAC_TOKEN"])
    outcome = {
        "status": status(client),
        "keys": keys(client),
        "data": data(client),
        "policies": policies(client),
        "tokens": tokens(client, url),
        "signatures": signatures(client),
        "derived": derived(client),
        "system": system(client),
        "logins": logins(client, url),
    }
    json.dump(outcome, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
