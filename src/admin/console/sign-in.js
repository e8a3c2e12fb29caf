/**
 * The sign-in: by token, with the organisation's OIDC provider, or by a proxy in front of the gateway.
 *
 * A token stays in this tab and authenticates every request: unlike a session, it does not depend on the database, which
 * may be what the operator has to repair.
 */

import { callApi, clearToken, storedToken, storeToken } from './connection.js';
import { byId, setText } from './dom.js';

/**
 * @param listeners `onSignIn()`: there are credentials; `onSignOut()`: the operator has signed out
 * @returns `start()` signs in with existing credentials or shows the form; `show(reason)` forgets them and shows the form;
 *   `hide()` after a sign-in; `whyRefused(wasAccepted)` explains a 401
 */
export function createSignIn({ onSignIn, onSignOut }) {
  /** As in `GET /api/session`; `undefined` if this version of the gateway knows tokens only. */
  let session;

  async function readSession() {
    session = await callApi('GET', '/session').catch((thrown) => {
      if (!thrown.isUnknownPath && thrown.status !== 401) setText(byId('sign-in-error'), thrown.message);
      return undefined;
    });
  }

  async function signOut() {
    const isSession = storedToken() === null;
    onSignOut();
    if (!isSession) return;
    await callApi('DELETE', '/session').catch(({ message }) =>
      setText(byId('sign-in-error'), `The session could not be ended: ${message}`),
    );
  }

  function showMethods() {
    const methods = session?.signInWith ?? ['token'];
    byId('sign-in').hidden = !methods.includes('token');
    byId('oidc-sign-in').hidden = !methods.includes('oidc');
    const page = new URLSearchParams({ page: location.pathname + location.search });
    byId('oidc-sign-in').querySelector('a').href = `/oidc/sign-in?${page}`;
    byId('proxy-sign-in').hidden = !methods.includes('proxy');
    byId('sign-in-panel').hidden = false;
    const first = methods.includes('token') ? byId('token') : byId('oidc-sign-in').querySelector('a');
    first.focus();
  }

  byId('sign-out').addEventListener('click', signOut);
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
    onSignIn();
  });

  return {
    async start() {
      showSignInError();
      if (storedToken() !== null) return onSignIn();
      await readSession();
      if (session?.role) return onSignIn();
      showMethods();
    },
    show(reason) {
      clearToken();
      setText(byId('sign-in-error'), reason);
      byId('token').value = '';
      showMethods();
    },
    hide() {
      byId('sign-in-panel').hidden = true;
      // A proxy signs the operator in again at once.
      byId('sign-out').hidden = storedToken() === null && session?.method === 'proxy';
    },
    whyRefused(wasAccepted) {
      if (storedToken() === null) return 'Your session has ended: sign in again.';
      return wasAccepted
        ? 'This instance no longer accepts your token: it was restarted, or the token was changed.'
        : 'The token is not valid.';
    },
  };
}

/** Why the sign-in with the provider failed, from the address that the gateway redirects to; a reload does not show it again. */
function showSignInError() {
  const url = new URL(location.href);
  const error = url.searchParams.get('signInError');
  if (error === null) return;
  setText(byId('sign-in-error'), signInErrors[error] ?? signInErrors.failed);
  url.searchParams.delete('signInError');
  history.replaceState(null, '', url);
}

const signInErrors = {
  'provider-unavailable': 'The provider is unavailable: sign in with a token, or try again later.',
  denied: 'The provider has refused the sign-in.',
  'no-role': 'You have no role at this gateway: ask those who operate it.',
  expired: 'The sign-in took too long: start again.',
  failed: 'The sign-in failed: start again. The log of the gateway contains the reason.',
};
