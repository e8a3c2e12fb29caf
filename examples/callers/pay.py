"""Pays, repeats after a lost answer, waits for the status, and cancels: for Python 3.9 or newer, without packages.

    python3 pay.py https://gateway.example/berlingroup/v1 API_KEY [X-Request-ID of an earlier run]

The rules are those of docs/callers/submit-payments.md.
"""

import contextlib
import http.client
import json
import re
import socket
import sys
import threading
import time
import urllib.parse
import uuid

PATH = "/payments/sepa-credit-transfers"
PAYMENT_LINK = re.compile(r'(?:[^?#]*[^/]/|/)?payments/[^/?#]+/([^/?#"}]+)')


class NotKnown(Exception):
    """It is not known what happened: send the same request again, with the same X-Request-ID."""


class Refused(Exception):
    """The request has done nothing. A corrected one needs a new X-Request-ID."""


class Mismatch(Exception):
    """The X-Request-ID belongs to another request, which may have made a payment."""


class Response(http.client.HTTPResponse):
    def begin(self):
        super().begin()
        while self.status < 200:  # an interim answer, such as 103: the final one follows
            self.headers = None
            super().begin()


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        """Returns the object in the body, with numbers as texts of their digits; an empty one if there is none."""
        try:
            content = json.loads(self.body, parse_int=str, parse_float=str)
        except (ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}


def call(base_url, api_key, method, path, request_id=None, body=None, headers=None, timeout_s=60):
    """Returns an Answer of any status, also a redirect: one of the bank leads to one of its pages. Raises NotKnown."""
    fields = {"X-API-Key": api_key, "X-Request-ID": request_id or str(uuid.uuid4()), **(headers or {})}
    url = urllib.parse.urlsplit(base_url + path)
    connect = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}[url.scheme]
    connection = connect(url.netloc, timeout=timeout_s)  # for each read: an answer that drips may take longer
    connection.response_class = Response
    give_up_at = time.monotonic() + timeout_s
    try:
        with contextlib.closing(connection):
            connection.connect()
            timer = threading.Timer(timeout_s, shut_down, [connection.sock])
            timer.start()
            try:
                connection.request(method, url.path, body, fields)
                answer = Answer(connection.getresponse())
            finally:
                timer.cancel()
        if time.monotonic() > give_up_at:
            raise TimeoutError("the answer takes too long")
    except (OSError, http.client.HTTPException, ValueError, OverflowError, MemoryError) as error:
        raise NotKnown(f"no answer: {error!r}") from error  # or one that is cut off, or is not HTTP
    if "Penstock-Error" not in answer.headers and "Penstock-Environment" not in answer.headers:
        raise NotKnown(f"an answer with {answer.status} that is not from the gateway")
    return answer


def shut_down(connected):
    with contextlib.suppress(OSError):  # it is closed
        connected.shutdown(socket.SHUT_RDWR)


def payment_id_in(answer):
    """In the body, or else in a link to the payment."""
    content = answer.json()
    payment_id = content.get("paymentId")
    if isinstance(payment_id, str) and payment_id.strip():
        return payment_id
    links = content.get("_links")
    link = links.get("self") if isinstance(links, dict) else None
    for url in (answer.headers.get("Location"), link.get("href") if isinstance(link, dict) else link):
        found = PAYMENT_LINK.match(url) if isinstance(url, str) else None
        if found:
            return urllib.parse.unquote(found[1])
    return None


def is_unknown(answer):
    """Whether the answer leaves open what the bank has done."""
    return answer.headers.get("Penstock-Outcome") == "unknown" or answer.status >= 500


def is_refused(answer, is_first):
    """Whether an answer without a payment is final. Otherwise the same request must be sent again."""
    code = answer.headers.get("Penstock-Error")
    if code == "DUPLICATE_MISMATCH":
        raise Mismatch("this X-Request-ID belongs to another request, which may have made a payment")
    if code:  # this attempt was not sent to the bank, but an earlier one may have been
        return is_first and needs_correction(answer.status, code)
    if answer.status in (401, 429):
        return False
    return answer.status >= 400 or has_error(answer)


def needs_correction(status, code):
    """Whether the gateway refuses each repeat of this request."""
    return status < 500 and status not in (408, 429) and not code.startswith("DUPLICATE_")


def has_error(answer):
    """Whether the bank refuses with a success status."""
    content = answer.json()
    messages = content.get("tppMessages")
    messages = messages if isinstance(messages, list) else [messages]
    is_error = any(isinstance(message, dict) and message.get("category") == "ERROR" for message in messages)
    return is_error or content.get("transactionStatus") == "RJCT"


def retry_after_s(answer):
    """Zero unless the header has a number of seconds."""
    value = answer.headers.get("Retry-After", "").strip()
    return int(value) if re.fullmatch("[0-9]{1,9}", value) else 0


def pay(base_url, api_key, request_id, body, was_sent=False, patience_s=60):
    """Store request_id and body before the first call, and then that it was sent, for the call after a crash.

    Returns the paymentId; None if the outcome is not known yet. Raises Refused, or Mismatch.
    """
    headers = {"Content-Type": "application/json", "PSU-IP-Address": "192.0.2.7"}
    give_up_at = time.monotonic() + patience_s
    own_pause_s = 0.5
    while True:
        pause_s = own_pause_s
        try:
            answer = call(base_url, api_key, "POST", PATH, request_id, body, headers)
        except NotKnown as problem:
            reason = str(problem)
        else:
            payment_id = None if is_unknown(answer) else payment_id_in(answer)
            if payment_id:  # also with 401, and with 409 DUPLICATE_IN_DOUBT
                is_replay = answer.headers.get("Idempotent-Replayed") == "true"
                print(f"paid{' before' if is_replay else ''}: {payment_id}", flush=True)
                return payment_id
            if not is_unknown(answer) and is_refused(answer, is_first=not was_sent):
                text = answer.body.decode(errors="replace")
                raise Refused(f"the payment was refused with {answer.status}: {text}")
            reason = f"{answer.status} {answer.headers.get('Penstock-Error', '')}".strip()
            pause_s = max(pause_s, retry_after_s(answer))
        print(f"not known yet: {reason}; repeat after {pause_s} s", flush=True)
        was_sent = True
        if time.monotonic() + pause_s > give_up_at:
            return None
        time.sleep(pause_s)
        own_pause_s = min(60, 2 * own_pause_s)


def cancel(base_url, api_key, payment, request_id):
    """Returns the status: 204, or 202 if the payer must authorise it. Raises Refused, or NotKnown."""
    answer = call(base_url, api_key, "DELETE", payment, request_id)
    code = answer.headers.get("Penstock-Error", "")
    if is_unknown(answer) or answer.status in (401, 408, 429) or code.startswith("DUPLICATE_"):
        raise NotKnown(f"{answer.status} {code}".strip())
    if not 200 <= answer.status < 300 or has_error(answer):
        raise Refused(f"the cancellation was refused with {answer.status}: {answer.body.decode(errors='replace')}")
    return answer.status


def main(base_url, api_key, earlier_request_id=None):
    order = {
        "instructedAmount": {"currency": "EUR", "amount": "123.50"},
        "debtorAccount": {"iban": "DE89370400440532013000"},
        "creditorName": "Merchant123",
        "creditorAccount": {"iban": "DE02100100109307118603"},
    }
    request_id, body = earlier_request_id or str(uuid.uuid4()), json.dumps(order).encode()
    print(f"X-Request-ID: {request_id}", flush=True)
    payment_id = pay(base_url, api_key, request_id, body, was_sent=earlier_request_id is not None)
    if payment_id is None:
        command = f"python3 {sys.argv[0]} {base_url} API_KEY {request_id}"
        return f"the outcome is not known yet: repeat the same request later, within 23 hours: {command}"
    pay(base_url, api_key, request_id, body, was_sent=True)  # as after a crash: no second payment

    payment = f"{PATH}/{urllib.parse.quote(payment_id, safe='', errors='replace')}"
    try:
        status = call(base_url, api_key, "GET", f"{payment}/status", headers={"Prefer": "wait=1"})
        print(f"status: {status.json().get('transactionStatus', status.status)}")
    except NotKnown as problem:  # a read changes nothing: repeat it as you like
        print(f"status: not known ({problem})")
    cancel_id = str(uuid.uuid4())
    try:
        print(f"cancelled: {cancel(base_url, api_key, payment, cancel_id)}")
    except NotKnown as problem:
        same = f"DELETE {base_url}{payment} with X-Request-ID {cancel_id}"
        return f"the outcome of the cancellation is not known ({problem}): repeat {same}"
    return None


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # an id may contain any character
    try:
        sys.exit(main(*sys.argv[1:]))
    except (Refused, Mismatch) as problem:
        sys.exit(str(problem))
