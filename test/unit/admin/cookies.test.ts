import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { readCookie, sessionCookie, signInCookie, writeCookie } from '../../../src/admin/cookies.ts';

const requestWith = (cookie: string) =>
  Object.assign(new IncomingMessage(new Socket()), { headers: { cookie } });

describe('the cookie of a session', () => {
  test('is HttpOnly and SameSite=Strict, and over TLS Secure with the prefix __Host-', () => {
    assert.equal(
      writeCookie(sessionCookie, 'abc', 60, true),
      '__Host-penstock-session=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure',
    );
    assert.equal(
      writeCookie(sessionCookie, 'abc', 60, false),
      'penstock-session=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Strict',
    );
    assert.match(writeCookie(signInCookie, 'abc', 60, true), /SameSite=Lax/);
  });

  test('is read among others; over TLS, a cookie without the prefix is ignored', () => {
    const request = requestWith('a=b; penstock-session=plain; __Host-penstock-session=secure; c');
    assert.equal(readCookie(request, sessionCookie, true), 'secure');
    assert.equal(readCookie(request, sessionCookie, false), 'plain');
    assert.equal(readCookie(requestWith('penstock-session=plain'), sessionCookie, true), undefined);
    for (const cookie of ['', 'penstock-session', 'penstock-session=', 'xpenstock-session=1', ';;='])
      assert.equal(readCookie(requestWith(cookie), sessionCookie, false), undefined, cookie);
  });
});
