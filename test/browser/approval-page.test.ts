/** The simulated bank's page for the payer, in a browser. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call, jsonOf } from '../kit/call.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { axeViolations } from './accessibility.ts';
import { skipWithoutChromium, usePages } from './browser.ts';

const markup = `<script>document.title='stolen'</script><img src=x onerror="document.title='stolen'">`;

describe('the approval page of the simulated bank', { skip: skipWithoutChromium }, () => {
  const pages = usePages();

  /** Initiates a payment through the gateway, and opens its `scaRedirect`. */
  async function openPage(t: TestContext) {
    const { bank, gateway } = await startGatewayWithBank(
      t,
      { statusCache: { enabled: false } },
      {
        approvalPage: true,
      },
    );
    const order = { ...Object(JSON.parse(String(initiation.body))), creditorName: markup };
    const body = JSON.stringify({ ...order, remittanceInformationUnstructured: markup });
    const { paymentId, _links } = jsonOf(await call(gateway.url, { ...initiation, body }));
    const page = await pages.open(t, { adminUrl: Object(_links).scaRedirect.href });
    const path = `${transfersPath}/${paymentId}/status`;
    const status = async () => jsonOf(await call(gateway.url, { method: 'GET', path })).transactionStatus;
    return { bank, page, status };
  }

  test('approves a payment, whose new status the gateway reports, and shows markup as text', async (t) => {
    const { bank, page, status } = await openPage(t);
    assert.equal(await page.title(), 'Approve this payment? · simulated bank bank');
    await page.getByText(markup).first().waitFor();
    assert.equal(await page.locator('script, img').count(), 0);
    assert.deepEqual(await axeViolations(page), []);
    bank.clock.advance(10_000);
    assert.equal(await status(), 'RCVD', 'the payer no longer approves by itself');
    await page.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('heading', { name: 'Approved' }).waitFor();
    bank.clock.advance(60_000);
    assert.equal(await status(), 'ACCC');
  });

  test('rejects a payment, whose new status the gateway reports', async (t) => {
    const { page, status } = await openPage(t);
    await page.getByRole('button', { name: 'Reject' }).click();
    await page.getByRole('heading', { name: 'Rejected' }).waitFor();
    assert.equal(await status(), 'RJCT');
  });
});
