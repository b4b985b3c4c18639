from __future__ import annotations

import json

import pytest

from tests.clients.running import OracleError, Output, fingerprint, without_secrets


@pytest.mark.parametrize(
    "text",
    [
        "    Authorization: Bearer s3cr3t-Token",
        '"Authorization": "Bearer s3cr3t-Token"',
        "https://example.test/cli-login?authToken=s3cr3t-Token",
        "authorization: bearer  s3cr3t-Token, x",
        '{"token": "s3cr3t-Token"}',
    ],
)
def test_s22_a_token_in_client_output_is_never_shown(text: str) -> None:
    output = Output("claude mcp get", 0, text, text)
    for shown in (without_secrets(text), output.shown, repr(output), str(OracleError(output))):
        assert "s3cr3t" not in shown


def test_s22_output_that_is_no_json_is_shown_without_its_token() -> None:
    with pytest.raises(OracleError) as caught:
        Output("codex mcp list", 0, "oops Bearer s3cr3t", "").json()
    assert "oops Bearer ***" in str(caught.value)


def test_s22_a_fingerprint_tells_values_apart_and_does_not_hold_them() -> None:
    prints = {fingerprint(f"Bearer {token}") for token in ("a", "b", "s3cr3t")}
    assert len(prints) == 3
    assert "s3cr3t" not in json.dumps(sorted(prints))
