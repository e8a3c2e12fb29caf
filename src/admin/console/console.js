/** The console: signs in, follows the events, and renders each part of the page. READ FIRST of this folder. */

import { createAlerts } from './alerts.js';
import { createAudit } from './audit.js';
import { openHold } from './circuit-dialog.js';
import { followEvents } from './connection.js';
import { createContractReport } from './contract-report.js';
import { showNotice } from './dialogs.js';
import { byId, formatTime } from './dom.js';
import { createEnvironments } from './environments.js';
import { createFleet } from './fleet.js';
import { createInDoubt } from './in-doubt.js';
import { showLiveAge } from './live-age.js';
import { createNotifications } from './notifications.js';
import { showActiveEnvironment, showConnection, showOperator } from './page-header.js';
import { createSearch } from './search.js';
import { createSettings } from './settings.js';
import { createSignIn } from './sign-in.js';
import { openSwitch } from './switch-dialog.js';
import { createTimeline } from './timeline.js';
import { createTopErrors } from './top-errors.js';
import { createTraffic } from './traffic.js';

/** As long as the gateway keeps them. */
const historySeconds = 300;

/** The last snapshot with all later changes applied. */
let state;
let isLive = false;
let lastEventMs = 0;
let stopEvents = () => {};

const renderAlerts = createAlerts();
const renderFleet = createFleet();
const traffic = createTraffic();
const settings = createSettings();
const search = createSearch(() => state?.links);
const renderEnvironments = createEnvironments({ openSwitch, openHold, showRequest: search.showRequest });
const inDoubt = createInDoubt(search.showRequest);
const notifications = createNotifications();
const audit = createAudit();
const topErrors = createTopErrors(search.showRequest);
const contractReport = createContractReport(search.showRequest);
const timeline = createTimeline();
const signIn = createSignIn({ onSignIn: connect, onSignOut: () => signOut() });

/** These read while the operator is signed in; the other two only while the operator looks at them. */
const permanentPanels = [inDoubt, notifications.panel, topErrors, contractReport, timeline, audit];
const panels = [...permanentPanels, traffic.panel, settings.configuration];

function connect() {
  stopEvents();
  showConnection('connecting');
  stopEvents = followEvents({
    onEvent(name, data) {
      isLive = true;
      lastEventMs = Date.now();
      if (name === 'snapshot') applySnapshot(data);
      if (name === 'tick') applyTick(data);
      showConnection('live');
    },
    onDisconnect(reason) {
      isLive = false;
      showConnection('lost', reason);
      showStatus();
    },
    onUnauthorized: () => signOut(signIn.whyRefused(state !== undefined)),
  });
}

function applySnapshot(snapshot) {
  const before = state?.instance;
  state = snapshot;
  if (before && before.id !== snapshot.instance.id) showInstanceChange(before, snapshot.instance);
  showOperator(snapshot.operator);
  signIn.hide();
  showPage();
  settings.render(state);
  for (const panel of permanentPanels) panel.start();
  traffic.panel.refresh();
  render();
}

function showInstanceChange(before, { host, startedAt }) {
  const restarted = before.host === host && before.startedAt < startedAt;
  showNotice(
    `${restarted ? 'The instance was restarted' : 'Connected to another instance, started'} at ${formatTime(startedAt)}.`,
  );
}

function applyTick({ sample, seconds, ...changed }) {
  state = {
    ...state,
    ...changed,
    samples: [...state.samples, sample].slice(-historySeconds),
    seconds: mergeSeconds(state.seconds, seconds),
  };
  if ('environments' in changed) settings.render(state);
  // An outage of the database begins or ends.
  if ('readiness' in changed) for (const panel of permanentPanels) panel.refresh();
  if ('inDoubt' in changed) inDoubt.refresh();
  if (recordedFields.some((name) => name in changed)) refreshRecords();
  render();
}

/** A second is sent again when the figures of another instance have arrived. */
function mergeSeconds(known, received) {
  const byTime = new Map([...known, ...received].map((second) => [second.at, second]));
  return [...byTime.values()].toSorted((one, other) => one.at - other.at).slice(-historySeconds);
}

/** Changes of these are recorded in the audit log or in the timeline. */
const recordedFields = ['inDoubt', 'version', 'circuits'];

function refreshRecords() {
  audit.refresh();
  timeline.refresh();
}

function render() {
  showActiveEnvironment(state);
  renderEnvironments(state);
  renderFleet(state);
  notifications.renderFigures(state);
  traffic.render(state);
  showStatus();
}

/** The overall status comes from the same data as the sections below it. */
function showStatus() {
  if (!state) return;
  const connection = { isLive, lastEventMs };
  showLiveAge(connection);
  renderAlerts({
    ...state,
    connection,
    panels: panels.map((panel) => panel.status()),
  });
}

const signedInElements = ['page', 'sections', 'user', 'overall-label', 'active-environment-label'];

function showPage() {
  if (!byId('page').hidden) return;
  for (const id of signedInElements) byId(id).hidden = false;
  byId('alerts-title').focus({ preventScroll: true });
}

/** @param reason shown above the sign-in button */
function signOut(reason = '') {
  stopEvents();
  state = undefined;
  for (const panel of panels) panel.stop();
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
  for (const id of signedInElements) byId(id).hidden = true;
  document.body.removeAttribute('data-production');
  delete document.body.dataset.role;
  showConnection('none');
  signIn.show(reason);
}

byId('page').addEventListener('panel-change', showStatus);
document.addEventListener('operator-action', () => {
  inDoubt.refresh();
  notifications.panel.refresh();
  refreshRecords();
});
setInterval(() => isLive || showStatus(), 1_000);

// Scrollable areas must be reachable by keyboard.
for (const element of document.querySelectorAll('[data-scrollable]')) element.tabIndex = 0;
signIn.start();
