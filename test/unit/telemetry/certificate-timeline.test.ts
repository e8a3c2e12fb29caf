import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstalledCertificate } from '../../../src/certificates/installed-certificates.ts';
import { createCertificateTimeline } from '../../../src/telemetry/certificate-timeline.ts';
import type { TimelineEvent } from '../../../src/telemetry/timeline.ts';

const dayMs = 24 * 3_600_000;
const startMs = Date.UTC(2026, 0, 1);

const certificate = (sha256: string, notAfterMs: number): InstalledCertificate => ({
  environment: 'production',
  use: 'qwac',
  info: {
    subject: 'CN=tpp',
    issuer: [],
    organisationIdentifier: null,
    roles: [],
    authority: null,
    qcType: null,
    serialNumber: '01',
    sha256,
    notBeforeMs: startMs,
    notAfterMs,
    der: Buffer.alloc(0),
  },
});

function start() {
  const clock = { nowMs: startMs };
  const recorded: TimelineEvent[] = [];
  const observe = createCertificateTimeline(
    { record: (event) => void recorded.push(event) },
    () => clock.nowMs,
  );
  const newEvents = (...certificates: readonly InstalledCertificate[]) => {
    observe(certificates);
    return recorded.splice(0);
  };
  return { clock, newEvents };
}

test('a certificate is recorded once when it is in use, with an id that all instances share', () => {
  const [one, other] = [start(), start()];
  const [event, ...more] = one.newEvents(certificate('a', startMs + 400 * dayMs));
  assert.deepEqual(more, []);
  assert.equal(event?.text, 'production, QWAC: certificate in use until 2027-02-05T00:00:00.000Z');
  assert.deepEqual([event?.kind, event?.environment], ['certificate', 'production']);
  assert.equal(other.newEvents(certificate('a', startMs + 400 * dayMs))[0]?.id, event?.id);
  assert.deepEqual(one.newEvents(certificate('a', startMs + 400 * dayMs)), []);
});

test('each instance records when it has loaded a new certificate', () => {
  const { newEvents } = start();
  newEvents(certificate('a', startMs + 400 * dayMs));
  const [renewed] = newEvents(certificate('b', startMs + 800 * dayMs));
  assert.equal(renewed?.details?.sha256, 'b');
  assert.equal(renewed?.id, undefined);
});

test('an expiring certificate is recorded 30 days, 7 days and one day before its end, and when it has expired', () => {
  const { clock, newEvents } = start();
  const expiring = certificate('a', startMs + 40 * dayMs);
  const found: (readonly [day: number, text: string | undefined])[] = [];
  for (let day = 0; day < 45; day++) {
    clock.nowMs = startMs + day * dayMs + dayMs / 2;
    for (const { text } of newEvents(expiring)) found.push([day, text]);
  }
  assert.deepEqual(found.slice(1), [
    [10, 'the QWAC of production expires in 29 days, on 2026-02-10T00:00:00.000Z'],
    [33, 'the QWAC of production expires in 6 days, on 2026-02-10T00:00:00.000Z'],
    [39, 'the QWAC of production expires in 0 days, on 2026-02-10T00:00:00.000Z'],
    [40, 'the QWAC of production expired 1 day ago, on 2026-02-10T00:00:00.000Z'],
  ]);
});
