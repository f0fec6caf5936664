// A small Node server with one handler: `node_server.js HANDLER PORT`.
//
// hello    answers at once
// hundred  answers at once, with 100 bytes
// compute  hashes for about a millisecond first, on the one thread of the event loop
// wait     waits 20 ms for nothing first, as for another service

'use strict';

const { createHash } = require('node:crypto');
const { createServer } = require('node:http');
const { setTimeout: sleep } = require('node:timers/promises');

const HUNDRED = 'x'.repeat(100);
const HASHES = 1200;
const WAIT_MS = 20;

const handlers = {
  hello(request, response) {
    response.end('Hello, world!\n');
  },
  hundred(request, response) {
    response.end(HUNDRED);
  },
  compute(request, response) {
    let digest = request.url;
    for (let count = 0; count < HASHES; count += 1) {
      digest = createHash('sha256').update(digest).digest('hex');
    }
    response.end(digest);
  },
  async wait(request, response) {
    await sleep(WAIT_MS);
    response.end('Done\n');
  },
};

const [handler, port] = process.argv.slice(2);
createServer(handlers[handler]).listen(Number(port), '127.0.0.1');
