/** The console: signs in, follows the events, and renders each part of the page. READ FIRST of this folder. */

import { createAlerts } from './alerts.js';
import { createAudit } from './audit.js';
import { openHold } from './circuit-dialog.js';
import { clearToken, followEvents, storedToken, storeToken } from './connection.js';
import { createDecisions } from './decisions.js';
import { showNotice } from './dialogs.js';
import { byId, formatTime, setText } from './dom.js';
import { createEnvironments } from './environments.js';
import { createInDoubt } from './in-doubt.js';
import { createSettings } from './settings.js';
import { createSharedState } from './shared-state.js';
import { openSwitch } from './switch-dialog.js';
import { createTraffic } from './traffic.js';

/** As long as the gateway keeps them. */
const historySeconds = 300;

/** The last snapshot with all later changes applied. */
let state;
let stopEvents = () => {};

const renderAlerts = createAlerts();
const renderEnvironments = createEnvironments({
  openSwitch,
  openHold: (circuit) => openHold(circuit, state),
});
const renderTraffic = createTraffic();
const renderSettings = createSettings();
const renderSharedState = createSharedState(() => state.operator);
const refreshInDoubt = createInDoubt(() => state.operator);
const refreshAudit = createAudit();
createDecisions();

function connect() {
  stopEvents();
  showConnection('connecting', 'Connecting…');
  stopEvents = followEvents({
    onEvent(name, data) {
      if (name === 'snapshot') applySnapshot(data);
      if (name === 'tick') applyTick(data);
      showConnection('live', `Live, ${formatTime(Date.now())}`);
    },
    onDisconnect: (reason) => showConnection('lost', `${reason} Reconnecting…`),
    onUnauthorized: () =>
      signOut(
        state
          ? 'This instance no longer accepts your token: it was restarted, or the token was changed.'
          : 'The token is not valid.',
      ),
  });
}

function applySnapshot(snapshot) {
  const before = state?.instance;
  state = snapshot;
  if (before && before.id !== snapshot.instance.id) showInstanceChange(before, snapshot.instance);
  const { name, role } = snapshot.operator;
  setText(byId('operator'), role === 'operate' ? name : `${name} (read-only)`);
  showPage();
  renderSettings(state);
  refreshInDoubt();
  refreshAudit();
  render();
}

function showInstanceChange(before, { host, startedAt }) {
  const restarted = before.host === host && before.startedAt < startedAt;
  showNotice(
    `${restarted ? 'The instance was restarted' : 'Connected to another instance, started'} at ${formatTime(startedAt)}.`,
  );
}

function applyTick({ sample, seconds, ...changed }) {
  const newest = state.seconds.at(-1)?.at ?? 0;
  state = {
    ...state,
    ...changed,
    samples: [...state.samples, sample].slice(-historySeconds),
    seconds: [...state.seconds, ...seconds.filter(({ at }) => at > newest)].slice(-historySeconds),
  };
  if ('environments' in changed) renderSettings(state);
  if ('inDoubt' in changed) refreshInDoubt();
  if (auditedFields.some((name) => name in changed)) refreshAudit();
  render();
}

/** Changes of these are often actions of an operator. */
const auditedFields = ['inDoubt', 'version', 'circuits', 'sharedState'];

function render() {
  renderAlerts(state);
  renderSharedState(state);
  renderEnvironments(state);
  renderTraffic(state);
}

const signedInElements = ['page', 'sections', 'user'];

function showPage() {
  if (!byId('page').hidden) return;
  byId('sign-in-panel').hidden = true;
  for (const id of signedInElements) byId(id).hidden = false;
  byId('alerts-title').focus({ preventScroll: true });
}

/** @param connection `none`, `connecting`, `live` or `lost` */
function showConnection(connection, text) {
  const element = byId('connection');
  if (element.dataset.connection !== connection) element.dataset.connection = connection;
  // A screen reader announces changes of the connection, not the time of every second.
  element.setAttribute('aria-live', connection === 'live' ? 'off' : 'polite');
  setText(element, text);
  document.body.classList.toggle('stale', connection === 'lost');
}

/** @param reason shown above the sign-in button */
function signOut(reason = '') {
  stopEvents();
  clearToken();
  state = undefined;
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
  for (const id of signedInElements) byId(id).hidden = true;
  byId('sign-in-panel').hidden = false;
  showConnection('none', '');
  setText(byId('sign-in-error'), reason);
  byId('token').value = '';
  byId('token').focus();
}

byId('sign-out').addEventListener('click', () => signOut());
byId('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  const token = byId('token').value.trim();
  // `fetch` throws on a token that a header cannot carry, which would look like an unreachable instance.
  const canBeSent = /^[\x21-\x7e]+$/.test(token);
  setText(
    byId('sign-in-error'),
    canBeSent ? '' : 'The token contains spaces, accents or curly quotes: copy it again.',
  );
  if (!canBeSent) return;
  storeToken(token);
  connect();
});

// Scrollable areas must be reachable by keyboard.
for (const element of document.querySelectorAll('[data-scrollable]')) element.tabIndex = 0;
if (storedToken()) connect();
else byId('token').focus();
