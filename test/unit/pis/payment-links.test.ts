import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paymentIdInLink } from '../../../src/pis/payment-links.ts';

test('a link names a payment in every form that banks use', () => {
  for (const [link, id] of [
    ['https://api.bank.example/psd2/v1/payments/sepa-credit-transfers/p-1', 'p-1'],
    ['/v1/payments/sepa-credit-transfers/p-1', 'p-1'],
    ['payments/sepa-credit-transfers/p-1', 'p-1'],
    ['//api.bank.example/BBVA/v1.1/payments/sct/p-1/', 'p-1'],
    ['/v1/payments/sct/p-1?bic=HABAEE2X#top', 'p-1'],
    ['/v1/payments/sct/p-1/status', 'p-1'],
    ['/v1/payments/sct/p-1/authorisations', 'p-1'],
    ['/v1/payments/sct/p-1/authorisations/a-1?correlationId=C', 'p-1'],
    ['/v1/payments/sct/p-1/cancellation-authorisations/a-1', 'p-1'],
    ['/v1/payments/sct/p-1/authorizations/a-1', 'p-1'],
    ['/v1/payments/sct/q7Hc2m%2FZr+8VwA==', 'q7Hc2m/Zr+8VwA=='],
    ['/v1/payments/sct/ORD;2026;17', 'ORD;2026;17'],
    ['/v1/payments/sct/a%252Fb', 'a%2Fb'],
    [
      '/v1/payments/sct/350251231806012123456PSDSE-FINA-44059PA2681KC',
      '350251231806012123456PSDSE-FINA-44059PA2681KC',
    ],
    ['/open/payments/v1/payments/sct/p-1', 'p-1'],
    ['/v1/payments/payments/p-1', 'p-1'],
  ] as const)
    assert.equal(paymentIdInLink(link, 'payments'), id, link);
});

test('a link that has another form names no payment', () => {
  for (const link of [
    '',
    '/',
    'https://bank.example/maintenance.html',
    '/v1/payments',
    '/v1/payments/sct',
    '/v1/payments/sct/',
    '/v1/payments/sct/status',
    '/v1/payments/sct/authorisations',
    '/v1/payments/sct/p-1/other',
    '/v1/payments/sct/p-1/status/other',
    '/v1/payments/sct/q7Hc2m/Zr+8VwA==',
    '/v1/bulk-payments/sct/p-1',
    '/v1/xpayments/sct/p-1',
    '/v1/payments/sct/%20',
    '/v1/payments/sct/%E0%A4%A',
    '/v1/payments/sct/%2e%2e',
    'mailto:payments/sct/p-1',
    'https://',
    'https://[/v1/payments/sct/p-1',
  ])
    assert.equal(paymentIdInLink(link, 'payments'), undefined, link);
});

test('no link of many kilobytes names a payment: the gateway could not offer it', () => {
  const path = '/payments/p/1';
  assert.equal(paymentIdInLink(`/${'a/'.repeat(4_000)}${path}`, 'payments'), '1');
  assert.equal(paymentIdInLink(`/${'a/'.repeat(4_100)}${path}`, 'payments'), undefined);
});
