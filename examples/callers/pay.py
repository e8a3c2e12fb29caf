"""Pays, repeats after a lost answer, waits for the status, and cancels: for Python 3.9 or newer, without packages.

    python3 pay.py https://gateway.example/berlingroup/v1 API_KEY

The rules are those of docs/callers/submit-payments.md.
"""

import json
import sys
import time
import urllib.error
import urllib.request
import uuid

PATH = "/payments/sepa-credit-transfers"


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect of the bank leads to one of its pages."""

    def redirect_request(self, *args, **kwargs):
        return None


opener = urllib.request.build_opener(NoRedirect)


def call(base_url, api_key, method, path, request_id=None, body=None, headers=None):
    """Returns an Answer of any status. Raises OSError if there is none: the outcome is then unknown."""
    fields = {"X-API-Key": api_key, "X-Request-ID": request_id or str(uuid.uuid4()), **(headers or {})}
    request = urllib.request.Request(base_url + path, data=body, headers=fields, method=method)
    try:
        return Answer(opener.open(request, timeout=60))
    except urllib.error.HTTPError as error:  # a status of 300 or more
        return Answer(error)


def is_unknown(answer):
    """Whether the same request must be sent again, with the same X-Request-ID and the same bytes."""
    code = answer.headers.get("Penstock-Error")
    return (
        answer.headers.get("Penstock-Outcome") == "unknown"
        or code in ("DUPLICATE_IN_FLIGHT", "DUPLICATE_IN_DOUBT")
        or answer.status in (401, 408, 429)
        or answer.status >= 500
    )


def pay(base_url, api_key, request_id, body, patience_s=60):
    """Store request_id and body before the first call. Returns the paymentId; None if the outcome is not known yet."""
    headers = {"Content-Type": "application/json", "PSU-IP-Address": "192.0.2.7"}
    give_up_at = time.monotonic() + patience_s
    pause_s = 0.5
    while True:
        try:
            answer = call(base_url, api_key, "POST", PATH, request_id, body, headers)
        except OSError as error:
            print(f"no answer: {error}")
        else:
            if not is_unknown(answer):
                if answer.status < 300:
                    is_replay = answer.headers.get("Idempotent-Replayed") == "true"
                    print(f"paid{' before' if is_replay else ''}: {answer.json()['paymentId']}")
                    return answer.json()["paymentId"]
                raise RuntimeError(f"the payment was refused with {answer.status}: {answer.body!r}")
            print(f"not known yet: {answer.status} {answer.headers.get('Penstock-Error', '')}")
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
    assert pay(base_url, api_key, request_id, body) == payment_id  # as after a crash: no second payment

    status = call(base_url, api_key, "GET", f"{PATH}/{payment_id}/status", headers={"Prefer": "wait=1"})
    print(f"status: {status.json()['transactionStatus']}")
    cancelled = call(base_url, api_key, "DELETE", f"{PATH}/{payment_id}", str(uuid.uuid4()))
    print(f"cancelled: {cancelled.status}")  # 204; 202 if the payer must authorise it
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
