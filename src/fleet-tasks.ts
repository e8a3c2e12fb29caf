/**
 * What an instance does every second as a member of the fleet, from its start to its stop: it stores its report, reads those of the
 * others, looks for lost instances, and feeds the event stream.
 */

import type { EventStream } from './admin/event-stream.ts';
import { describeChange, type ReloadRequest, type ReloadResult } from './config/config-changes.ts';
import type { GatewayAlerts } from './gateway-alerts.ts';
import type { ListenerCertificate } from './http/listener-tls.ts';
import { createInstanceReport } from './instance-report.ts';
import { createPeriodicTask } from './periodic-task.ts';
import type { ReadinessCheck } from './readiness.ts';
import type { RequestHandlers } from './request-handler.ts';
import type { Services } from './services.ts';
import { createCertificateTimeline } from './telemetry/certificate-timeline.ts';
import type { ReloadOutcome, StoredReloadRequest } from './telemetry/fleet-reports.ts';
import { createProcessFigures } from './telemetry/process-figures.ts';
import { version } from './version.ts';

interface FleetTasks {
  /** Stores the first report at once. */
  start(): void;
  /** Announces the stop. Never rejects. @param why such as a signal */
  stop(why?: string): Promise<void>;
}

interface FleetTasksDependencies {
  readonly services: Pick<Services, 'currentConfig' | 'fleet' | 'timeline' | 'telemetry' | 'notifications'>;
  readonly requestHandlers: RequestHandlers;
  readonly listenerCertificate: Pick<ListenerCertificate, 'certificates'>;
  readonly readiness: Pick<ReadinessCheck, 'withoutCertificates'>;
  readonly alerts: Pick<GatewayAlerts, 'evaluate'>;
  readonly events: Pick<EventStream, 'publish'>;
  /** Never rejects. */
  readonly reload: (request: ReloadRequest) => Promise<ReloadResult>;
}

/** How long after the end of each second of the clock the report is stored. Milliseconds. */
const reportOffsetMs = 50;
/** The same for the read of all reports, and for the event stream: all instances then show the same seconds. */
const readOffsetMs = 250;
const eventOffsetMs = 350;
/** How often lost instances are looked for: a reader of the event stream must see one within three seconds. Milliseconds. */
const checkEveryMs = 250;

export function createFleetTasks({
  services: { currentConfig, fleet, timeline, telemetry, notifications },
  requestHandlers,
  listenerCertificate,
  readiness,
  alerts,
  events,
  reload,
}: FleetTasksDependencies): FleetTasks {
  const processFigures = createProcessFigures();
  const createReport = createInstanceReport({
    configuration: () => currentConfig.value,
    readiness: readiness.withoutCertificates,
    circuits: () => requestHandlers.current.upstreams.circuits(),
    limiters: () => requestHandlers.current.upstreams.limiters(),
    notifications: notifications.figures,
    processFigures: processFigures.read,
  });
  const recordCertificates = createCertificateTimeline(timeline);

  let lastReload: ReloadOutcome | null = null;

  /** An operator has asked all instances. */
  async function answerReload({ id, who, reason }: StoredReloadRequest): Promise<void> {
    const result = await reload({ by: 'operator', operator: who, reason });
    lastReload =
      result.kind === 'applied'
        ? {
            id,
            outcome: 'applied',
            errors: [],
            restartRequired: shortened(result.restartRequired.map(describeChange)),
          }
        : { id, outcome: 'refused', errors: shortened(result.errors), restartRequired: [] };
  }

  function storeReport(): void {
    const seconds = telemetry.liveStats.recent();
    const report = createReport(seconds);
    fleet.publish({ ...report, alerts: alerts.evaluate(report.figures), reload: lastReload }, seconds);
    recordCertificates([
      ...listenerCertificate.certificates(),
      ...requestHandlers.current.upstreams.certificates(),
    ]);
  }

  const tasks = [
    createPeriodicTask(async () => {
      storeReport();
      return msUntilNextSecond(reportOffsetMs);
    }),
    createPeriodicTask(async () => {
      await fleet.read();
      const request = fleet.takeReloadRequest();
      if (request) void answerReload(request); // the reports go on
      return msUntilNextSecond(readOffsetMs);
    }),
    createPeriodicTask(async () => {
      events.publish();
      return msUntilNextSecond(eventOffsetMs);
    }),
    createPeriodicTask(async () => {
      if (fleet.check()) events.publish();
      return checkEveryMs;
    }),
  ];
  let isStarted = false;

  return {
    start() {
      isStarted = true;
      processFigures.start();
      const details = { version, node: process.version };
      timeline.record({ kind: 'start', text: `version ${version} started`, details });
      storeReport();
      for (const task of tasks) task.start();
    },
    async stop(why) {
      for (const task of tasks) task.stop();
      processFigures.stop();
      if (!isStarted) return;
      isStarted = false;
      const text = why === undefined ? 'stopped' : `stopped: ${why}`;
      timeline.record({ kind: 'stop', text });
      await Promise.all([fleet.stop(), timeline.close()]);
    },
  };
}

/** As a report may contain them. */
const shortened = (texts: readonly string[]) => texts.slice(0, 100).map((text) => text.slice(0, 1_000));

/** @param offsetMs after the next full second */
const msUntilNextSecond = (offsetMs: number) => 1_000 - (Date.now() % 1_000) + offsetMs;
