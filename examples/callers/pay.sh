#!/bin/sh
# Pays, repeats after a lost answer, waits for the status, and cancels, with curl:
#
#   sh pay.sh https://gateway.example/berlingroup/v1 API_KEY
#
# The rules are those of docs/callers/submit-payments.md.
set -eu
PAYMENTS="$1/payments/sepa-credit-transfers"
KEY="X-API-Key: $2"
ANSWER=$(mktemp)
trap 'rm -f "$ANSWER"' EXIT

new_id() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n' | sed -E 's/(.{8})(.{4}).(.{3}).(.{3})(.{12})/\1-\2-4\3-8\4-\5/'; }

# Prints the status; 000 if there is no answer.
pay() {
  curl --silent --max-time 60 --output "$ANSWER" --write-out '%{http_code}' "$PAYMENTS" \
    -H "$KEY" -H "X-Request-ID: $REQUEST_ID" -H 'PSU-IP-Address: 192.0.2.7' -H 'Content-Type: application/json' \
    -d '{"instructedAmount":{"currency":"EUR","amount":"123.50"},"debtorAccount":{"iban":"DE89370400440532013000"},
         "creditorName":"Merchant123","creditorAccount":{"iban":"DE02100100109307118603"}}' || true
}

REQUEST_ID=$(new_id) # one for each payment: store it before the first call
for PAUSE in 1 2 4 8 16; do
  STATUS=$(pay)
  [ "$STATUS" = 201 ] && break
  echo "not known yet: $STATUS" # the same request again, with the same X-Request-ID
  sleep "$PAUSE"
done
[ "$STATUS" = 201 ] || exit 1
ID=$(sed -n 's/.*"paymentId":"\([^"]*\)".*/\1/p' "$ANSWER")
echo "paid: $ID"

curl --silent "$PAYMENTS/$ID/status" -H "$KEY" -H "X-Request-ID: $(new_id)" -H 'Prefer: wait=1'
echo
curl --silent --request DELETE "$PAYMENTS/$ID" --write-out 'cancelled: %{http_code}\n' -H "$KEY" -H "X-Request-ID: $(new_id)"
