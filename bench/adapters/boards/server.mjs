// A server that answers the routes of the boards, and counts what it received and answered.
//
//     node server.mjs '{"counts": 9000, "http": [8080], "https": [8081], "h2": [8443],
//                       "h2c": [8082], "certificate": "FILE", "key": "FILE"}'
//
// The value of `http` and the others is a list of ports; those that are left out are not listened
// on. `GET /` of the port `counts` gives the counts as JSON, and is not counted. The contents of
// replies are not those of a real entry of a board; their lengths and statuses are plausible.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';

const BACKLOG = 65535;
const MESSAGE_BYTES_MAX = 1 << 20;
const ORIGIN = 'http://localhost';
const WEBSOCKET = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
// A SumReply whose result is 3, behind the five bytes of gRPC: not compressed, two bytes.
const GRPC_REPLY = Buffer.from([0, 0, 0, 0, 2, 8, 3]);

const counts = {
  connections: 0, received: 0, answered: { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 },
  by_route: {}, upgrades: 0, messages_received: 0, messages_sent: 0,
};

// --- Answers -------------------------------------------------------------------------------------

const several = (n, one) => Array.from({ length: n }, (_, at) => one(at));
const items = (n) => JSON.stringify({
  count: n, items: several(n, (at) => ({ id: at, name: `item ${at}`, total: at })),
});
const JSON_BODIES = new Map([1, 5, 10, 15, 20, 25, 40, 50].map((n) => [n, items(n)]));
const sum = (query, body) =>
  String(Number(query.get('a')) + Number(query.get('b')) + (Number(body.toString()) || 0));
const text = (body, status = 200) => ({ status, type: 'text/plain', body });
const json = (body, status = 200) => ({ status, type: 'application/json', body });
const listed = (n) => json(JSON_BODIES.get(n) ?? items(Math.min(n, 500)));

// The first part of a path, and what a request for it gets, by the rest of the path, the query, the
// body and the method.
const ROUTES = {
  '': () => text(''),
  api: (rest, query, body, method) => {
    if (rest === 'me' || rest.startsWith('items/')) {
      return method === 'GET' ? json('{"id":1}') : { status: 204, type: 'text/plain', body: '' };
    }
  },
  'async-db': (rest, query) => listed(Number(query.get('limit')) || 10),
  baseline11: (rest, query, body) => text(sum(query, body)),
  baseline2: (rest, query, body) => text(sum(query, body)),
  crud: (rest, query, body, method) => {
    if (!/^items(\/\d+)?$/.test(rest)) return undefined;
    return method === 'POST' ? json(body.toString(), 201) : listed(10);
  },
  delay: (rest) => ({ ...text('ok'), delay: Math.min(Number(rest) || 0, 1000) }),
  echo: (rest, query, body) => ({ status: 200, type: 'application/octet-stream', body }),
  fortunes: () => ({ status: 200, type: 'text/html; charset=utf-8', body: '<table></table>' }),
  json: (rest) => listed(Number(rest) || 1),
  pipeline: () => text('ok'),
  plaintext: () => text('Hello, World!'),
  public: (rest, query, body) => text(sum(query, body)),
  queries: (rest) => json(JSON.stringify(several(Number(rest) || 1, (id) => ({ id })))),
  static: (rest) => (/^[\w.-]+$/.test(rest) ? text('x'.repeat(1000 + rest.length)) : undefined),
  upload: (rest, query, body) => text(String(body.length)),
  user: (rest) => text(rest),
};

function handle(request, response) {
  counts.received += 1;
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const { pathname, searchParams } = new URL(request.url, ORIGIN);
    const [, first, rest = ''] = pathname.match(/^\/([^/]*)\/?(.*)$/);
    counts.by_route[first] = (counts.by_route[first] ?? 0) + 1;
    if (request.headers['content-type'] === 'application/grpc') {
      answerCall(response, rest);
      return;
    }
    const body = Buffer.concat(parts);
    const route = Object.hasOwn(ROUTES, first) ? ROUTES[first] : () => undefined;
    const answer = route(rest, searchParams, body, request.method) ?? text('', 404);
    if (answer.delay) setTimeout(send, answer.delay, response, answer);
    else send(response, answer);
  });
}

function send(response, { status, type, body }) {
  const length = Buffer.byteLength(body);
  const fields = { 'content-type': type };
  if (status !== 204) fields['content-length'] = length;
  response.on('finish', () => { counts.answered[`${Math.floor(status / 100)}xx`] += 1; });
  response.writeHead(status, fields);
  response.end(body);
}

// GetSum succeeds; every other call is unknown, which gRPC says in the trailers of a reply 200.
function answerCall(response, method) {
  const status = method === 'GetSum' ? '0' : '12';
  const name = `grpc_${status}`;
  response.on('finish', () => { counts.answered[name] = (counts.answered[name] ?? 0) + 1; });
  response.setTrailer('grpc-status', status);
  send(response, { status: 200, type: 'application/grpc', body: status === '0' ? GRPC_REPLY : '' });
}

// --- WebSocket -----------------------------------------------------------------------------------

function upgrade(request, socket, head) {
  counts.upgrades += 1;
  const accept = createHash('sha1').update(request.headers['sec-websocket-key'] + WEBSOCKET);
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
    + `Sec-WebSocket-Accept: ${accept.digest('base64')}\r\n\r\n`);
  let waiting = head;
  socket.on('error', () => {});
  socket.on('data', (part) => {
    waiting = waiting.length ? Buffer.concat([waiting, part]) : part;
    const replies = [];
    for (let frame = takeFrame(waiting); frame; frame = takeFrame(waiting)) {
      waiting = waiting.subarray(frame.end);
      answerFrame(socket, frame, replies);
    }
    if (replies.length) socket.write(Buffer.concat(replies));
  });
}

function answerFrame(socket, { opcode, payload }, replies) {
  if (opcode === 8) {
    socket.end(frameOf(8, payload));
  } else if (opcode === 9) {
    replies.push(frameOf(10, payload));
  } else if (opcode !== 10) {
    counts.messages_received += 1;
    counts.messages_sent += 1;
    replies.push(frameOf(opcode, payload));
  }
}

// The first complete frame of a client, unmasked; undefined while there is none.
function takeFrame(bytes) {
  if (bytes.length < 6) return undefined;
  let length = bytes[1] & 127;
  let at = 2;
  if (length === 126) {
    length = bytes.readUInt16BE(2);
    at = 4;
  } else if (length === 127) {
    throw new Error(`a message of more than ${MESSAGE_BYTES_MAX} bytes`);
  }
  if (bytes.length < at + 4 + length) return undefined;
  const payload = Buffer.alloc(length);
  for (let i = 0; i < length; i += 1) payload[i] = bytes[at + 4 + i] ^ bytes[at + (i & 3)];
  return { opcode: bytes[0] & 15, payload, end: at + 4 + length };
}

function frameOf(opcode, payload) {
  const head = payload.length < 126
    ? Buffer.from([128 | opcode, payload.length])
    : Buffer.from([128 | opcode, 126, payload.length >> 8, payload.length & 255]);
  return Buffer.concat([head, payload]);
}

// --- Listening -----------------------------------------------------------------------------------

const options = JSON.parse(process.argv[2]);
const secure = options.certificate
  ? { cert: readFileSync(options.certificate), key: readFileSync(options.key) } : {};
const streams = { settings: { maxConcurrentStreams: 1000 } };

function listen(server, port) {
  Object.assign(server, { keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 });
  server.on('connection', () => { counts.connections += 1; });
  server.on('upgrade', upgrade);
  for (const event of ['clientError', 'sessionError', 'tlsClientError', 'error']) {
    server.on(event, (error, socket) => {
      if (event === 'error') throw error;
      socket?.destroy?.();
    });
  }
  server.listen({ port, host: '127.0.0.1', backlog: BACKLOG });
}

for (const port of options.http ?? []) listen(http.createServer(handle), port);
for (const port of options.https ?? []) listen(https.createServer(secure, handle), port);
for (const port of options.h2 ?? []) {
  listen(http2.createSecureServer({ ...secure, ...streams, allowHTTP1: true }, handle), port);
}
for (const port of options.h2c ?? []) listen(http2.createServer(streams, handle), port);
http.createServer((request, response) => response.end(JSON.stringify(counts)))
  .listen(options.counts, '127.0.0.1');
