"""What the payload of `http` may be."""

import json
from typing import Any
from uuid import uuid4

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from ostinato.handler import Handler
from ostinato_worker.builtin.delivery import Delivery
from ostinato_worker.builtin.exchange import bytes_of
from ostinato_worker.builtin.http import write_letter
from ostinato_worker.builtin.secret import Secrets
from ostinato_worker.builtin.url import Url

GOOD = {"url": "https://example.com/hook"}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"url": "example.com"}, "begin with https:// or http://"),
        ({"url": "file:///etc/passwd"}, "begin with https:// or http://"),
        ({"url": "gopher://example.com/"}, "begin with https:// or http://"),
        ({"url": "https:///hook"}, "must name a host"),
        ({"url": "https://a..b/"}, "must name a host"),
        ({"url": f"https://{'a' * 64}.com/"}, "must name a host"),
        ({"url": "https://[fe80::1%25eth0]/"}, "host"),
        ({"url": "https://example.com:0/"}, "from 1 to 65535"),
        ({"url": "https://example.com:99999/"}, "cannot be read"),
        ({"url": "https://user:hunter2@example.com/"}, "secret_headers"),
        ({"url": "https://example.com/a b"}, "printable ASCII"),
        ({"url": "https://example.com/\r\nX-Admin: 1"}, "printable ASCII"),
        ({"url": "https://bücher.example/"}, "printable ASCII"),
        ({"url": "https://example.com\\@evil.example/"}, "printable ASCII"),
        ({"method": "CONNECT"}, "Input should be 'GET'"),
        ({"method": "GET", "body": {}}, "a GET has no body"),
        ({"headers": {"Host": "hunter2"}}, "Host is written by the handler"),
        ({"headers": {"Webhook-Signature": "hunter2"}}, "Webhook-Signature is written by the handler"),
        ({"headers": {"webhook-id": "hunter2"}}, "webhook-id is written by the handler"),
        ({"secret_headers": {"WEBHOOK-TIMESTAMP": "a"}}, "WEBHOOK-TIMESTAMP is written by the handler"),
        ({"headers": {"Content-Length": "1"}}, "Content-Length is written by the handler"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "belongs to the connection"),
        ({"headers": {"Connection": "keep-alive"}}, "belongs to the connection"),
        ({"headers": {"Authorization": "Bearer hunter2"}}, "put it into a file"),
        ({"headers": {"X-A": "a\r\nX-Admin: hunter2"}}, "without line breaks"),
        ({"headers": {"X-A": " hunter2"}}, "or space around it"),
        ({"headers": {"X-A\r\nX-Admin": "hunter2"}}, "letters, digits and '-'"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "given twice"),
        ({"secret": "../../etc/hunter2"}, "secret"),
        ({"secret": "whsec_aHVudGVyMg=="}, "secret"),
        ({"timeout": "1h"}, "more than 0 and at most 10m"),
        ({"timeout": 0}, "more than 0 and at most 10m"),
        ({"timeout": "soon"}, "write it as '90s'"),
        ({"accept": [200]}, "greater than or equal to 300"),
        ({"bodi": {}}, "bodi"),
    ],
)
def test_a_payload_that_breaks_a_rule_is_told_which_and_not_repeated(
    http: Handler, change: dict[str, Any], rule: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        http.read(json.dumps(GOOD | change))

    assert rule in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_payload_has_a_schema_by_which_others_can_refuse_it(http: Handler) -> None:
    schema = http.payload_schema()

    assert schema is not None
    assert (schema["required"], schema["additionalProperties"]) == (["url"], False)


NAMES = st.from_regex(r"[-!#$%&'*+.^_`|~0-9A-Za-z]{1,9}", fullmatch=True) | st.text(max_size=5)
VALUES = st.text(st.characters(max_codepoint=0x7F), max_size=9)
TARGETS = st.text(st.characters(max_codepoint=0x7F), max_size=20)


@given(name=NAMES, value=VALUES, target=TARGETS, body=st.none() | st.text(max_size=5))
@example(name="X-A", value="", target="?", body="")
@example(name="X-A", value="a\tb", target="//a/../b?c[]=%zz", body="\0")
def test_what_is_accepted_is_one_request_of_the_same_meaning_to_a_strict_server(
    name: str, value: str, target: str, body: str | None
) -> None:
    try:
        delivery = Delivery(url=f"http://example.com/{target}", headers={name: value}, body=body)
    except ValidationError:
        return
    letter = write_letter(delivery, uuid4(), Secrets(None))

    server = h11.Connection(h11.SERVER)
    server.receive_data(
        bytes_of(h11.Connection(h11.CLIENT), letter.request("POST", Url.parse(delivery.url), delivery.content))
    )

    request = server.next_event()
    assert isinstance(request, h11.Request)
    headers = dict(request.headers)
    assert headers[name.lower().encode()] == value.encode()
    assert (headers[b"host"], request.target[:1]) == (b"example.com", b"/")
    received = b"".join(
        bytes(event.data) for event in iter(server.next_event, h11.NEED_DATA) if isinstance(event, h11.Data)
    )
    assert received == (body or "").encode()
    assert server.trailing_data == (b"", False)
