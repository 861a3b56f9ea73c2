"""Logs in with the identities that workloads have already, with hvac, and prints the results as JSON.

Usage: hvac_logins.py URL, with the settings as JSON in HVAC_SETTINGS.
"""

import json
import os
import sys

import hvac
from hvac.exceptions import Forbidden, InvalidRequest


def refusal(call, *args, **kwargs):
    """Returns the name of the exception that the client raises."""
    try:
        call(*args, **kwargs)
    except (Forbidden, InvalidRequest) as error:
        return type(error).__name__
    return None


def of(login):
    """Returns the policies and the metadata of a login."""
    auth = login["auth"]
    return {"policies": auth["token_policies"], "metadata": auth["metadata"]}


def kubernetes(admin, workload, settings):
    method = admin.auth.kubernetes
    method.configure(
        kubernetes_host=settings["cluster"],
        kubernetes_ca_cert=settings["cluster_ca"],
        token_reviewer_jwt=settings["reviewer"],
    )
    method.create_role(
        "web",
        bound_service_account_names=["web"],
        bound_service_account_namespaces=["shop"],
        ttl="10m",
        policies=["writer"],
        alias_name_source="serviceaccount_uid",
    )
    entered = of(workload.auth.kubernetes.login("web", settings["account"]))
    return {
        "host": method.read_config()["kubernetes_host"] == settings["cluster"],
        "roles": method.list_roles()["keys"],
        "bound": method.read_role("web")["bound_service_account_names"],
        "policies": entered["policies"],
        "account": entered["metadata"]["service_account_name"],
        "unknown": refusal(workload.auth.kubernetes.login, "web", settings["reviewer"]),
    }


def jwt(admin, workload, settings):
    method = admin.auth.jwt
    method.configure(jwt_validation_pubkeys=[settings["issuer_key"]], bound_issuer="https://cluster")
    method.create_role(
        "ci",
        user_claim="sub",
        allowed_redirect_uris=[],
        bound_audiences=["transitd"],
        bound_claims={"job": "7"},
        token_policies=["writer"],
        token_ttl="10m",
    )
    entered = of(workload.auth.jwt.jwt_login("ci", settings["job"]))
    return {
        "issuer": method.read_config()["data"]["bound_issuer"],
        "roles": method.list_roles()["data"]["keys"],
        "claim": method.read_role("ci")["data"]["user_claim"],
        "policies": entered["policies"],
        "role": entered["metadata"]["role"],
        "other": refusal(workload.auth.jwt.jwt_login, "ci", settings["other_job"]),
    }


def cert(admin, workload, settings):
    method = admin.auth.cert
    method.create_ca_certificate_role(
        "web",
        certificate=settings["authority"],
        allowed_common_names="web",
        token_policies=["writer"],
        token_ttl="10m",
    )
    shown = {"cert_pem": settings["client_cert_file"], "key_pem": settings["client_key_file"]}
    entered = of(workload.auth.cert.login("web", **shown))
    return {
        "roles": method.list_certificate_roles()["data"]["keys"],
        "policies": entered["policies"],
        "name": entered["metadata"]["common_name"],
        "unknown": refusal(workload.auth.cert.login, "other", **shown),
    }


def main(url):
    settings = json.loads(os.environ["HVAC_SETTINGS"])
    admin = hvac.Client(url=url, token=settings["token"], verify=settings["ca"])
    outcome = {}
    for method in (kubernetes, jwt, cert):
        name = method.__name__
        admin.sys.enable_auth_method(name)
        outcome[name] = method(admin, hvac.Client(url=url, verify=settings["ca"]), settings)
    json.dump(outcome, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
