"""Pays, repeats after a lost answer, waits for the status, and cancels: for Python 3.9 or newer, without packages.

    python3 pay.py https://gateway.example/berlingroup/v1 API_KEY

The rules are those of docs/callers/submit-payments.md.
"""

import http.client
import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

PATH = "/payments/sepa-credit-transfers"


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        """Returns the object in the body; an empty one if there is none."""
        try:
            content = json.loads(self.body)
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}


class NoAnswer(Exception):
    """No complete answer of the gateway: it is not known what happened."""


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect of the bank leads to one of its pages."""

    def redirect_request(self, *args, **kwargs):
        return None


opener = urllib.request.build_opener(NoRedirect)


def call(base_url, api_key, method, path, request_id=None, body=None, headers=None):
    """Returns an Answer of any status. Raises NoAnswer."""
    fields = {"X-API-Key": api_key, "X-Request-ID": request_id or str(uuid.uuid4()), **(headers or {})}
    request = urllib.request.Request(base_url + path, data=body, headers=fields, method=method)
    try:
        try:
            answer = Answer(opener.open(request, timeout=60))
        except urllib.error.HTTPError as error:  # a status of 300 or more
            answer = Answer(error)
    except (OSError, http.client.HTTPException) as error:  # the second one: the answer is cut off, or is not HTTP
        raise NoAnswer(f"no answer: {error!r}") from error
    if "Penstock-Error" not in answer.headers and "Penstock-Environment" not in answer.headers:
        raise NoAnswer(f"an answer with {answer.status} that is not from the gateway")
    return answer


def payment_id_in(answer):
    """In the body, or else in a link to the payment."""
    content = answer.json()
    if content.get("paymentId"):
        return content["paymentId"]
    try:
        link = answer.headers.get("Location") or content["_links"]["self"]["href"]
    except (KeyError, TypeError):
        return None
    found = re.search(r"payments/[^/]+/([^/?]+)", link)
    return urllib.parse.unquote(found[1]) if found else None


def is_refused(answer, is_first):
    """Whether an answer without a payment is final. Otherwise the same request must be sent again."""
    code = answer.headers.get("Penstock-Error")
    if code == "DUPLICATE_MISMATCH":
        raise RuntimeError("this X-Request-ID belongs to another request, which may have made a payment")
    if code:  # this attempt was not sent to the bank, but an earlier one may have been
        return is_first and needs_correction(answer.status, code)
    if answer.status in (401, 429):
        return False
    content = answer.json()
    has_error = '"category": "ERROR"' in json.dumps(content.get("tppMessages"))
    return answer.status >= 400 or content.get("transactionStatus") == "RJCT" or has_error


def needs_correction(status, code):
    """Whether the gateway refuses each repeat of this request."""
    return status < 500 and status not in (408, 429) and not code.startswith("DUPLICATE_")


def pay(base_url, api_key, request_id, body, was_sent=False, patience_s=60):
    """Store request_id and body before the first call, and then that it was sent, for the call after a crash.

    Returns the paymentId; None if the outcome is not known yet. Raises RuntimeError if the payment is refused.
    """
    headers = {"Content-Type": "application/json", "PSU-IP-Address": "192.0.2.7"}
    give_up_at = time.monotonic() + patience_s
    pause_s = 0.5
    while True:
        try:
            answer = call(base_url, api_key, "POST", PATH, request_id, body, headers)
        except NoAnswer as problem:
            print(f"not known yet: {problem}")
        else:
            is_unknown = answer.headers.get("Penstock-Outcome") == "unknown" or answer.status >= 500
            payment_id = None if is_unknown else payment_id_in(answer)
            if payment_id:  # also with 401, and with 409 DUPLICATE_IN_DOUBT
                is_replay = answer.headers.get("Idempotent-Replayed") == "true"
                print(f"paid{' before' if is_replay else ''}: {payment_id}")
                return payment_id
            if not is_unknown and is_refused(answer, is_first=not was_sent):
                reason = answer.body.decode(errors="replace")
                raise RuntimeError(f"the payment was refused with {answer.status}: {reason}")
            print(f"not known yet: {answer.status} {answer.headers.get('Penstock-Error', '')}")
        was_sent = True
        if time.monotonic() + pause_s > give_up_at:
            return None
        time.sleep(pause_s)
        pause_s = min(60, 2 * pause_s)


def main(base_url, api_key):
    order = {
        "instructedAmount": {"currency": "EUR", "amount": "123.50"},
        "debtorAccount": {"iban": "DE89370400440532013000"},
        "creditorName": "Merchant123",
        "creditorAccount": {"iban": "DE02100100109307118603"},
    }
    request_id, body = str(uuid.uuid4()), json.dumps(order).encode()
    payment_id = pay(base_url, api_key, request_id, body)
    if payment_id is None:
        return "the outcome is not known yet: repeat the same request later"
    pay(base_url, api_key, request_id, body, was_sent=True)  # as after a crash: no second payment

    payment = f"{PATH}/{urllib.parse.quote(payment_id, safe='')}"
    status = call(base_url, api_key, "GET", f"{payment}/status", headers={"Prefer": "wait=1"})
    print(f"status: {status.json().get('transactionStatus', status.status)}")
    cancelled = call(base_url, api_key, "DELETE", payment)
    print(f"cancelled: {cancelled.status}")  # 204; 202 if the payer must authorise it
    return None


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except (NoAnswer, RuntimeError) as problem:
        sys.exit(str(problem))
