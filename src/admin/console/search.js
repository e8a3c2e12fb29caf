/** "Why was my call refused?": finds requests of all instances by X-Request-ID, payment, tenant, error and time. */

import { callApi } from './connection.js';
import { byId, formatCount, formatTime, h, setText } from './dom.js';
import { filledFields } from './filled-fields.js';
import { renderRequest } from './request-record.js';

/** Up to this many results show their steps at once. */
const maxOpen = 3;

/**
 * @param linkTemplates returns the templates of `admin.links`
 * @returns `showRequest(xRequestId)`: searches for it, and moves the focus to the result
 */
export function createSearch(linkTemplates) {
  const form = byId('search');
  const results = byId('search-results');
  const status = byId('search-status');
  /** Distinguishes the newest search: a slow response to an earlier one is ignored. */
  let searches = 0;

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    results.replaceChildren();
    search(filledFields(form.elements));
  });

  async function search(conditions) {
    searches += 1;
    const own = searches;
    setText(status, 'Searching…');
    try {
      const found = await find(conditions);
      if (own === searches) show(found, conditions);
    } catch ({ message }) {
      if (own === searches) setText(status, message);
    }
  }

  function show({ requests, searchedFrom, complete, notStored }, conditions) {
    const isShort = requests.length <= maxOpen && results.childElementCount === 0;
    results.append(...requests.map((request) => renderRequest(request, isShort, linkTemplates())));
    const count = results.querySelectorAll('article').length;
    setText(status, describeResult({ count, searchedFrom, complete, notStored }, conditions));
    if (complete !== false) return;
    const more = h(
      'button',
      {
        type: 'button',
        click() {
          more.remove();
          search({ ...conditions, to: searchedFrom });
        },
      },
      'Search further back',
    );
    results.append(more);
  }

  return {
    showRequest(xRequestId) {
      form.reset();
      form.elements.requestId.value = xRequestId;
      form.requestSubmit();
      byId('decisions-title').focus();
      byId('decisions').scrollIntoView({ block: 'start' });
    },
  };
}

/** An instance of an earlier version has no search: it knows only its own requests, by their X-Request-ID. */
async function find(conditions) {
  try {
    return await callApi('GET', `/search?${new URLSearchParams(conditions)}`);
  } catch (thrown) {
    if (!thrown.isUnknownPath) throw thrown;
  }
  if (!conditions.requestId) throw new Error('This version of the gateway searches by X-Request-ID only.');
  try {
    return { requests: await callApi('GET', `/decisions/${encodeURIComponent(conditions.requestId)}`) };
  } catch (thrown) {
    if (thrown.status === 404) return { requests: [] };
    throw thrown;
  }
}

function describeResult({ count, searchedFrom, complete, notStored }, { requestId }) {
  const from = searchedFrom ? ` since ${formatTime(searchedFrom)}` : '';
  const missing = notStored ? ` ${formatCount(notStored, 'record')} of this period could not be stored.` : '';
  if (count > 0) return `${formatCount(count, 'request')}${from}.${missing}`;
  if (complete === false) return `No request found${from}; search further back.${missing}`;
  return requestId
    ? `No record of ${requestId}${from}: the request is too old, or never arrived.${missing}`
    : `No request found${from}.${missing}`;
}
