"""The step from version 1: every value, every row, and the time that stood still."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.upgrade.scenes import (
    BASE,
    LAST_MS,
    NAMES,
    NOW_MS,
    Site,
    agent,
    change,
    empty_v1,
    everything,
    message,
    rows,
    select,
    sha256,
    unpack,
    upgraded,
)
from tfx.core import database
from tfx.hub.schema import registry
from tfx.hub.schema.from_v1 import mapping
from tfx.hub.store import rebuild
from tfx.hub.store.counters import Counters
from tfx.hub.store.events import decode_body, encode_body
from tfx.upgrade.model import Task

NUMBER = "a number column holds another type"


TEXT = "a text column holds another type"


@pytest.mark.parametrize("name", NAMES)
def test_k40_the_rows_that_sql_writes_are_those_of_a_refold(site: Site, name: str) -> None:
    unpack(name, site.database)
    site.work(Task.UPGRADE)
    connection = database.open_writer(site.database)
    before = {table: list(rebuild.dump(connection, table)) for table in registry.PROJECTIONS}
    with database.Transaction(connection):
        rebuild.refold_all(connection)
    after = {table: list(rebuild.dump(connection, table)) for table in registry.PROJECTIONS}
    assert before == after
    assert len(before["messages"]) == 1_575
    for kind, body in connection.execute("SELECT kind, body FROM log"):
        decoded = decode_body(str(kind), str(body))
        assert decoded is not None
        assert encode_body(decoded) == body
    connection.close()


@pytest.mark.parametrize("name", NAMES)
def test_u87_every_row_arrives_with_its_bytes(site: Site, tmp_path: Path, name: str) -> None:
    unpack(name, site.database)
    original = unpack(name, tmp_path / "original.db")
    receipt = site.work(Task.UPGRADE)
    assert receipt.adopted is not None
    assert receipt.adopted.left_out == ()
    for table in BASE:
        assert receipt.adopted.arrived[table] == len(rows(original, table))
    before = select(original, "SELECT id, CAST(payload_json AS BLOB) FROM messages ORDER BY id")
    after = select(
        site.database,
        "SELECT m.id, l.payload FROM messages m JOIN log l ON l.seq = m.stream ORDER BY m.id",
    )
    assert before == after
    assert max(len(bytes(row[1])) for row in after) > 90_000  # type: ignore[arg-type]
    asked = select(
        original,
        "SELECT request_id, CAST(schema_json AS BLOB), state FROM human_requests ORDER BY 1",
    )
    assert asked == select(
        site.database,
        "SELECT h.id, l.payload, h.state FROM human_requests h JOIN log l ON l.seq = h.stream "
        "ORDER BY h.id",
    )


@pytest.mark.parametrize("status", mapping.MESSAGE_STATES)
def test_k36_each_status_of_a_message_becomes_its_state(site: Site, status: str) -> None:
    path = upgraded(site, agent("bob"), message("m", status=status))
    found = select(path, "SELECT state, reason FROM deliveries")
    assert found == [mapping.MESSAGE_STATES[status]]


@pytest.mark.parametrize("reason", [*mapping.DEAD_REASONS, "something else"])
def test_k36_each_reason_of_a_dead_letter_becomes_its_reason(site: Site, reason: str) -> None:
    path = upgraded(
        site,
        message("m", status="dead_letter"),
        f"INSERT INTO dead_letters VALUES ('m', '{reason}', {LAST_MS}, 'why')",
    )
    wanted = mapping.DEAD_REASONS.get(reason, mapping.OTHER_REASON)
    assert select(path, "SELECT state, reason, last_error, closed_at_ms FROM deliveries") == [
        ("dead", wanted, "why", NOW_MS)
    ]
    assert select(path, "SELECT json_extract(body, '$.message.dead_reason') FROM log") == [
        (reason,)
    ]


@pytest.mark.parametrize("state", mapping.HUMAN_STATES)
@pytest.mark.parametrize("kind", ["approval", "credential", "captcha"])
def test_k36_k38_each_state_of_a_human_request_stays_and_secrets_do_not(
    site: Site, state: str, kind: str
) -> None:
    answer = "NULL" if state == "pending" else "'{\"said\":1}'"
    path = upgraded(
        site,
        f"INSERT INTO human_requests VALUES ('h', 'ann', '{kind}', 'ok?', '{{}}', '{state}', "
        f"{LAST_MS + 5_000}, 'decline', 'c', 't', {answer})",
        agent("ann"),
    )
    found = select(
        path,
        "SELECT h.state, c.payload, h.deadline_ms FROM human_requests h "
        "LEFT JOIN log c ON c.seq = h.closed_seq",
    )
    kept = None if state == "pending" or kind in mapping.SECRET_KINDS else b'{"said":1}'
    assert found == [(mapping.HUMAN_STATES[state], kept, NOW_MS + 5_000)]
    assert b"said" not in path.read_bytes() or kept is not None


@pytest.mark.parametrize("status", mapping.AGENT_STATUSES)
def test_k36_each_status_of_an_agent_becomes_one_without_a_session(site: Site, status: str) -> None:
    path = upgraded(site, agent("ann").replace("'online'", f"'{status}'"))
    assert select(path, "SELECT id, session, client, capabilities FROM agents") == [
        ("ann", None, "codex", '["code"]')
    ]


def test_k36_acks_count_for_their_own_receiver_only(site: Site) -> None:
    path = upgraded(
        site,
        message("m", to="topic:news", status="acked"),
        f"INSERT INTO message_inbox VALUES (1, 'm', 'ann', {LAST_MS}, {LAST_MS}, 2)",
        "INSERT INTO message_inbox VALUES (2, 'm', 'bob', NULL, NULL, 0)",
    )
    assert select(path, "SELECT receiver, state, attempts FROM deliveries ORDER BY 1") == [
        ("ann", "acked", 2),
        ("bob", "queued", 0),
    ]


def test_k36_a_topic_message_without_inbox_rows_goes_to_who_listens(site: Site) -> None:
    path = upgraded(
        site,
        agent("ann", '["news"]'),
        agent("bob", '["news","other"]'),
        agent("cat", "not json"),
        message("m", to="topic:news"),
        message("n", to="topic:void"),
        message("o", to="topic:news", status="expired"),
    )
    found = select(
        path, "SELECT m.id, receiver, state FROM deliveries d JOIN messages m ON m.stream = message"
    )
    assert found == [
        ("m", "bob", "queued"),
        ("n", "topic:void", "queued"),
        ("o", "topic:news", "dead"),
    ]


def test_k36_the_first_response_settles_a_request(site: Site) -> None:
    path = upgraded(
        site,
        message("ask", kind="request", status="acked"),
        message("re1", kind="response", sender="bob", to="ann"),
        message("re2", kind="response", sender="bob", to="ann"),
        message("hand", kind="handoff", correlation="d", status="acked"),
        message("no", kind="response", sender="bob", to="ann", correlation="d",
                payload="'{\"accepted\":false}'"),
        message("open", kind="request", correlation="e"),
        message("over", kind="request", correlation="f", status="expired"),
    )  # fmt: skip
    found = select(path, "SELECT id, answer, settled FROM messages WHERE type <> 'response'")
    assert found == [
        ("ask", "re1", "answered"),
        ("hand", "no", "declined"),
        ("open", None, None),
        ("over", None, "dead"),
    ]


@pytest.mark.parametrize(
    ("statement", "table", "reason"),
    [
        (message("m").replace("'m'", "NULL"), "messages", "its id is not a text"),
        (message("m").replace("'m'", "x'6162'"), "messages", "its id is not a text"),
        (message(""), "messages", "its id is not a text"),
        (
            message("m").replace(" 60000,", " 'soon',"),
            "messages",
            NUMBER,
        ),
        (
            message("m").replace(" 60000,", " 1.5,"),
            "messages",
            NUMBER,
        ),
        (message("m").replace("'news'", "x'00'"), "messages", TEXT),
        (message("m").replace("'news'", "CAST(x'ff' AS TEXT)"), "messages", "a text is not UTF-8"),
        (message("m", to=""), "messages", "it has no receiver"),
        (
            f"INSERT INTO dead_letters VALUES ('gone', 'ttl_expired', {LAST_MS}, NULL)",
            "dead_letters",
            "its message is not there",
        ),
        (
            "INSERT INTO message_inbox VALUES (4, 'gone', 'bob', NULL, NULL, 0)",
            "message_inbox",
            "its message is not there",
        ),
        (
            (
                "INSERT INTO human_requests VALUES ('h', 'ann', 'text', x'00', '{}', 'pending', "
                "9, 'decline', 'c', 't', NULL)"
            ),
            "human_requests",
            TEXT,
        ),
        (
            agent("ann").replace(" 7,", " 'seven',"),
            "agents",
            NUMBER,
        ),
    ],
)
def test_k37_a_row_that_cannot_be_represented_is_named_and_stays_in_the_backup(
    site: Site, statement: str, table: str, reason: str
) -> None:
    path = empty_v1(site.database)
    change(path, "PRAGMA foreign_keys = OFF", message("good"), agent("bob"), statement)
    before = everything(path)
    looked = site.work(Task.CHECK).adopted
    assert looked is not None
    assert [each.reason for each in looked.left_out] == [reason]
    receipt = site.work(Task.UPGRADE)
    assert receipt.adopted is not None
    assert [(each.table, each.reason) for each in receipt.adopted.left_out] == [(table, reason)]
    assert select(path, "SELECT id FROM messages") == [("good",)]
    kept = next(Path(receipt.backup_directory or "").glob("*.db"))
    assert everything(kept) == before
    assert sha256(kept) == receipt.backup_sha256


def test_u105_totals_and_the_mark_of_the_log_are_those_of_the_events(site: Site) -> None:
    unpack(NAMES[0], site.database)
    site.work(Task.UPGRADE)
    connection = database.open_writer(site.database)
    saved = Counters()
    saved.load(connection)
    highest = connection.execute("SELECT max(seq) FROM log").fetchall()[0][0]
    assert saved.seq == highest
    total = saved.copy()
    connection.execute("DELETE FROM totals")
    connection.execute("UPDATE counted SET seq = 0")
    counted = Counters()
    counted.load(connection)
    assert counted.copy() == total
    assert connection.execute("SELECT seq FROM sqlite_sequence").fetchall() == [(highest,)]
    connection.close()
