/**
 * A part of the page that shows the result of one read of the admin API. It shows the age of its data, reads again regularly
 * and after an error, and keeps its last data while reading fails.
 */

import { byId, formatAge, formatTime, h, setText } from './dom.js';

const firstRetryDelayMs = 1_000;
const maxRetryDelayMs = 15_000;

/** A gateway without the route may be updated while the page is open. */
const missingDelayMs = 60_000;

/**
 * The section must contain a `.panel-header` with an element `.age`. It dispatches `panel-change` after every read, so that
 * the overall status always agrees with the panel. A section with `data-optional` is hidden where the gateway, of another
 * version, does not have the route.
 *
 * @param options `section`: id of the element; `name`: what could not be read, for messages; `read()` gives the data, and
 *   may throw; `render(data)`; `everyMs`: pause between two reads; `isSerious`: whether a failure is a problem, not a warning
 * @returns `start()` (also reads now) and `stop()` for sign-in and sign-out, `refresh()` reads now if started, `status()` for the alerts
 */
export function createPanel({ section, name, read, render, everyMs, isSerious = false }) {
  const element = byId(section);
  const isOptional = element.hasAttribute('data-optional');
  const age = element.querySelector('.age');
  const problemText = h('span');
  const retry = h('button', { type: 'button', class: 'small', click: () => refresh() }, 'Retry now');
  const problem = h(
    'p',
    { class: 'panel-problem', hidden: true },
    h('span', { class: 'mark', 'aria-hidden': 'true' }, '▲'),
    problemText,
    retry,
  );
  element.querySelector('.panel-header').after(problem);

  /** Changes when the panel stops, so that a read that is still in progress is ignored. */
  let run = 0;
  let isRunning = false;
  let isReading = false;
  let mustReadAgain = false;
  let failures = 0;
  let readAtMs;
  let error;
  let isLoading = false;
  let nextRead;
  let ageTimer;

  async function refresh() {
    if (!isRunning) return;
    mustReadAgain = isReading;
    if (isReading) return;
    clearTimeout(nextRead);
    isReading = true;
    const ownRun = run;
    let thrown;
    try {
      const data = await read();
      if (ownRun !== run) return;
      render(data);
      readAtMs = Date.now();
    } catch (caught) {
      thrown = caught;
    }
    if (ownRun !== run) return;
    isReading = false;
    const isMissing = isOptional && (thrown?.isUnknownPath ?? false);
    error = isMissing ? undefined : thrown?.message;
    isLoading = false;
    failures = thrown ? failures + 1 : 0;
    if (isOptional) setHidden(section, isMissing);
    showStatus();
    if (mustReadAgain) return refresh();
    const retryDelayMs = Math.min(firstRetryDelayMs * 2 ** (failures - 1), maxRetryDelayMs);
    const delayMs = isMissing ? missingDelayMs : thrown ? Math.min(retryDelayMs, everyMs) : everyMs;
    nextRead = setTimeout(refresh, delayMs);
  }

  function showStatus() {
    problem.hidden = error === undefined;
    const since = readAtMs === undefined ? '' : ` The data below are from ${formatTime(readAtMs)}.`;
    setText(problemText, error === undefined ? '' : `${name} could not be read: ${error}${since}`);
    showAge();
    element.dispatchEvent(new Event('panel-change', { bubbles: true }));
  }

  function showAge() {
    setText(age, readAtMs === undefined ? '' : `updated ${formatAge(Date.now() - readAtMs)} ago`);
    age.dataset.level = error === undefined ? 'note' : 'warn';
  }

  return {
    refresh,
    start() {
      if (isRunning) return refresh();
      isRunning = isLoading = true;
      ageTimer = setInterval(showAge, 1_000);
      refresh();
    },
    stop() {
      run += 1;
      isRunning = isReading = isLoading = mustReadAgain = false;
      failures = 0;
      readAtMs = error = undefined;
      clearTimeout(nextRead);
      clearInterval(ageTimer);
      showStatus();
    },
    status: () => ({
      name,
      section,
      isLoading,
      isSerious,
      error,
      readAtMs,
    }),
  };
}

/** Shows or hides a section and the links to it. */
export function setHidden(section, isHidden) {
  byId(section).hidden = isHidden;
  for (const link of document.querySelectorAll(`nav a[href="#${section}"]`)) link.hidden = isHidden;
}
