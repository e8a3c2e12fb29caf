#!/bin/sh
# Pays, repeats after a lost answer, waits for the status, and cancels, with curl:
#
#   sh pay.sh https://gateway.example/berlingroup/v1 API_KEY [X-Request-ID of an earlier run]
#
# The rules are those of docs/callers/submit-payments.md. This program reads JSON with patterns, which decode no escape but \/.
# If they find no payment in an answer with a paymentId, it is not known what happened. Use a JSON parser in your system.
set -eu
export LC_ALL=C # a body may contain any bytes
PAYMENTS="$1/payments/sepa-credit-transfers"
KEY="X-API-Key: $2"
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
HEAD=$FOLDER/head
BODY=$FOLDER/body

new_id() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n' | sed -E 's/(.{8})(.{4}).(.{3}).(.{3})(.{12})/\1-\2-4\3-8\4-\5/'; }

# call X-REQUEST-ID URL and more arguments of curl. Sets STATUS: 000 if there is no complete answer.
call() {
  SENT_ID=$1
  URL=$2
  shift 2
  : >"$HEAD"
  : >"$BODY"
  STATUS=$(curl --silent --max-time 60 --dump-header "$HEAD" --output "$BODY" --write-out '%{http_code}' \
    -H "$KEY" -H "X-Request-ID: $SENT_ID" "$@" "$URL") || STATUS=000
}

send() {
  call "$REQUEST_ID" "$PAYMENTS" -H 'PSU-IP-Address: 192.0.2.7' -H 'Content-Type: application/json' \
    -d '{"instructedAmount":{"currency":"EUR","amount":"123.50"},"debtorAccount":{"iban":"DE89370400440532013000"},
         "creditorName":"Merchant123","creditorAccount":{"iban":"DE02100100109307118603"}}'
}

# Whether the answer has a header that begins like this.
has() { grep -qi "^$1" "$HEAD"; }

# Whether the answer leaves open what the bank has done, or is not from the gateway.
is_unknown() {
  [ "$STATUS" = 000 ] || [ "$STATUS" -ge 500 ] || has 'Penstock-Outcome: unknown' ||
    { ! has 'Penstock-Error:' && ! has 'Penstock-Environment:'; }
}

# The paymentId in the body, or else in a link to the payment, where it is percent-encoded.
payment_id() {
  JSON=$(tr '\r\n\t' '   ' <"$BODY" | sed -E 's|\\/|/|g; s/^ +//')
  ID=$(printf '%s\n' "$JSON" | sed -E -e ':a' -e 's/(.)\{ *("[^{}]*)?\}/\1/' -e 'ta' | # without the objects in the object
    grep -Eo '"paymentId" *: *("([^"\\ ]|\\.)([^"\\]|\\.)*"|[0-9]+)' | sed -E 's/[^:]*: *"?//; s/"$//' | head -n 1)
  [ -n "$ID" ] || ID=$({
    tr -d '\r' <"$HEAD" | grep -i '^Location:' | sed 's/^[^:]*: *//'
    printf '%s\n' "$JSON" | grep -Eo '"self" *: *(\{[^{}]*"href" *: *)?"[^"]*"' | sed -E 's/"$//; s/.*"//'
  } | sed -nE 's|^([^?#]*[^/]/\|/)?payments/[^/?#]+/([^/?#"}]+).*|\2|p' | head -n 1)
  printf '%s\n' "$ID"
}

# Decides what the answer means: paid, refused, mismatch, or again: send the same request again.
outcome() {
  if is_unknown; then echo again
  elif [ -n "$(payment_id)" ]; then echo paid # also with 401, and with 409 DUPLICATE_IN_DOUBT
  elif has 'Penstock-Error: DUPLICATE_MISMATCH'; then echo mismatch
  elif has 'Penstock-Error: DUPLICATE' || [ "$STATUS" = 408 ] || [ "$STATUS" = 429 ]; then echo again
  elif has 'Penstock-Error:'; then # this attempt was not sent to the bank, but an earlier one may have been
    if [ "$WAS_SENT" = no ]; then echo refused; else echo again; fi
  elif [ "$STATUS" = 401 ] || grep -q '"paymentId"' "$BODY"; then echo again
  elif [ "$STATUS" -ge 400 ] || grep -q '"RJCT"\|"ERROR"' "$BODY"; then echo refused
  else echo again
  fi
}

# The seconds of Retry-After, but at least this many.
pause() {
  SECONDS_SAID=$(tr -d '\r' <"$HEAD" | grep -i '^Retry-After:' | sed -nE 's/^[^:]*: *([0-9]{1,9}) *$/\1/p' | head -n 1)
  if [ "${SECONDS_SAID:-0}" -gt "$1" ]; then echo "$SECONDS_SAID"; else echo "$1"; fi
}

stop() {
  printf '%s: %s %s\n' "$1" "$STATUS" "$(cat "$BODY")"
  exit 1
}

REQUEST_ID=${3:-$(new_id)} # one for each payment: store it before the first call
if [ $# -gt 2 ]; then WAS_SENT=maybe; else WAS_SENT=no; fi
echo "X-Request-ID: $REQUEST_ID"
for ATTEMPT in 1 2 3 4 5; do
  send
  OUTCOME=$(outcome)
  case $OUTCOME in
    paid) break ;;
    refused) stop 'the payment was refused' ;;
    mismatch) stop 'this X-Request-ID belongs to another request, which may have made a payment' ;;
  esac
  WAS_SENT=maybe
  PAUSE=$(pause $((ATTEMPT * ATTEMPT)))
  echo "not known yet: $STATUS; repeat after $PAUSE s" # the same request again, with the same X-Request-ID
  if [ "$ATTEMPT" = 5 ] || [ "$PAUSE" -gt 60 ]; then break; fi
  sleep "$PAUSE"
done
[ "$OUTCOME" = paid ] ||
  stop "the outcome is not known yet: repeat the same request later, within 23 hours: sh $0 $1 API_KEY $REQUEST_ID"
ID=$(payment_id)
printf 'paid: %s\n' "$ID"
case $ID in # an id with other characters than these is percent-encoded as a whole
  *[!A-Za-z0-9._~%-]*) ID=$(printf %s "$ID" | od -An -v -tx1 | tr -d '\n' | sed 's/ /%/g') ;;
esac

call "$(new_id)" "$PAYMENTS/$ID/status" -H 'Prefer: wait=1'
[ "$STATUS" != 000 ] || echo 'the status is not known: the answer is missing or incomplete'
cat "$BODY"
echo

CANCEL_ID=$(new_id)
call "$CANCEL_ID" "$PAYMENTS/$ID" --request DELETE
if is_unknown || has 'Penstock-Error: DUPLICATE' || [ "$STATUS" = 401 ] || [ "$STATUS" = 408 ] || [ "$STATUS" = 429 ]; then
  stop "the outcome of the cancellation is not known: repeat DELETE $PAYMENTS/$ID with X-Request-ID $CANCEL_ID"
elif [ "$STATUS" -ge 300 ] || grep -q '"RJCT"\|"ERROR"' "$BODY"; then
  stop 'the cancellation was refused'
fi
echo "cancelled: $STATUS"
