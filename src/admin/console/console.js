/** The console: signs in, follows the events, and hands each part what it shows. READ FIRST of this folder. */

import { createAudit } from './audit.js';
import { follow, forgetToken, keepToken, keptToken } from './connection.js';
import { createDecisions } from './decisions.js';
import { notify } from './dialogs.js';
import { byId, clockText, say } from './dom.js';
import { createDoubts } from './doubts.js';
import { createEnvironments } from './environments.js';
import { createSettings } from './settings.js';
import { openHold, openSwitch } from './switch-dialog.js';
import { createTraffic } from './traffic.js';
import { createVerdict } from './verdict.js';

const keptSeconds = 300;

/** The last snapshot, and all that changed since. */
let state;
let stop = () => {};

const showEnvironments = createEnvironments({
  switchTo: openSwitch,
  hold: (circuit) => openHold(circuit, state),
});
const showTraffic = createTraffic();
const showVerdict = createVerdict();
const showSettings = createSettings();
const readDoubts = createDoubts(() => state.operator);
const readAudit = createAudit();
createDecisions();

function begin() {
  stop();
  link('connecting', 'Connecting…');
  stop = follow({
    event(name, data) {
      if (name === 'snapshot') opened(data);
      if (name === 'tick') ticked(data);
      link('live', `Live, ${clockText(Date.now())}`);
    },
    lost: (why) => link('lost', `${why} Trying again…`),
    refused: () =>
      leave(
        state
          ? 'This instance does not know your token any more: it was restarted, or the token was changed.'
          : 'This token is not known here.',
      ),
  });
}

function opened(snapshot) {
  const before = state?.instance;
  state = snapshot;
  if (before && before.id !== snapshot.instance.id) {
    const isNew = before.host === snapshot.instance.host && before.startedAt < snapshot.instance.startedAt;
    notify(
      `${isNew ? 'The instance was restarted' : 'Another instance answers now'}: it runs since ${clockText(snapshot.instance.startedAt)}.`,
    );
  }
  const { name, role } = snapshot.operator;
  say(byId('operator'), role === 'operate' ? name : `${name}, may look`);
  showPage();
  showSettings(state);
  readDoubts();
  readAudit();
  show();
}

function ticked({ sample, seconds, ...changed }) {
  const newest = state.seconds.at(-1)?.at ?? 0;
  state = {
    ...state,
    ...changed,
    samples: [...state.samples, sample].slice(-keptSeconds),
    seconds: [...state.seconds, ...seconds.filter(({ at }) => at > newest)].slice(-keptSeconds),
  };
  if ('environments' in changed) showSettings(state);
  if ('inDoubt' in changed) readDoubts();
  if ('inDoubt' in changed || 'version' in changed || 'circuits' in changed) readAudit();
  show();
}

function show() {
  showVerdict(state);
  showEnvironments(state);
  showTraffic(state);
}

function showPage() {
  if (!byId('page').hidden) return;
  byId('door').hidden = true;
  for (const id of ['page', 'sections', 'who']) byId(id).hidden = false;
  byId('verdict-title').focus({ preventScroll: true });
}

function link(kind, text) {
  const place = byId('link');
  if (place.dataset.link !== kind) place.dataset.link = kind;
  // Only what changes the picture is told to a screen reader: not every second.
  place.setAttribute('aria-live', kind === 'live' ? 'off' : 'polite');
  say(place, text);
  document.body.classList.toggle('stale', kind === 'lost');
}

/** Back to the door. @param why what to say there */
function leave(why = '') {
  stop();
  forgetToken();
  state = undefined;
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
  for (const id of ['page', 'sections', 'who']) byId(id).hidden = true;
  byId('door').hidden = false;
  link('none', '');
  say(byId('door-fault'), why);
  byId('token').value = '';
  byId('token').focus();
}

byId('leave').addEventListener('click', () => leave());
byId('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  const token = byId('token').value.trim();
  // What no header can hold would look like an instance that does not answer.
  const canBeSent = /^[\x21-\x7e]+$/.test(token);
  say(byId('door-fault'), canBeSent ? '' : 'A token has no blanks, accents or curly quotes: copy it again.');
  if (!canBeSent) return;
  keepToken(token);
  begin();
});

// What scrolls must be reachable by keyboard.
for (const place of document.querySelectorAll('[data-scrolls]')) place.tabIndex = 0;
if (keptToken()) begin();
else byId('token').focus();
