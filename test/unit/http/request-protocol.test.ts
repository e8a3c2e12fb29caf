import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { isRtsp } from '../../../src/http/request-protocol.ts';

/** A request as Node emits it, while its parser has this packet. */
function requestIn(packet: string, method = 'GET', url = '/v1/payments/p/1'): IncomingMessage {
  const parser = { getCurrentBuffer: () => Buffer.from(packet, 'latin1') };
  return Object.assign(new IncomingMessage(Object.assign(new Socket(), { parser })), { method, url });
}

describe('isRtsp', () => {
  test('is true for a request line of RTSP, wherever it is in the packet', () => {
    for (const packet of [
      'GET /v1/payments/p/1 RTSP/1.0\r\n\r\n',
      'GET   /v1/payments/p/1   RTSP/1.1\r\n\r\n',
      '\r\nGET /v1/payments/p/1 RTSP/1.0\n\n',
      'GET / HTTP/1.1\r\n\r\nGET /v1/payments/p/1 RTSP/1.0\r\n\r\n',
      'POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET /v1/payments/p/1 RTSP/1.0\r\n\r\n',
    ]) {
      assert.equal(isRtsp(requestIn(packet)), true, packet);
    }
  });

  test('is false for HTTP, even if a field or the body contains the name of the protocol', () => {
    for (const packet of [
      'GET /v1/payments/p/1 HTTP/1.0\r\n\r\n',
      'GET /v1/payments/p/1 HTTP/1.1\r\nX-A: RTSP/1.0\r\n\r\n',
      'GET /v1/payments/p/1 HTTP/1.1\r\n\r\nGET /other RTSP/1.0\r\n\r\n',
      '',
    ]) {
      assert.equal(isRtsp(requestIn(packet)), false, packet);
    }
  });

  test('is false if the socket has no parser', () => {
    assert.equal(isRtsp(new IncomingMessage(new Socket())), false);
  });
});
