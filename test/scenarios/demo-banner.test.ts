/** The commands that the demo prints at its start, pasted into a shell one after the other. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copyOfRepository } from '../docs/demo.ts';

test('the commands that the demo prints work, also the last one after the switch to production', async (t) => {
  const copy = await copyOfRepository(t);
  const { said, code } = await copy.run(
    copy.here(`
      npm run demo > demo.log 2>&1 &
      until curl --silent --fail --output ready.json http://127.0.0.1:9090/health/ready; do sleep 0.2; done
      until grep --quiet 'Press Ctrl-C' demo.log; do sleep 0.2; done
      # Commands are indented by three spaces.
      sed -n 's/^   //p' demo.log > commands.sh
      source <(sed '/PAYMENT_ID/,$d' commands.sh) > first.txt
      ID=$(sed -n 's/.*"paymentId":"\\([^"]*\\)".*/\\1/p' first.txt)
      source <(sed -n '/PAYMENT_ID/,$p' commands.sh | sed "s/PAYMENT_ID/$ID/")
      echo "paid $ID"
      until grep 'webhook received.*transactionStatus' demo.log; do sleep 0.2; done
      kill %1
    `),
  );
  assert.equal(code, 0, said);
  assert.match(said, /paid sandbox-/);
  assert.match(said, /"transactionStatus":"RCVD"/);
  assert.match(said, /ASPSP-Notification-Support: true[\s\S]*You have approved this payment/);
  assert.match(said, /Preference-Applied: wait=20[\s\S]*"transactionStatus":"AC[TS][CP]"/);
  assert.match(said, /^webhook received by the TPP, signature valid: .*"transactionStatus":"AC/m);
  assert.match(said, /Penstock-Error: OUTCOME_UNKNOWN[\s\S]*Penstock-Error: DUPLICATE_IN_DOUBT/);
  const [, requestId = assert.fail(said)] = /X-Request-ID ([0-9a-f-]{36})/.exec(said) ?? [];
  assert.match(said, new RegExp(`initiatePayment of shop in production, X-Request-ID ${requestId}`));
});
