// A small serving program that fails in the way that SERVE_STEP names. Names in capitals vary.
'use strict';
const fs = require('fs');
const http = require('http');
const https = require('https');
const net = require('net');
const path = require('path');

const step = process.env.SERVE_STEP;
const seconds = Number(process.env.SERVE_SECONDS || '1');
const argument = process.env.SERVE_ARGUMENT || '';

function readTokenizer(file) {
  return JSON.parse(fs.readFileSync(file, 'utf8'));
}

function get(url) {
  return new Promise((resolve, reject) => {
    const client = url.startsWith('https') ? https : http;
    const request = client.get(url, (response) => {
      response.resume();
      response.on('end', resolve);
    });
    request.on('error', reject);
  });
}

async function LOADNAME() {
  switch (step) {
    case 'heap': {
      const kept = [];
      for (;;) kept.push(new Array(1 << 16).fill(kept.length));
    }
    case 'buffer':
      return new ArrayBuffer(Number.MAX_SAFE_INTEGER);
    case 'wasm-memory':
      return Array.from({ length: 64 }, () => new WebAssembly.Memory({ initial: 65536, maximum: 65536 })).map((m) => new Uint8Array(m.buffer).fill(1));
    case 'require':
      return require(argument);
    case 'import':
      return import(argument);
    case 'addon':
      return require(argument);
    case 'get':
      return get(argument);
    case 'fetch': {
      const response = await fetch(argument, { signal: AbortSignal.timeout(seconds * 1000) });
      if (!response.ok) throw new Error(`HTTP ${response.status} ${response.statusText} for ${argument}`);
      return response.arrayBuffer();
    }
    case 'connect':
      return new Promise((resolve, reject) => {
        const [host, port] = argument.split(':');
        const socket = net.connect({ host, port: Number(port) });
        socket.setTimeout(1000, () => socket.destroy(Object.assign(new Error(`connect ETIMEDOUT ${argument}`), { code: 'ETIMEDOUT', errno: -110, syscall: 'connect', address: host, port: Number(port) })));
        socket.on('error', reject);
        socket.on('connect', () => socket.write('GET / HTTP/1.0\r\n\r\n'));
      });
    case 'read':
      return fs.readFileSync(argument);
    case 'open':
      return fs.promises.readFile(argument);
    case 'mkdir':
      return fs.mkdirSync(argument, { recursive: true });
    case 'write':
      return fs.writeFileSync(argument, Buffer.alloc(1 << 20));
    case 'tokenizer':
      return readTokenizer(argument);
    case 'wasm':
      return WebAssembly.compile(fs.readFileSync(argument));
    case 'abort':
      return process.abort();
    default:
      return null;
  }
}

class OWNERNAME {
  async INITNAME() {
    if (process.env.SERVE_DEPTH === '0') return LOADNAME();
    try {
      return await LOADNAME();
    } catch (error) {
      if (process.env.SERVE_DEPTH === '2') {
        console.error('failed to load model %s', process.env.SERVE_MODEL, error);
        process.exit(1);
      }
      throw new Error(`model ${process.env.SERVE_MODEL} is not available`, { cause: error });
    }
  }
}

(async () => {
  await new OWNERNAME().INITNAME();
  console.log('server ready on %s', path.basename(__filename));
})();
