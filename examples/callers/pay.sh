#!/bin/sh
# Pays, repeats after a lost answer, waits for the status, and cancels, with curl:
#
#   sh pay.sh https://gateway.example/berlingroup/v1 API_KEY
#
# The rules are those of docs/callers/submit-payments.md.
set -eu
PAYMENTS="$1/payments/sepa-credit-transfers"
KEY="X-API-Key: $2"
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
HEAD=$FOLDER/head
BODY=$FOLDER/body

new_id() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n' | sed -E 's/(.{8})(.{4}).(.{3}).(.{3})(.{12})/\1-\2-4\3-8\4-\5/'; }

# Sends the payment. Sets STATUS: 000 if there is no complete answer.
send() {
  : >"$HEAD"
  : >"$BODY"
  STATUS=$(curl --silent --max-time 60 --dump-header "$HEAD" --output "$BODY" --write-out '%{http_code}' "$PAYMENTS" \
    -H "$KEY" -H "X-Request-ID: $REQUEST_ID" -H 'PSU-IP-Address: 192.0.2.7' -H 'Content-Type: application/json' \
    -d '{"instructedAmount":{"currency":"EUR","amount":"123.50"},"debtorAccount":{"iban":"DE89370400440532013000"},
         "creditorName":"Merchant123","creditorAccount":{"iban":"DE02100100109307118603"}}') || STATUS=000
}

# Whether the answer has a header that begins like this.
has() { grep -qi "^$1" "$HEAD"; }

# The paymentId in the body, or else in a link to the payment.
payment_id() {
  ID=$(tr -d '\r\n' <"$BODY" | sed -n 's/.*"paymentId" *: *"\([^"]*\)".*/\1/p')
  [ -n "$ID" ] || ID=$(tr -d '\r' <"$HEAD" | sed -n 's/^[Ll]ocation: .*payments\/[^/]*\/\([^/?]*\).*/\1/p')
  echo "$ID"
}

# Decides what the answer means: paid, refused, mismatch, or again: send the same request again.
outcome() {
  if [ "$STATUS" = 000 ]; then echo again
  elif ! has 'Penstock-Error:' && ! has 'Penstock-Environment:'; then echo again # not from the gateway
  elif has 'Penstock-Outcome: unknown' || [ "$STATUS" -ge 500 ]; then echo again
  elif [ -n "$(payment_id)" ]; then echo paid # also with 401, and with 409 DUPLICATE_IN_DOUBT
  elif has 'Penstock-Error: DUPLICATE_MISMATCH'; then echo mismatch
  elif has 'Penstock-Error: DUPLICATE' || [ "$STATUS" = 408 ] || [ "$STATUS" = 429 ]; then echo again
  elif has 'Penstock-Error:'; then # this attempt was not sent to the bank, but an earlier one may have been
    if [ "$ATTEMPT" = 1 ]; then echo refused; else echo again; fi
  elif [ "$STATUS" = 401 ]; then echo again
  elif [ "$STATUS" -ge 400 ] || grep -q '"RJCT"\|"ERROR"' "$BODY"; then echo refused
  else echo again
  fi
}

stop() {
  echo "$1: $STATUS $(cat "$BODY")"
  exit 1
}

REQUEST_ID=$(new_id) # one for each payment: store it before the first call
for ATTEMPT in 1 2 3 4 5; do
  send
  OUTCOME=$(outcome)
  case $OUTCOME in
    paid) break ;;
    refused) stop 'the payment was refused' ;;
    mismatch) stop 'this X-Request-ID belongs to another request, which may have made a payment' ;;
  esac
  echo "not known yet: $STATUS" # the same request again, with the same X-Request-ID
  [ "$ATTEMPT" = 5 ] || sleep $((ATTEMPT * ATTEMPT))
done
[ "$OUTCOME" = paid ] || stop 'the outcome is not known yet: repeat the same request later'
ID=$(payment_id)
echo "paid: $ID"

curl --silent "$PAYMENTS/$ID/status" -H "$KEY" -H "X-Request-ID: $(new_id)" -H 'Prefer: wait=1'
echo
curl --silent --request DELETE "$PAYMENTS/$ID" --write-out 'cancelled: %{http_code}\n' -H "$KEY" -H "X-Request-ID: $(new_id)"
